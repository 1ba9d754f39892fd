package mcp

import (
	"context"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/db"
)

// hubKey identifies a hub: one key, one agent and one user. No other key, and no request of the key for another user,
// can use the hub's sessions.
type hubKey struct {
	org            db.Org
	agentID, keyID string
	user           int64
}

// hub holds the sessions of one key for one agent, and tells their clients of changes. It exists while a session or a
// message needs it.
type hub struct {
	hubKey
	server  *sdk.Server
	handler http.Handler
	users   int // number of sessions and messages; Server.mu guards it
	calls   calls

	mu        sync.Mutex
	followers int                // number of sessions that are told of changes
	stop      context.CancelFunc // stops the goroutine that tells them
	stopped   chan struct{}
	followed  map[string]*followed // followed resources, by URI
	idle      map[string]*idle     // by session id
}

// end closes the hub's sessions, without waiting: each session ends after its calls.
func (h *hub) end() {
	for session := range h.server.Sessions() {
		go func() { _ = session.Close() }() // ends after the session's calls
	}
}

// followed is a resource that sessions follow.
type followed struct {
	kind string
	sum  [sha256.Size]byte // digest of the text that was read last
	by   map[*sdk.ServerSession]int
}

// use notes that a request of a session begins. The caller calls done when it ends.
func (h *hub) use(session string) (done func()) {
	h.mu.Lock()
	timer := h.idle[session]
	h.mu.Unlock()
	if timer == nil { // the SDK reports the unknown session
		return func() {}
	}
	return timer.begin()
}

// Bounds on sessions. Unused sessions end; their clients begin new ones.
const (
	sessionTimeout = 24 * time.Hour // without messages, even with an open stream
	idleTimeout    = time.Hour      // without messages and without an open stream
	maxSessions    = 8192           // sessions and followed lists, of all organizations
	maxKeySessions = 1024           // of one key
)

// watchIdle ends a session after idleTimeout without use. forget ends the watch.
func (h *hub) watchIdle(session *sdk.ServerSession) (forget func()) {
	timer := newIdle(idleTimeout, func() { _ = session.Close() }) // the client then gets a 404
	h.mu.Lock()
	defer h.mu.Unlock()
	h.idle[session.ID()] = timer
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.idle, session.ID())
		timer.begin() // stops the timer
	}
}
