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

// retry lets a run go on where the newest one of its conversation failed if both were asked for with equal messages,
// approvals and results of calls, and without otids that are known: a client sends its request again. It reports whether
// it does. If an earlier request with one of the otids did so, it returns the first run of that request. The loop's
// statements are those of a transaction.
func (l *Loop) retry(ctx context.Context, org db.Org, c recall.Conversation, r Request, run *Run) (resumes bool,
	repeats string, err error) {
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
	if repeats, err = l.retriedBefore(ctx, org, c, r, otids); err != nil || repeats != "" {
		return false, repeats, err
	}
	newest, err := db.One[Run](ctx, l.DB, runRows+` AND c.key = @conversation AND r.status <> 'running'
		ORDER BY r.created_at DESC, r.key DESC LIMIT 1`, pgx.StrictNamedArgs{"org": org, "conversation": c.Key})
	if err != nil || newest.Status != Failed {
		return false, "", ignoreNotFound(err)
	}
	first := firstOf(newest)
	if same, err := l.asksAgain(ctx, org, c, r, newest); err != nil || !same {
		return false, "", err
	}
	run.Options.Retried = otids
	resumes, err = l.resume(ctx, org, run, first, MaxTokens, BrokenCalls, NoToolCall)
	return resumes, "", err
}

// asksAgain reports whether a request has the approvals and the messages of an earlier run's.
func (l *Loop) asksAgain(ctx context.Context, org db.Org, c recall.Conversation, r Request, earlier Run) (bool, error) {
	if len(r.Approvals)+len(earlier.Options.Approvals) == 0 {
		return l.Recall.SaysAgain(ctx, org, c, firstOf(earlier), inOrder(r.Input).drafts)
	}
	same := slices.EqualFunc(r.Approvals, earlier.Options.Approvals, func(a, b Approval) bool {
		a.OTID, b.OTID = "", ""
		return a == b
	})
	return same && bytes.Equal(r.Options.InputSHA256, earlier.Options.InputSHA256), nil
}

// firstOf returns the first run of the request of a run.
func firstOf(r Run) string {
	if r.Options.Resumes != "" {
		return r.Options.Resumes
	}
	return r.ID
}

// retriedBefore returns the first run of the text that an earlier request sent again under one of some otids; empty if
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
	same, err := l.asksAgain(ctx, org, c, r, earlier)
	if err == nil && !same {
		err = db.Conflict("The otid %q belongs to an earlier request with other messages: nothing is stored. A new message "+
			"needs an otid of its own", db.Short(otids[0]))
	}
	return firstOf(earlier), err
}
