package endpoint

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
)

// Reembed makes the vectors of a new space beside those of the active space, in slices that commit one by one, and then
// switches to the new space. All servers share its state; one of them works. Until the switch, nothing in the old space
// changes.
type Reembed struct {
	DB       *pgxpool.Pool
	Owner    *pgxpool.Pool // owner of the tables, to build indexes; nil if the server has no such role
	Endpoint *Endpoint     // makes the active space
	Next     *Endpoint     // makes the new space; nil if the settings name none
	Memories []ReembedSource
	Log      *slog.Logger

	// NextSpace asks the endpoint for the space of Next.
	NextSpace func(ctx context.Context) (Space, error)
}

// errNoNext says which settings are missing.
func errNoNext() error {
	return db.Invalid("The settings name no other embedding model: set LOCI_EMBEDDING_NEXT_BASE_URL and " +
		"LOCI_EMBEDDING_NEXT_MODEL, or LOCI_EMBEDDING_NEXT=builtin, on every server, restart it, and start again.")
}

// Start starts to make vectors in the space of Next. A cancelled run goes on where it stopped, and a running one goes
// on unchanged. ErrInvalid if there is no other space; ErrConflict if a run to another space is in progress, or if a
// run ended while the endpoint was asked.
func (r *Reembed) Start(ctx context.Context) (ReembedProgress, error) {
	if r == nil || r.Next == nil {
		return ReembedProgress{}, errNoNext()
	}
	from, ok := r.Endpoint.Space()
	if !ok {
		return ReembedProgress{}, db.Invalid("%s has given no vectors yet, so there is no space to switch from. Try again "+
			"when searches rank by meaning.", asSentence(r.Endpoint.name()))
	}
	before, err := r.Progress(ctx)
	if err != nil {
		return ReembedProgress{}, err
	}
	to, err := r.NextSpace(ctx) // takes seconds
	if err != nil {
		return ReembedProgress{}, db.Invalid("The model of LOCI_EMBEDDING_NEXT* does not answer as it must: %v", err)
	}
	if to.ID == from.ID {
		return ReembedProgress{}, db.Invalid("The model %s with %d numbers is in use already.", to.Model, to.Dimension)
	}
	if err := r.leave(ctx, to); err != nil {
		return ReembedProgress{}, err
	}
	err = db.Exec(ctx, r.DB, `
		INSERT INTO reembedding AS r (from_space, to_space) VALUES ($1, $2)
		ON CONFLICT (only_one) DO UPDATE
		SET from_space = $1, to_space = $2, state = 'running', done = 0, total = NULL, refused = 0, error = NULL,
		    started_at = excluded.started_at, finished_at = NULL
		WHERE r.state <> 'running' AND r.finished_at = $3`, from.ID, to.ID, before.FinishedAt)
	if errors.Is(err, db.ErrNotFound) {
		err = r.notStarted(ctx, from, to)
	}
	if err != nil {
		return ReembedProgress{}, err
	}
	return r.Progress(ctx)
}

// leave completes the space of a cancelled run before a run to another space takes its place. Nothing would tell later
// that files have only some of their vectors there.
func (r *Reembed) leave(ctx context.Context, to Space) error {
	row, err := r.stored(ctx)
	if errors.Is(err, db.ErrNotFound) || err == nil && (row.ID == to.ID || row.State != Cancelled) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.complete(ctx, row.Space)
}

// notStarted says why a start changed nothing. It returns nil if a run to the same space is in progress; otherwise an
// ErrConflict with the reason.
func (r *Reembed) notStarted(ctx context.Context, from, to Space) error {
	row, err := r.stored(ctx)
	switch {
	case err != nil:
		return err
	case row.State != Reembedding:
		return db.Conflict("It was cancelled, or ended, while the new model's endpoint was asked. Start again if it is to " +
			"go on.")
	case row.From != from.ID || row.ID != to.ID:
		return db.Conflict("Vectors of another model are being made. Cancel that first.")
	}
	return nil
}

// Cancel ends the run that is in progress. Its vectors are kept for a week. ErrConflict if there is no run.
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

// stored is the row of the latest run.
type stored struct {
	State   string    `db:"state"`
	From    int16     `db:"from_space"`
	Started time.Time `db:"started_at"`
	Space
}

func (r *Reembed) stored(ctx context.Context) (stored, error) {
	return db.One[stored](ctx, r.DB, `
		SELECT r.state, r.from_space, r.started_at, s.id, s.provider, s.model, s.dimension
		FROM reembedding r JOIN embedding_spaces s ON s.id = r.to_space`)
}

// Switched reports whether searches use the space of Next in place of another one, and returns it. named reports
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

// Adopt is called with the space that the settings name as the active one. If a run in that space was not completed,
// Adopt lets its missing vectors be made as for any model.
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

// complete calls Complete of every memory for every organization.
func (r *Reembed) complete(ctx context.Context, space Space) error {
	return r.each(ctx, func(ctx context.Context, org db.Org, m ReembedSource) error {
		if m.Complete == nil {
			return nil
		}
		return m.Complete(ctx, org, space.ID)
	})
}

// each calls fn for every memory of every organization.
func (r *Reembed) each(ctx context.Context, fn func(ctx context.Context, org db.Org, m ReembedSource) error) error {
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
