package queue

import (
	"context"
	"errors"
	"time"

	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
)

// recordedAttempts is how often a job is tried that ends its record when it fails for good.
const recordedAttempts = 5

// OnceRecorded is Once of the jobs of a Recorded.
func OnceRecorded(queue string) river.InsertOpts {
	opts := Once(queue)
	opts.MaxAttempts = recordedAttempts
	return opts
}

// Recorded works jobs that each have a record, which says to its readers how the work stands. A job whose record was
// deleted ends; the record of a job that failed the last time is failed.
type Recorded[A river.JobArgs] struct {
	river.WorkerDefaults[A]
	Limit time.Duration // of one attempt
	Do    func(context.Context, A) error
	Fail  func(ctx context.Context, of A, why string) error
}

// Timeout implements river.Worker.
func (w *Recorded[A]) Timeout(*river.Job[A]) time.Duration { return w.Limit }

// Work implements river.Worker.
func (w *Recorded[A]) Work(ctx context.Context, job *river.Job[A]) error {
	err := w.Do(ctx, job.Args)
	if errors.Is(err, db.ErrNotFound) { // deleted
		return river.JobCancel(err)
	}
	if err != nil && ctx.Err() == nil && job.Attempt >= recordedAttempts {
		return errors.Join(err, w.Fail(ctx, job.Args, "the server has a fault; its log has the cause"))
	}
	return err
}
