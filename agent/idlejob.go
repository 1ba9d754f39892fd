package agent

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
)

// queueIdle is the queue for checks of idle conversations. It is a queue of its own, because its jobs start late.
const queueIdle = "idle"

// idleArgs is the job that compacts a conversation if its policy does so after a pause. It starts when the pause may be
// long enough.
type idleArgs struct{ ofConversation }

func (idleArgs) Kind() string { return "check_idle" }

// InsertOpts implements river.JobArgsWithInsertOpts. A conversation has at most one job.
func (idleArgs) InsertOpts() river.InsertOpts { return queue.Tried(queueIdle, tries) }

// checkIdleLater runs CheckIdle as a job, and waits again if the pause is not yet long enough.
func (s *Store) checkIdleLater(ctx context.Context, org db.Org, agentID, conversation string) error {
	if err := s.leaveToWriter(ctx); err != nil {
		return err
	}
	wait, err := s.CheckIdle(ctx, org, agentID, conversation)
	if err == nil && wait > 0 {
		return river.JobSnooze(wait)
	}
	return err
}

// checkWhenIdle queues a check of the prompt's conversation. The check runs after the policy's pause; without a pause
// in the policy nothing is queued. If a check is already queued, it is put off instead. A store without Jobs queues
// none.
func (s *Store) checkWhenIdle(ctx context.Context, org db.Org, p Prompt) error {
	pause, ok := p.policy.Pause()
	if !ok || s.Jobs == nil {
		return nil
	}
	_, err := s.Jobs.Insert(ctx, idleArgs{ofConversation{Start: queue.In(pause), Org: org, AgentID: p.Agent.ID,
		Conversation: p.Conversation.ID}}, nil)
	return err
}

// CheckIdle compacts a conversation if its policy does so after a pause, and the pause is long enough. It returns how
// much longer the pause must be; 0 if the policy has none, or the pause was long enough.
func (s *Store) CheckIdle(ctx context.Context, org db.Org, agentID, conversation string) (wait time.Duration,
	err error) {
	p, err := s.assembleAt(ctx, org, PromptTarget{AgentID: agentID, Conversation: conversation})
	if err != nil {
		return 0, err
	}
	pause, ok := p.policy.Pause()
	if !ok {
		return 0, nil
	}
	touched, _, err := s.handedOut(ctx, org, p.Conversation)
	if err != nil || touched.IsZero() {
		return 0, err
	}
	if idle := s.now().Sub(touched); idle < pause {
		return pause - idle, nil
	}
	return 0, s.checkWindow(ctx, org, PromptTarget{AgentID: agentID, Conversation: conversation}, store.Idle)
}
