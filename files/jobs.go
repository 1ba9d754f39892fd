package files

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files/document"
)

// The queues of the work on files: parsing is bound by processors, embedding by the endpoint.
const (
	QueueParse = "parse"
	QueueEmbed = "embed"
)

const (
	maxAttempts = 1000 // a job goes on until its work is done or has failed for good; the database may be away for long
	maxCrashes  = 20   // a job that takes the server with it is given up; a server may also stop beside it
	maxOverruns = 3    // and a file whose parsing does not end in a job's time
	maxPause    = time.Minute
)

// ParseArgs is the job that makes a generation of a file's text and chunks.
type ParseArgs struct {
	Org        db.Org `json:"org"`
	FileKey    int64  `json:"file_key" river:"unique"`
	Generation int    `json:"generation" river:"unique"`
}

// Kind names the job in the queue.
func (ParseArgs) Kind() string { return "parse_file" }

// InsertOpts make a job of the same work once.
func (ParseArgs) InsertOpts() river.InsertOpts { return once(QueueParse) }

// EmbedArgs is the job that embeds one batch of a file's chunks.
type EmbedArgs struct {
	Org          db.Org `json:"org" db:"org"`
	FileKey      int64  `json:"file_key" db:"file_key" river:"unique"`
	Generation   int    `json:"generation" db:"generation" river:"unique"`
	SpaceID      int16  `json:"space_id" db:"space_id" river:"unique"`
	FirstOrdinal int    `json:"first_ordinal" db:"first_ordinal" river:"unique"`
}

// Kind names the job in the queue.
func (EmbedArgs) Kind() string { return "embed_chunks" }

// InsertOpts make a job of the same work once.
func (EmbedArgs) InsertOpts() river.InsertOpts { return once(QueueEmbed) }

func once(queue string) river.InsertOpts {
	return river.InsertOpts{Queue: queue, MaxAttempts: maxAttempts, UniqueOpts: river.UniqueOpts{ByArgs: true,
		ByState: []rivertype.JobState{rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
			rivertype.JobStateRetryable, rivertype.JobStateScheduled}}}
}

// enqueue adds jobs in a transaction of their own, or in the store's.
func (s *Store) enqueue(ctx context.Context, jobs ...river.JobArgs) error {
	params := make([]river.InsertManyParams, len(jobs))
	for i, job := range jobs {
		params[i] = river.InsertManyParams{Args: job}
	}
	if len(params) == 0 {
		return nil
	}
	return pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		if _, err := s.jobs.InsertManyTx(ctx, tx, params); err != nil {
			return fmt.Errorf("queue work: %w", err)
		}
		return nil
	})
}

// Work registers what works on the jobs of files.
func (s *Store) Work(workers *river.Workers) {
	river.AddWorker(workers, &parseWorker{store: s})
	river.AddWorker(workers, &embedWorker{store: s})
}

// pause is how long a job waits after its n-th failure: a second, doubled each time up to a minute.
func pause(failures int) time.Duration {
	if failures > 6 {
		return maxPause
	}
	return min(time.Second<<max(failures-1, 0), maxPause)
}

// crashes counts the attempts that ended with their server: each attempt that returned left an error.
func crashes(job *rivertype.JobRow) int { return job.Attempt - 1 - len(job.Errors) }

// wasCutShort tells an attempt that did not end in its time, or whose reader was ended from outside. That may be the file's fault, or the machine's.
func wasCutShort(ctx context.Context, err error) bool {
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err, document.ErrCutShort)
}

// overruns counts the attempts that were cut short.
func overruns(job *rivertype.JobRow) (n int) {
	for _, e := range job.Errors {
		if strings.Contains(e.Error, context.DeadlineExceeded.Error()) || strings.Contains(e.Error, document.ErrCutShort.Error()) {
			n++
		}
	}
	return n
}
