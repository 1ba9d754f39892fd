package loop_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/agent/loop"
)

// A run waits while a schema is being rebuilt, but not forever: a wrong SQL statement of Loci fails with the same
// errors.
func TestAWrongStatementEndsARun(t *testing.T) {
	t.Parallel()
	missing, away := &pgconn.PgError{Code: "42P01"}, &pgconn.PgError{Code: "57P03"}
	for times, want := range map[int]bool{0: false, 50: false, 100: true} {
		if got := loop.EndsRun(times, missing); got != want {
			t.Errorf("after %d halts: got %t", times, got)
		}
	}
	if loop.EndsRun(1000, away) || loop.EndsRun(1000, errors.New("another")) {
		t.Error("a database that is away ends a run")
	}
}

// A run waits while the database cannot serve, and after a deadlock. Other errors end the run, and so does its model's
// deadline.
func TestWhatARunWaitsFor(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{"57P03": true, "40P01": true, "40001": true, "42P01": true, "23505": false} {
		if got := loop.Unavailable(&pgconn.PgError{Code: code}); got != want {
			t.Errorf("%s: got %t", code, got)
		}
	}
	if loop.Unavailable(context.DeadlineExceeded) {
		t.Error("a run waits after its model's deadline")
	}
}
