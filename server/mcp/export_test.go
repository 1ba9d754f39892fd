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

// Unexported constants for the tests.
const (
	MaxBehind             = maxBehind
	MaxSessionReplayBytes = maxSessionReplayBytes
	MaxReplayBytes        = maxReplayBytes
	MaxRememberedCalls    = maxRememberedCalls
	MaxKeySessions        = maxKeySessions
)

// NewIdle calls newIdle, and returns the begin method.
func NewIdle(after time.Duration, end func()) (begin func() func()) { return newIdle(after, end).begin }

// NewSessions returns a function that takes a session for a key.
func NewSessions() (take func(org db.Org, keyID string) bool) {
	s := New(Options{})
	return func(org db.Org, keyID string) bool {
		return s.takeSession(hubKey{org: org, keyID: keyID, agentID: keyID})
	}
}

// NewReplay returns a store, and a function that returns how many bytes and streams the store counts.
func NewReplay() (store sdk.EventStore, size func() (bytes, streams int)) {
	p := newStreamBuffer()
	return p, func() (int, int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.bytes, p.byAge.Len()
	}
}

// NewBufferedAnswer is newBufferedAnswer.
func NewBufferedAnswer(w http.ResponseWriter, end context.CancelFunc) (p http.ResponseWriter, wait func()) {
	return newBufferedAnswer(w, end)
}

// NewEndlessLines returns Lines that wait for answers without a time limit.
func NewEndlessLines(in io.Reader, out io.Writer) *Lines {
	l := NewLines(in, out, func(string, []byte) string { return "" })
	l.late = 1000 * time.Hour
	return l
}

// Calls exports calls.
type Calls struct{ calls }

// NewCalls returns an empty Calls.
func NewCalls() *Calls { return &Calls{} }

// Begin registers a request. It returns the request's name in headers, and a function that ends the request.
func (c *Calls) Begin(session, id string) (name string, end func()) {
	call, _ := c.begin(callIDOf(session, json.RawMessage(id)))
	return hex.EncodeToString(call.id[:]), func() { c.end(call) }
}

// Cancel cancels a request.
func (c *Calls) Cancel(ctx context.Context, session, id string) {
	c.cancel(ctx, callIDOf(session, json.RawMessage(id)))
}

// Arrived records that the SDK has read a request.
func (c *Calls) Arrived(name string) { c.arrived([]string{name}) }

// IsCancelled reports whether a request is cancelled.
func (c *Calls) IsCancelled(name string) bool { return c.areCancelled([]string{name}) }

// Known returns the number of known requests.
func (c *Calls) Known() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.known)
}
