package loop

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// retry lets a run go on where the newest one of its conversation failed if both were asked for with equal messages,
// and without otids that are known: a client sends its text again. It reports whether it does. If an earlier request
// with one of the otids did so, it returns the first run of that text. The loop's statements are those of a
// transaction.
func (l *Loop) retry(ctx context.Context, org db.Org, c recall.Conversation, r Request, run *Run) (resumes bool,
	repeats string, err error) {
	isOther := func(d recall.Draft) bool { return d.Role != recall.User && d.Role != recall.System }
	if len(r.Approvals) > 0 || len(r.Input) == 0 || slices.ContainsFunc(r.Input, isOther) {
		return false, "", nil
	}
	var otids []string
	for _, d := range r.Input {
		if l.known(ctx, l.Recall, org, c, d) {
			return false, "", nil
		}
		if d.OTID != nil {
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
	if same, err := l.Recall.SaysAgain(ctx, org, c, first, r.Input); err != nil || !same {
		return false, "", err
	}
	run.Options.Retried = otids
	resumes, err = l.resume(ctx, org, run, first, MaxTokens, BrokenCalls, NoToolCall)
	return resumes, "", err
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
	same, err := l.Recall.SaysAgain(ctx, org, c, firstOf(earlier), r.Input)
	if err == nil && !same {
		err = db.Conflict("The otid %q belongs to an earlier request with other messages: nothing is stored. A new message "+
			"needs an otid of its own", db.Short(otids[0]))
	}
	return firstOf(earlier), err
}
