package loop

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Stop asks runs of a conversation to stop: those with these ids, or all if runs is nil. It returns the ids of the runs
// that it asked.
func (l *Loop) Stop(ctx context.Context, org db.Org, conversation string, runs []string) ([]string, error) {
	ids, err := db.All[string](ctx, l.DB, `
		UPDATE runs r SET cancelled_at = now()
		FROM conversations c
		WHERE r.org = $1 AND c.org = $1 AND c.id = $2 AND r.agent_key = c.agent_key AND r.status = 'running'
		  AND CASE WHEN $3::text[] IS NULL THEN r.conversation_key = c.key ELSE r.id = ANY ($3) END
		RETURNING r.id`, org, conversation, runs)
	for _, id := range ids {
		if s := l.held(id); s != nil && s.org == org {
			s.stop()
		}
	}
	return ids, err
}

// Cancel cancels the work in a conversation. It asks the working run to stop; if there is none, it denies the calls
// that wait for the client. It returns the run's id, or the id of the message with the calls if no run made them. The
// id is empty if there is nothing to cancel.
func (l *Loop) Cancel(ctx context.Context, org db.Org, c recall.Conversation) (id string, err error) {
	for range cancelAttempts {
		if id, err = l.cancelOnce(ctx, org, c); !isBusy(err) {
			break
		}
	}
	return id, err
}

// cancelAttempts is how often a cancellation is tried if each time another run has just begun.
const cancelAttempts = 5

func isBusy(err error) bool {
	_, is := errors.AsType[*BusyError](err)
	return is
}

func (l *Loop) cancelOnce(ctx context.Context, org db.Org, c recall.Conversation) (string, error) {
	ids, err := l.Stop(ctx, org, c.ID, nil)
	if err != nil || len(ids) > 0 {
		return one(ids), err
	}
	return l.deny(ctx, org, c, "")
}

// CancelRun cancels a run, or denies the calls that it waits for, and reports whether the run is cancelled now. A run
// that was already cancelled stays so.
func (l *Loop) CancelRun(ctx context.Context, org db.Org, r Run) (bool, error) {
	switch r.Status {
	case Running:
		ids, err := l.Stop(ctx, org, r.Conversation, []string{r.ID})
		return len(ids) > 0, err
	case Cancelled:
		return true, nil
	}
	c, err := l.Recall.Conversation(ctx, org, r.AgentID, r.Conversation)
	if err != nil {
		return false, ignoreNotFound(err) // it was deleted or reset
	}
	id, err := l.deny(ctx, org, c, r.ID)
	if isBusy(err) { // the calls have answers, and another run works with them
		return false, nil
	}
	return id != "", err
}

// A cancelled run ends at once, also on another server, unless it is storing something.
const (
	endWithin = 5 * time.Second
	endLooks  = 20 * time.Millisecond
)

// AwaitEnd returns a run when it has ended, or after CancelPatience as it is then.
func (l *Loop) AwaitEnd(ctx context.Context, org db.Org, id string) (Run, error) {
	look := time.NewTicker(endLooks)
	defer look.Stop()
	for within := time.After(cmp.Or(l.CancelPatience, endWithin)); ; {
		r, err := l.RunByID(ctx, org, id)
		if err != nil || r.Status != Running {
			return r, err
		}
		select {
		case <-look.C:
		case <-within:
			return r, nil
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
}

func one(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return ids[0]
}

// waitingIn returns the run that waits for the calls at the end of its conversation. It is empty if no run does, for
// example because its record was deleted.
func (l *Loop) waitingIn(ctx context.Context, org db.Org, conversation string, end tail) (Run, error) {
	newest, err := db.One[Run](ctx, l.DB, runRows+`
		AND c.id = @conversation ORDER BY r.created_at DESC, r.key DESC LIMIT 1`,
		pgx.StrictNamedArgs{"org": org, "conversation": conversation})
	if err != nil || !newest.waitsAt(end) {
		return Run{}, ignoreNotFound(err)
	}
	return newest, nil
}

// waitsAt reports whether the run waits for calls of the answer at the end of its conversation. The run made that
// answer, or showed it again.
func (r Run) waitsAt(end tail) bool {
	again, by := r.Options.Waiting, end.answer.RunID
	return r.StopReason != nil && *r.StopReason == RequiresApproval &&
		(by != nil && *by == r.ID || again != nil && again.MessageID == end.answer.ID)
}

// cancelledByUser is the text of the results when waiting calls are cancelled.
const cancelledByUser = deniedByClient + " The user cancelled the request, so the tool call was denied."

// deny denies all calls of a conversation that wait for the client: one message gets a result for each. If a run waits
// for the calls, it ends as cancelled. If only is not empty, the calls must belong to the run with this id. deny
// returns the id of that run, or of the message with the calls if no run waits for them; empty if no call waits.
// *BusyError if a run has begun to work.
func (l *Loop) deny(ctx context.Context, org db.Org, c recall.Conversation, only string) (id string, err error) {
	a, err := l.Agents.Agent(ctx, org, c.AgentID)
	if err != nil {
		return "", err
	}
	err = db.Tx(ctx, l.DB, func(tx pgx.Tx) error {
		log := l.Recall.With(tx)
		if err := log.Lock(ctx, org, c); err != nil {
			return err
		}
		if err := refuseBusy(ctx, tx, org, c); err != nil {
			return err
		}
		end, err := readTail(ctx, log, org, c)
		if err != nil {
			return err
		}
		clients, err := l.with(tx).clientCallsOf(ctx, org, c, readRules(a), end)
		if err != nil || !clients.waitIn(end) {
			return err
		}
		waiting, err := l.with(tx).waitingIn(ctx, org, c.ID, end)
		if err != nil || only != "" && waiting.ID != only {
			return err
		}
		id = end.answer.ID
		d := recall.Draft{Role: recall.Tool, StepID: end.answer.StepID}
		for _, p := range end.pending {
			d.Content = append(d.Content, recall.Part{Type: recall.ToolReturn, CallID: p.CallID, IsError: true,
				Approval: recall.Denied, Text: cancelledByUser})
		}
		if waiting.ID != "" {
			id, d.RunID = waiting.ID, &waiting.ID
		}
		if _, err = log.Append(ctx, org, c.AgentID, c.ID, []recall.Draft{d}); err != nil || waiting.ID == "" {
			return err
		}
		return endWaiting(ctx, tx, org, waiting)
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

// endWaiting ends a run that waits for the client; its status becomes cancelled.
func endWaiting(ctx context.Context, tx pgx.Tx, org db.Org, r Run) error {
	durationMS, reason := r.CompletedAt.Sub(r.CreatedAt).Milliseconds(), StopCancelled
	last := agent.LastRun{DurationMS: &durationMS, StopReason: &reason}
	if err := agent.RunEnded(ctx, tx, org, r.AgentKey, last); err != nil {
		return err
	}
	return db.Exec(ctx, tx, `
		UPDATE runs SET status = 'cancelled', stop_reason = 'cancelled', cancelled_at = now()
		WHERE org = $1 AND key = $2 AND status = 'completed'`, org, r.Key)
}
