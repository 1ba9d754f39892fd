package queue

import (
	"context"
	"errors"
	"time"

	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
)

// failLimit bounds Worker.Fail.
const failLimit = 10 * time.Second

// Worker works the jobs of one kind. A job ends without another try if what it works on was deleted: if Do returns
// db.ErrNotFound. A job that is to wait returns a river.JobSnooze.
type Worker[A river.JobArgs] struct {
	river.WorkerDefaults[A]
	Limit time.Duration // of one try; 0 is the client's
	Do    func(context.Context, *river.Job[A]) error

	// EndInvalid ends a job also if Do returns db.ErrInvalid.
	EndInvalid bool
	// Pause returns how long a job waits after a number of failures; nil leaves it to the client.
	Pause func(failures int) time.Duration
	// Fail, of jobs that each have a record for readers, says in the record that the last try failed, and why.
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
