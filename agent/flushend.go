package agent

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// EndFlush ends an open flush, and returns it with its new status. It changes nothing if the flush has already ended,
// or has got an answer since f was read.
func (s *Store) EndFlush(ctx context.Context, org db.Org, f Flush, status, why string) (Flush, error) {
	c, err := s.Recall.Conversation(ctx, org, f.AgentID, f.ConversationID)
	if err != nil {
		return f, err
	}
	if _, err := s.DB.Exec(ctx, `
		UPDATE flushes SET status = $4, why = nullif($5, ''), ended_at = now()
		WHERE org = $1 AND conversation_key = $2 AND view = $3 AND status = 'open' AND steps = $6`,
		org, c.Key, f.View, status, db.Short(why), f.Steps); err != nil {
		return f, db.Error(err)
	}
	return db.One[Flush](ctx, s.DB, flushRows+`AND f.view = $3`, org, c.Key, f.View)
}

// LeaveFlush ends an open flush without asking its model again. After a checkpoint it may then compact the
// conversation.
func (s *Store) LeaveFlush(ctx context.Context, org db.Org, c recall.Conversation, f Flush) error {
	f, err := s.EndFlush(ctx, org, f, f.outcome(), "")
	if err != nil || f.Status == FlushOpen { // another request has added an answer
		return err
	}
	return s.settle(ctx, org, c, f)
}

// settle compacts the conversation once after a checkpoint that began because of the conversation's size.
func (s *Store) settle(ctx context.Context, org db.Org, c recall.Conversation, f Flush) error {
	if f.Kind != Checkpoint || f.Reason != ForTokens || f.Settled || f.Status == FlushOvertaken {
		return nil
	}
	_, err := s.Compact(ctx, org, c, CompactOptions{})
	if _, nothing := errors.AsType[*plan.Nothing](err); err != nil && !nothing && !errors.Is(err, db.ErrInvalid) {
		return err
	}
	_, err = s.DB.Exec(ctx, `
		UPDATE flushes SET settled = true WHERE org = $1 AND conversation_key = $2 AND view = $3`, org, c.Key, f.View)
	return db.Error(err)
}

// AddToFlush records an answer in an open flush, or a call that changed something. It works in the transaction that
// stores the answer or the result. ErrConflict if the flush has ended, or if the conversation got other messages or was
// compacted.
func AddToFlush(ctx context.Context, tx pgx.Tx, org db.Org, f Flush, add FlushProgress) error {
	tag, err := tx.Exec(ctx, `
		UPDATE flushes f
		SET steps = f.steps + @steps, calls = f.calls + @calls, prompt_tokens = f.prompt_tokens + @prompt,
		    completion_tokens = f.completion_tokens + @completion,
		    status = CASE WHEN NOT @ends THEN f.status WHEN f.calls + @calls > 0 THEN 'done' ELSE 'nothing' END,
		    ended_at = greatest(f.ended_at, now() + CASE WHEN @ends THEN interval '0' END)
		FROM conversations c
		WHERE f.org = @org AND c.org = @org AND c.key = f.conversation_key AND f.id = @id AND f.status = 'open'
		  AND c.frame = f.view AND f.deadline > now() AND NOT EXISTS (SELECT`+overtaking("@org")+`)`,
		pgx.StrictNamedArgs{"org": org, "id": f.ID, "steps": add.Steps, "calls": add.Calls, "prompt": add.Prompt,
			"completion": add.Completion, "ends": add.Ends})
	if err == nil && tag.RowsAffected() == 0 {
		return db.Conflict("The silent turn %s has ended: nothing was stored. Ask for the next prompt", f.ID)
	}
	return db.Error(err)
}
