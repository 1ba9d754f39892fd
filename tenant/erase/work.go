package erase

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/loci-memory/loci/db"
)

func (s *Store) sweep(org db.Org, e Erasure) (*sweep, error) {
	w := &sweep{Store: s, org: org, e: e, report: newReport()}
	// An erasure that waited, or that a stopped server began, continues its report.
	if e.Key != 0 {
		w.report = e.Report
		w.report.Passes, w.report.Remains = 0, []string{}
	}
	if e.MessageID != nil || e.UserID != nil {
		return w, nil
	}
	var err error
	w.m, err = newMatcher(e.Texts, e.WholeWords)
	return w, err
}

// pass searches everything once and erases what it finds. It returns the number of occurrences.
func (w *sweep) pass(ctx context.Context) (int, error) {
	w.found, w.waiting, w.report.Unread, w.report.UnreadIDs = 0, 0, 0, []string{}
	w.report.Left = map[string]int{}
	for _, step := range []func(context.Context) error{w.messages, w.files, w.passages, w.promptParts, w.tables} {
		if err := step(ctx); err != nil {
			return 0, err
		}
	}
	return w.found, nil
}

// maxPasses limits how often everything is searched while others keep writing the erased text.
const maxPasses = 6

// work makes passes over everything until one finds nothing, and stores the report.
func (s *Store) work(ctx context.Context, org db.Org, e Erasure) error {
	if e.EndsAs != nil {
		return (&sweep{Store: s, org: org, e: e, report: e.Report}).end(ctx)
	}
	w, err := s.sweep(org, e)
	if err != nil {
		return err
	}
	if e.MessageID != nil {
		if err := w.message(ctx, *e.MessageID); err != nil {
			return err
		}
	}
	pass, clean := w.pass, w.m == nil && e.UserID == nil
	if e.UserID != nil {
		pass = w.userPass
	}
	began := time.Now()
	for ; !clean && w.report.Passes < maxPasses; w.report.Passes++ {
		if began, err = db.One[time.Time](ctx, w.DB, `SELECT clock_timestamp()`); err != nil {
			return err
		}
		found, err := pass(ctx)
		if err != nil {
			return err
		}
		clean = found == 0
	}
	if err := w.derived(ctx); err != nil {
		return err
	}
	if clean, err = w.settled(ctx, clean, began); err != nil {
		return errors.Join(err, w.keepReport(ctx))
	}
	if len(e.Report.AtWork) > 0 {
		if err := w.derivedAgain(ctx); err != nil {
			return err
		}
	}
	if e.UserID != nil && clean {
		if err := w.unlink(ctx); err != nil {
			return err
		}
	}
	if err := w.forget(ctx, clean); err != nil {
		return err
	}
	return w.end(ctx)
}

// keepReport stores what was changed so far, for the server that continues.
func (w *sweep) keepReport(ctx context.Context) error {
	return db.Exec(ctx, w.DB, `UPDATE erasures SET report = $3 WHERE org = $1 AND key = $2`, w.org, w.e.Key, w.report)
}

// forget stores the report and the final status, and deletes the erased texts from the erasure itself.
func (w *sweep) forget(ctx context.Context, clean bool) error {
	status := Completed
	if !clean || len(w.report.Left) > 0 {
		status = Incomplete
	}
	report, err := json.Marshal(w.report)
	if err != nil {
		return err
	}
	text := string(report)
	if w.m != nil {
		text = w.m.eraseJSON(text, ownNames).text
	}
	var reason *string
	if w.e.Reason != nil {
		after := *w.e.Reason
		if w.m != nil {
			after, _ = w.m.erase(after)
		}
		reason = &after
	}
	return db.Exec(ctx, w.DB, `
		UPDATE erasures SET ends_as = $3, texts = NULL, reason = $4, report = $5 WHERE org = $1 AND key = $2`,
		w.org, w.e.Key, status, reason, text)
}

// end rewrites the tables, which no longer have rows with the texts, and ends the erasure. The report then says what
// remains.
func (w *sweep) end(ctx context.Context) error {
	return db.Exec(ctx, w.DB, `
		UPDATE erasures
		SET status = ends_as, report = jsonb_set(report, '{remains}', to_jsonb($3::text[])), ended_at = now()
		WHERE org = $1 AND key = $2`, w.org, w.e.Key, w.remains(ctx))
}
