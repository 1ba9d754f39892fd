package recall

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
)

type messages struct{}

func (messages) Kind() string { return "embed_messages" }

type job = endpoint.OwnerJob[messages]

// Queue returns the queue of messages that wait for their vectors. Each agent has one job; Backfill takes over
// conversations one at a time.
func (s *Store) Queue() *endpoint.Queue[messages] {
	const waiting = `unembedded AND deleted_at IS NULL AND coalesce(embedded_space, `
	return &endpoint.Queue[messages]{
		Worker: endpoint.Worker[job]{
			DB: s.db,
			Vectors: s.search.VectorTable(
				`SELECT coalesce(sum(messages - embedded), 0) FROM conversations WHERE `+waiting+`$1) = $1`,
				"org", "agent_key", "conversation_key", "position", "role", "created_at"),
			Openings: true, Next: s.nextBatch,
		},
		Settle: s.settle,
		Waiting: `
			SELECT org, agent_key AS owner, max(last_message_at) AS newest FROM conversations
			WHERE ` + waiting + `@space) = @space
			GROUP BY org, agent_key`,
		Owners: "conversations", TakeOverRows: 500, Lock: "NO KEY UPDATE", TakeOver: []string{`
			UPDATE conversations
			SET embedded = 0, embedded_space = @space, unembedded = true, embed_error = NULL, embed_refused = 0
			WHERE org = @org AND key = ANY (@keys)`}}
}

// batch holds messages without vectors, from one conversation or several conversations of an agent.
type batch struct {
	store         *Store
	job           job
	space         endpoint.Space
	conversations []unembedded
	messages      []lacking
}

// unembedded is a conversation. Its messages after Embedded, up to Until, may lack vectors.
type unembedded struct {
	Key      int64  `db:"key"`
	Embedded int    `db:"embedded"`
	Space    *int16 `db:"embedded_space"`
	Until    int    `db:"messages"`
}

// lacking is a message without its vector.
type lacking struct {
	Key          int64     `db:"key"`
	Conversation int64     `db:"conversation_key"`
	Position     int       `db:"position"`
	Role         Role      `db:"role"`
	Name         *string   `db:"name"`
	Content      []Part    `db:"content"`
	CreatedAt    time.Time `db:"created_at"`
	Version      int64     `db:"version"` // changes whenever the row changes
	Found        int       `db:"found"`   // more than the batch has messages if conversations have messages beyond it
}

// conversationsAtOnce is the most conversations in one batch.
const conversationsAtOnce = 32

// nextBatch reads the first messages without a vector in the conversations that were written to last, at most as many
// as the endpoint's Size.
func (s *Store) nextBatch(ctx context.Context, j job, space endpoint.Space) (endpoint.Batch, error) {
	conversations, err := db.All[unembedded](ctx, s.db, `
		SELECT key, embedded, embedded_space, messages FROM conversations
		WHERE org = $1 AND agent_key = $2 AND unembedded AND deleted_at IS NULL AND coalesce(embedded_space, $3) = $3
		ORDER BY last_message_at DESC NULLS LAST, key DESC
		LIMIT $4`, j.Org, j.Owner, space.ID, conversationsAtOnce)
	if err != nil || len(conversations) == 0 {
		return nil, err
	}
	b := &batch{store: s, job: j, space: space, conversations: conversations}
	if b.messages, err = b.lacking(ctx); err != nil {
		return nil, err
	}
	b.shorten()
	return b, nil
}

// lacking reads the messages of the batch that searches may find and that have no vector.
func (b *batch) lacking(ctx context.Context) ([]lacking, error) {
	keys, after, _ := b.columns()
	until := make([]int, len(b.conversations))
	for i, c := range b.conversations {
		until[i] = c.Until
	}
	return db.All[lacking](ctx, b.store.db, `
		SELECT key, conversation_key, position, role, name, content, created_at, version, found FROM (
			SELECT m.*, c.nth, count(*) OVER () AS found, row_number() OVER upto AS place,
			       sum(m.tokens) OVER upto - m.tokens AS before
			FROM unnest(@keys::bigint[], @after::integer[], @until::integer[]) WITH ORDINALITY AS c (key, after, until, nth)
			CROSS JOIN LATERAL (
				SELECT key, conversation_key, position, role, name, content, created_at, tokens,
				       m.xmin::text::bigint AS version
				FROM messages m
				WHERE m.org = @org AND m.conversation_key = c.key AND m.position > c.after AND m.position <= c.until
				  AND m.lex IS NOT NULL
				  AND NOT EXISTS (
					SELECT FROM message_vectors v WHERE v.org = @org AND v.message_key = m.key AND v.space_id = @space)
				ORDER BY m.position
				LIMIT @size + 1
			) m
			WINDOW upto AS (ORDER BY c.nth, m.position)
		) first
		WHERE place <= @size AND before < @tokens
		ORDER BY nth, position`,
		pgx.StrictNamedArgs{"keys": keys, "after": after, "until": until, "org": b.job.Org, "space": b.space.ID,
			"size": b.store.o.Endpoint.Size(), "tokens": endpoint.MostTokens})
}

// columns returns the conversations' keys, with their progress and spaces as read.
func (b *batch) columns() (keys []int64, embedded []int, spaces []*int16) {
	for _, c := range b.conversations {
		keys, embedded, spaces = append(keys, c.Key), append(embedded, c.Embedded), append(spaces, c.Space)
	}
	return keys, embedded, spaces
}

// shorten makes the batch's last message the end of its conversations, if they have more messages.
func (b *batch) shorten() {
	if len(b.messages) == 0 || b.messages[0].Found == len(b.messages) {
		return
	}
	last := b.messages[len(b.messages)-1]
	for i := range b.conversations {
		if b.conversations[i].Key == last.Conversation {
			b.conversations[i].Until = last.Position
			b.conversations = b.conversations[:i+1]
			return
		}
	}
}

func (b *batch) Items() []embed.Item {
	items := make([]embed.Item, len(b.messages))
	for i, m := range b.messages {
		items[i] = embed.Item{ID: m.Key, Text: db.Beginning(searchText(m.Role, m.Name, m.Content), pieceBytes)}
	}
	return items
}

// Lock implements endpoint.Batch. It leaves out conversations that were deleted, that another server embedded, or where
// an erasure changed a message of the batch.
func (b *batch) Lock(ctx context.Context, tx pgx.Tx) (map[int64][]any, error) {
	keys, embedded, spaces := b.columns()
	same, err := db.All[int64](ctx, tx, `
		SELECT c.key FROM conversations c
		JOIN unnest($3::bigint[], $4::integer[], $5::smallint[]) AS was (key, embedded, space)
		  ON was.key = c.key AND was.embedded = c.embedded AND was.space IS NOT DISTINCT FROM c.embedded_space
		WHERE c.org = $1 AND c.agent_key = $2 AND c.deleted_at IS NULL
		ORDER BY c.key
		FOR NO KEY UPDATE OF c`, b.job.Org, b.job.Owner, keys, embedded, spaces)
	if err != nil {
		return nil, err
	}
	changed, err := b.changed(ctx, tx)
	if err != nil {
		return nil, err
	}
	same = slices.DeleteFunc(same, func(key int64) bool { return slices.Contains(changed, key) })
	b.conversations = slices.DeleteFunc(b.conversations, func(c unembedded) bool { return !slices.Contains(same, c.Key) })
	locked := make(map[int64][]any, len(b.messages))
	for _, m := range b.messages {
		if slices.Contains(same, m.Conversation) {
			locked[m.Key] = []any{b.job.Org, b.job.Owner, m.Conversation, m.Position, m.Role, m.CreatedAt}
		}
	}
	return locked, nil
}

// changed returns the conversations where a message of the batch has changed since it was read.
func (b *batch) changed(ctx context.Context, tx pgx.Tx) ([]int64, error) {
	keys, versions := b.versions()
	return db.All[int64](ctx, tx, `
		SELECT DISTINCT m.conversation_key
		FROM unnest($2::bigint[], $3::bigint[]) AS was (key, version)
		JOIN messages m ON m.org = $1 AND m.key = was.key AND m.xmin::text::bigint <> was.version`,
		b.job.Org, keys, versions)
}

// versions returns the messages' keys, with their versions as read.
func (b *batch) versions() (keys, versions []int64) {
	for _, m := range b.messages {
		keys, versions = append(keys, m.Key), append(versions, m.Version)
	}
	return keys, versions
}

// Finish implements endpoint.Batch. It counts the refused messages.
func (b *batch) Finish(ctx context.Context, tx pgx.Tx, refused []*endpoint.RefusedError) error {
	counts := map[int64]int{}
	for _, m := range b.messages {
		if slices.ContainsFunc(refused, func(r *endpoint.RefusedError) bool { return r.ID == m.Key }) {
			counts[m.Conversation]++
		}
	}
	var rows pgx.Batch
	for _, c := range b.conversations {
		var reason *string
		if counts[c.Key] > 0 {
			reason = new(fmt.Sprintf("some messages get no vector (%s); they are found by their words",
				refused[0].Reason))
		}
		rows.Queue(`
			UPDATE conversations
			SET embedded = $2, embedded_space = $3, unembedded = messages > $2, embed_refused = embed_refused + $4,
			    embed_error = $5
			WHERE org = $6 AND key = $1`, c.Key, c.Until, b.space.ID, counts[c.Key], reason, b.job.Org)
	}
	return tx.SendBatch(ctx, &rows).Close()
}

func (b *batch) Note(ctx context.Context, reason string) error {
	keys, _, _ := b.columns()
	_, err := b.store.db.Exec(ctx, `
		UPDATE conversations SET embed_error = $3
		WHERE org = $1 AND key = ANY ($2) AND embed_error IS DISTINCT FROM $3`, b.job.Org, keys, reason)
	return db.Error(err)
}
