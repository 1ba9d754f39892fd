package loop

import (
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// RefuseBusy returns a *BusyError if a run is working in a conversation.
func (l *Loop) RefuseBusy(ctx context.Context, org db.Org, c recall.Conversation) error {
	return refuseBusy(ctx, l.DB, org, c)
}

func refuseBusy(ctx context.Context, d db.DB, org db.Org, c recall.Conversation) error {
	r, err := activeIn(ctx, d, org, c.ID)
	if err == nil {
		return &BusyError{r.ID}
	}
	return ignoreNotFound(err)
}

// busy returns the error for a request that meets another run.
func (l *Loop) busy(ctx context.Context, org db.Org, c recall.Conversation) error {
	other, err := activeIn(ctx, l.DB, org, c.ID)
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		return err
	}
	return &BusyError{other.ID}
}

// activeIn returns the run that works in a conversation; ErrNotFound if there is none.
func activeIn(ctx context.Context, d db.DB, org db.Org, conversation string) (Run, error) {
	return db.One[Run](ctx, d, runRows+` AND c.id = @conversation AND r.status = 'running'`,
		pgx.StrictNamedArgs{"org": org, "conversation": conversation})
}

// CheckIdle returns a *BusyError if a run is working in a conversation.
func (l *Loop) CheckIdle(ctx context.Context, org db.Org, conversation string) error {
	r, err := activeIn(ctx, l.DB, org, conversation)
	if errors.Is(err, db.ErrNotFound) {
		return nil
	}
	return cmp.Or(err, error(&BusyError{r.ID}))
}
