package files

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
	"github.com/loci-memory/loci/embed"
)

// embedWidth is how many batches of a file are queued at a time: each that is done calls the next, so that files take
// turns.
const embedWidth = 4

// batchOf is how many chunks of so many tokens one job embeds.
func batchOf(chunkTokens int) int {
	return min(max(embed.MostTokens/max(chunkTokens, 1), 1), embed.MostTexts)
}

// embedWorker makes the vectors of a batch of chunks.
type embedWorker struct {
	river.WorkerDefaults[EmbedArgs]
	store *Store
}

// NextRetry implements river.Worker.
func (w *embedWorker) NextRetry(job *river.Job[EmbedArgs]) time.Time {
	return time.Now().Add(w.store.o.Dense.Pause(len(job.Errors) + 1))
}

// Work implements river.Worker.
func (w *embedWorker) Work(ctx context.Context, job *river.Job[EmbedArgs]) error {
	if w.store.space() != job.Args.SpaceID {
		return river.JobCancel(errors.New("the space is not in use; its work is queued again when it is"))
	}
	turn, away := w.store.o.Dense.Await(ctx)
	if away > 0 {
		return river.JobSnooze(away)
	}
	defer turn.End()
	err := w.store.embed(ctx, turn, job.Args)
	if !turn.Asked() || err == nil || errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	reason := fmt.Sprintf("waiting for the embeddings endpoint: %v", err)
	bounded, cancel := embed.Noting(ctx)
	defer cancel()
	_, noteErr := w.store.db.Exec(bounded, `
		UPDATE embed_batches SET error = $6
		WHERE org = $5 AND file_key = $1 AND space_id = $2 AND generation = $3 AND first_ordinal = $4`,
		job.Args.FileKey, job.Args.SpaceID, job.Args.Generation, job.Args.FirstOrdinal, job.Args.Org, reason)
	return errors.Join(err, noteErr)
}

// await queues the vectors of a generation's chunks, where an endpoint makes some.
func (s *Store) await(ctx context.Context, job ParseArgs, src source, chunks int) error {
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
	return s.call(ctx, space, []int64{src.Key}, embedWidth)
}

// call queues the jobs of the first batches of files that have none, so many of each, at the turn of their folders.
// Files are called in a transaction.
func (s *Store) call(ctx context.Context, space int16, fileKeys []int64, each int) error {
	type batch struct {
		EmbedArgs
		FolderKey int64 `db:"folder_key"`
	}
	batches, err := db.All[batch](ctx, s.db, `
		SELECT b.org, b.file_key, b.generation, b.space_id, b.first_ordinal, b.folder_key
		FROM unnest($2::bigint[]) AS f (key)
		CROSS JOIN LATERAL (
			SELECT * FROM embed_batches e
			WHERE e.file_key = f.key AND e.space_id = $1 AND e.turn IS NULL
			ORDER BY e.first_ordinal
			LIMIT $3
			FOR UPDATE SKIP LOCKED
		) b
		ORDER BY b.folder_key, b.first_ordinal, b.file_key`, space, fileKeys, each)
	if err != nil || len(batches) == 0 {
		return err
	}
	jobs := make([]river.JobArgs, len(batches))
	turn := map[int64]time.Time{}
	keys, firsts, ends := make([]int64, len(batches)), make([]int, len(batches)), make([]time.Time, len(batches))
	for i, b := range batches {
		if _, known := turn[b.FolderKey]; !known {
			if turn[b.FolderKey], err = s.embedStart(ctx, b.Org, b.FolderKey, space); err != nil {
				return err
			}
		}
		b.Start = queue.At(turn[b.FolderKey])
		turn[b.FolderKey] = turn[b.FolderKey].Add(time.Millisecond)
		jobs[i], keys[i], firsts[i], ends[i] = b.EmbedArgs, b.FileKey, b.FirstOrdinal, turn[b.FolderKey]
	}
	if _, err := s.db.Exec(ctx, `
		UPDATE embed_batches b SET turn = u.turn
		FROM unnest($2::bigint[], $3::integer[], $4::timestamptz[]) AS u (file_key, first_ordinal, turn)
		WHERE b.space_id = $1 AND b.file_key = u.file_key AND b.first_ordinal = u.first_ordinal`, space, keys, firsts, ends); err != nil {
		return err
	}
	return s.enqueue(ctx, jobs...)
}

// waiting is a chunk without its vector.
type waiting struct {
	Key       int64  `db:"key"`
	Org       db.Org `db:"org"`
	FolderKey int64  `db:"folder_key"`
	FileName  string `db:"file_name"`
	Heading   string `db:"heading"`
	Text      string `db:"text"`
}

// embed makes the vectors of one batch, or of as much of it as the endpoint has time for. The endpoint is called with
// no transaction open; a chunk it refuses goes without a vector and is found by its words.
func (s *Store) embed(ctx context.Context, turn *embed.Turn, job EmbedArgs) error {
	if err := s.shorten(ctx, job, s.o.Dense.Size()); err != nil {
		return err
	}
	chunks, err := s.waiting(ctx, job)
	if err != nil || len(chunks) == 0 {
		return err
	}
	items := make([]embed.Item, len(chunks))
	byKey := make(map[int64]waiting, len(chunks))
	for i, c := range chunks {
		text := c.Text
		if c.Heading != "" {
			text = c.Heading + "\n\n" + c.Text
		}
		items[i] = embed.Item{ID: c.Key, Text: text}
		byKey[c.Key] = c
	}
	vectors, refused, err := turn.Embed(ctx, items)
	if err != nil {
		return err
	}
	return s.storeVectors(ctx, job, vectors, byKey, refused)
}

func (s *Store) waiting(ctx context.Context, job EmbedArgs) ([]waiting, error) {
	return db.All[waiting](ctx, s.db, `
		SELECT c.key, c.org, c.folder_key, f.name AS file_name, c.heading, c.text
		FROM embed_batches b
		JOIN chunks c ON c.file_key = b.file_key AND c.generation = b.generation
		             AND c.ordinal >= b.first_ordinal AND c.ordinal < b.end_ordinal
		JOIN files f ON f.key = c.file_key
		JOIN folders d ON d.key = c.folder_key AND d.org = c.org
		WHERE b.org = $5 AND c.org = $5 AND b.file_key = $1 AND b.space_id = $2 AND b.generation = $3 AND b.first_ordinal = $4
		ORDER BY c.ordinal`, job.FileKey, job.SpaceID, job.Generation, job.FirstOrdinal, job.Org)
}

// shorten leaves a batch so many chunks; the others become one that is called later.
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
			WHERE b.file_key = l.file_key AND b.space_id = l.space_id AND b.generation = l.generation AND b.first_ordinal = l.first_ordinal
		)
		INSERT INTO embed_batches (file_key, space_id, generation, first_ordinal, end_ordinal, org, folder_key, error)
		SELECT file_key, space_id, generation, first_ordinal + @size::integer, end_ordinal, org, folder_key, error FROM long`,
		pgx.StrictNamedArgs{"org": job.Org, "file": job.FileKey, "space": job.SpaceID, "generation": job.Generation,
			"first": job.FirstOrdinal, "size": size})
	return err
}

// storeVectors writes a batch's vectors, strikes the batch, if it still waits, and calls the file's next.
func (s *Store) storeVectors(ctx context.Context, job EmbedArgs, vectors []embed.Vector, byKey map[int64]waiting,
	refused []*embed.RefusedError) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		if _, err := db.One[int64](ctx, tx, `
			SELECT key FROM files WHERE org = $1 AND key = $2 AND NOT cancelled FOR SHARE`, job.Org, job.FileKey); err != nil {
			return ignoreNotFound(err) // deleted, or told to stop
		}
		err := db.Exec(ctx, tx, `
			DELETE FROM embed_batches
			WHERE org = @org AND file_key = @file AND space_id = @space AND generation = @generation AND first_ordinal = @first
			  AND end_ordinal - first_ordinal = @chunks`,
			pgx.StrictNamedArgs{"org": job.Org, "file": job.FileKey, "space": job.SpaceID, "generation": job.Generation,
				"first": job.FirstOrdinal, "chunks": len(byKey)})
		if err != nil {
			return ignoreNotFound(err) // done or shortened by another worker, or the text is another
		}
		rows := pgx.CopyFromSlice(len(vectors), func(i int) ([]any, error) {
			c := byKey[vectors[i].ID]
			return []any{job.SpaceID, c.Key, c.Org, c.FolderKey, embed.Half(vectors[i].Values)}, nil
		})
		if _, err = tx.CopyFrom(ctx, pgx.Identifier{"chunk_vectors"},
			[]string{"space_id", "chunk_key", "org", "folder_key", "embedding"}, rows); err != nil {
			return err
		}
		if err := s.With(tx).refuse(ctx, job, refused); err != nil {
			return err
		}
		return s.With(tx).call(ctx, job.SpaceID, []int64{job.FileKey}, 1)
	})
}

// refuse counts the chunks that the endpoint will not embed, with the reason of one.
func (s *Store) refuse(ctx context.Context, job EmbedArgs, refused []*embed.RefusedError) error {
	if len(refused) == 0 {
		return nil
	}
	_, err := s.db.Exec(ctx, `
		INSERT INTO embed_refusals AS r (file_key, space_id, org, chunks, reason)
		VALUES (@file, @space, @org, @chunks, @reason)
		ON CONFLICT (file_key, space_id) DO UPDATE SET chunks = r.chunks + excluded.chunks`,
		pgx.StrictNamedArgs{"file": job.FileKey, "space": job.SpaceID, "org": job.Org, "chunks": len(refused),
			"reason": refused[0].Reason})
	return err
}
