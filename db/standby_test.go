package db_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/local"
)

// withoutStandby returns a Postgres that waits at each commit for a standby that never comes.
func withoutStandby(t *testing.T) *pgxpool.Pool {
	t.Helper()
	ctx := context.Background()
	home, err := os.MkdirTemp("", "loci") // short enough for a socket
	if err == nil {
		err = os.Chmod(home, 0o755) //nolint:gosec // Postgres may run as another user
	}
	if err != nil {
		t.Fatal(err)
	}
	pg, err := local.Start(ctx, local.Options{Home: home, Bin: os.Getenv("LOCI_POSTGRES_BIN")})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(ctx, pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		pool.Close()
		if err := errors.Join(pg.Stop(ctx), os.RemoveAll(home)); err != nil {
			t.Error(err)
		}
	})
	for _, sql := range []string{`CREATE TABLE kept (n integer)`, `ALTER SYSTEM SET synchronous_standby_names = 'absent'`,
		`SELECT pg_reload_conf()`} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	for name := ""; name != "absent"; runtime.Gosched() {
		if name, err = db.One[string](ctx, pool, `SHOW synchronous_standby_names`); err != nil {
			t.Fatal(err)
		}
	}
	for waits := false; !waits; { // commits wait once Postgres' checkpointer, too, has read the setting
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- db.Exec(ctx, pool, `INSERT INTO kept VALUES (0)`) }()
		for ended := false; !ended && !waits; {
			select {
			case err := <-done:
				if ended = true; err != nil {
					t.Fatal(err)
				}
			default:
				waits = len(waiting(t, pool)) == 1
			}
		}
		if cancel(); waits {
			if err := <-done; !errors.Is(err, db.ErrUnconfirmed) {
				t.Fatal(err)
			}
		}
	}
	for len(waiting(t, pool)) > 0 {
		runtime.Gosched()
	}
	return pool
}

// A commit that waits for a standby does not count as working, so its patience ends. The error says that the change may
// be stored, which is true. The error of a statement before the commit does not say so.
func TestACommitThatWaitsForAStandbyIsUnconfirmed(t *testing.T) {
	t.Parallel()
	pool := withoutStandby(t)
	for name, write := range map[string]func(ctx context.Context, pid chan<- uint32) error{
		"a transaction": func(ctx context.Context, pid chan<- uint32) error {
			return db.Tx(ctx, pool, func(tx pgx.Tx) error {
				pid <- tx.Conn().PgConn().PID()
				return db.Exec(ctx, tx, `INSERT INTO kept VALUES (1)`)
			})
		},
		"a statement": func(ctx context.Context, pid chan<- uint32) error {
			pid <- 0
			return db.Exec(ctx, pool, `INSERT INTO kept VALUES (1)`)
		},
	} {
		before, err := db.One[int](t.Context(), pool, `SELECT count(*) FROM kept`)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		began, done := make(chan uint32, 1), make(chan error, 1)
		go func() { done <- write(ctx, began) }()
		pid := <-began
		waiting := awaitStandby(t, pool)
		if pid != 0 && pid != waiting || db.SessionWorks(t.Context(), pool, waiting) {
			t.Errorf("%s: session %d works while it waits, or is not %d", name, waiting, pid)
		}
		cancel()
		if err := <-done; !errors.Is(err, db.ErrUnconfirmed) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
		for after := before; after != before+1; runtime.Gosched() { // until Postgres has noticed
			if after, err = db.One[int](t.Context(), pool, `SELECT count(*) FROM kept`); err != nil {
				t.Fatal(err)
			}
		}
	}
	err := db.Tx(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO absent VALUES (1)`)
		return err
	})
	if err == nil || errors.Is(err, db.ErrUnconfirmed) {
		t.Errorf("a statement that fails: got %v", err)
	}
}

// awaitStandby waits until a session waits for a standby, and returns the session's process.
func awaitStandby(t *testing.T, pool *pgxpool.Pool) uint32 {
	t.Helper()
	for {
		if pids := waiting(t, pool); len(pids) == 1 {
			return uint32(pids[0])
		}
	}
}

// waiting returns the processes of the sessions that wait for a standby.
func waiting(t *testing.T, pool *pgxpool.Pool) []int64 {
	t.Helper()
	pids, err := db.All[int64](t.Context(), pool, `
		SELECT pid::bigint FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
	if err != nil {
		t.Fatal(err)
	}
	return pids
}
