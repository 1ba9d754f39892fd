package dbtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Patience is the longest wait of a test. A test that reaches it fails.
const Patience = 3 * time.Minute

// AwaitWaiters waits until n statements wait, directly or behind others, for locks that a connection holds. It stops
// early once ended returns true; ended may be nil.
func AwaitWaiters(t testing.TB, d db.DB, holder *pgx.Conn, n int, ended func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); ; {
		waiting, err := db.One[int](context.Background(), d, `
			WITH RECURSIVE waiters AS (
				SELECT pid FROM pg_stat_activity WHERE $1::integer = ANY (pg_blocking_pids(pid))
				UNION
				SELECT a.pid FROM pg_stat_activity a JOIN waiters w ON w.pid = ANY (pg_blocking_pids(a.pid))
			)
			SELECT count(*)::integer FROM waiters`, int32(holder.PgConn().PID())) //nolint:gosec // a process id
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%d statements wait for the locks of the connection, want %d; %v", waiting, n, err)
		}
		if waiting >= n || ended != nil && ended() {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
