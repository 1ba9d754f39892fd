package agent

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// queueWindow is the queue of the window checks.
const queueWindow = "attend"

// tries is how often a job of an agent is tried.
const tries = 3

// summaryLimit bounds a job that waits for one summary.
const summaryLimit = 5 * time.Minute

// ofConversation are the arguments that all jobs of agents have.
type ofConversation struct {
	queue.Start
	Org          db.Org `json:"org"`
	AgentID      string `json:"agent_id"`
	Conversation string `json:"conversation"`
}

func (of ofConversation) conversation() ofConversation { return of }

// worker returns the worker for a kind of job. A job ends without an error if its conversation was deleted, or if
// nothing can leave the view.
func worker[A interface {
	river.JobArgs
	conversation() ofConversation
}](limit time.Duration, do func(_ context.Context, _ db.Org, agentID, conversation string) error) *queue.Worker[A] {
	return &queue.Worker[A]{Limit: limit, EndInvalid: true, Do: func(ctx context.Context, job *river.Job[A]) error {
		place := job.Args.conversation()
		return do(ctx, place.Org, place.AgentID, place.Conversation)
	}}
}

// windowArgs is the job that checks the window of a conversation.
type windowArgs struct{ ofConversation }

func (windowArgs) Kind() string { return "attend_window" }

// InsertOpts implements river.JobArgsWithInsertOpts. A conversation has at most one job.
func (windowArgs) InsertOpts() river.InsertOpts { return queue.Tried(queueWindow, tries) }

const (
	minWindow  = 1_000 // tokens; no model's window is smaller
	checkShare = 0.65  // share of a window; lower than the warning's share, because the estimate may be too low
)

// CheckWindowSoon queues a check of a conversation's window if the conversation may fill enough of it. Call it after
// appending messages. A store without Jobs queues none.
func (s *Store) CheckWindowSoon(ctx context.Context, org db.Org, a Agent, c recall.Conversation) error {
	if s.Jobs == nil {
		return nil
	}
	full, err := s.mayBeFull(ctx, org, a.in(c), c)
	if err != nil || !full && !tooLong(c) {
		return err
	}
	return pgx.BeginFunc(ctx, s.DB, func(tx pgx.Tx) error {
		turn, err := turnOf(ctx, tx, org, queueWindow)
		if err != nil {
			return err
		}
		_, err = s.Jobs.InsertTx(ctx, tx, windowArgs{ofConversation{Start: queue.At(turn.Start), Org: org,
			AgentID: c.AgentID, Conversation: c.ID}}, nil)
		return err
	})
}

// mayBeFull reports whether a conversation may fill so much of the window that it must be checked.
func (s *Store) mayBeFull(ctx context.Context, org db.Org, a Agent, c recall.Conversation) (bool, error) {
	window, least := a.Window(), checkShare*float64(a.Window())
	if window == 0 || c.Estimate() < minWindow || float64(tokens.MostFactor.Of(c.Estimate())) < least {
		return false, nil
	}
	of, err := s.calibrationOf(ctx, org, a.model())
	return float64(roughly(of).Of(c.Estimate())) >= least, err
}

// jobLength is a job's length in its queue's virtual time.
const jobLength = time.Millisecond

// turnOf returns the turn of an organization's next job in a queue. Each organization owns its jobs in the queue; they
// run first in, first out.
func turnOf(ctx context.Context, d db.DB, org db.Org, name string) (queue.Turn, error) {
	return queue.FairTurn(ctx, d, `
			SELECT max(scheduled_at) + @length::interval FROM river_job
			WHERE state = 'available' AND queue = @queue AND attempt = 0 AND (args ->> 'org')::bigint = @owner`,
		`SELECT NULL::bigint AS owner WHERE o.owner < 0`,
		pgx.StrictNamedArgs{"queue": name, "owner": int64(org), "length": jobLength})
}

// writerPause is how long a job waits for a server that has a model.
const writerPause = 2 * time.Second

// checkWindowLater runs CheckWindow as a job.
func (s *Store) checkWindowLater(ctx context.Context, org db.Org, agentID, conversation string) error {
	if err := s.leaveToWriter(ctx); err != nil {
		return err
	}
	return s.CheckWindow(ctx, org, agentID, conversation)
}

// leaveToWriter snoozes a job on a server without a model if another server has one, so that a summary in the
// background does not depend on which server is faster. Where a caller waits, summaries are made at once.
func (s *Store) leaveToWriter(ctx context.Context) error {
	if s.Compaction.Models == nil && s.HasWriter != nil {
		if other, err := s.HasWriter(ctx); err != nil || other {
			return cmp.Or(err, river.JobSnooze(writerPause))
		}
	}
	return nil
}

// CheckWindow warns if three quarters of a conversation's window are in use, and compacts above the trigger, or if
// there are too many messages. If the model's window is unknown, it only checks the number of messages. ErrNotFound if
// the agent or the conversation does not exist.
func (s *Store) CheckWindow(ctx context.Context, org db.Org, agentID, conversation string) error {
	return s.checkWindow(ctx, org, PromptTarget{AgentID: agentID, Conversation: conversation}, store.Threshold)
}

// checkWindow is CheckWindow for a given trigger. It does nothing if no message came since the last compaction.
func (s *Store) checkWindow(ctx context.Context, org db.Org, target PromptTarget, trigger string) error {
	p, err := s.assemblePruned(ctx, org, target)
	if err != nil || p.Agent.Window() == 0 && p.unread.Count == 0 && !tooLong(p.Conversation) {
		return err
	}
	if c := p.Conversation; c.Settled > 0 && c.SummaryAt != nil && *c.SummaryAt == c.Messages {
		return nil
	}
	_, err = s.compactIfNeeded(ctx, org, p, trigger, 0)
	return err
}
