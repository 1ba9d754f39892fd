// Package mcp serves the memory of agents over the Model Context Protocol: their tools, what they remember as
// resources, and prompts.
package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/handover"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/recall"
)

// MaxBodyBytes limits a message of a client.
const MaxBodyBytes = 4 << 20

// Bounds of sessions. Those that are not used end; their clients begin new ones.
const (
	sessionTimeout = 24 * time.Hour // without a message, with an open stream or without
	idleTimeout    = time.Hour      // without a message and without an open stream
	maxSessions    = 8192           // and followed lists, of all organizations
	maxKeySessions = 1024           // of a key
)

// Options are what a Server works on. All fields but Fixtures must be set.
type Options struct {
	DB          db.DB
	Agents      *agent.Store
	Tools       *tool.Set
	Files       *files.Store
	Recall      *recall.Store
	Blocks      *block.Store
	MemoryFiles *memoryfile.Store
	Handovers   *handover.Store
	Followers   *event.Followers
	Version     string
	Log         *slog.Logger
	Timeout     time.Duration // of each call
	FilesEvery  time.Duration // between two looks at the files of agents whose clients are told of changes; 0 is 30 s

	// MustHave returns an ErrNotFound if an agent lacks a tool.
	MustHave func(ctx context.Context, org db.Org, a agent.Agent, name string) error

	// Remember appends turns to a conversation of an agent, all or none.
	Remember func(ctx context.Context, a agent.Agent, conversation string, turns []recall.Draft) ([]recall.Appended, error)

	// Fault returns a sentence on why a JSON value is not taken, wherever it stands in a message; empty if nothing is
	// wrong with it.
	Fault func(place string, value []byte) string

	// Explain returns the status and the sentence with which an error is answered over REST. It logs the server's own.
	Explain func(ctx context.Context, err error) (status int, sentence string)

	Fixtures *Fixtures // of the build for the conformance suite; nil for none
}

// Server serves MCP.
type Server struct {
	Options
	stateless, streaming http.Handler // of messages without a session: answers in JSON, and as a stream of events
	sessions             *db.Shares
	replay               *replay

	mu   sync.Mutex
	hubs map[hubKey]*hub
	keys map[hubKey]int // sessions by their keys, for whichever agent
}

// New returns a server.
func New(o Options) *Server {
	o.FilesEvery = cmp.Or(o.FilesEvery, filesEvery)
	s := &Server{Options: o, sessions: db.NewShares(maxSessions, maxSessions/4), replay: newReplay(),
		hubs: map[hubKey]*hub{}, keys: map[hubKey]int{}}
	one := s.newServer(nil)
	of := func(r *http.Request) *sdk.Server {
		if c := callerOf(r.Context()); c.hub != nil {
			return c.hub.server
		}
		return one
	}
	for _, to := range []*http.Handler{&s.stateless, &s.streaming} {
		*to = sdk.NewStreamableHTTPHandler(of, &sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: to == &s.stateless,
			DisableLocalhostProtection: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: MaxBodyBytes})
	}
	return s
}

// newServer returns the SDK's server, whose lists and answers are those of the caller in the context of a request.
func (s *Server) newServer(h *hub) *sdk.Server {
	o := &sdk.ServerOptions{Instructions: instructions, SetCacheable: private,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true},
			Resources: &sdk.ResourceCapabilities{ListChanged: true, Subscribe: true}, Prompts: &sdk.PromptCapabilities{}},
		SubscribeHandler:   func(ctx context.Context, r *sdk.SubscribeRequest) error { return s.subscribe(ctx, h, r) },
		UnsubscribeHandler: func(_ context.Context, r *sdk.UnsubscribeRequest) error { return s.unsubscribe(h, r) }}
	if s.Fixtures != nil {
		o.Capabilities, o.CompletionHandler = s.Fixtures.Capabilities, s.Fixtures.Complete
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "loci", Title: "Loci", Version: s.Version}, o)
	if s.Fixtures != nil {
		s.Fixtures.Register(server)
	}
	server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			return s.receive(ctx, h, call{method, r, next})
		}
	})
	if s.Fixtures == nil {
		server.AddReceivingMiddleware(complete)
	}
	return server
}

const instructions = "The memory of one agent: its files, memory blocks, memory files, passages and conversations. " +
	"Begin with the prompt context, search with the tools, and store what should be remembered."

// private lets no cache keep an answer.
func private(_ context.Context, _ sdk.Request, c *sdk.Cacheable) {
	c.TTLMs, c.CacheScope = 0, "private"
}

// Caller is who sends a message, and for which agent.
type Caller struct {
	Org     db.Org
	AgentID string
	KeyID   string
	MayCall bool     // tools
	Only    []string // the tools that are shown; nil is all
}

// caller is a Caller with what a message needs.
type caller struct {
	Caller
	version string       // of the protocol, as the message or its header says; empty if they do not
	hub     *hub         // of the caller's sessions; nil for a message without one
	agent   *agent.Agent // nil where each message of a session reads it
}

type callerKey struct{}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// The headers of MCP's HTTP transport.
const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	MethodHeader  = "Mcp-Method"
	nameHeader    = "Mcp-Name"

	lastEventHeader = "Last-Event-ID"
)

// Listen is the method of a message that waits for changes.
const Listen = "subscriptions/listen"

// firstStateless is the first version of the protocol without sessions.
const firstStateless = "2026-07-28"

// Serve answers a message of a caller, whose body has been read; ErrNotFound if there is no such agent, a Problem if
// there is no such session or stream. Messages of a version without sessions, and those outside of one, need nothing of
// this process; a client of an older version has a session from its initialize on.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, c Caller, body []byte) error {
	var in screened
	if r.Method == http.MethodPost && s.Fixtures == nil {
		why := contradiction(r.Header, body)
		if why == nil {
			in, why = screen(body, r.Header.Get(versionHeader), s.Fault)
		}
		header := r.Header
		if why == nil {
			header, why = decodedName(r.Header, in)
		}
		if why != nil || len(in.messages) == 0 {
			if _, err := s.Agents.Agent(r.Context(), c.Org, c.AgentID); err != nil {
				return err
			}
		}
		if why != nil {
			return why.write(w)
		}
		if len(in.messages) == 0 {
			w.WriteHeader(http.StatusAccepted)
			return nil
		}
		body = in.body()
		r = r.WithContext(r.Context())
		r.Header = header
	} else if why := Twice(r.Header, headersOnce...); why != "" {
		return &Problem{http.StatusBadRequest, why}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if r.Header.Get(versionHeader) < firstStateless && (r.Method != http.MethodPost ||
		r.Header.Get(sessionHeader) != "" || methodOf(body) == "initialize") {
		return s.serveSession(w, r, c, in)
	}
	a, err := s.Agents.Agent(r.Context(), c.Org, c.AgentID)
	if err != nil {
		return err
	}
	from := caller{Caller: c, version: r.Header.Get(versionHeader), agent: &a}
	if methodOf(body) == Listen {
		h := s.enter(c)
		defer s.leave(h)
		from.hub = h
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		out, wait := newPatient(w, cancel)
		defer wait()
		w, r = out, r.WithContext(ctx)
	}
	handler := s.stateless
	if bytes.Contains(body, []byte(`"progressToken"`)) {
		handler = s.streaming
	}
	return answer(handler, w, r.WithContext(context.WithValue(r.Context(), callerKey{}, from)))
}

// serveSession answers a message of a session, or one that begins one. in are the messages of its body, unless they are
// fixtures'.
func (s *Server) serveSession(w http.ResponseWriter, r *http.Request, c Caller, in screened) error {
	session := r.Header.Get(sessionHeader)
	if session == "" {
		if _, err := s.Agents.Agent(r.Context(), c.Org, c.AgentID); err != nil {
			return err
		}
	}
	h := s.enter(c)
	defer s.leave(h)
	defer h.use(session)()
	from := caller{Caller: c, version: r.Header.Get(versionHeader), hub: h}
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), callerKey{}, from))
	defer cancel()
	r = r.Clone(ctx)
	r.Header.Del(callHeader)
	if session != "" && len(in.messages) > 0 {
		kept, end := h.calls.take(ctx, session, in, r.Header)
		defer end()
		if len(kept.messages) == 0 { // each was cancelled before it came: the stream is empty
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			return nil
		}
		r.Body = io.NopCloser(bytes.NewReader(kept.body()))
	}
	out, wait := newPatient(w, cancel)
	defer wait()
	return answer(h.handler, out, r)
}

// methodOf returns the method of a message; empty if it has none.
func methodOf(body []byte) string {
	var m struct{ Method string }
	if json.Unmarshal(body, &m) != nil {
		return ""
	}
	return m.Method
}
