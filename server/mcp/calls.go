package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Bounds on the memory of ended requests, and of cancellations that came before their requests.
const (
	rememberCalls      = time.Minute
	maxRememberedCalls = 10_000
)

// calls are the requests of a hub's sessions. The SDK ignores the cancellation of a request that it has not read yet.
// Therefore calls holds such a cancellation until the SDK has read the request, or until the request comes.
type calls struct {
	mu    sync.Mutex
	known map[callID]*calling
	ended []*calling // in the order in which they ended
}

// callID is a digest of a session's id and a request's id.
type callID [sha256.Size]byte

func callIDOf(session string, id json.RawMessage) callID {
	return sha256.Sum256([]byte(session + "\x00" + idKey(id)))
}

// calling is a request that has arrived, or the cancellation of a request that has not arrived yet. calls.mu guards its
// fields.
type calling struct {
	id        callID
	came      bool // the request itself came, not only its cancellation
	cancelled bool
	read      chan struct{} // closed when the SDK can cancel it, or at its end; nil before it comes
	isRead    bool
	endedAt   time.Time // when it ended, or was cancelled before it came; zero while it is worked on
}

// begin notes that a request came. It returns false if the request's cancellation came first.
func (c *calls) begin(id callID) (*calling, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
	earlier := c.known[id]
	if earlier != nil && earlier.cancelled && !earlier.came {
		delete(c.known, id)
		return nil, false
	}
	call := &calling{id: id, came: true, read: make(chan struct{})}
	if earlier == nil || !earlier.endedAt.IsZero() { // otherwise the SDK refuses the second request
		c.keep(call)
	}
	return call, true
}

// keep stores a request by its id. The caller holds c.mu.
func (c *calls) keep(call *calling) {
	if c.known == nil {
		c.known = map[callID]*calling{}
	}
	c.known[call.id] = call
}

// end notes the end of a request.
func (c *calls) end(call *calling) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call.setRead()
	c.remember(call)
}

// remember keeps an ended request for a while. Otherwise a late cancellation could cancel a newer request with the same
// id. The caller holds c.mu.
func (c *calls) remember(call *calling) {
	call.endedAt = time.Now()
	c.ended = append(c.ended, call)
	c.forget()
}

// forget drops requests that were remembered long enough. The caller holds c.mu.
func (c *calls) forget() {
	n := 0
	for n < len(c.ended) && (len(c.ended)-n > maxRememberedCalls || time.Since(c.ended[n].endedAt) > rememberCalls) {
		if old := c.ended[n]; c.known[old.id] == old {
			delete(c.known, old.id)
		}
		c.ended[n] = nil
		n++
	}
	c.ended = c.ended[n:]
}

// setRead notes that the SDK can cancel the request now. The caller holds calls.mu.
func (c *calling) setRead() {
	if !c.isRead {
		c.isRead = true
		close(c.read)
	}
}

// cancel notes the cancellation of a request. If the request came, it returns after the SDK can cancel it. It reports
// whether the request was being worked on.
func (c *calls) cancel(ctx context.Context, id callID) bool {
	c.mu.Lock()
	c.forget()
	call := c.known[id]
	if call == nil {
		call = &calling{id: id, cancelled: true}
		c.keep(call)
		c.remember(call)
	}
	call.cancelled = true
	isWorkedOn := call.came && call.endedAt.IsZero()
	c.mu.Unlock()
	if !isWorkedOn {
		return false
	}
	select {
	case <-call.read:
	case <-ctx.Done():
	}
	return true
}

// cancelsNothing cancels a request id that no client uses.
var cancelsNothing = json.RawMessage(`{"jsonrpc":"2.0","method":"` + cancelled +
	`","params":{"requestId":"loci-none"}}`)

// arrived notes that the SDK has read the requests that a header names.
func (c *calls) arrived(names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		if call := c.named(name); call != nil {
			call.setRead()
		}
	}
}

// areCancelled reports whether a header names a single request and that request is cancelled.
func (c *calls) areCancelled(names []string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(names) != 1 {
		return false
	}
	call := c.named(names[0])
	return call != nil && call.cancelled
}

// named returns the request with a name from a header; nil if no such request came. The caller holds c.mu.
func (c *calls) named(name string) *calling {
	raw, err := hex.DecodeString(name)
	if err != nil || len(raw) != sha256.Size {
		return nil
	}
	if call := c.known[callID(raw)]; call != nil && call.came {
		return call
	}
	return nil
}

// take notes the requests and cancellations among a session's messages. It returns the messages without those requests
// that were cancelled before they came, and a function to call when the remaining requests end. It adds the names of
// the remaining requests to header.
func (c *calls) take(ctx context.Context, session string, received screened, header http.Header) (screened, func()) {
	received.messages = slices.Clone(received.messages)
	for i, m := range received.messages { // before the requests, because a batch may cancel a request of its own
		if id := m.cancels(); id != nil && !c.cancel(ctx, callIDOf(session, id)) {
			received.messages[i].raw = cancelsNothing // the SDK would cancel later, when another request may have the id
		}
	}
	var begun []*calling
	remaining := screened{batch: received.batch}
	for _, m := range received.messages {
		if m.isCall() {
			call, ok := c.begin(callIDOf(session, m.id))
			if !ok {
				continue
			}
			begun = append(begun, call)
			header.Add(callHeader, hex.EncodeToString(call.id[:]))
		}
		remaining.messages = append(remaining.messages, m)
	}
	return remaining, func() {
		for _, call := range begun {
			c.end(call)
		}
	}
}

// cancels returns the id of the request that the message cancels; nil if it cancels none.
func (m message) cancels() json.RawMessage {
	var params struct{ RequestID json.RawMessage }
	if m.method != cancelled || json.Unmarshal(m.params, &params) != nil || kindOf(params.RequestID) == "" {
		return nil
	}
	return params.RequestID
}
