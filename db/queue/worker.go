package queue

import (
	"context"
	"errors"
	"time"

	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
)

// failLimit is the time limit of Worker.Fail.
const failLimit = 10 * time.Second

// Worker runs the jobs of one kind. If Do returns db.ErrNotFound, because the job's object was deleted, the job ends
// and is not tried again. To make a job wait, Do returns a river.JobSnooze.
type Worker[A river.JobArgs] struct {
	river.WorkerDefaults[A]
	Limit time.Duration // time limit of one attempt; 0: the client's limit
	Do    func(context.Context, *river.Job[A]) error

	// EndInvalid ends a job also if Do returns db.ErrInvalid.
	EndInvalid bool
	// Pause returns how long a job waits after a number of failures. If it is nil, the client decides.
	Pause func(failures int) time.Duration
	// Fail is for jobs that have a record for readers. It writes into the record that the last attempt failed, and why.
	Fail func(ctx context.Context, of A, why string) error
}

// Timeout implements river.Worker.
func (w *Worker[A]) Timeout(*river.Job[A]) time.Duration { return w.Limit }

// NextRetry implements river.Worker.
func (w *Worker[A]) NextRetry(job *river.Job[A]) time.Time {
	if w.Pause == nil {
		return time.Time{}
	}
	return time.Now().Add(w.Pause(len(job.Errors) + 1))
}

// Work implements river.Worker.
func (w *Worker[A]) Work(ctx context.Context, job *river.Job[A]) error {
	err := w.Do(ctx, job)
	switch {
	case errors.Is(err, db.ErrNotFound) || w.EndInvalid && errors.Is(err, db.ErrInvalid):
		return river.JobCancel(err)
	case err != nil && w.Fail != nil && job.Attempt >= job.MaxAttempts:
		failing, cancel := context.WithTimeout(context.WithoutCancel(ctx), failLimit) // ctx may have ended
		defer cancel()
		return errors.Join(err, w.Fail(failing, job.Args, "the server has a fault; its log has the cause"))
	}
	return err
}
