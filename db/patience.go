package db

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// patience bounds how long a piece of work waits for a database that is suspended, for another session's lock, or for a
// standby that does not confirm a commit. A statement that the database works on may take as long as it needs.
type patience struct {
	limit time.Duration
	told  func(waits bool) // is told of a statement that waits longer, in place of its end; nil: it is broken off

	mu     sync.Mutex
	waited time.Duration // in all, less the time without waits since
	seen   time.Time     // when waited was brought up to date
}

const (
	quick       = time.Second     // a statement that took less did not wait
	lookAgain   = 5 * time.Second // between two looks at a statement that takes longer than the patience
	lookTimeout = 2 * time.Second
)

type (
	patienceKey struct{}
	waitKey     struct{}
)

// WithPatience returns a context whose statements, through a pool of this package, wait at most limit for locks, for a
// connection of the pool, and for a database that does not answer. The waits add up; time without waits is taken off
// them. A statement that would wait longer ends with context.DeadlineExceeded.
func WithPatience(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, patienceKey{}, &patience{limit: limit})
}

// WithNotice is WithPatience for work whose statements are not broken off: told is called with true for each statement
// that waits longer, and with false when that one has ended.
func WithNotice(ctx context.Context, limit time.Duration, told func(waits bool)) context.Context {
	return context.WithValue(ctx, patienceKey{}, &patience{limit: limit, told: told})
}

// left returns how long the next statement may take before it is looked at.
func (p *patience) left() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.waited, p.seen = max(0, p.waited-now.Sub(p.seen)), now
	return max(p.limit-p.waited, quick)
}

// note takes note of a statement that waited.
func (p *patience) note(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waited, p.seen = p.waited+took, time.Now()
}

// errOutOfPatience is why a statement that waited too long was broken off.
var errOutOfPatience = errors.New("the database or its standby does not answer, or another session holds a lock")

// patient breaks off statements whose context has a patience that has ended. It implements pgx's tracers.
type patient struct {
	look func(context.Context, uint32) (works bool) // reports whether the session of a process of Postgres works
}

// wait is a statement, or the wait for a connection.
type wait struct {
	*patience
	began  time.Time
	timer  *time.Timer
	works  bool // when it was looked at last
	over   bool // it has ended
	late   bool // told knows that it waits
	cancel context.CancelCauseFunc
}

// begin returns the context of a statement of a session; pid is 0 for the wait for a connection.
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

// ended takes note of a wait, unless it was one for a statement that was quick or that the database worked on.
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

// bounded is a context whose end by a patience is that of a deadline.
type bounded struct{ context.Context }

// Err implements context.Context.
func (b bounded) Err() error {
	err := b.Context.Err()
	if err != nil && errors.Is(context.Cause(b.Context), errOutOfPatience) {
		return context.DeadlineExceeded
	}
	return err
}

// looker returns a function that reports whether the session of a process of Postgres works: false if it waits for
// a lock or a standby, or if the database does not tell.
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
