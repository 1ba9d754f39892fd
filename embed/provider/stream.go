package provider

import (
	"context"
	"errors"
	"io"
	"time"
)

// idleLimit ends a context when nothing happens for a time.
type idleLimit struct {
	ctx    context.Context //nolint:containedctx // it lasts as long as an answer is read
	cancel context.CancelCauseFunc
	timer  *time.Timer
	after  time.Duration
}

func newIdleLimit(ctx context.Context, after time.Duration) *idleLimit {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(after, func() { cancel(context.DeadlineExceeded) })
	return &idleLimit{ctx, cancel, timer, after}
}

// stop ends the context.
func (l *idleLimit) stop() {
	l.timer.Stop()
	l.cancel(nil)
}

// explain returns context.DeadlineExceeded for an error that the limit caused.
func (l *idleLimit) explain(err error) error {
	if err != nil && errors.Is(context.Cause(l.ctx), context.DeadlineExceeded) && !errors.Is(err, io.EOF) {
		return context.DeadlineExceeded
	}
	return err
}

// streamFactor is how many times larger than an answer a stream may be: each token arrives in an event of some 200
// bytes.
const streamFactor = 16

// streamedBody is the body of an answer that is read as it arrives. Reading fails with ErrTooBig beyond its limit, and
// with context.DeadlineExceeded if the next piece does not arrive in time.
type streamedBody struct {
	body  io.ReadCloser
	left  int64
	limit *idleLimit
}

func (s *streamedBody) Read(into []byte) (int, error) {
	if s.left <= 0 {
		return 0, ErrTooBig
	}
	n, err := s.body.Read(into[:min(int64(len(into)), s.left)])
	s.left -= int64(n)
	s.limit.timer.Reset(s.limit.after)
	return n, s.limit.explain(err)
}

func (s *streamedBody) Close() error {
	s.limit.stop()
	return s.body.Close()
}
