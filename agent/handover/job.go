package handover

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
)

// queueHandover is the queue of the jobs that make hand-overs.
const queueHandover = "handover"

// Patience is how long a request waits for a hand-over. After that time the job goes on alone.
const Patience = 20 * time.Second

const (
	jobTimeout = 2 * time.Minute
	pollEvery  = 100 * time.Millisecond
)

// Queues returns the queue of the jobs with its number of workers.
func Queues() map[string]river.QueueConfig {
	return map[string]river.QueueConfig{queueHandover: {MaxWorkers: 4}}
}

// args are the arguments of the job that makes a hand-over.
type args struct {
	queue.Start
	Org     db.Org `json:"org"`
	AgentID string `json:"agent_id"`
	ID      string `json:"id"`

	// Begun is when the hand-over was begun. A job that has just ended counts as running for a moment, and would
	// otherwise stand for that of a hand-over that is made anew.
	Begun time.Time `json:"begun"`
}

func (args) Kind() string { return "make_handover" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (args) InsertOpts() river.InsertOpts { return queue.Tried(queueHandover, 5) }

// Work registers the worker of the jobs.
func (s *Store) Work(workers *river.Workers) {
	river.AddWorker(workers, &queue.Worker[args]{Limit: jobTimeout,
		Do: func(ctx context.Context, job *river.Job[args]) error {
			return s.Make(ctx, job.Args.Org, job.Args.AgentID, job.Args.ID)
		},
		Fail: func(ctx context.Context, of args, why string) error { return s.fail(ctx, of.Org, of.ID, why) }})
}

// fail ends a hand-over that cannot be made.
func (s *Store) fail(ctx context.Context, org db.Org, id, why string) error {
	_, err := s.DB.Exec(ctx, `
		UPDATE handovers SET status = 'failed', why = $3, ended_at = now(), material = NULL
		WHERE org = $1 AND id = $2 AND status = 'running'`, org, id, why)
	return db.Error(err)
}

// queue queues the job of a hand-over, in the transaction that stores the hand-over. It does nothing if the store has
// no job queue.
func (s *Store) queue(ctx context.Context, org db.Org, agentID, id string) error {
	if s.Agents.Jobs == nil {
		return nil
	}
	tx, _ := s.DB.(pgx.Tx)
	_, err := s.Agents.Jobs.InsertTx(ctx, tx, args{Org: org, AgentID: agentID, ID: id, Begun: time.Now()}, nil)
	return err
}

// Wait waits until a hand-over is made, but at most for Patience, and returns it. If the time is over, the hand-over is
// still Running. Without a job queue, Wait makes the hand-over itself.
func (s *Store) Wait(ctx context.Context, org db.Org, h Handover) (Handover, error) {
	if h.Status != Running {
		return h, nil
	}
	limited, cancel := context.WithTimeout(ctx, cmp.Or(s.Patience, Patience))
	defer cancel()
	if s.Agents.Jobs == nil {
		if err := s.Make(limited, org, h.AgentID, h.ID); err != nil && limited.Err() == nil {
			return h, err
		}
		return s.Handover(ctx, org, h.AgentID, h.ID)
	}
	look := time.NewTicker(pollEvery)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			current, err := s.Handover(ctx, org, h.AgentID, h.ID)
			if err != nil || current.Status != Running {
				return current, err
			}
			h = current
		case <-limited.Done():
			return h, ctx.Err()
		}
	}
}
