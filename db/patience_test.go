package db_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
)

// locked returns a context with little patience, and an organization with a row that another session has locked.
func locked(t *testing.T) (ctx context.Context, pool *pgxpool.Pool, org db.Org) {
	t.Helper()
	pool, org = dbtest.Org(t)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	if _, err := tx.Exec(t.Context(), `SELECT FROM organizations WHERE org = $1 FOR UPDATE`, org); err != nil {
		t.Fatal(err)
	}
	return db.WithPatience(t.Context(), time.Millisecond), pool, org
}

func TestNoStatementWaitsForALockForEver(t *testing.T) {
	t.Parallel()
	ctx, pool, org := locked(t)
	const update = `UPDATE organizations SET name = name WHERE org = $1`
	for name, wait := range map[string]func() error{
		"a statement": func() error { _, err := pool.Exec(ctx, update, org); return err },
		"one of a transaction": func() error {
			return db.Tx(ctx, pool, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, update, org); return err })
		},
		"a query": func() error {
			_, err := db.All[db.Org](ctx, pool, `SELECT org FROM organizations WHERE org = $1 FOR UPDATE`, org)
			return err
		},
	} {
		if err := wait(); !errors.Is(err, context.DeadlineExceeded) || !db.Unavailable(err) || ctx.Err() != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if one, err := db.One[int](ctx, pool, `SELECT 1`); err != nil || one != 1 {
		t.Errorf("then: got %d, %v", one, err)
	}
}

// A statement's session is looked at when the patience ends, and then every few seconds. A statement that works goes
// on.
func TestAStatementThatWorksMayTakeItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var waiting atomic.Bool
		var looks atomic.Int32
		ctx := db.WithPatience(t.Context(), 10*time.Second)
		statement, end := db.BeginPatiently(ctx, func() bool { looks.Add(1); return !waiting.Load() })
		time.Sleep(time.Minute)
		synctest.Wait()
		if statement.Err() != nil || looks.Load() != 11 {
			t.Errorf("after %d looks at a statement that works: %v", looks.Load(), statement.Err())
		}
		waiting.Store(true)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !errors.Is(statement.Err(), context.DeadlineExceeded) || ctx.Err() != nil {
			t.Errorf("a statement that waits: %v, and the request %v", statement.Err(), ctx.Err())
		}
		end()
	})
}

// Work that is never interrupted is told about each statement that waits too long, and about its end.
func TestAStatementThatIsNotBrokenOffIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var waits atomic.Int32
		ctx := db.WithNotice(t.Context(), 10*time.Second, func(more bool) {
			if more {
				waits.Add(1)
			} else {
				waits.Add(-1)
			}
		})
		var waiting atomic.Bool
		statement, end := db.BeginPatiently(ctx, func() bool { return !waiting.Load() })
		other, endOther := db.BeginPatiently(ctx, func() bool { return false })
		for _, c := range []struct {
			then func()
			want int32
		}{{func() {}, 0}, {func() { time.Sleep(11 * time.Second) }, 1}, {func() { waiting.Store(true) }, 1},
			{func() { time.Sleep(5 * time.Second) }, 2}, {endOther, 1}, {func() { time.Sleep(time.Minute) }, 1}, {end, 0},
			{func() { time.Sleep(time.Minute) }, 0}} {
			c.then()
			synctest.Wait()
			if got := waits.Load(); got != c.want {
				t.Errorf("%d statements are known to wait, want %d", got, c.want)
			}
		}
		if !errors.Is(statement.Err(), context.Canceled) || !errors.Is(other.Err(), context.Canceled) {
			t.Errorf("the statements ended by %v and %v", statement.Err(), other.Err())
		}
	})
}

// The waits of a request add up, and time without waiting is subtracted. A quick statement between two waits does not
// reset the sum.
func TestWaitsOfARequestAddUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := db.WithPatience(t.Context(), 10*time.Second)
		lasts := func(took time.Duration) error {
			statement, end := db.BeginPatiently(ctx, func() bool { return false })
			defer end()
			time.Sleep(took)
			synctest.Wait()
			return statement.Err()
		}
		for i, c := range []struct {
			after, took time.Duration
			broken      bool
		}{{0, 6 * time.Second, false}, {0, time.Millisecond, false}, {0, 5 * time.Second, true},
			{0, time.Millisecond, false}, {0, 2 * time.Second, true}, {6 * time.Second, 2 * time.Second, false},
			{time.Minute, 9 * time.Second, false}} {
			time.Sleep(c.after)
			if err := lasts(c.took); (err != nil) != c.broken {
				t.Errorf("statement %d, of %s: got %v", i, c.took, err)
			}
		}
	})
}

func TestASessionThatWaitsForALockDoesNotWork(t *testing.T) {
	t.Parallel()
	pool, org := dbtest.Org(t)
	holder, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(context.Background()) }()
	const lock = `SELECT FROM organizations WHERE org = $1 FOR UPDATE`
	if _, err := holder.Exec(t.Context(), lock, org); err != nil {
		t.Fatal(err)
	}
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	pid, done := conn.Conn().PgConn().PID(), make(chan error, 1)
	if !db.SessionWorks(t.Context(), pool, pid) {
		t.Error("a session that waits for nothing does not work")
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := conn.Exec(ctx, lock, org)
		done <- err
	}()
	dbtest.AwaitWaiters(t, pool, holder.Conn(), 1, func() bool { return len(done) > 0 })
	if db.SessionWorks(t.Context(), pool, pid) {
		t.Error("a session that waits for a lock works")
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("the lock was free")
	}
}

func TestNothingWaitsForAConnectionForEver(t *testing.T) {
	t.Parallel()
	pool, err := db.Connect(t.Context(), dbtest.SharedURL(t)+"&pool_max_conns=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	only, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer only.Release()
	_, err = pool.Exec(db.WithPatience(t.Context(), time.Millisecond), `SELECT 1`)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestWhatPostgresSaysWhenItCannotServe(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{"57P01": true, "57P02": true, "57P03": true, "08006": true, "53300": true,
		"53100": true, "53200": true, "25006": true, "58000": true, "58030": true, "58P01": true, "55P03": true,
		"57014": true, "25P03": true, "25P04": true, "23505": false, "22P02": false, "42601": false, "XX000": false,
		"40001": false, "42P01": true, "42883": true, "42703": true, "42704": true, "42P10": true, "3F000": true,
		"55000": true, "42501": true} {
		if got := db.Unavailable(&pgconn.PgError{Code: code}); got != want {
			t.Errorf("%s: got %v", code, got)
		}
	}
	pool, _ := dbtest.Org(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pool.Exec(cancelled, `SELECT 1`); err == nil || db.Unavailable(err) {
		t.Errorf("a statement whose caller has gone: got %v", err)
	}
	if _, err := pgx.Connect(cancelled, dbtest.SharedURL(t)); err == nil || db.Unavailable(err) {
		t.Errorf("a connection whose caller has gone: got %v", err)
	}
	_, err := pgx.Connect(t.Context(), dbtest.As(dbtest.SharedURL(t), "nobody_of_that_name"))
	if !db.TurnedAway(err) || !db.Unavailable(err) || db.TurnedAway(&pgconn.PgError{Code: "28000"}) {
		t.Errorf("a role that may not sign in: got %v", err)
	}
	undefined := &pgconn.PgError{Code: "XX000", Routine: "incompatible_module_error"}
	if !db.FilesChanged(undefined) || !db.Unavailable(undefined) || db.FilesChanged(&pgconn.PgError{Code: "XX000"}) {
		t.Error("a library of another version is not told from another fault")
	}
}

// After an error that a new connection may not have, a connection is closed.
func TestConnectionsThatCannotServeAreDropped(t *testing.T) {
	t.Parallel()
	changed, rebuilt := 0, 0
	keeps := db.KeepConnection(func() { changed++ }, func() { rebuilt++ })
	for code, want := range map[string]bool{"58P01": false, "58000": false, "25006": false, "57P01": false, "53100": true,
		"23505": true, "40P01": true, "42P01": false, "XX000": true} {
		if got := keeps(nil, &pgconn.PgError{Code: code, Severity: "ERROR"}); got != want {
			t.Errorf("%s: kept %v", code, got)
		}
	}
	if keeps(nil, &pgconn.PgError{Code: "53300", Severity: "FATAL"}) || changed != 1 || rebuilt != 1 {
		t.Errorf("a fatal error keeps its connection, or the files changed %d times, and the schema %d", changed, rebuilt)
	}
}
