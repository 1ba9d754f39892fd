package recall

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
)

// ReembedSource lets endpoint.Reembed make vectors of messages for another space.
func (s *Store) ReembedSource() endpoint.ReembedSource {
	return s.Queue().ReembedSource(s.readReembedRows)
}

// reembedRows is a batch of messages that lack a vector in a space.
type reembedRows struct {
	batch
	org db.Org
}

// readReembedRows returns the messages with these keys that lack a vector in the space.
func (s *Store) readReembedRows(ctx context.Context, org db.Org, space endpoint.Space, keys []int64) (
	endpoint.Rows, error) {
	messages, err := db.All[lacking](ctx, s.db, `
		SELECT m.key, m.conversation_key, m.position, m.role, m.name, m.content, m.created_at,
		       m.xmin::text::bigint AS version, 0 AS found
		FROM messages m
		WHERE m.org = $1 AND m.key = ANY ($2) AND m.lex IS NOT NULL AND NOT EXISTS (
			SELECT FROM message_vectors v WHERE v.org = $1 AND v.message_key = m.key AND v.space_id = $3)
		ORDER BY m.key`, org, keys, space.ID)
	if err != nil || len(messages) == 0 {
		return nil, err
	}
	return &reembedRows{batch{store: s, space: space, messages: messages}, org}, nil
}

// Lock implements endpoint.Rows. It leaves out messages that were deleted or changed by an erasure.
func (b *reembedRows) Lock(ctx context.Context, tx pgx.Tx) (map[int64][]any, error) {
	keys, versions := b.versions()
	type row struct {
		Key   int64 `db:"key"`
		Agent int64 `db:"agent_key"`
	}
	same, err := db.All[row](ctx, tx, `
		SELECT m.key, m.agent_key FROM messages m
		JOIN unnest($2::bigint[], $3::bigint[]) AS was (key, version)
		  ON was.key = m.key AND was.version = m.xmin::text::bigint
		WHERE m.org = $1
		ORDER BY m.key
		FOR SHARE OF m`, b.org, keys, versions)
	if err != nil {
		return nil, err
	}
	agents := make(map[int64]int64, len(same))
	for _, m := range same {
		agents[m.Key] = m.Agent
	}
	locked := make(map[int64][]any, len(same))
	for _, m := range b.messages {
		if agent, unchanged := agents[m.Key]; unchanged {
			locked[m.Key] = []any{b.org, agent, m.Conversation, m.Position, m.Role, m.CreatedAt}
		}
	}
	return locked, nil
}

func (*reembedRows) Finish(context.Context, pgx.Tx, []*endpoint.RefusedError) error { return nil }
