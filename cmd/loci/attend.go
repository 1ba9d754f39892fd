package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server"
)

// attendArgs is a conversation whose window may be nearly full.
type attendArgs struct {
	Org          db.Org `json:"org"`
	AgentID      string `json:"agent_id"`
	Conversation string `json:"conversation"`
}

// Kind implements river.JobArgs.
func (attendArgs) Kind() string { return "attend_window" }

// queueAttend is where these jobs wait, attendAtOnce how many a server works on at once: nearly all of their time a model thinks.
const (
	queueAttend  = "attend"
	attendAtOnce = 4
)

// InsertOpts implements river.JobArgsWithInsertOpts: one job waits for a conversation at a time, however often it is asked for.
func (attendArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queueAttend, MaxAttempts: 3, UniqueOpts: river.UniqueOpts{ByArgs: true,
		ByState: []rivertype.JobState{rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
			rivertype.JobStateRetryable, rivertype.JobStateScheduled}}}
}

// attendTimeout is how long a job may take: as long as a summary, and then some.
const attendTimeout = 5 * time.Minute

// attendWorker keeps conversations inside their windows behind the appends.
type attendWorker struct {
	river.WorkerDefaults[attendArgs]
	api *server.Server
}

// Timeout implements river.Worker.
func (*attendWorker) Timeout(*river.Job[attendArgs]) time.Duration { return attendTimeout }

// Work implements river.Worker.
func (w *attendWorker) Work(ctx context.Context, job *river.Job[attendArgs]) error {
	err := w.api.Attend(ctx, job.Args.Org, job.Args.AgentID, job.Args.Conversation)
	if errors.Is(err, db.ErrNotFound) || errors.Is(err, db.ErrInvalid) { // it is gone, or nothing can leave; a prompt says so when it is asked for
		return river.JobCancel(err)
	}
	return err
}

// attendSoon queues a look at a conversation's window.
func attendSoon(jobs *river.Client[pgx.Tx]) func(context.Context, db.Org, recall.Conversation) error {
	return func(ctx context.Context, org db.Org, c recall.Conversation) error {
		_, err := jobs.Insert(ctx, attendArgs{Org: org, AgentID: c.AgentID, Conversation: c.ID}, nil)
		return err
	}
}
