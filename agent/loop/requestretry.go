package loop

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// recognizeRetry handles a client that sends a failed request again. It recognizes it if the conversation's newest run
// failed, the messages, approvals and results of calls equal that run's, and no otid is known. Then run continues
// there, and resumes is true. If the request has more messages behind the equal ones, only these are left for run. If
// an earlier request with one of the otids already did the same, repeats is the first run of that request. The loop
// must be in a transaction.
func (l *Loop) recognizeRetry(ctx context.Context, org db.Org, c recall.Conversation, r *Request, run *Run) (
	resumes bool, repeats string, err error) {
	isAnswer := func(d recall.Draft) bool { return d.Role == recall.Assistant }
	if len(r.Approvals)+len(r.Input) == 0 || slices.ContainsFunc(r.Input, isAnswer) {
		return false, "", nil
	}
	otids := r.otids()
	for _, d := range r.Input {
		if l.known(ctx, l.Recall, org, c, d) {
			return false, "", nil
		}
		if d.OTID != nil && !slices.Contains(otids, *d.OTID) {
			otids = append(otids, *d.OTID)
		}
	}
	if repeats, err = l.retriedBefore(ctx, org, c, *r, otids); err != nil || repeats != "" {
		return false, repeats, err
	}
	newest, err := db.One[Run](ctx, l.DB, runRows+` AND c.key = @conversation AND r.status <> 'running'
		ORDER BY r.created_at DESC, r.key DESC LIMIT 1`, pgx.StrictNamedArgs{"org": org, "conversation": c.Key})
	if err != nil || newest.Status != Failed {
		return false, "", ignoreNotFound(err)
	}
	first := firstOf(newest)
	repeated, whole, err := l.asksAgain(ctx, org, c, *r, newest)
	if err != nil || repeated == 0 && !whole {
		return false, "", err
	}
	if !whole {
		if may, err := l.mayFollow(ctx, org, newest); err != nil || !may {
			return false, "", err
		}
		r.Input, run.Options.Follows = r.Input[repeated:], newest.messageRuns()
		if err := l.Recall.Readmit(ctx, org, c, run.Options.Follows); err != nil {
			return false, "", err
		}
		return false, "", setOptions(ctx, l.DB, org, *run)
	}
	run.Options.Retried = otids
	resumes, err = l.continueFailed(ctx, org, run, first, MaxTokens, BrokenCalls, NoToolCall)
	return resumes, "", err
}

// mayFollow reports whether a run may go on behind the messages of a failed run: that has no answer, and nothing came
// after it.
func (l *Loop) mayFollow(ctx context.Context, org db.Org, failed Run) (bool, error) {
	if failed.StopReason == nil || !slices.Contains(resumable, *failed.StopReason) {
		return false, nil
	}
	first, err := l.RunByID(ctx, org, firstOf(failed))
	if err != nil {
		return false, ignoreNotFound(err)
	}
	return l.isLast(ctx, org, first)
}

// asksAgain compares a request with an earlier run. whole is true if it has the approvals and all messages of that run.
// If neither has approvals, repeated is the number of the request's first messages that are exactly the earlier run's
// messages.
func (l *Loop) asksAgain(ctx context.Context, org db.Org, c recall.Conversation, r Request, earlier Run) (repeated int,
	whole bool, err error) {
	if len(r.Approvals)+len(earlier.Options.Approvals) == 0 {
		o := inOrder(r.Input)
		repeated, err = l.Recall.CountRepeated(ctx, org, c, earlier.messageRuns(), o.drafts)
		if whole = repeated == len(o.drafts); !whole && o.results > 0 {
			repeated = 0
		}
		return repeated, whole, err
	}
	same := slices.EqualFunc(r.Approvals, earlier.Options.Approvals, func(a, b Approval) bool {
		a.OTID, b.OTID = "", ""
		return a == b
	})
	return 0, same && bytes.Equal(r.Options.InputSHA256, earlier.Options.InputSHA256), nil
}

// retriedBefore returns the first run of the text that an earlier request sent again under one of these otids; empty if
// none did. ErrConflict if that was another text.
func (l *Loop) retriedBefore(ctx context.Context, org db.Org, c recall.Conversation, r Request, otids []string) (string,
	error) {
	if len(otids) == 0 {
		return "", nil
	}
	earlier, err := db.One[Run](ctx, l.DB, runRows+` AND c.key = @conversation AND r.request ? 'retried'
		AND r.request -> 'retried' ?| @otids ORDER BY r.created_at DESC, r.key DESC LIMIT 1`,
		pgx.StrictNamedArgs{"org": org, "conversation": c.Key, "otids": otids})
	if errors.Is(err, db.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	_, same, err := l.asksAgain(ctx, org, c, r, earlier)
	if err == nil && !same {
		err = db.Conflict("The otid %q belongs to an earlier request with other messages: nothing is stored. A new message "+
			"needs an otid of its own", db.Short(otids[0]))
	}
	return firstOf(earlier), err
}
