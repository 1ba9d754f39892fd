package embed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/loci-memory/loci/db"
)

// The states of a ReembedProgress.
const (
	NotReembedding = "none"      // it was never started
	Reembedding    = "running"   // searches rank by the old space
	Switched       = "switched"  // searches rank by the new space
	Cancelled      = "cancelled" // searches rank by the old space
)

// ReembedProgress is how far the vectors of a new space are.
type ReembedProgress struct {
	State      string     `db:"state" json:"state" enum:"none,running,switched,cancelled"`
	From       string     `db:"from_model" json:"from_model" doc:"The model that searches rank by until the switch."`
	FromDim    int        `db:"from_dimension" json:"from_dimension" doc:"How many numbers its vectors have."`
	To         string     `db:"to_model" json:"to_model" doc:"The model that they rank by after it."`
	ToDim      int        `db:"to_dimension" json:"to_dimension" doc:"How many numbers its vectors have."`
	Done       int64      `db:"done" json:"done" doc:"Texts that have a vector of the new model."`
	Total      *int64     `db:"total" json:"total" doc:"Texts with one of the old model at the start; null until counted."`
	Refused    int64      `db:"refused" json:"refused" doc:"Texts that the new model's endpoint refused; words find them."`
	Error      *string    `db:"error" json:"error" doc:"Why it does not go on now; null while it does."`
	StartedAt  *time.Time `db:"started_at" json:"started_at" doc:"When it was started."`
	FinishedAt *time.Time `db:"finished_at" json:"finished_at" doc:"When it was switched or cancelled."`
}

// Remade is a memory whose vectors Reembed makes anew.
type Remade struct {
	Vectors
	Key      string // the column of Table by which the rows are read: Row, or that of rows with several vectors
	Openings bool   // as that of Worker

	// Read returns those of the rows with some keys that lack a vector in a space; nil if none does.
	Read func(ctx context.Context, org db.Org, space Space, keys []int64) (Rows, error)
	// Begin and Complete are called before the first row of an organization in a space and after the last; nil for
	// nothing.
	Begin, Complete func(ctx context.Context, org db.Org, space int16) error
}

// Reembed makes the vectors of a new space beside those of the space in use, in slices that each commit, and then
// switches to it. All servers share its state; one of them works. Until the switch nothing of the old space changes.
type Reembed struct {
	DB       *pgxpool.Pool
	Owner    *pgxpool.Pool // of the tables, to build indexes; nil if the server knows none
	Endpoint *Endpoint     // whose space is in use
	Next     *Endpoint     // of the new space; nil if the settings name none
	Memories []Remade
	Log      *slog.Logger

	// NextSpace returns the space of Next, which the endpoint is asked for.
	NextSpace func(ctx context.Context) (Space, error)
}

// errNoNext says what is missing.
func errNoNext() error {
	return db.Invalid("The settings name no other embedding model: set LOCI_EMBEDDING_NEXT_BASE_URL and " +
		"LOCI_EMBEDDING_NEXT_MODEL on every server, restart it, and start again.")
}

// Progress returns how far the last one is.
func (r *Reembed) Progress(ctx context.Context) (ReembedProgress, error) {
	p, err := db.One[ReembedProgress](ctx, r.DB, `
		SELECT r.state, a.model AS from_model, a.dimension AS from_dimension, b.model AS to_model,
		       b.dimension AS to_dimension,
		       r.done, r.total, r.refused, r.error, r.started_at, r.finished_at
		FROM reembedding r JOIN embedding_spaces a ON a.id = r.from_space JOIN embedding_spaces b ON b.id = r.to_space`)
	if errors.Is(err, db.ErrNotFound) {
		return ReembedProgress{State: NotReembedding}, nil
	}
	return p, err
}

// Start begins to make the vectors of the space that Next has. One that was cancelled goes on where it was. ErrInvalid
// if there is no other space, ErrConflict if another one is under way.
func (r *Reembed) Start(ctx context.Context) (ReembedProgress, error) {
	if r == nil || r.Next == nil {
		return ReembedProgress{}, errNoNext()
	}
	from, ok := r.Endpoint.Space()
	if !ok {
		return ReembedProgress{}, db.Invalid("The embeddings endpoint has not answered yet, so there is no space to " +
			"switch from. " +
			"Try again when searches rank by meaning.")
	}
	to, err := r.NextSpace(ctx)
	if err != nil {
		return ReembedProgress{}, db.Invalid("The endpoint of LOCI_EMBEDDING_NEXT_BASE_URL does not answer as it "+
			"must: %v", err)
	}
	if to.ID == from.ID {
		return ReembedProgress{}, db.Invalid("The model %s with %d numbers is in use already.", to.Model, to.Dimension)
	}
	err = db.Exec(ctx, r.DB, `
		INSERT INTO reembedding AS r (from_space, to_space) VALUES ($1, $2)
		ON CONFLICT (only_one) DO UPDATE
		SET from_space = $1, to_space = $2, state = 'running', done = 0, total = NULL, refused = 0, error = NULL,
		    started_at = now(), finished_at = NULL
		WHERE r.state <> 'running' OR (r.from_space, r.to_space) = ($1, $2)`, from.ID, to.ID)
	if errors.Is(err, db.ErrNotFound) {
		return ReembedProgress{}, db.Conflict("Vectors of another model are being made. Cancel that first.")
	}
	if err != nil {
		return ReembedProgress{}, err
	}
	return r.Progress(ctx)
}

// Cancel ends the one that is under way. The vectors that it made are kept for a week. ErrConflict if none is.
func (r *Reembed) Cancel(ctx context.Context) (ReembedProgress, error) {
	err := db.Exec(ctx, r.DB, `
		UPDATE reembedding SET state = 'cancelled', finished_at = now(), error = NULL WHERE state = 'running'`)
	if errors.Is(err, db.ErrNotFound) {
		return ReembedProgress{}, db.Conflict("No vectors of another model are being made, so there is nothing to cancel.")
	}
	if err != nil {
		return ReembedProgress{}, err
	}
	return r.Progress(ctx)
}

// stored is the row of the last one.
type stored struct {
	State string `db:"state"`
	From  int16  `db:"from_space"`
	Space
}

func (r *Reembed) stored(ctx context.Context) (stored, error) {
	return db.One[stored](ctx, r.DB, `
		SELECT r.state, r.from_space, s.id, s.provider, s.model, s.dimension
		FROM reembedding r JOIN embedding_spaces s ON s.id = r.to_space`)
}

// Switched reports whether searches rank by the space of Next in place of another one, and returns it. named reports
// whether a space is the one that the settings of Next name.
func (r *Reembed) Switched(ctx context.Context, from Space, named func(Space) bool) (to Space, switched bool,
	err error) {
	if r.Next == nil {
		return Space{}, false, nil
	}
	row, err := r.stored(ctx)
	if errors.Is(err, db.ErrNotFound) {
		return Space{}, false, nil
	}
	return row.Space, row.State == Switched && row.From == from.ID && named(row.Space), err
}

// Adopt is called with the space that the settings name as the one in use. If its vectors are incomplete because their
// making was not completed, it lets the rest be made as those of any model.
func (r *Reembed) Adopt(ctx context.Context, space Space) error {
	row, err := r.stored(ctx)
	if errors.Is(err, db.ErrNotFound) || err == nil && (row.ID != space.ID || row.State == Switched) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := r.complete(ctx, space); err != nil {
		return err
	}
	_, err = r.DB.Exec(ctx, `
		UPDATE reembedding SET state = 'switched', finished_at = now(), error = NULL WHERE to_space = $1`, space.ID)
	return db.Error(err)
}

// complete calls Complete of every memory and organization.
func (r *Reembed) complete(ctx context.Context, space Space) error {
	return r.each(ctx, func(ctx context.Context, org db.Org, m Remade) error {
		if m.Complete == nil {
			return nil
		}
		return m.Complete(ctx, org, space.ID)
	})
}

// each calls fn for every memory of every organization.
func (r *Reembed) each(ctx context.Context, fn func(ctx context.Context, org db.Org, m Remade) error) error {
	orgs, err := db.Orgs(ctx, r.DB)
	for _, org := range orgs {
		for _, m := range r.Memories {
			if err == nil {
				err = fn(db.WithOrg(ctx, org), org, m)
			}
		}
	}
	return err
}

// errEnded says that it was cancelled, or replaced, meanwhile.
var errEnded = errors.New("the making of vectors was cancelled")

// Run works on the one that is under way, if there is one and no other server works on it, until the switch, a failure,
// or its end. An error is stored for the operator, too. named is as for Switched.
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
	run := &reembedding{Reembed: r, to: row.Space, refused: map[string]map[int64]bool{}}
	if err = r.matches(row, named); err == nil {
		err = run.work(ctx)
	}
	// Closing the connection releases the lock only some time later.
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

// reembedding is one run of a server.
type reembedding struct {
	*Reembed
	to Space

	mu      sync.Mutex
	refused map[string]map[int64]bool // rows by the table of their vectors, which are not asked for again
}

// Bounds of a run. What is written while a pass goes through the rows is for the next pass; what the last pass leaves
// is made after the switch as the vectors of all new texts are.
const (
	pageRows  = 2000
	atOnce    = 4 // slices, each a request
	maxPasses = 10
)

func (w *reembedding) work(ctx context.Context) error {
	w.Next.Use(w.to)
	if err := w.begin(ctx); err != nil {
		return err
	}
	for pass := 1; ; pass++ {
		made := 0
		err := w.each(ctx, func(ctx context.Context, org db.Org, m Remade) error {
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
			break // a search of many rows is exact, and slower, until a program of the owner builds the index
		}
		if _, err := m.index(ctx, w.Owner, w.to, nil); err != nil {
			return err
		}
	}
	if err := w.complete(ctx, w.to); err != nil {
		return err
	}
	err := db.Exec(ctx, w.DB, `
		UPDATE reembedding SET state = 'switched', finished_at = now(), error = NULL, total = done + refused
		WHERE to_space = $1 AND state = 'running'`, w.to.ID)
	if errors.Is(err, db.ErrNotFound) {
		return errEnded
	}
	if err == nil {
		w.Log.Info("all vectors of the new model are made; searches rank by them from now on", "model", w.to.Model,
			"dimension", w.to.Dimension)
	}
	return err
}

// begin counts what is to be done, and what an earlier run did.
func (w *reembedding) begin(ctx context.Context) error {
	from, _ := w.Endpoint.Space()
	var total, done int64
	err := w.each(ctx, func(ctx context.Context, org db.Org, m Remade) error {
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
		UPDATE reembedding SET done = $2, total = $3, refused = 0, error = NULL WHERE to_space = $1 AND state = 'running'`,
		w.to.ID, done, max(total, done)))
}

// running returns errEnded for the ErrNotFound of a statement that asks for a row that runs.
func (w *reembedding) running(err error) error {
	if errors.Is(err, db.ErrNotFound) {
		return errEnded
	}
	return err
}

// pass makes the vectors of an organization's rows that have one in the space in use and none in the new one, and
// returns their number.
func (w *reembedding) pass(ctx context.Context, org db.Org, m Remade) (made int, err error) {
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

// page returns the rows of the next page that lack a vector, and the page's last row; after, if there is no page.
func (w *reembedding) page(ctx context.Context, org db.Org, m Remade, after int64) (lacking []int64, last int64,
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

// slices makes the vectors of rows, some at a time, and returns their number. While the endpoint fails, it waits.
func (w *reembedding) slices(ctx context.Context, org db.Org, m Remade, keys []int64) (made int, err error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	var mu sync.Mutex
	for len(keys) > 0 && ctx.Err() == nil {
		n := min(len(keys), w.Next.Size())
		some := keys[:n]
		keys = keys[n:]
		group.Go(func() error {
			n, err := w.insist(ctx, org, m, some)
			mu.Lock()
			defer mu.Unlock()
			made += n
			return err
		})
	}
	return made, group.Wait()
}

// insist makes the vectors of one slice, again until the endpoint answers.
func (w *reembedding) insist(ctx context.Context, org db.Org, m Remade, keys []int64) (int, error) {
	for {
		n, away, err := w.slice(ctx, org, m, keys)
		if err == nil && away == 0 || errors.Is(err, errEnded) || ctx.Err() != nil {
			return n, err
		}
		if _, broken := errors.AsType[endpointError](err); err != nil && !broken {
			return n, err
		}
		if err != nil {
			if err := w.note(ctx, w.to.ID, err.Error()); err != nil {
				return n, err
			}
		}
		if err := w.running(db.Exec(ctx, w.DB, `
			UPDATE reembedding SET error = error WHERE to_space = $1 AND state = 'running'`, w.to.ID)); err != nil {
			return n, err
		}
		select { // a cancellation is seen when the pause is over
		case <-ctx.Done():
			return n, ctx.Err()
		case <-time.After(min(away, time.Second)):
		}
	}
}

// endpointError is a failure of the new endpoint, after which it is asked again.
type endpointError struct{ error }

// slice makes the vectors of rows with one call of the endpoint, and commits them. away is how long to leave the
// endpoint alone if it gave no permit.
func (w *reembedding) slice(ctx context.Context, org db.Org, m Remade, keys []int64) (made int, away time.Duration,
	err error) {
	permit, away := w.Next.Await(ctx)
	if away > 0 {
		return 0, away, nil
	}
	defer permit.End()
	batch, err := m.Read(ctx, org, w.to, keys)
	if err != nil || batch == nil {
		return 0, 0, err
	}
	items := w.wanted(m, batch.Items())
	if len(items) == 0 {
		return 0, 0, nil
	}
	vectors, refused, err := permit.texts(ctx, items, m.Openings)
	if err != nil {
		return 0, 0, endpointError{err}
	}
	err = db.Tx(ctx, w.DB, func(tx pgx.Tx) error {
		if made, err = m.store(ctx, tx, w.to, batch, answer{vectors, refused}); err != nil {
			return err
		}
		return w.running(db.Exec(ctx, tx, `
			UPDATE reembedding SET done = done + $2, refused = refused + $3, total = greatest(total, done + $2), error = NULL
			WHERE to_space = $1 AND state = 'running'`, w.to.ID, made, len(refused)))
	})
	if err != nil {
		return 0, 0, err
	}
	w.refuse(m, refused)
	return made, 0, nil
}

// wanted returns the items that the endpoint has not refused.
func (w *reembedding) wanted(m Remade, items []Item) (wanted []Item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, item := range items {
		if !w.refused[m.Table][item.ID] {
			wanted = append(wanted, item)
		}
	}
	return wanted
}

func (w *reembedding) refuse(m Remade, refused []*RefusedError) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range refused {
		if w.refused[m.Table] == nil {
			w.refused[m.Table] = map[int64]bool{}
		}
		w.refused[m.Table][r.ID] = true
	}
}
