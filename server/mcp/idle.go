package mcp

import (
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
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

// watchIdle ends a session once it is idle for long. It watches until forget is called.
func (h *hub) watchIdle(session *sdk.ServerSession) (forget func()) {
	of := newIdle(idleTimeout, func() { _ = session.Close() }) // its client is answered with a 404
	h.mu.Lock()
	defer h.mu.Unlock()
	h.idle[session.ID()] = of
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.idle, session.ID())
		of.begin() // which stops the timer
	}
}

// use notes that a request of a session begins; the function that it returns ends it.
func (h *hub) use(session string) (end func()) {
	h.mu.Lock()
	of := h.idle[session]
	h.mu.Unlock()
	if of == nil { // no such session: the SDK says so
		return func() {}
	}
	return of.begin()
}
