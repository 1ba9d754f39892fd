package mcp

import (
	"sync"
	"time"
)

// idle ends a session that has had no request and no open stream for a while.
type idle struct {
	after time.Duration

	mu    sync.Mutex
	open  int // requests and open streams
	timer *time.Timer
}

// newIdle returns the idle of a new session. end is called to end the session.
func newIdle(after time.Duration, end func()) *idle {
	return &idle{after: after, timer: time.AfterFunc(after, end)}
}

// begin notes the begin of a request or stream; done notes its end.
func (i *idle) begin() (done func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.open++
	i.timer.Stop()
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.open--; i.open == 0 {
			i.timer.Reset(i.after)
		}
	}
}
