package loop

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// resumable are stop reasons after which a repeated request continues the failed run, because nothing answered it. If
// the same text comes in another request, it continues after every failure.
var resumable = []string{StopError, ModelError, BrokenAnswer, NoCredits, PromptTooLarge}

// continueFailed lets a run continue where an earlier run of the same request failed, and reports whether it does. It
// does so after resumable stop reasons and after those in after. It does not if the earlier run did not fail, or if the
// conversation has gone on since the request's messages. Messages that left the view because a provider refused them
// come back.
func (l *Loop) continueFailed(ctx context.Context, org db.Org, run *Run, failed string, after ...string) (bool, error) {
	first, err := l.RunByID(ctx, org, failed)
	if err != nil {
		return false, ignoreNotFound(err) // the run's record was deleted
	}
	latest, err := l.latestAttempt(ctx, org, first)
	if err != nil || latest.StopReason == nil || !slices.Contains(append(after, resumable...), *latest.StopReason) {
		return false, err
	}
	if isLast, err := l.isLast(ctx, org, first); err != nil || !isLast {
		return false, err
	}
	c, err := l.Recall.Conversation(ctx, org, first.AgentID, first.Conversation)
	if err == nil {
		err = l.Recall.Readmit(ctx, org, c, first.messageRuns())
	}
	if err == nil {
		err = l.Recall.Told(ctx, org, c.Key)
	}
	if err != nil {
		return false, err
	}
	o := latest.Options
	run.Options.Resumes, run.Options.Approved, run.Options.Following = first.ID, o.Approved, o.Following
	run.Options.Follows = o.Follows
	run.Options.OTIDs, run.Options.Approvals, run.Options.InputSHA256 = o.OTIDs, o.Approvals, o.InputSHA256
	return true, setOptions(ctx, l.DB, org, *run)
}

// isLast reports whether a conversation's newest message belongs to run first, or to a run that continued it.
func (l *Loop) isLast(ctx context.Context, org db.Org, first Run) (bool, error) {
	last, err := l.Recall.Messages(ctx, org, recall.MessageFilter{AgentID: first.AgentID, Conversation: first.Conversation,
		WithErrors: true, Roles: []recall.Role{recall.User, recall.Assistant, recall.Tool}}, db.Page{Limit: 1})
	if err != nil || len(last) == 0 || last[0].RunID == nil {
		return false, err
	}
	if *last[0].RunID == first.ID {
		return true, nil
	}
	by, err := l.RunByID(ctx, org, *last[0].RunID)
	return err == nil && by.Options.Resumes == first.ID, ignoreNotFound(err)
}

// latestAttempt returns the newest run among first and the runs that continued it.
func (l *Loop) latestAttempt(ctx context.Context, org db.Org, first Run) (Run, error) {
	if first.Status != Failed {
		return first, nil
	}
	r, err := db.One[Run](ctx, l.DB, runRows+` AND c.id = @conversation AND r.request ->> 'resumes' = @first
		ORDER BY r.created_at DESC, r.key DESC LIMIT 1`,
		pgx.StrictNamedArgs{"org": org, "conversation": first.Conversation, "first": first.ID})
	if errors.Is(err, db.ErrNotFound) {
		return first, nil
	}
	return r, err
}
