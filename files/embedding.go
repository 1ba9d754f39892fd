package files

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
	"github.com/loci-memory/loci/embed"
)

// embedWidth is how many batches of a file are queued at a time. Each batch that is done queues the next, so that files
// take turns.
const embedWidth = 4

// batchOf returns how many chunks of a given number of tokens one job embeds.
func batchOf(chunkTokens int) int {
	return min(max(embed.MostTokens/max(chunkTokens, 1), 1), embed.MostTexts)
}

// vectors returns the table of the chunks' vectors. Of files that are not parsed yet, a chunk is to come for each 1,000
// bytes.
func (s *Store) vectors() embed.Vectors {
	return s.search.VectorTable(`
		SELECT (coalesce(sum(end_ordinal - first_ordinal), 0) + (
			SELECT coalesce(sum(1 + size_bytes / 1000), 0) FROM files
			WHERE generation < wanted_generation AND error IS NULL AND NOT cancelled))::bigint
		FROM embed_batches WHERE space_id = $1`, "org", "folder_key")
}

// addBatches adds the batches of a generation's chunks, and queues the first, if an endpoint is configured.
func (s *Store) addBatches(ctx context.Context, job ParseArgs, src source, chunks int) error {
	space := s.space()
	if space == 0 || chunks == 0 {
		return nil
	}
	if _, err := s.db.Exec(ctx, `
		INSERT INTO embed_batches (file_key, space_id, generation, first_ordinal, end_ordinal, org, folder_key)
		SELECT @file, @space, @generation, first, least(first + @batch, @chunks), @org, @folder
		FROM generate_series(0, @chunks - 1, @batch) AS first`,
		pgx.StrictNamedArgs{"file": src.Key, "space": space, "generation": job.Generation, "batch": batchOf(src.ChunkTokens),
			"chunks": chunks, "org": src.Org, "folder": src.FolderKey}); err != nil {
		return err
	}
	return s.queueBatches(ctx, src.Org, space, []int64{src.Key}, embedWidth)
}

// queueBatches queues jobs for the first batches without a job of every file, at most each of a file, at the turn of
// its folder. It must run in a transaction.
func (s *Store) queueBatches(ctx context.Context, org db.Org, space int16, fileKeys []int64, each int) error {
	type batch struct {
		EmbedArgs
		FolderKey int64 `db:"folder_key"`
	}
	batches, err := db.All[batch](ctx, s.db, `
		SELECT b.org, b.file_key, b.generation, b.space_id, b.first_ordinal, b.folder_key
		FROM unnest($3::bigint[]) AS f (key)
		CROSS JOIN LATERAL (
			SELECT * FROM embed_batches e
			WHERE e.org = $1 AND e.file_key = f.key AND e.space_id = $2 AND e.turn IS NULL
			ORDER BY e.first_ordinal
			LIMIT $4
			FOR UPDATE SKIP LOCKED
		) b
		ORDER BY b.folder_key, b.first_ordinal, b.file_key`, org, space, fileKeys, each)
	if err != nil || len(batches) == 0 {
		return err
	}
	jobs := make([]river.JobArgs, len(batches))
	turn := map[int64]queue.Turn{}
	keys, firsts, ends := make([]int64, len(batches)), make([]int, len(batches)), make([]time.Time, len(batches))
	for i, b := range batches {
		if _, known := turn[b.FolderKey]; !known {
			if turn[b.FolderKey], err = s.embedTurn(ctx, org, b.FolderKey, space); err != nil {
				return err
			}
		}
		b.Start = queue.At(turn[b.FolderKey].Start)
		turn[b.FolderKey] = turn[b.FolderKey].Next(batchLength)
		jobs[i], keys[i], firsts[i], ends[i] = b.EmbedArgs, b.FileKey, b.FirstOrdinal, turn[b.FolderKey].Start
	}
	if _, err := s.db.Exec(ctx, `
		UPDATE embed_batches b SET turn = u.turn
		FROM unnest($3::bigint[], $4::integer[], $5::timestamptz[]) AS u (file_key, first_ordinal, turn)
		WHERE b.org = $1 AND b.space_id = $2 AND b.file_key = u.file_key AND b.first_ordinal = u.first_ordinal`,
		org, space, keys, firsts, ends); err != nil {
		return err
	}
	return s.enqueue(ctx, jobs...)
}

// batch is one batch of a file's chunks.
type batch struct {
	store  *Store
	job    EmbedArgs
	chunks []unembedded
}

type unembedded struct {
	Key     int64  `db:"key"`
	Heading string `db:"heading"`
	Text    string `db:"text"`
}

// nextBatch reads a job's batch, shortened to the number of chunks that the endpoint embeds in time.
func (s *Store) nextBatch(ctx context.Context, job EmbedArgs, space embed.Space) (embed.Batch, error) {
	if space.ID != job.SpaceID {
		return nil, river.JobCancel(errors.New("the space is not in use; its work is queued again when it is"))
	}
	if size := s.o.Endpoint.Size(); size < embed.MostTexts { // no batch has more
		if err := s.shorten(ctx, job, size); err != nil {
			return nil, err
		}
	}
	chunks, err := db.All[unembedded](ctx, s.db, `
		SELECT c.key, c.heading, c.text
		FROM embed_batches b
		JOIN chunks c ON c.org = b.org AND c.file_key = b.file_key AND c.generation = b.generation
		             AND c.ordinal >= b.first_ordinal AND c.ordinal < b.end_ordinal
		JOIN files f ON f.org = c.org AND f.key = c.file_key
		JOIN folders d ON d.org = c.org AND d.key = c.folder_key AND d.deleted_at IS NULL
		WHERE b.org = $5 AND b.file_key = $1 AND b.space_id = $2 AND b.generation = $3 AND b.first_ordinal = $4
		ORDER BY c.ordinal`, job.FileKey, job.SpaceID, job.Generation, job.FirstOrdinal, job.Org)
	if err != nil || len(chunks) == 0 {
		return nil, err
	}
	return &batch{store: s, job: job, chunks: chunks}, nil
}

// shorten keeps the first size chunks of a batch; the others become a batch that is queued later.
func (s *Store) shorten(ctx context.Context, job EmbedArgs, size int) error {
	_, err := s.db.Exec(ctx, `
		WITH long AS (
			SELECT * FROM embed_batches
			WHERE org = @org AND file_key = @file AND space_id = @space AND generation = @generation AND first_ordinal = @first
			  AND end_ordinal - first_ordinal > @size::integer
			FOR UPDATE
		), short AS (
			UPDATE embed_batches b SET end_ordinal = b.first_ordinal + @size::integer
			FROM long l
			WHERE b.org = @org AND b.file_key = l.file_key AND b.space_id = l.space_id AND b.generation = l.generation
			  AND b.first_ordinal = l.first_ordinal
		)
		INSERT INTO embed_batches (file_key, space_id, generation, first_ordinal, end_ordinal, org, folder_key, error)
		SELECT file_key, space_id, generation, first_ordinal + @size::integer, end_ordinal, org, folder_key, error FROM long`,
		pgx.StrictNamedArgs{"org": job.Org, "file": job.FileKey, "space": job.SpaceID, "generation": job.Generation,
			"first": job.FirstOrdinal, "size": size})
	return err
}

func (b *batch) Items() []embed.Item {
	items := make([]embed.Item, len(b.chunks))
	for i, c := range b.chunks {
		items[i] = embed.Item{ID: c.Key, Text: c.Text}
		if c.Heading != "" {
			items[i].Text = c.Heading + "\n\n" + c.Text
		}
	}
	return items
}

// Lock implements embed.Batch. A batch is not stored if its file is deleted or cancelled, if another worker stored or
// shortened it, or if the file has another text.
func (b *batch) Lock(ctx context.Context, tx pgx.Tx) (map[int64][]any, error) {
	folder, err := db.One[int64](ctx, tx, `
		SELECT folder_key FROM files WHERE org = $1 AND key = $2 AND NOT cancelled FOR SHARE`, b.job.Org, b.job.FileKey)
	if err != nil {
		return nil, err
	}
	locked := make(map[int64][]any, len(b.chunks))
	for _, c := range b.chunks {
		locked[c.Key] = []any{b.job.Org, folder}
	}
	return locked, db.Exec(ctx, tx, `
		DELETE FROM embed_batches
		WHERE org = @org AND file_key = @file AND space_id = @space AND generation = @generation AND first_ordinal = @first
		  AND end_ordinal - first_ordinal = @chunks`,
		pgx.StrictNamedArgs{"org": b.job.Org, "file": b.job.FileKey, "space": b.job.SpaceID, "generation": b.job.Generation,
			"first": b.job.FirstOrdinal, "chunks": len(b.chunks)})
}

// Finish implements embed.Batch. It counts refused chunks, with the reason of one, and queues the file's next batch.
func (b *batch) Finish(ctx context.Context, tx pgx.Tx, refused []*embed.RefusedError) error {
	if len(refused) > 0 {
		if _, err := tx.Exec(ctx, `
			INSERT INTO embed_refusals AS r (file_key, space_id, org, chunks, reason)
			VALUES (@file, @space, @org, @chunks, @reason)
			ON CONFLICT (org, file_key, space_id) DO UPDATE SET chunks = r.chunks + excluded.chunks`,
			pgx.StrictNamedArgs{"file": b.job.FileKey, "space": b.job.SpaceID, "org": b.job.Org, "chunks": len(refused),
				"reason": refused[0].Reason}); err != nil {
			return err
		}
	}
	return b.store.With(tx).queueBatches(ctx, b.job.Org, b.job.SpaceID, []int64{b.job.FileKey}, 1)
}

func (b *batch) Note(ctx context.Context, reason string) error {
	_, err := b.store.db.Exec(ctx, `
		UPDATE embed_batches SET error = $6
		WHERE org = $5 AND file_key = $1 AND space_id = $2 AND generation = $3 AND first_ordinal = $4`,
		b.job.FileKey, b.job.SpaceID, b.job.Generation, b.job.FirstOrdinal, b.job.Org, reason)
	return err
}

// Index builds the index of the active space's vectors if it pays and is missing; built reports whether it did.
func (s *Store) Index(ctx context.Context, pool *pgxpool.Pool, progress func(done, total int)) (built bool, err error) {
	return s.vectors().Index(ctx, pool, progress)
}

// IndexAll builds the missing indexes of all spaces that are used, and returns their number.
func (s *Store) IndexAll(ctx context.Context, pool *pgxpool.Pool) (built int, err error) {
	return s.vectors().IndexAll(ctx, pool)
}

// ClearSpaces deletes the vectors of spaces that no server has used for a week, with their indexes, and returns their
// number.
func (s *Store) ClearSpaces(ctx context.Context, pool *pgxpool.Pool) (rows int, err error) {
	return s.vectors().ClearUnused(ctx, pool, func(ctx context.Context, unused []int16) error {
		_, err := pool.Exec(ctx, `DELETE FROM embed_batches WHERE space_id = ANY ($1)`, unused)
		return err
	})
}
