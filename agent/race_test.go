package agent_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/files"
)

// A request that attaches several folders first locks all of them, in one order, and only then attaches them. So two
// such requests never wait for each other.
func TestAgentsWithSeveralFoldersLockThemInOneOrder(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	var ids []string
	var keys []int64
	for _, name := range []string{"first", "second"} {
		f, err := s.Files.CreateFolder(t.Context(), s.org, files.NewFolder{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		ids, keys = append([]string{f.ID}, ids...), append(keys, f.Key) // the request names them in reverse order
	}
	old := create(t, s, agent.New{Name: "old"})
	for what, call := range map[string]func(context.Context) error{
		"create": func(ctx context.Context) error {
			_, err := s.Create(ctx, s.org, agent.New{Name: "new", FolderIDs: ids})
			return err
		},
		"update": func(ctx context.Context) error {
			_, err := s.Update(ctx, s.org, old.ID, agent.Update{FolderIDs: ids})
			return err
		},
	} {
		holder := begin(t, pool)
		if err := lock(t, holder, keys[0], "SHARE"); err != nil { // like the commit of a file's text
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- call(context.Background()) }()
		awaitBlocked(t, pool, holder)
		other := begin(t, pool)
		if err := lock(t, other, keys[1], "UPDATE NOWAIT"); err != nil {
			t.Errorf("%s holds the second folder while it waits for the first: %v", what, err)
		}
		if err := errors.Join(other.Rollback(t.Context()), holder.Rollback(t.Context())); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func begin(t *testing.T, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func lock(t *testing.T, tx pgx.Tx, folder int64, mode string) error {
	t.Helper()
	_, err := tx.Exec(t.Context(), `SELECT FROM folders WHERE key = $1 FOR `+mode, folder)
	var pg *pgconn.PgError
	if err != nil && (!errors.As(err, &pg) || pg.Code != "55P03") { // lock_not_available
		t.Fatal(err)
	}
	return err
}

// awaitBlocked waits until another connection waits for a lock of the holder.
func awaitBlocked(t *testing.T, pool *pgxpool.Pool, holder pgx.Tx) {
	t.Helper()
	deadline := time.After(time.Minute)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for blocked := false; !blocked; {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatal("nobody waits for the first folder")
		}
		err := pool.QueryRow(t.Context(), `
			SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1::integer = ANY (pg_blocking_pids(pid)))`,
			holder.Conn().PgConn().PID()).Scan(&blocked)
		if err != nil {
			t.Fatal(err)
		}
	}
}
