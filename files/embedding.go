package files

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// A job embeds so many chunks at most, and so many tokens: few enough that a slow endpoint answers within the job's time.
const (
	embedBatch  = 32
	embedTokens = 9600
)

// batchOf is how many chunks of so many tokens one job embeds.
func batchOf(chunkTokens int) int { return min(max(embedTokens/max(chunkTokens, 1), 1), embedBatch) }

// embedWorker makes the vectors of a batch of chunks.
type embedWorker struct {
	river.WorkerDefaults[EmbedArgs]
	store *Store
}

// NextRetry implements river.Worker.
func (w *embedWorker) NextRetry(job *river.Job[EmbedArgs]) time.Time {
	return time.Now().Add(pause(len(job.Errors) + 1))
}

// Work implements river.Worker.
func (w *embedWorker) Work(ctx context.Context, job *river.Job[EmbedArgs]) error {
	if w.store.space() != job.Args.SpaceID {
		return river.JobCancel(errors.New("the space is not in use; its work is queued again when it is"))
	}
	if rest := w.store.o.Dense.resting(); rest > 0 {
		return river.JobSnooze(rest)
	}
	err := w.store.embed(ctx, job.Args)
	if err == nil {
		return nil
	}
	reason := fmt.Sprintf("waiting for the embeddings endpoint: %v", err)
	_, noteErr := w.store.db.Exec(context.WithoutCancel(ctx), `
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
	batch := batchOf(src.ChunkTokens)
	if _, err := s.db.Exec(ctx, `
		INSERT INTO embed_batches (file_key, space_id, generation, first_ordinal, end_ordinal, org)
		SELECT @file, @space, @generation, first, least(first + @batch, @chunks), @org
		FROM generate_series(0, @chunks - 1, @batch) AS first`,
		pgx.StrictNamedArgs{"file": src.Key, "space": space, "generation": job.Generation, "batch": batch, "chunks": chunks,
			"org": src.Org}); err != nil {
		return err
	}
	var jobs []river.JobArgs
	for first := 0; first < chunks; first += batch {
		jobs = append(jobs, EmbedArgs{Org: src.Org, FileKey: src.Key, Generation: job.Generation, SpaceID: space, FirstOrdinal: first})
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

// embed makes the vectors of one batch. The endpoint is called with no transaction open; a chunk it refuses goes without a vector and
// is found by its words.
func (s *Store) embed(ctx context.Context, job EmbedArgs) error {
	chunks, err := db.All[waiting](ctx, s.db, `
		SELECT c.key, c.org, c.folder_key, f.name AS file_name, c.heading, c.text
		FROM embed_batches b
		JOIN chunks c ON c.file_key = b.file_key AND c.generation = b.generation
		             AND c.ordinal >= b.first_ordinal AND c.ordinal < b.end_ordinal
		JOIN files f ON f.key = c.file_key
		WHERE b.org = $5 AND c.org = $5 AND b.file_key = $1 AND b.space_id = $2 AND b.generation = $3 AND b.first_ordinal = $4
		ORDER BY c.ordinal`, job.FileKey, job.SpaceID, job.Generation, job.FirstOrdinal, job.Org)
	if err != nil {
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
	vectors, err := s.o.Dense.Embedder.Embed(ctx, items)
	var refused *embed.RefusedError
	if err != nil && !errors.As(err, &refused) {
		s.o.Dense.tried(err)
		return err
	}
	s.o.Dense.tried(nil)
	return s.storeVectors(ctx, job, vectors, byKey)
}

// storeVectors writes a batch's vectors and strikes the batch, if it still waits.
func (s *Store) storeVectors(ctx context.Context, job EmbedArgs, vectors []embed.Vector, byKey map[int64]waiting) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		err := db.Exec(ctx, tx, `
			DELETE FROM embed_batches
			WHERE org = $5 AND file_key = $1 AND space_id = $2 AND generation = $3 AND first_ordinal = $4`,
			job.FileKey, job.SpaceID, job.Generation, job.FirstOrdinal, job.Org)
		if err != nil {
			return ignoreNotFound(err) // done by another worker, or the file is gone
		}
		rows := pgx.CopyFromSlice(len(vectors), func(i int) ([]any, error) {
			c := byKey[vectors[i].ID]
			return []any{job.SpaceID, c.Key, c.Org, c.FolderKey, embed.Half(vectors[i].Values)}, nil
		})
		_, err = tx.CopyFrom(ctx, pgx.Identifier{"chunk_vectors"},
			[]string{"space_id", "chunk_key", "org", "folder_key", "embedding"}, rows)
		return err
	})
}

// Backfill queues the vectors that the active space lacks, of every organization: of files that were embedded in another space or in none,
// and of batches whose jobs are gone, as those are that a server with another space took. It returns how many batches were queued anew.
func (s *Store) Backfill(ctx context.Context) (int, error) {
	space := s.space()
	if space == 0 {
		return 0, nil
	}
	tag, err := s.db.Exec(ctx, `
		INSERT INTO embed_batches (file_key, space_id, generation, first_ordinal, end_ordinal, org)
		SELECT f.key, $1, f.generation, first, least(first + b.size, f.chunks), f.org
		FROM files f JOIN folders d ON d.key = f.folder_key
		CROSS JOIN LATERAL (SELECT least(greatest($3 / d.chunk_tokens, 1), $2) AS size) b
		CROSS JOIN LATERAL generate_series(0, f.chunks - 1, b.size) AS first
		WHERE f.chunks > 0
		  AND NOT EXISTS (SELECT FROM embed_batches b WHERE b.file_key = f.key AND b.space_id = $1)
		  AND NOT EXISTS (SELECT FROM chunks c JOIN chunk_vectors v ON v.chunk_key = c.key AND v.space_id = $1 WHERE c.file_key = f.key)
		ON CONFLICT DO NOTHING`, space, embedBatch, embedTokens)
	if err != nil {
		return 0, fmt.Errorf("queue missing vectors: %w", err)
	}
	jobs, err := db.All[EmbedArgs](ctx, s.db, `
		SELECT b.org, b.file_key, b.generation, b.space_id, b.first_ordinal FROM embed_batches b
		WHERE b.space_id = $1 AND NOT EXISTS (
			SELECT FROM river_job j
			WHERE j.kind = 'embed_chunks' AND j.state IN ('available', 'pending', 'running', 'retryable', 'scheduled')
			  AND (j.args ->> 'file_key')::bigint = b.file_key AND (j.args ->> 'space_id')::int = b.space_id
			  AND (j.args ->> 'generation')::int = b.generation AND (j.args ->> 'first_ordinal')::int = b.first_ordinal)`, space)
	if err != nil {
		return 0, err
	}
	for batch := range slices.Chunk(jobs, 1000) {
		args := make([]river.JobArgs, len(batch))
		for i, job := range batch {
			args[i] = job
		}
		if err := s.enqueue(ctx, args...); err != nil {
			return 0, err
		}
	}
	return int(tag.RowsAffected()), nil
}
