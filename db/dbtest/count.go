package dbtest

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// counters maps the *pgxpool.Pool of a test to its counter.
var counters sync.Map

// Sent returns the statements that the product sends through a test's pool while fn runs, including COPY and the ends
// of transactions. It leaves out statements of tests, of River's own loops and of new connections. It also leaves out
// renewals of leases, because their number depends on how long fn takes.
func Sent(t testing.TB, pool *pgxpool.Pool, fn func()) []string {
	t.Helper()
	found, ok := counters.Load(pool)
	if !ok {
		t.Fatal("dbtest: the pool is not a test's")
	}
	c := found.(*counter)
	c.start()
	fn()
	return c.stop()
}

// AtMost fails the test if more than n statements were sent, and lists them.
func AtMost(t testing.TB, n int, what string, sent []string) {
	t.Helper()
	if len(sent) <= n {
		return
	}
	var list strings.Builder
	for i, sql := range sent {
		fmt.Fprintf(&list, "\n%3d. %.150s", i+1, strings.Join(strings.Fields(sql), " "))
	}
	t.Errorf("%s sends %d statements, want at most %d:%s", what, len(sent), n, list.String())
}

// counter is a tracer that records the product's statements between start and stop.
type counter struct {
	mu      sync.Mutex
	started bool
	sent    []string
}

func (c *counter) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started, c.sent = true, nil
}

func (c *counter) stop() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started = false
	return c.sent
}

func (c *counter) add(sql string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started && ofProduct() {
		c.sent = append(c.sent, sql)
	}
}

// ofProduct reports whether the running statement comes from a function of the product, and not from a renewal.
func ofProduct() bool {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	product := false
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		switch {
		case product && !renewal.MatchString(f.Function):
		case product:
			return false
		case helper.MatchString(f.File):
		case test.MatchString(f.File), f.Function == "github.com/loci-memory/loci/db.setUp":
			return false
		case strings.HasPrefix(f.Function, "github.com/loci-memory/loci/"):
			product = true
		}
	}
	return product
}

// renewal matches goroutines that renew a lease or a claim at intervals.
var renewal = regexp.MustCompile(`compaction/store\.\(\*Store\)\.keepClaim\.func`)

// TraceQueryStart implements pgx.QueryTracer.
func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	c.add(q.SQL)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (c *counter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	for _, q := range b.Batch.QueuedQueries {
		c.add(q.SQL)
	}
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (*counter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (*counter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// TraceCopyFromStart implements pgx.CopyFromTracer.
func (c *counter) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, of pgx.TraceCopyFromStartData) context.Context {
	c.add("COPY " + of.TableName.Sanitize())
	return ctx
}

// TraceCopyFromEnd implements pgx.CopyFromTracer.
func (*counter) TraceCopyFromEnd(context.Context, *pgx.Conn, pgx.TraceCopyFromEndData) {}
