// Package queue holds what all kinds of jobs on River share: one job per piece of work, the time at which a job starts,
// the fair order of the folders' jobs, the jobs that a server works on, and the return of dead servers' jobs.
//
// Each file uses only the files named before it:
//   - jobs, their workers and their provenance: queue.go worker.go provenance.go
//   - the order of jobs: fair.go
//   - the jobs of living and of dead servers: inflight.go giveback.go
package queue

import (
	"context"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// maxAttempts keeps a job through a long outage of the embeddings endpoint or the database.
const maxAttempts = 1000

// Once returns the options of a job that may be in the queue once per arguments until it is done.
func Once(queue string) river.InsertOpts { return Tried(queue, maxAttempts) }

// Tried is Once for a job that is tried at most times times.
func Tried(queue string, times int) river.InsertOpts {
	return river.InsertOpts{Queue: queue, MaxAttempts: times, UniqueOpts: river.UniqueOpts{ByArgs: true,
		ByState: []rivertype.JobState{rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
			rivertype.JobStateRetryable, rivertype.JobStateScheduled}}}
}

// Start is embedded in a job's arguments. It sets the time at which the job becomes available, and jobs of a queue are
// ordered by that time. River's own ScheduledAt would make a job also wait for River's scheduler, which runs seldom.
// The zero Start is now.
type Start struct{ at time.Time }

// At returns a Start at a time.
func At(t time.Time) Start { return Start{t} }

// In returns a Start after a duration.
func In(d time.Duration) Start { return Start{time.Now().Add(d)} }

func (s Start) start() time.Time { return s.at }

// Hooks implements river.JobArgsWithHooks.
func (Start) Hooks() []rivertype.Hook { return []rivertype.Hook{&startHook{}} }

type startHook struct{ river.HookDefaults }

// InsertBegin implements rivertype.HookInsertBegin.
func (*startHook) InsertBegin(_ context.Context, params *rivertype.JobInsertParams) error {
	if job, ok := params.Args.(interface{ start() time.Time }); ok && !job.start().IsZero() {
		at := job.start()
		params.ScheduledAt = &at
	}
	return nil
}
