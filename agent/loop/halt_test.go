package loop_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/agent/loop"
)

// A run waits for a schema that is rebuilt, but not for ever: a wrong statement of Loci fails with the same errors.
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
