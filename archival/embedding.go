package archival

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
)

type passages struct{}

// Kind implements endpoint.Kind.
func (passages) Kind() string { return "embed_passages" }

type job = endpoint.OwnerJob[passages]

// Queue returns the queue of passages that wait for vectors. Their owners are archives.
func (s *Store) Queue() *endpoint.Queue[passages] {
	return &endpoint.Queue[passages]{
		Worker: endpoint.Worker[job]{
			DB: s.db,
			Vectors: s.search.VectorTable(`
				SELECT count(*) FROM unembedded_passages u JOIN archives c ON c.org = u.org AND c.key = u.archive_key
				WHERE u.refused IS NULL AND c.embedded_space = $1 AND c.deleted_at IS NULL`,
				"org", "archive_key", "tags", "happened_at", "valid_from", "valid_until"),
			Openings: true, Next: s.nextBatch,
		},
		Settle: s.settle, Waiting: waitingArchives, Owners: "archives", TakeOverRows: 1, Lock: "UPDATE", TakeOver: []string{
			`UPDATE archives SET embedded_space = @space, embed_error = NULL WHERE org = @org AND key = ANY (@keys)`,
			`DELETE FROM unembedded_passages WHERE org = @org AND archive_key = ANY (@keys)`,
			`INSERT INTO unembedded_passages (passage_key, org, archive_key)
			SELECT key, org, archive_key FROM passages p
			WHERE org = @org AND archive_key = ANY (@keys) AND NOT EXISTS (
				SELECT FROM passage_vectors v WHERE v.org = @org AND v.passage_key = p.key AND v.space_id = @space)`}}
}

// waitingArchives selects the archives that have waiting passages. It reads two index entries per archive, however many
// passages wait.
const waitingArchives = `
	SELECT c.org, c.key AS owner, (
		SELECT u.passage_key FROM unembedded_passages u
		WHERE u.refused IS NULL AND u.org = c.org AND u.archive_key = c.key
		ORDER BY u.passage_key DESC
		LIMIT 1) AS newest
	FROM archives c
	WHERE c.embedded_space = @space AND c.deleted_at IS NULL AND EXISTS (
		SELECT FROM unembedded_passages u WHERE u.refused IS NULL AND u.org = c.org AND u.archive_key = c.key)`

// batch is passages of one archive that have no vectors yet.
type batch struct {
	store    *Store
	job      job
	space    endpoint.Space
	passages []unembedded
}

type unembedded struct {
	Key  int64  `db:"key"`
	Text string `db:"text"`
	Sum  []byte `db:"sha256"`
}

// nextBatch reads the newest waiting passages of an archive, as many as one request to the endpoint may hold.
func (s *Store) nextBatch(ctx context.Context, j job, space endpoint.Space) (endpoint.Batch, error) {
	rows, err := db.All[unembedded](ctx, s.db, `
		SELECT key, text, sha256 FROM (
			SELECT p.key, p.text, p.sha256,
			       sum(length(p.text) / 4 + 1) OVER (ORDER BY p.key DESC) - length(p.text) / 4 AS before
			FROM (
				SELECT u.passage_key FROM unembedded_passages u JOIN archives c ON c.org = u.org AND c.key = u.archive_key
				WHERE u.org = @org AND u.archive_key = @archive AND u.refused IS NULL
				  AND c.embedded_space = @space AND c.deleted_at IS NULL
				ORDER BY u.passage_key DESC
				LIMIT @size
			) first
			JOIN passages p ON p.org = @org AND p.key = first.passage_key
		) first
		WHERE before <= @tokens
		ORDER BY key DESC`,
		pgx.StrictNamedArgs{"org": j.Org, "archive": j.Owner, "space": space.ID, "size": s.endpoint.Size(),
			"tokens": endpoint.MostTokens})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &batch{store: s, job: j, space: space, passages: rows}, nil
}

// Items implements endpoint.Batch.
func (b *batch) Items() []embed.Item {
	items := make([]embed.Item, len(b.passages))
	for i, p := range b.passages {
		items[i] = embed.Item{ID: p.Key, Text: p.Text}
	}
	return items
}

// Lock implements endpoint.Batch. It leaves out passages that were deleted, got another text, or no longer wait.
// ErrNotFound if the archive was deleted or moved to another space.
func (b *batch) Lock(ctx context.Context, tx pgx.Tx) (map[int64][]any, error) {
	if _, err := db.One[int64](ctx, tx, `
		SELECT key FROM archives WHERE org = $1 AND key = $2 AND deleted_at IS NULL AND embedded_space = $3 FOR KEY SHARE`,
		b.job.Org, b.job.Owner, b.space.ID); err != nil {
		return nil, err
	}
	keys, sums := b.columns()
	type row struct {
		Key        int64     `db:"key"`
		Tags       []string  `db:"tags"`
		HappenedAt time.Time `db:"happened_at"`
		db.Validity
	}
	unchanged, err := db.All[row](ctx, tx, `
		WITH same AS (
			SELECT p.key, p.tags, p.happened_at, p.valid_from, p.valid_until FROM passages p
			JOIN unnest($2::bigint[], $3::bytea[]) AS was (key, sum) ON was.key = p.key AND was.sum = p.sha256
			WHERE p.org = $1
			ORDER BY p.key
			FOR SHARE OF p
		)
		DELETE FROM unembedded_passages u USING same
		WHERE u.org = $1 AND u.passage_key = same.key AND u.refused IS NULL
		RETURNING same.key, same.tags, same.happened_at, same.valid_from, same.valid_until`, b.job.Org, keys, sums)
	locked := make(map[int64][]any, len(unchanged))
	for _, p := range unchanged {
		locked[p.Key] = []any{b.job.Org, b.job.Owner, p.Tags, p.HappenedAt, p.ValidFrom, p.ValidUntil}
	}
	return locked, err
}

// columns returns the passages' keys and checksums.
func (b *batch) columns() (keys []int64, sums [][]byte) {
	for _, p := range b.passages {
		keys, sums = append(keys, p.Key), append(sums, p.Sum)
	}
	return keys, sums
}

// Finish implements endpoint.Batch. It stores why a passage was refused.
func (b *batch) Finish(ctx context.Context, tx pgx.Tx, refused []*endpoint.RefusedError) error {
	var rows pgx.Batch
	for _, r := range refused {
		rows.Queue(`
			INSERT INTO unembedded_passages (passage_key, org, archive_key, refused) VALUES ($1, $2, $3, $4)`,
			r.ID, b.job.Org, b.job.Owner, r.Reason)
	}
	rows.Queue(`UPDATE archives SET embed_error = NULL WHERE org = $1 AND key = $2 AND embed_error IS NOT NULL`,
		b.job.Org, b.job.Owner)
	return tx.SendBatch(ctx, &rows).Close()
}

// Note implements endpoint.Batch.
func (b *batch) Note(ctx context.Context, reason string) error {
	_, err := b.store.db.Exec(ctx, `
		UPDATE archives SET embed_error = $3
		WHERE org = $1 AND key = $2 AND embedded_space = $4 AND embed_error IS DISTINCT FROM $3`,
		b.job.Org, b.job.Owner, reason, b.space.ID)
	return db.Error(err)
}

// wait queues passages for vectors if their archive has an embedding space.
func (s *Store) wait(ctx context.Context, org db.Org, archive int64, ids []uuid.UUID) error {
	_, err := s.db.Exec(ctx, `
		INSERT INTO unembedded_passages (passage_key, org, archive_key)
		SELECT p.key, c.org, c.key FROM archives c JOIN passages p ON p.archive_key = c.key AND p.org = c.org
		WHERE c.org = $1 AND c.key = $2 AND c.embedded_space IS NOT NULL AND p.id = ANY ($3)
		ON CONFLICT (org, passage_key) DO UPDATE SET refused = NULL`, org, archive, ids)
	return db.Error(err)
}
