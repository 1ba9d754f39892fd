package mcp

import (
	"sync"
	"time"
)

// idle ends a session that has no request under way, and no open stream, for a while.
type idle struct {
	after time.Duration

	mu    sync.Mutex
	open  int // requests and streams
	timer *time.Timer
}

// newIdle returns the idle of a session that begins, which end ends.
func newIdle(after time.Duration, end func()) *idle {
	return &idle{after: after, timer: time.AfterFunc(after, end)}
}

// begin begins a request, or opens a stream; the function that it returns ends it.
func (i *idle) begin() (end func()) {
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
