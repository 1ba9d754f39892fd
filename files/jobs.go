package files

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/files/document"
)

// The queues of the work on files: parsing is bound by processors, embedding by the endpoint. Large files wait in a
// queue of their own, so that a short one always has a worker.
const (
	QueueParse  = "parse"
	QueueLarge  = "parse_large"
	QueueEmbed  = "embed"
	QueueUpkeep = "upkeep"
)

// Queues returns the queues, with the number of workers that a server has for each.
func Queues() map[string]river.QueueConfig {
	return map[string]river.QueueConfig{QueueParse: {MaxWorkers: 8}, QueueLarge: {MaxWorkers: 1},
		QueueEmbed: {MaxWorkers: 4}, QueueUpkeep: {MaxWorkers: 1}}
}

// Of the workers that parse files, so many read texts at a time, and so many commit.
const parsers = 2

const (
	maxOverruns = 3 // attempts that ran out of time, or whose child died; not those that ended with their server
	maxPause    = time.Minute
)

// ParseArgs is the job that makes a generation of a file's text and chunks.
type ParseArgs struct {
	Org        db.Org `json:"org"`
	FileKey    int64  `json:"file_key" river:"unique"`
	Generation int    `json:"generation" river:"unique"`

	KeepsClosed bool `json:"keeps_closed,omitempty"` // Upload.KeepsClosed

	queue.Start
	size int64
}

// Kind implements river.JobArgs.
func (ParseArgs) Kind() string { return "parse_file" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (a ParseArgs) InsertOpts() river.InsertOpts { return queue.Once(queueOf(a.size)) }

// EmbedArgs is the job that embeds one batch of a file's chunks.
type EmbedArgs struct {
	Org          db.Org `json:"org" db:"org"`
	FileKey      int64  `json:"file_key" db:"file_key" river:"unique"`
	Generation   int    `json:"generation" db:"generation" river:"unique"`
	SpaceID      int16  `json:"space_id" db:"space_id" river:"unique"`
	FirstOrdinal int    `json:"first_ordinal" db:"first_ordinal" river:"unique"`

	queue.Start
}

// Kind implements river.JobArgs.
func (EmbedArgs) Kind() string { return "embed_chunks" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (EmbedArgs) InsertOpts() river.InsertOpts { return queue.Once(QueueEmbed) }

// EmbedFilesArgs is the job that embeds files of a folder that have one batch each.
type EmbedFilesArgs struct {
	Org     db.Org           `json:"org"`
	SpaceID int16            `json:"space_id" river:"unique"`
	Files   []FileGeneration `json:"files" river:"unique"`

	queue.Start
}

// FileGeneration names a text of a file.
type FileGeneration struct {
	FileKey    int64 `json:"file_key"`
	Generation int   `json:"generation"`
}

// Kind implements river.JobArgs.
func (EmbedFilesArgs) Kind() string { return "embed_files" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (EmbedFilesArgs) InsertOpts() river.InsertOpts { return queue.Once(QueueEmbed) }

// ReparseArgs is the job that queues the files of a folder, a page at a time: those with keys from AfterKey, without
// it, to LastKey.
type ReparseArgs struct {
	Org       db.Org `json:"org"`
	FolderKey int64  `json:"folder_key" river:"unique"`
	AfterKey  int64  `json:"after_key" river:"unique"`
	LastKey   int64  `json:"last_key" river:"unique"`
}

// Kind implements river.JobArgs.
func (ReparseArgs) Kind() string { return "reparse_folder" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (ReparseArgs) InsertOpts() river.InsertOpts { return queue.Once(QueueUpkeep) }

// enqueue adds jobs in the store's transaction.
func (s *Store) enqueue(ctx context.Context, jobs ...river.JobArgs) error {
	if len(jobs) == 0 {
		return nil
	}
	params := mapped(jobs, func(job river.JobArgs) river.InsertManyParams { return river.InsertManyParams{Args: job} })
	if _, err := s.jobs.InsertManyTx(ctx, s.tx, params); err != nil {
		return fmt.Errorf("queue work: %w", err)
	}
	return nil
}

// worker has what the workers of files share: the store, and when a failed job is tried again.
type worker[A river.JobArgs] struct {
	river.WorkerDefaults[A]
	store *Store
}

func (worker[A]) NextRetry(job *river.Job[A]) time.Time {
	return time.Now().Add(pause(len(job.Errors) + 1))
}

// Work registers the workers of the jobs of files.
func (s *Store) Work(workers *river.Workers) {
	river.AddWorker(workers, &parseWorker{worker[ParseArgs]{store: s}})
	river.AddWorker(workers, &embed.Worker[EmbedArgs]{Vectors: s.vectors(), DB: s.db, Next: s.nextBatch,
		OneBatch: true, Bulk: true})
	river.AddWorker(workers, &embed.Worker[EmbedFilesArgs]{Vectors: s.vectors(), DB: s.db, Next: s.nextFiles,
		Bulk: true})
	river.AddWorker(workers, &reparseWorker{worker[ReparseArgs]{store: s}})
	river.AddWorker(workers, &purgeWorker{worker[PurgeArgs]{store: s}})
}

// cancelJobs cancels the jobs of a file in the store's transaction: waiting jobs at once, running ones by a signal to
// their workers, which may still run but no longer commit. Jobs that it shares with other files go on without it.
func (s *Store) cancelJobs(ctx context.Context, fileKey int64) error {
	running, err := db.All[int64](ctx, s.tx, `
		WITH mine AS (
			SELECT id, state FROM river_job
			WHERE args @> jsonb_build_object('file_key', $1::bigint) AND kind IN ('parse_file', 'embed_chunks')
			  AND state IN ('available', 'pending', 'running', 'retryable', 'scheduled')
			ORDER BY id
			FOR UPDATE
		), waiting AS (
			UPDATE river_job j SET state = 'cancelled', finalized_at = now()
			FROM mine WHERE j.id = mine.id AND mine.state <> 'running'
		)
		SELECT id FROM mine WHERE state = 'running'`, fileKey)
	for i := 0; err == nil && i < len(running); i++ {
		_, err = s.jobs.JobCancelTx(ctx, s.tx, running[i])
	}
	return err
}

// pause returns how long a job waits after its n-th failure: a second, doubled each time up to a minute.
func pause(failures int) time.Duration { return min(time.Second<<min(failures-1, 6), maxPause) }

// wasCutShort reports whether an attempt ran out of time, or its reader was killed. The cause may be the file or the
// machine.
func wasCutShort(ctx context.Context, err error) bool {
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err, document.ErrCutShort)
}

// overruns counts the attempts that were cut short.
func overruns(job *rivertype.JobRow) (n int) {
	for _, e := range job.Errors {
		if strings.Contains(e.Error, context.DeadlineExceeded.Error()) ||
			strings.Contains(e.Error, document.ErrCutShort.Error()) {
			n++
		}
	}
	return n
}
