// Package mcp serves the memory of agents over the Model Context Protocol: their tools, what they remember as
// resources, and prompts.
//
// Each file uses those that are named before it:
//   - the protocol and its messages: protocol.go params.go message.go calls.go errors.go
//   - the server, and the sessions of a caller: fixtures.go idle.go hub.go replay.go server.go problem.go
//   - resources: uri.go read.go cursor.go resources.go
//   - tools: toolresult.go remember.go tools.go
//   - prompts: contextprompt.go prompts.go
//   - changes, of which clients are told: changes.go lists.go follow.go
//   - answers: complete.go patient.go plain.go receive.go mcp.go
//   - clients of standard input and output, whose messages go to another server: forward.go lines.go
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
	ctx := r.Context()
	from.atEnd = func(f func()) (stop func() bool) { return context.AfterFunc(ctx, f) }
	return answer(handler, w, r.WithContext(context.WithValue(ctx, callerKey{}, from)))
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

// enter returns the hub of a caller, and leave ends its use.
func (s *Server) enter(c Caller) *hub {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := hubKey{c.Org, c.AgentID, c.KeyID}
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
