package loop

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// end ends the run. If the run's record is gone, it ends only for its clients. errTaken if another server works on the
// run, or has ended it.
func (w *worker) end(ctx context.Context, s stop) error {
	if s.reason != RequiresApproval {
		err := w.answerPending(ctx, "The call was not run: the run stopped before it ("+s.reason+").")
		if ignoreNotFound(err) != nil {
			w.Log.WarnContext(ctx, "calls without a result stay", "run", w.run.ID, "error", err)
		}
		if err := w.follow(ctx); ignoreNotFound(err) != nil {
			return err
		}
	}
	usage, err := w.UsageOf(ctx, w.org, w.run)
	if err != nil {
		return err
	}
	e := End{StopReason: s.reason, Failure: s.failed, Usage: usage}
	last := []Event{{End: &e}}
	if w.unstored != "" {
		last = []Event{{Withdrawn: w.unstored}, {End: &e}}
	}
	err = w.inTx(ctx, func(tx pgx.Tx) error {
		if err := w.storeEnd(ctx, tx, e); err != nil {
			return err
		}
		if w.Ended != nil {
			if err := w.Ended(ctx, tx, w.org, w.run, e.StopReason); err != nil {
				return err
			}
		}
		if !w.run.Background {
			return nil
		}
		return w.sendLast(ctx, tx, last)
	})
	if errors.Is(err, errCancelled) {
		return w.end(ctx, stop{reason: StopCancelled})
	}
	if errors.Is(err, db.ErrNotFound) {
		if err = w.standing(ctx, w.DB, w.org, w.run, ""); errors.Is(err, errCancelled) {
			err = nil
		}
	}
	if err != nil && (ctx.Err() != nil || errors.Is(err, errTaken)) {
		return err
	}
	for _, e := range last {
		w.add(e)
	}
	return err
}

// storeEnd stores the end of the run. ErrNotFound if the run is gone, has ended or belongs to another server;
// errCancelled if its calls should wait for the client, but it was cancelled. All transactions lock in this order:
// conversations, agents, runs.
func (w *worker) storeEnd(ctx context.Context, tx pgx.Tx, e End) error {
	var failure Failure
	if e.Failure != nil {
		failure = *e.Failure
	}
	durationMS, err := db.One[int64](ctx, tx, `
		SELECT round(extract(epoch FROM now() - created_at) * 1000)::bigint
		FROM runs WHERE org = $1 AND key = $2 AND status = 'running' AND owner = $3`, w.org, w.run.Key, w.Server)
	if err != nil {
		return err
	}
	var failed *recall.FailedTurn
	if statusOf(e.StopReason) == Failed {
		failed = &recall.FailedTurn{Status: failure.Status}
	}
	if err := w.Recall.With(tx).RunEnded(ctx, w.org, w.run.Conversation, failed); err != nil {
		return err
	}
	last := agent.LastRun{DurationMS: &durationMS, StopReason: &e.StopReason}
	if err := agent.RunEnded(ctx, tx, w.org, w.run.AgentKey, last); err != nil {
		return err
	}
	err = db.Exec(ctx, tx, `
		UPDATE runs SET status = @status, stop_reason = @reason, completed_at = now(), error_type = nullif(@type, ''),
		       error = nullif(@error, ''), error_status = nullif(@error_status, 0),
		       error_detail = nullif(@error_detail, '')
		WHERE org = @org AND key = @key AND status = 'running' AND owner = @server
		  AND (cancelled_at IS NULL OR @reason <> 'requires_approval')`,
		pgx.StrictNamedArgs{"org": w.org, "key": w.run.Key, "status": statusOf(e.StopReason), "reason": e.StopReason,
			"type": failure.Type, "error": failure.Text, "error_status": failure.Status, "error_detail": failure.Detail,
			"server": w.Server})
	if e.StopReason == RequiresApproval && errors.Is(err, db.ErrNotFound) {
		return errCancelled
	}
	return err
}
