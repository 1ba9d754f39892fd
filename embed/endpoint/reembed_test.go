package endpoint_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed/endpoint"
)

// A start asks the new endpoint, which takes seconds. It changes nothing while a run to the same model is in progress,
// and does not undo a cancellation that comes in the meantime.
func TestAStartUndoesNoLaterCancellation(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), dbtest.New(t)
	from, err := endpoint.UseSpace(ctx, pool, "a", "old", 3)
	if err != nil {
		t.Fatal(err)
	}
	whenAsked, next := func() {}, "new"
	r := &endpoint.Reembed{DB: pool, Endpoint: &endpoint.Endpoint{}, Next: &endpoint.Endpoint{},
		NextSpace: func(ctx context.Context) (endpoint.Space, error) {
			whenAsked()
			return endpoint.UseSpace(ctx, pool, "a", next, 3)
		}}
	r.Endpoint.Use(from)
	first, err := r.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.Start(ctx)
	if err != nil || !again.StartedAt.Equal(*first.StartedAt) {
		t.Errorf("a start while one runs: got %+v and %v, want %+v", again, err, first)
	}
	cancel := func() {
		if _, err := r.Cancel(ctx); err != nil {
			t.Error(err)
		}
	}
	whenAsked = cancel
	if _, err := r.Start(ctx); !errors.Is(err, db.ErrConflict) {
		t.Errorf("a start that is overtaken by a cancellation: got %v", err)
	}
	whenAsked = func() { // another start, and its cancellation
		whenAsked = func() {}
		if _, err := r.Start(ctx); err != nil {
			t.Error(err)
		}
		cancel()
	}
	if _, err := r.Start(ctx); !errors.Is(err, db.ErrConflict) {
		t.Errorf("a start after which another one was cancelled: got %v", err)
	}
	if p, err := r.Progress(ctx); err != nil || p.State != endpoint.Cancelled {
		t.Errorf("got %+v and %v, want it cancelled", p, err)
	}
	if p, err := r.Start(ctx); err != nil || p.State != endpoint.Reembedding {
		t.Errorf("a start after the cancellation: got %+v and %v", p, err)
	}

	// A cancelled run leaves files with some of their vectors. A run to the same space goes on with them; one to another
	// space completes the space that it leaves.
	var completed []int16
	r.Memories = []endpoint.ReembedSource{{Complete: func(_ context.Context, _ db.Org, space int16) error {
		completed = append(completed, space)
		return nil
	}}}
	cancel()
	if _, err := r.Start(ctx); err != nil || len(completed) > 0 {
		t.Errorf("a start that goes on: %v, completed %v", err, completed)
	}
	cancel()
	left, err := r.NextSpace(ctx)
	if err != nil {
		t.Fatal(err)
	}
	next = "newer"
	if _, err := r.Start(ctx); err != nil || len(completed) == 0 ||
		slices.ContainsFunc(completed, func(space int16) bool { return space != left.ID }) {
		t.Errorf("a start to another space: %v, completed %v, want %d", err, completed, left.ID)
	}
}
