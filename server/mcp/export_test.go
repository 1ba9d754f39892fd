package mcp

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/db"
)

// For tests.
const (
	MaxBehind             = maxBehind
	MaxSessionReplayBytes = maxSessionReplayBytes
	MaxReplayBytes        = maxReplayBytes
	MaxRememberedCalls    = maxRememberedCalls
	MaxKeySessions        = maxKeySessions
)

// NewIdle is newIdle, and returns its begin.
func NewIdle(after time.Duration, end func()) (begin func() func()) { return newIdle(after, end).begin }

// NewSessions returns a function that takes a session of a key.
func NewSessions() (take func(org db.Org, keyID string) bool) {
	s := New(Options{})
	return func(org db.Org, keyID string) bool {
		return s.takeSession(hubKey{org: org, keyID: keyID, agentID: keyID})
	}
}

// NewReplay returns a store and a function that returns how many bytes it counts, and of how many streams.
func NewReplay() (store sdk.EventStore, size func() (bytes, streams int)) {
	p := newReplay()
	return p, func() (int, int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.bytes, p.byAge.Len()
	}
}

// NewPatient is newPatient.
func NewPatient(w http.ResponseWriter, end context.CancelFunc) (p http.ResponseWriter, wait func()) {
	return newPatient(w, end)
}

// NewEndlessLines returns Lines that await answers for ever.
func NewEndlessLines(in io.Reader, out io.Writer) *Lines {
	l := NewLines(in, out, func(string, []byte) string { return "" })
	l.late = 1000 * time.Hour
	return l
}

// Calls are calls.
type Calls struct{ calls }

// NewCalls returns no calls.
func NewCalls() *Calls { return &Calls{} }

// Begin begins with a request, and returns its name in headers, and what ends it.
func (c *Calls) Begin(session, id string) (name string, end func()) {
	call, _ := c.begin(callIDOf(session, json.RawMessage(id)))
	return hex.EncodeToString(call.id[:]), func() { c.end(call) }
}

// Cancel cancels a request.
func (c *Calls) Cancel(ctx context.Context, session, id string) {
	c.cancel(ctx, callIDOf(session, json.RawMessage(id)))
}

// Arrived notes that the SDK has read a request.
func (c *Calls) Arrived(name string) { c.arrived([]string{name}) }

// IsCancelled reports whether a request is cancelled.
func (c *Calls) IsCancelled(name string) bool { return c.areCancelled([]string{name}) }

// Known is how many requests are known.
func (c *Calls) Known() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.known)
}
