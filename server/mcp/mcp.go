// Package mcp serves the memory of agents over the Model Context Protocol: tools, resources (what the agents remember)
// and prompts.
//
// Each file uses those that are named before it:
// - the protocol and its messages: protocol.go params.go message.go calls.go errors.go
// - the server, and the sessions of a caller: fixtures.go idle.go hub.go streambuffer.go server.go problem.go
// - resources: uri.go read.go cursor.go resources.go
// - tools: toolresult.go remember.go tools.go
// - prompts: contextprompt.go prompts.go
// - telling clients of changes: changes.go lists.go follow.go
// - answers: complete.go bufferedanswer.go plain.go receive.go mcp.go
// - clients on standard input and output, forwarded to another server: forward.go lines.go
package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/db"
)

// New returns a server.
func New(o Options) *Server {
	o.FilesEvery = cmp.Or(o.FilesEvery, filesEvery)
	s := &Server{Options: o, sessions: db.NewShares(maxSessions, maxSessions/4), replay: newStreamBuffer(),
		hubs: map[hubKey]*hub{}, keys: map[hubKey]int{}}
	shared := s.newServer(nil)
	serverOf := func(r *http.Request) *sdk.Server {
		if c := callerOf(r.Context()); c.hub != nil {
			return c.hub.server
		}
		return shared
	}
	for _, handler := range []*http.Handler{&s.stateless, &s.streaming} {
		*handler = sdk.NewStreamableHTTPHandler(serverOf, &sdk.StreamableHTTPOptions{Stateless: true,
			JSONResponse:               handler == &s.stateless,
			DisableLocalhostProtection: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: MaxBodyBytes})
	}
	return s
}

// newServer returns a server of the SDK. Its lists and answers depend on the caller in a request's context.
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
	"Begin with the prompt context, search with the tools, and store what should be remembered. A result has at most " +
	"50,000 characters, whatever the agent's own window is."

// Serve answers a caller's message; body is the body, read before. ErrNotFound if the agent does not exist, a *Problem
// if the session or stream does not. Messages without a session need no state of this process. Clients of older
// versions have a session from initialize on.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, c Caller, body []byte) error {
	var accepted screened
	if r.Method == http.MethodPost && s.Fixtures == nil {
		refused := contradiction(r.Header, body)
		if refused == nil {
			accepted, refused = screen(body, r.Header.Get(versionHeader), s.Fault)
		}
		header := r.Header
		if refused == nil {
			header, refused = decodedName(r.Header, accepted)
		}
		if refused != nil || len(accepted.messages) == 0 {
			if _, err := s.Agents.Agent(r.Context(), c.Org, c.AgentID); err != nil {
				return err
			}
		}
		if refused != nil {
			return refused.write(w)
		}
		if len(accepted.messages) == 0 {
			w.WriteHeader(http.StatusAccepted)
			return nil
		}
		body = accepted.body()
		r = r.WithContext(r.Context())
		r.Header = header
	} else if refused := Twice(r.Header, headersOnce...); refused != "" {
		return &Problem{http.StatusBadRequest, refused}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if r.Header.Get(versionHeader) < firstStateless && (r.Method != http.MethodPost ||
		r.Header.Get(sessionHeader) != "" || methodOf(body) == "initialize") {
		return s.serveSession(w, r, c, accepted)
	}
	a, err := s.Agents.Agent(r.Context(), c.Org, c.AgentID)
	if err != nil {
		return err
	}
	sender := caller{Caller: c, version: r.Header.Get(versionHeader), agent: &a}
	if methodOf(body) == Listen {
		h := s.enter(c)
		defer s.leave(h)
		sender.hub = h
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		out, wait := newBufferedAnswer(w, cancel)
		defer wait()
		w, r = out, r.WithContext(ctx)
	}
	handler := s.stateless
	if bytes.Contains(body, []byte(`"progressToken"`)) {
		handler = s.streaming
	}
	ctx := r.Context()
	sender.atEnd = func(f func()) (stop func() bool) { return context.AfterFunc(ctx, f) }
	return answer(handler, w, r.WithContext(context.WithValue(ctx, callerKey{}, sender)))
}

// serveSession answers a message in a session, or one that begins a session. accepted holds the messages of the body;
// with fixtures it is empty.
func (s *Server) serveSession(w http.ResponseWriter, r *http.Request, c Caller, accepted screened) error {
	session := r.Header.Get(sessionHeader)
	if session == "" {
		if _, err := s.Agents.Agent(r.Context(), c.Org, c.AgentID); err != nil {
			return err
		}
	}
	h := s.enter(c)
	defer s.leave(h)
	defer h.use(session)()
	sender := caller{Caller: c, version: r.Header.Get(versionHeader), hub: h}
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), callerKey{}, sender))
	defer cancel()
	r = r.Clone(ctx)
	r.Header.Del(callHeader)
	if session != "" && len(accepted.messages) > 0 {
		remaining, release := h.calls.take(ctx, session, accepted, r.Header)
		defer release()
		if len(remaining.messages) == 0 { // each was cancelled before it came: the stream is empty
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			return nil
		}
		r.Body = io.NopCloser(bytes.NewReader(remaining.body()))
	}
	out, wait := newBufferedAnswer(w, cancel)
	defer wait()
	return answer(h.handler, out, r)
}

// methodOf returns a message's method; empty if there is none.
func methodOf(body []byte) string {
	var m struct{ Method string }
	if json.Unmarshal(body, &m) != nil {
		return ""
	}
	return m.Method
}

// enter returns the hub of a caller, created if necessary. The caller must call leave afterwards.
func (s *Server) enter(c Caller) *hub {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := hubKey{c.Org, c.AgentID, c.KeyID, c.User}
	h := s.hubs[key]
	if h == nil {
		h = &hub{hubKey: key, followed: map[string]*followed{}, idle: map[string]*idle{}}
		h.server = s.newServer(h)
		h.handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return h.server },
			&sdk.StreamableHTTPOptions{DisableLocalhostProtection: true, SessionTimeout: sessionTimeout,
				EventStore: s.replay, MaxRequestBodyBytes: MaxBodyBytes})
		s.hubs[key] = h
	}
	h.users++
	return h
}
