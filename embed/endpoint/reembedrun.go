package endpoint

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// errEnded says that the run was cancelled or replaced in the meantime.
var errEnded = errors.New("the making of vectors was cancelled")

// Run works on the run in progress, if there is one and no other server works on it. It ends with the switch, a
// failure, or the run's end. It also stores an error for the operator. named is as for Switched.
func (r *Reembed) Run(ctx context.Context, named func(Space) bool) error {
	row, err := r.stored(ctx)
	if errors.Is(err, db.ErrNotFound) || err == nil && row.State != Reembedding {
		return nil
	}
	if err != nil {
		return err
	}
	acquired, err := r.DB.Acquire(ctx)
	if err != nil {
		return db.Error(err)
	}
	conn := acquired.Hijack() // its lock goes with it
	defer conn.Close(context.WithoutCancel(ctx))
	var mine bool
	err = conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, int64(db.LockReembed)).Scan(&mine)
	if err != nil || !mine {
		return err
	}
	run := &reembedding{Reembed: r, to: row.Space, started: row.Started, refused: map[string]map[int64]bool{}}
	if err = r.matches(row, named); err == nil {
		err = run.work(ctx)
	}
	// After the connection is closed, it takes some time until the lock is released.
	_, _ = conn.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, int64(db.LockReembed))
	if errors.Is(err, errEnded) || ctx.Err() != nil {
		return nil
	}
	if err != nil {
		err = errors.Join(err, r.note(ctx, row.ID, err.Error()))
	}
	return err
}

// matches returns an error if the settings name other spaces than the row does.
func (r *Reembed) matches(row stored, named func(Space) bool) error {
	from, _ := r.Endpoint.Space()
	if from.ID != row.From || !named(row.Space) {
		return fmt.Errorf("vectors of %s with %d numbers are to be made, and the settings LOCI_EMBEDDING_* or "+
			"LOCI_EMBEDDING_NEXT_* name other models: set them as they were, or cancel", row.Model, row.Dimension)
	}
	return nil
}

func (r *Reembed) note(ctx context.Context, space int16, reason string) error {
	_, err := r.DB.Exec(ctx, `
		UPDATE reembedding SET error = nullif($2, '')
		WHERE to_space = $1 AND state = 'running' AND error IS DISTINCT FROM nullif($2, '')`, space, reason)
	return db.Error(err)
}

// reembedding is a server's work on one run.
type reembedding struct {
	*Reembed
	to      Space
	started time.Time // a new start ends this run, which has not yet counted its work

	mu      sync.Mutex
	refused map[string]map[int64]bool // table of vectors → refused rows, which are not asked for again
}

// Limits of a run. Rows that are written during a pass are for the next pass. What the last pass leaves gets its
// vectors after the switch, like all new texts.
const (
	pageRows  = 2000
	atOnce    = 4 // slices, one request each
	maxPasses = 10
)

func (w *reembedding) work(ctx context.Context) error {
	w.Next.Use(w.to)
	if err := w.begin(ctx); err != nil {
		return err
	}
	for pass := 1; ; pass++ {
		made := 0
		err := w.each(ctx, func(ctx context.Context, org db.Org, m ReembedSource) error {
			n, err := w.pass(ctx, org, m)
			made += n
			return err
		})
		if err != nil {
			return err
		}
		if made <= MostTexts || pass == maxPasses {
			break
		}
	}
	for _, m := range w.Memories {
		if w.Owner == nil {
			break // a search of many rows is exact, and slower, until an owner's program builds the index
		}
		if _, err := m.index(ctx, w.Owner, w.to, nil, nil); err != nil {
			return err
		}
	}
	if err := w.complete(ctx, w.to); err != nil {
		return err
	}
	err := db.Exec(ctx, w.DB, `
		UPDATE reembedding SET state = 'switched', finished_at = now(), error = NULL, total = done + refused
		WHERE to_space = $1 AND state = 'running' AND started_at = $2`, w.to.ID, w.started)
	if errors.Is(err, db.ErrNotFound) {
		return errEnded
	}
	if err == nil {
		w.Log.Info("all vectors of the new model are made; searches rank by them from now on", "model", w.to.Model,
			"dimension", w.to.Dimension)
	}
	return err
}

// begin counts the work to do, and the work that an earlier run did.
func (w *reembedding) begin(ctx context.Context) error {
	from, _ := w.Endpoint.Space()
	var total, done int64
	err := w.each(ctx, func(ctx context.Context, org db.Org, m ReembedSource) error {
		if m.Begin != nil {
			if err := m.Begin(ctx, org, w.to.ID); err != nil {
				return err
			}
		}
		type counted struct {
			Old int64 `db:"old"`
			New int64 `db:"new"`
		}
		n, err := db.One[counted](ctx, w.DB, `
			SELECT count(*) FILTER (WHERE space_id = $2) AS old, count(*) FILTER (WHERE space_id = $3) AS new
			FROM `+m.Table+` WHERE org = $1 AND space_id IN ($2, $3)`, org, from.ID, w.to.ID)
		total, done = total+n.Old, done+n.New
		return err
	})
	if err != nil {
		return err
	}
	w.Log.Info("vectors of a new model are made beside those in use", "model", w.to.Model, "dimension", w.to.Dimension,
		"done", done, "total", total)
	return w.running(db.Exec(ctx, w.DB, `
		UPDATE reembedding SET done = @done, total = @total, refused = 0, error = NULL
		WHERE to_space = @space AND state = 'running' AND started_at = @started`,
		pgx.StrictNamedArgs{"space": w.to.ID, "done": done, "total": max(total, done), "started": w.started}))
}

// running returns errEnded for the ErrNotFound of a statement that expects a running row.
func (w *reembedding) running(err error) error {
	if errors.Is(err, db.ErrNotFound) {
		return errEnded
	}
	return err
}

// pass makes the missing vectors of an organization's rows that have a vector in the active space. It returns their
// number.
func (w *reembedding) pass(ctx context.Context, org db.Org, m ReembedSource) (made int, err error) {
	for after := int64(-1 << 63); ; {
		lacking, last, err := w.page(ctx, org, m, after)
		if err != nil || last == after {
			return made, err
		}
		n, err := w.slices(ctx, org, m, lacking)
		if made += n; err != nil {
			return made, err
		}
		after = last
	}
}

// page returns the next page's rows without a vector, and the last row of the page. If there is no page, last is after.
func (w *reembedding) page(ctx context.Context, org db.Org, m ReembedSource, after int64) (lacking []int64, last int64,
	err error) {
	type row struct {
		Key   int64 `db:"key"`
		Lacks bool  `db:"lacks"`
	}
	if _, err := w.DB.Exec(ctx, `UPDATE embedding_spaces SET used_at = now() WHERE id = $1`, w.to.ID); err != nil {
		return nil, 0, err
	}
	from, _ := w.Endpoint.Space()
	rows, err := db.All[row](ctx, w.DB, strings.NewReplacer("{vectors}", m.Table, "{key}", m.Key, "{row}", m.Row).Replace(`
		SELECT p.key, EXISTS (
			SELECT FROM {vectors} o
			WHERE o.org = $1 AND o.{key} = p.key AND o.space_id = $2 AND NOT EXISTS (
				SELECT FROM {vectors} n
				WHERE n.org = $1 AND n.{key} = o.{key} AND n.{row} = o.{row} AND n.space_id = $3)) AS lacks
		FROM (
			SELECT DISTINCT {key} AS key FROM {vectors} WHERE org = $1 AND space_id = $2 AND {key} > $4
			ORDER BY {key}
			LIMIT $5
		) p
		ORDER BY p.key`), org, from.ID, w.to.ID, after, pageRows)
	if err != nil || len(rows) == 0 {
		return nil, after, err
	}
	for _, r := range rows {
		if r.Lacks {
			lacking = append(lacking, r.Key)
		}
	}
	return lacking, rows[len(rows)-1].Key, nil
}
