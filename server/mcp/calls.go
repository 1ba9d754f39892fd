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

// Bounds of what is remembered of requests that have ended, and of cancellations that came before their requests.
const (
	rememberCalls      = time.Minute
	maxRememberedCalls = 10_000
)

// calls are the requests of a hub's sessions. The SDK ignores a cancellation of a request that it has not read yet.
// Here such a cancellation waits until the SDK has read the request, or is remembered until the request comes.
type calls struct {
	mu    sync.Mutex
	known map[callID]*calling
	ended []*calling // the one that ended first is the first
}

// callID is a digest of the id of a session and that of its request.
type callID [sha256.Size]byte

func callIDOf(session string, id json.RawMessage) callID {
	return sha256.Sum256([]byte(session + "\x00" + idKey(id)))
}

// calling is a request, or the cancellation of one that has not come yet. Its fields are guarded by calls.mu.
type calling struct {
	id        callID
	came      bool // the request, not only its cancellation
	cancelled bool
	read      chan struct{} // closed once the SDK can cancel the request, or it has ended; nil if it has not come
	isRead    bool
	endedAt   time.Time // or of its cancellation, if it has not come; zero while it is worked on
}

// begin notes that a request has come. It returns false if its cancellation came first.
func (c *calls) begin(id callID) (*calling, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
	before := c.known[id]
	if before != nil && before.cancelled && !before.came {
		delete(c.known, id)
		return nil, false
	}
	call := &calling{id: id, came: true, read: make(chan struct{})}
	if before == nil || !before.endedAt.IsZero() { // else the SDK refuses the second
		c.keep(call)
	}
	return call, true
}

// keep makes a request known. c.mu is held.
func (c *calls) keep(call *calling) {
	if c.known == nil {
		c.known = map[callID]*calling{}
	}
	c.known[call.id] = call
}

// end ends a request.
func (c *calls) end(call *calling) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call.setRead()
	c.remember(call)
}

// remember keeps an ended request for a while, so that a late cancellation of it does not cancel a later request with
// the same id. c.mu is held.
func (c *calls) remember(call *calling) {
	call.endedAt = time.Now()
	c.ended = append(c.ended, call)
	c.forget()
}

// forget drops what need not be remembered any more. c.mu is held.
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

// setRead notes that the SDK can cancel a request. calls.mu is held.
func (c *calling) setRead() {
	if !c.isRead {
		c.isRead = true
		close(c.read)
	}
}

// cancel notes that a request is cancelled. It returns once the SDK can cancel it, if it has come, and reports whether
// the request was worked on.
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

// cancelsNothing is a cancellation of a request that no client sends.
var cancelsNothing = json.RawMessage(`{"jsonrpc":"2.0","method":"` + cancelled +
	`","params":{"requestId":"loci-none"}}`)

// arrived notes that the SDK has read the requests that a header names.
func (c *calls) arrived(named []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range named {
		if call := c.named(name); call != nil {
			call.setRead()
		}
	}
}

// areCancelled reports whether the only request that a header names is cancelled.
func (c *calls) areCancelled(named []string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(named) != 1 {
		return false
	}
	call := c.named(named[0])
	return call != nil && call.cancelled
}

// named returns the request of a name in a header, nil if no such request has come. c.mu is held.
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

// take notes the requests and cancellations among messages of a session. It returns the messages without the requests
// whose cancellation came first, and a function that notes the end of the other requests. It adds the names of these
// to header.
func (c *calls) take(ctx context.Context, session string, in screened, header http.Header) (screened, func()) {
	in.messages = slices.Clone(in.messages)
	for i, m := range in.messages { // before the requests: it may cancel one of the same batch
		if id := m.cancels(); id != nil && !c.cancel(ctx, callIDOf(session, id)) {
			in.messages[i].raw = cancelsNothing // the SDK cancels later, when another request may have the id
		}
	}
	var begun []*calling
	kept := screened{batch: in.batch}
	for _, m := range in.messages {
		if m.isCall() {
			call, ok := c.begin(callIDOf(session, m.id))
			if !ok {
				continue
			}
			begun = append(begun, call)
			header.Add(callHeader, hex.EncodeToString(call.id[:]))
		}
		kept.messages = append(kept.messages, m)
	}
	return kept, func() {
		for _, call := range begun {
			c.end(call)
		}
	}
}

// cancels returns the id of the request that a message cancels; nil if it cancels none.
func (m message) cancels() json.RawMessage {
	var params struct{ RequestID json.RawMessage }
	if m.method != cancelled || json.Unmarshal(m.params, &params) != nil || kindOf(params.RequestID) == "" {
		return nil
	}
	return params.RequestID
}
