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

// hubKey names whose sessions a hub has: those of one key for one agent, so that no other key can use them.
type hubKey struct {
	org            db.Org
	agentID, keyID string
}

// hub has the sessions of a key for an agent, and tells their clients what changes. It exists while a session or a
// message needs it.
type hub struct {
	hubKey
	server  *sdk.Server
	handler http.Handler
	users   int // sessions and messages, guarded by Server.mu
	calls   calls

	mu        sync.Mutex
	followers int                // sessions that are told of changes
	stop      context.CancelFunc // of the goroutine that tells them
	stopped   chan struct{}
	followed  map[string]*followed // resources, by their URIs
	idle      map[string]*idle     // by the ids of the sessions
}

// end ends the hub's sessions. They need not have ended when it returns: a session waits for its calls.
func (h *hub) end() {
	for session := range h.server.Sessions() {
		go func() { _ = session.Close() }() // it ends itself with its calls
	}
}

// followed is a resource whose changes clients are told.
type followed struct {
	kind string
	sum  [sha256.Size]byte // of the text that was read last
	by   map[*sdk.ServerSession]int
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

// Bounds of sessions. Those that are not used end; their clients begin new ones.
const (
	sessionTimeout = 24 * time.Hour // without a message, with an open stream or without
	idleTimeout    = time.Hour      // without a message and without an open stream
	maxSessions    = 8192           // and followed lists, of all organizations
	maxKeySessions = 1024           // of a key
)

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
