package recall

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// stretch is the end of a conversation that lacks vectors: what comes after position Embedded, as far as Until.
type stretch struct {
	Key      int64  `db:"key"`
	Embedded int    `db:"embedded"`
	Space    *int16 `db:"embedded_space"`
	Until    int    `db:"messages"`

	refused int
}

// lacking is a message without its vector.
type lacking struct {
	Key          int64   `db:"key"`
	Conversation int64   `db:"conversation_key"`
	Position     int     `db:"position"`
	Role         Role    `db:"role"`
	Name         *string `db:"name"`
	Content      []Part  `db:"content"`
	Found        int     `db:"found"` // as many messages as there are at least, this batch's among them
}

// embed makes the vectors of one batch of an agent's messages, of one conversation or of several; more says that there was one. The endpoint is
// called with no transaction open; a message it refuses goes without a vector and is found by its words.
func (s *Store) embed(ctx context.Context, turn *embed.Turn, job EmbedArgs, space embed.Space) (more bool, err error) {
	stretches, err := s.stretches(ctx, job, space)
	if err != nil || len(stretches) == 0 {
		return false, err
	}
	messages, err := s.lacking(ctx, job, space, stretches)
	if err != nil {
		return false, err
	}
	stretches = covered(stretches, messages)
	vectors, refused, err := turn.Openings(ctx, texts(messages))
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return false, err
		}
		return false, errors.Join(err, s.note(ctx, job, stretches, embed.Waiting(err)))
	}
	return true, s.keep(ctx, job, space, stretches, messages, vectors, refused)
}

// stretchesAtOnce is how many conversations one batch is of at most.
const stretchesAtOnce = 32

// stretches are conversations of an agent with messages that may lack vectors.
func (s *Store) stretches(ctx context.Context, job EmbedArgs, space embed.Space) ([]stretch, error) {
	return db.All[stretch](ctx, s.db, `
		SELECT key, embedded, embedded_space, messages FROM conversations
		WHERE org = $1 AND agent_key = $2 AND unembedded AND deleted_at IS NULL AND coalesce(embedded_space, $3) = $3
		ORDER BY key
		LIMIT $4`, job.Org, job.AgentKey, space.ID, stretchesAtOnce)
}

// lacking reads the first messages of stretches that are searched and have no vector: as many as the endpoint has time for.
func (s *Store) lacking(ctx context.Context, job EmbedArgs, space embed.Space, stretches []stretch) ([]lacking, error) {
	keys, after, until := make([]int64, len(stretches)), make([]int, len(stretches)), make([]int, len(stretches))
	for i, c := range stretches {
		keys[i], after[i], until[i] = c.Key, c.Embedded, c.Until
	}
	return db.All[lacking](ctx, s.db, `
		SELECT key, conversation_key, position, role, name, content, found FROM (
			SELECT m.*, count(*) OVER () AS found, row_number() OVER upto AS place, sum(m.tokens) OVER upto - m.tokens AS before
			FROM unnest(@keys::bigint[], @after::integer[], @until::integer[]) AS c (key, after, until)
			CROSS JOIN LATERAL (
				SELECT key, conversation_key, position, role, name, content, tokens FROM messages m
				WHERE m.org = @org AND m.conversation_key = c.key AND m.position > c.after AND m.position <= c.until AND m.lex IS NOT NULL
				  AND NOT EXISTS (SELECT FROM message_vectors v WHERE v.message_key = m.key AND v.space_id = @space)
				ORDER BY m.position
				LIMIT @size + 1
			) m
			WINDOW upto AS (ORDER BY m.conversation_key, m.position)
		) first
		WHERE place <= @size AND before < @tokens
		ORDER BY conversation_key, position`,
		pgx.StrictNamedArgs{"keys": keys, "after": after, "until": until, "org": job.Org, "space": space.ID,
			"size": s.o.Dense.Size(), "tokens": embed.MostTokens})
}

// covered are the stretches as far as a batch of their messages reaches.
func covered(stretches []stretch, batch []lacking) []stretch {
	if len(batch) == 0 || batch[0].Found == len(batch) {
		return stretches
	}
	last := batch[len(batch)-1]
	for i := range stretches {
		if stretches[i].Key == last.Conversation {
			stretches[i].Until = last.Position
			return stretches[:i+1]
		}
	}
	return stretches
}

// texts are what is embedded of messages.
func texts(batch []lacking) []embed.Item {
	items := make([]embed.Item, len(batch))
	for i, m := range batch {
		items[i] = embed.Item{ID: m.Key, Text: searchable(m.Role, m.Name, m.Content)}
	}
	return items
}

// keep stores a batch's vectors and how far its conversations have theirs now. A conversation is left alone that was deleted meanwhile, or
// whose messages another server embedded.
func (s *Store) keep(ctx context.Context, job EmbedArgs, space embed.Space, stretches []stretch, batch []lacking, vectors []embed.Vector,
	refused []*embed.RefusedError) error {
	in := make(map[int64]int64, len(batch))
	for _, m := range batch {
		in[m.Key] = m.Conversation
	}
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		mine, err := s.With(tx).fence(ctx, job, stretches)
		if err != nil || len(mine) == 0 {
			return err
		}
		for _, r := range refused {
			if c := mine[in[r.ID]]; c != nil {
				c.refused++
			}
		}
		var rows pgx.Batch
		for _, v := range vectors {
			if mine[in[v.ID]] == nil {
				continue
			}
			rows.Queue(`
				INSERT INTO message_vectors (space_id, message_key, org, agent_key, conversation_key, position, role, created_at, embedding)
				SELECT $1, key, org, agent_key, conversation_key, position, role, created_at, $3
				FROM messages WHERE org = $4 AND key = $2
				ON CONFLICT (message_key, space_id) DO NOTHING`, space.ID, v.ID, embed.Half(v.Values), job.Org)
		}
		for _, c := range stretches {
			if c := mine[c.Key]; c != nil {
				rows.Queue(`
					UPDATE conversations
					SET embedded = $2, embedded_space = $3, unembedded = messages > $2, embed_refused = embed_refused + $4, embed_error = $5
					WHERE org = $6 AND key = $1`, c.Key, c.Until, space.ID, c.refused, refusal(c.refused, refused), job.Org)
			}
		}
		return tx.SendBatch(ctx, &rows).Close()
	})
}

// fence locks those of the stretches that are as they were read.
func (s *Store) fence(ctx context.Context, job EmbedArgs, stretches []stretch) (map[int64]*stretch, error) {
	keys, after, spaces := make([]int64, len(stretches)), make([]int, len(stretches)), make([]*int16, len(stretches))
	for i, c := range stretches {
		keys[i], after[i], spaces[i] = c.Key, c.Embedded, c.Space
	}
	same, err := db.All[int64](ctx, s.db, `
		SELECT c.key FROM conversations c
		JOIN unnest($3::bigint[], $4::integer[], $5::smallint[]) AS was (key, embedded, space)
		  ON was.key = c.key AND was.embedded = c.embedded AND was.space IS NOT DISTINCT FROM c.embedded_space
		WHERE c.org = $1 AND c.agent_key = $2 AND c.deleted_at IS NULL
		ORDER BY c.key
		FOR NO KEY UPDATE OF c`, job.Org, job.AgentKey, keys, after, spaces)
	mine := make(map[int64]*stretch, len(same))
	for i := range stretches {
		for _, key := range same {
			if stretches[i].Key == key {
				mine[key], stretches[i].refused = &stretches[i], 0
			}
		}
	}
	return mine, err
}

// refusal is what is told of messages that the endpoint refused.
func refusal(n int, refused []*embed.RefusedError) *string {
	if n == 0 {
		return nil
	}
	told := fmt.Sprintf("the embeddings endpoint refuses some messages (%s); they are found by their words", refused[0].Reason)
	return &told
}

// note tells why conversations wait for their vectors.
func (s *Store) note(ctx context.Context, job EmbedArgs, stretches []stretch, reason string) error {
	ctx, cancel := embed.Noting(ctx)
	defer cancel()
	keys := make([]int64, len(stretches))
	for i, c := range stretches {
		keys[i] = c.Key
	}
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			UPDATE conversations SET embed_error = $3
			WHERE org = $1 AND key = ANY ($2) AND embed_error IS DISTINCT FROM $3`, job.Org, keys, reason)
		return err
	})
}
