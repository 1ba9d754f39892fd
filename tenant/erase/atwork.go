package erase

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/loci-memory/loci/db"
)

const (
	patience  = 10 * time.Minute // how long an erasure waits for work that began before it
	lookAgain = 2 * time.Second  // delay before the erasure is tried again
)

// errAtWork means that work from before the erasure still goes on. It may have read the erased text, and could write it
// again. The erasure is tried again later.
var errAtWork = errors.New("what began before the erasure is still at work")

// settled reports whether all runs, hand-overs, jobs and compactions have ended that may still store the texts: those
// that began before a search found nothing. clean is set if the search that began at the time began found nothing;
// settled records the first such time. From then on no prompt is stored that was assembled earlier; settled deletes
// those that were stored before. It returns errAtWork while such work goes on, and false once the erasure has
// waited for patience.
func (w *sweep) settled(ctx context.Context, clean bool, began time.Time) (bool, error) {
	type row struct {
		CleanSince *time.Time `db:"clean_since"`
		Waited     bool       `db:"waited"`
	}
	if err := db.Exec(ctx, w.DB, `
		UPDATE erasures SET clean_since = CASE WHEN $3 THEN coalesce(clean_since, $4) END
		WHERE org = $1 AND key = $2`, w.org, w.e.Key, clean, began); err != nil {
		return false, err
	}
	r, err := db.One[row](ctx, w.DB, `
		SELECT clean_since, began_at < now() - $3::interval AS waited FROM erasures WHERE org = $1 AND key = $2`,
		w.org, w.e.Key, patience)
	if err != nil || !clean {
		return false, err
	}
	if err := w.countAtWork(ctx, *r.CleanSince); err != nil {
		return false, err
	}
	if len(w.report.AtWork) == 0 {
		if w.m != nil {
			err = w.promptParts(ctx)
		}
		return err == nil, err
	}
	if r.Waited {
		return false, nil
	}
	return false, errAtWork
}

// countAtWork counts, for the report, the runs, compactions, hand-overs, jobs and waiting files that began before a
// time and have not ended. Jobs that make vectors do not count: they store no text, and no vector of a text that
// changed meanwhile.
func (w *sweep) countAtWork(ctx context.Context, before time.Time) error {
	type row struct {
		Runs      int `db:"runs"`
		Handovers int `db:"handovers"`
	}
	n, err := db.One[row](ctx, w.DB, `
		SELECT (SELECT count(*) FROM runs WHERE org = $1 AND status = 'running' AND created_at < $2) AS runs,
		       (SELECT count(*) FROM handovers WHERE org = $1 AND status = 'running' AND created_at < $2) AS handovers`,
		w.org, before)
	if err != nil {
		return err
	}
	jobs, err := db.One[int](ctx, w.DB, `
		SELECT count(*) FROM river_job
		WHERE state = 'running' AND attempted_at < $2 AND args @> jsonb_build_object('org', $1::integer)
		  AND kind NOT LIKE 'embed\_%'`, w.org, before)
	if err != nil {
		return err
	}
	holders, err := db.All[uuid.UUID](ctx, w.DB, `
		SELECT holder FROM compaction_claims WHERE org = $1 AND held_until > now()`, w.org)
	if err != nil {
		return err
	}
	compactions := 0
	for _, id := range holders { // a UUID of version 7 has the time of the claim
		if id.Version() != 7 || time.Unix(id.Time().UnixTime()).Before(before) {
			compactions++
		}
	}
	w.report.AtWork = map[string]int{}
	for what, count := range map[string]int{"runs": n.Runs, "handovers": n.Handovers, "jobs": jobs,
		"compactions": compactions, "files": w.waiting} {
		if count > 0 {
			w.report.AtWork[what] = count
		}
	}
	return nil
}
