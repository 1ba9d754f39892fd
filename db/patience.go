package db

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// patience limits how long a piece of work waits for a suspended database, for another session's lock, or for a standby
// that does not confirm a commit. A statement that the database actually works on may take any time.
type patience struct {
	limit time.Duration
	told  func(waits bool) // called when a statement waits longer, instead of ending it; nil: the statement is ended

	mu     sync.Mutex
	waited time.Duration // sum of the waits, minus the time without waits since
	seen   time.Time     // when waited was last updated
}

const (
	quick       = time.Second     // a statement that took less did not wait
	lookAgain   = 5 * time.Second // wait between two looks at a statement that exceeds the patience
	lookTimeout = 2 * time.Second
)

type (
	patienceKey struct{}
	waitKey     struct{}
)

// WithPatience returns a context that limits waiting. Statements with it, through a pool of this package, may wait at
// most limit for locks, for a connection of the pool, and for a database that does not answer. The waits add up; time
// without waits is subtracted again. A statement that would wait longer ends with context.DeadlineExceeded.
func WithPatience(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, patienceKey{}, &patience{limit: limit})
}

// WithNotice is WithPatience for work that is not interrupted. It calls told with true when a statement has waited
// longer, and with false when that statement has ended.
func WithNotice(ctx context.Context, limit time.Duration, told func(waits bool)) context.Context {
	return context.WithValue(ctx, patienceKey{}, &patience{limit: limit, told: told})
}

// left returns how long the next statement may take before its session is looked at.
func (p *patience) left() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.waited, p.seen = max(0, p.waited-now.Sub(p.seen)), now
	return max(p.limit-p.waited, quick)
}

// note records how long a statement waited.
func (p *patience) note(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waited, p.seen = p.waited+took, time.Now()
}

// errOutOfPatience is the cause with which a statement is ended that waited too long.
var errOutOfPatience = errors.New("the database or its standby does not answer, or another session holds a lock")

// patient ends statements that exceed the patience of their context. It implements pgx's tracers.
type patient struct {
	look func(context.Context, uint32) (works bool) // reports whether the Postgres process with this id works
}

// wait is a running statement, or a wait for a connection.
type wait struct {
	*patience
	began  time.Time
	timer  *time.Timer
	works  bool // result of the last look
	over   bool // it has ended
	late   bool // told was called with true
	cancel context.CancelCauseFunc
}

// begin returns the context for a statement of session pid. pid is 0 for a wait for a connection.
func (t *patient) begin(ctx context.Context, pid uint32) context.Context {
	p, _ := ctx.Value(patienceKey{}).(*patience)
	if p == nil {
		return ctx
	}
	inner, cancel := context.WithCancelCause(ctx)
	w := &wait{patience: p, began: time.Now(), cancel: cancel}
	left := p.left()
	p.mu.Lock()
	defer p.mu.Unlock()
	w.timer = time.AfterFunc(left, func() {
		looking, done := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
		defer done()
		works := pid != 0 && t.look(looking, pid)
		p.mu.Lock()
		defer p.mu.Unlock()
		switch w.works = works; {
		case w.over:
		case works:
			w.timer.Reset(lookAgain)
		case p.told == nil:
			cancel(errOutOfPatience)
		default:
			w.late = true
			p.told(true)
		}
	})
	return context.WithValue(bounded{inner}, waitKey{}, w)
}

// end ends what begin began.
func (*patient) end(ctx context.Context) {
	w, _ := ctx.Value(waitKey{}).(*wait)
	if w == nil {
		return
	}
	w.timer.Stop()
	w.ended()
	w.cancel(nil)
}

// ended records a wait, unless the statement was quick or the database worked on it.
func (w *wait) ended() {
	w.mu.Lock()
	works, late := w.works, w.late
	w.over = true
	w.mu.Unlock()
	if late {
		w.told(false)
	}
	if took := time.Since(w.began); took >= quick && !works {
		w.note(took)
	}
}

// bounded is a context that reports an end by patience as a passed deadline.
type bounded struct{ context.Context }

// Err implements context.Context.
func (b bounded) Err() error {
	err := b.Context.Err()
	if err != nil && errors.Is(context.Cause(b.Context), errOutOfPatience) {
		return context.DeadlineExceeded
	}
	return err
}

// looker returns a function that reports whether a Postgres process works. It returns false if the process waits for a
// lock or a standby, or if the database does not answer.
func looker(config *pgx.ConnConfig) func(context.Context, uint32) bool {
	config = config.Copy()
	config.Tracer = nil
	return func(ctx context.Context, pid uint32) bool {
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return false
		}
		defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it was asked
		var waits bool
		err = conn.QueryRow(ctx, `
			SELECT coalesce(wait_event_type = 'Lock' OR wait_event = 'SyncRep', false)
			FROM pg_stat_activity WHERE pid = $1`, int64(pid)).Scan(&waits)
		return err == nil && !waits
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (t *patient) TraceQueryStart(ctx context.Context, conn *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return t.begin(ctx, conn.PgConn().PID())
}

// TraceQueryEnd implements pgx.QueryTracer.
func (t *patient) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	t.end(ctx)
}

// TraceBatchStart implements pgx.BatchTracer.
func (t *patient) TraceBatchStart(ctx context.Context, conn *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return t.begin(ctx, conn.PgConn().PID())
}

// TraceBatchQuery implements pgx.BatchTracer.
func (*patient) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (t *patient) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) {
	t.end(ctx)
}

// TraceCopyFromStart implements pgx.CopyFromTracer.
func (t *patient) TraceCopyFromStart(
	ctx context.Context, conn *pgx.Conn, _ pgx.TraceCopyFromStartData,
) context.Context {
	return t.begin(ctx, conn.PgConn().PID())
}

// TraceCopyFromEnd implements pgx.CopyFromTracer.
func (t *patient) TraceCopyFromEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromEndData) {
	t.end(ctx)
}

// TraceAcquireStart implements pgxpool.AcquireTracer.
func (t *patient) TraceAcquireStart(
	ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData,
) context.Context {
	return t.begin(ctx, 0)
}

// TraceAcquireEnd implements pgxpool.AcquireTracer.
func (t *patient) TraceAcquireEnd(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireEndData) {
	t.end(ctx)
}
