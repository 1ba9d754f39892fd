package archival

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
	"github.com/loci-memory/loci/embed"
)

// QueueEmbed is the queue of the jobs that make vectors of passages, which are bound by the endpoint.
const QueueEmbed = "embed_passages"

// Queues are the queues with as many workers as a server that has an embeddings endpoint gives each.
func Queues() map[string]river.QueueConfig {
	return map[string]river.QueueConfig{QueueEmbed: {MaxWorkers: embed.JobWorkers}}
}

// EmbedArgs is the job that makes the vectors that an archive's passages lack.
type EmbedArgs struct {
	queue.Start
	Org        db.Org `json:"org" db:"org" river:"unique"`
	ArchiveKey int64  `json:"archive_key" db:"archive_key" river:"unique"`
}

// Kind names the job in the queue.
func (EmbedArgs) Kind() string { return "embed_passages" }

// InsertOpts make an archive's job once.
func (EmbedArgs) InsertOpts() river.InsertOpts { return queue.Once(QueueEmbed) }

// Work registers what works on the jobs of passages.
func (s *Store) Work(workers *river.Workers) {
	river.AddWorker(workers, s.worker())
}

func (s *Store) worker() *embed.Worker[EmbedArgs] {
	return &embed.Worker[EmbedArgs]{Dense: s.dense, Batch: s.embed}
}

// waitingArchives are the keys of the archives with passages that wait for vectors, whatever the number of these: the index is read once for
// each archive.
const waitingArchives = `
	WITH RECURSIVE waiting AS (
		SELECT min(archive_key) AS key FROM unembedded_passages WHERE refused IS NULL
		UNION ALL
		SELECT (SELECT min(u.archive_key) FROM unembedded_passages u WHERE u.refused IS NULL AND u.archive_key > w.key)
		FROM waiting w WHERE w.key IS NOT NULL
	)`

// Call makes a job for each archive, of every organization, whose passages lack vectors of the active space and that has none, and says how
// many.
func (s *Store) Call(ctx context.Context, jobs *river.Client[pgx.Tx]) (int, error) {
	space, ok := s.dense.Space()
	if !ok {
		return 0, nil
	}
	list, err := db.All[EmbedArgs](ctx, s.db, waitingArchives+`
		SELECT c.org, c.key AS archive_key FROM archives c JOIN waiting w ON w.key = c.key
		WHERE c.embedded_space = $1 AND c.deleted_at IS NULL AND c.key NOT IN (
			SELECT (args ->> 'archive_key')::bigint FROM river_job
			WHERE queue = $2 AND state IN ('available', 'pending', 'running', 'retryable', 'scheduled'))
		ORDER BY c.key
		LIMIT $3`, space.ID, QueueEmbed, embed.CallAtOnce)
	if err != nil {
		return 0, err
	}
	for i := range list {
		list[i].Start = queue.In(s.settle)
	}
	return embed.Enqueue(ctx, jobs, list)
}

// Backfill takes over the archives whose vectors are of no space, or of another than the active one that no server used for so long: what
// lacks a vector of the active one waits for it then. It says how many there were.
func (s *Store) Backfill(ctx context.Context, idle time.Duration) (archives int, err error) {
	space, ok := s.dense.Space()
	if !ok {
		return 0, nil
	}
	for ; ; archives++ {
		err := db.Tx(ctx, s.db, func(tx pgx.Tx) error { return s.With(tx).takeOver(ctx, space, idle) })
		if err != nil {
			return archives, ignoreNotFound(err)
		}
	}
}

// takeOver takes an archive over while nobody writes to it. ErrNotFound if there is none left.
func (s *Store) takeOver(ctx context.Context, space embed.Space, idle time.Duration) error {
	key, err := db.One[int64](ctx, s.db, `
		SELECT key FROM archives c
		WHERE coalesce(embedded_space, 0) <> $1 AND deleted_at IS NULL AND NOT EXISTS (
			SELECT FROM embedding_spaces s WHERE s.id = c.embedded_space AND s.used_at > now() - $2::interval)
		ORDER BY key
		LIMIT 1
		FOR UPDATE`, space.ID, idle)
	if err != nil {
		return err
	}
	var rows pgx.Batch
	rows.Queue(`UPDATE archives SET embedded_space = $2, embed_error = NULL WHERE key = $1`, key, space.ID)
	rows.Queue(`DELETE FROM unembedded_passages WHERE archive_key = $1`, key)
	rows.Queue(`
		INSERT INTO unembedded_passages (passage_key, org, archive_key)
		SELECT key, org, archive_key FROM passages p
		WHERE archive_key = $1 AND NOT EXISTS (SELECT FROM passage_vectors v WHERE v.passage_key = p.key AND v.space_id = $2)`, key, space.ID)
	return s.db.SendBatch(ctx, &rows).Close()
}

// vectorTable is the table of the passages' vectors.
const vectorTable = "passage_vectors"

// Index builds the index of the active space's vectors where that pays and it is not there; built says that it did.
func (s *Store) Index(ctx context.Context, pool *pgxpool.Pool, progress func(done, total int)) (built bool, err error) {
	return s.dense.Index(ctx, pool, vectorTable, s.indexRows, func(ctx context.Context, space embed.Space) (int, error) {
		return db.One[int](ctx, pool, `
			SELECT count(*) FROM unembedded_passages u JOIN archives c ON c.key = u.archive_key
			WHERE u.refused IS NULL AND c.embedded_space = $1 AND c.deleted_at IS NULL`, space.ID)
	}, progress)
}

// ClearSpaces deletes the vectors of spaces that no server has used for a week, with their indexes, and says how many.
func (s *Store) ClearSpaces(ctx context.Context, pool *pgxpool.Pool) (rows int, err error) {
	return s.dense.ClearUnused(ctx, pool, vectorTable, func(ctx context.Context, _ []embed.Space) error {
		_, err := s.Backfill(ctx, embed.IdleSpace) // or archives would have vectors that go
		return err
	})
}
