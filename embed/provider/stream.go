package provider

import (
	"context"
	"errors"
	"io"
	"time"
)

// idleLimit ends a context when a time passes in which nothing happens.
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

// explain returns context.DeadlineExceeded for an error that comes of the limit.
func (l *idleLimit) explain(err error) error {
	if err != nil && errors.Is(context.Cause(l.ctx), context.DeadlineExceeded) && !errors.Is(err, io.EOF) {
		return context.DeadlineExceeded
	}
	return err
}

// streamFactor is how much larger a stream may be than an answer: each token of it comes in an event of some 200 bytes.
const streamFactor = 16

// streamedBody is the body of an answer that is read as it comes: ErrTooBig past its limit, and
// context.DeadlineExceeded if the next piece does not come in time.
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
