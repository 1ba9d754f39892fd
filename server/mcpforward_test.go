package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/server/mcp"
)

// restarting is a server that forgets its sessions, like a server that is killed and started again.
type restarting struct {
	http.Handler
	mu       sync.Mutex
	sessions map[string]bool // sessions since the last restart
	dies     bool            // the next tool call is made, and the server restarts before it answers
	calls    int             // tool calls that reached the server
	away     bool            // closes each connection without an answer, but keeps the port
}

func (s *restarting) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions = map[string]bool{}
}

// set changes the server between two requests.
func (s *restarting) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// reached returns how many calls reached the server since the last call of reached.
func (s *restarting) reached() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.calls
	s.calls = 0
	return n
}

func (s *restarting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	id, call := r.Header.Get("Mcp-Session-Id"), strings.Contains(string(body), `"tools/call"`)
	s.mu.Lock()
	known, away := id == "" || s.sessions[id], s.away
	dies := call && known && s.dies
	if call && known && !away {
		s.calls++
	}
	s.mu.Unlock()
	switch {
	case away:
		panic(http.ErrAbortHandler)
	case !known:
		http.Error(w, "there is no such session", http.StatusNotFound)
	case dies:
		s.Handler.ServeHTTP(httptest.NewRecorder(), r)
		s.mu.Lock()
		s.dies = false
		s.mu.Unlock()
		s.restart()
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "id: 1_0\ndata:\n\n") // so that the client asks for the rest
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	default:
		noted := sessionNoter{w, s}
		s.Handler.ServeHTTP(noted, r)
	}
}

// sessionNoter records the session that an answer begins.
type sessionNoter struct {
	http.ResponseWriter
	server *restarting
}

// Unwrap is for http.ResponseController.
func (n sessionNoter) Unwrap() http.ResponseWriter { return n.ResponseWriter }

func (n sessionNoter) Flush() { _ = http.NewResponseController(n.ResponseWriter).Flush() }

func (n sessionNoter) WriteHeader(status int) {
	if id := n.Header().Get("Mcp-Session-Id"); id != "" {
		n.server.mu.Lock()
		n.server.sessions[id] = true
		n.server.mu.Unlock()
	}
	n.ResponseWriter.WriteHeader(status)
}

// If a server is killed after a call has begun, the call is not repeated, and fails. If the server only forgot the
// session, the client does not notice, and is told of changes as before.
func TestAForwardedCallIsMadeOnce(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a","tool_set":"all","memory_blocks":[{"label":"human","value":"Ada"}]}`)
	remote := &restarting{Handler: c, sessions: map[string]bool{}}
	web := httptest.NewServer(remote)
	t.Cleanup(web.Close)
	local, client := sdk.NewInMemoryTransports()
	ctx, stop := context.WithCancel(t.Context())
	var served sync.WaitGroup
	served.Go(func() { _ = mcp.Remote{URL: web.URL + "/mcp/agents/" + agent, Version: "1"}.Forward(ctx, local) })
	t.Cleanup(func() {
		stop()
		served.Wait()
	})
	updated := make(chan string, 10)
	session, err := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "1"}, &sdk.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, q *sdk.ResourceUpdatedNotificationRequest) {
			updated <- q.Params.URI
		},
	}).Connect(t.Context(), client, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	var block string
	for r, err := range session.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(r.URI, "block") {
			block = r.URI
		}
	}
	if err := session.Subscribe(t.Context(), &sdk.SubscribeParams{URI: block}); err != nil {
		t.Fatalf("subscribe to %q: %v", block, err)
	}
	insert := func(text string) (string, error) {
		got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "archival_memory_insert",
			Arguments: json.RawMessage(`{"content":` + quoted(text) + `}`)})
		if err != nil {
			return "", err
		}
		return got.Content[0].(*sdk.TextContent).Text, nil
	}

	remote.restart()
	result, err := insert("Ada likes tea.")
	if n := remote.reached(); err != nil || n != 1 {
		t.Errorf("after a restart: %q, %v, %d calls reached the server, want 1", result, err, n)
	}
	expectUpdate := func(when string) {
		select {
		case uri := <-updated:
			if uri != block {
				t.Errorf("%s %s is said to have changed, want %s", when, uri, block)
			}
		case <-time.After(patience):
			t.Fatalf("%s nothing is said to have changed, want %s", when, block)
		}
	}
	expectUpdate("in the new session")
	c.must("PATCH", "/v1/agents/"+agent+"/core-memory/blocks/human", `{"value":"Ada likes tea."}`)
	expectUpdate("after a change")

	remote.set(func() { remote.dies = true })
	if result, err := insert("Bob likes coffee."); err == nil {
		t.Errorf("a call that the killed server did not answer: got %q, want an error", result)
	}
	if result, err := insert("Cyd likes milk."); err != nil {
		t.Errorf("the call after it: %q, %v", result, err)
	}
	stored := c.must("GET", "/v1/agents/"+agent+"/archival-memory", "")
	if n, reached := strings.Count(stored, "Bob likes coffee."), remote.reached(); n != 1 || reached != 2 {
		t.Errorf("the call was made %d times, and %d calls reached the server, want 1 and 2", n, reached)
	}

	remote.set(func() { remote.away = true })
	web.CloseClientConnections()
	if result, err := insert("Dee likes water."); err == nil || !strings.Contains(err.Error(), "did not answer: ") {
		t.Errorf("without a server: got %q, %v, want the reason", result, err)
	}
	remote.set(func() { remote.away = false })
	remote.restart()
	if result, err := insert("Eve likes wine."); err != nil {
		t.Errorf("the first call after an outage: %q, %v", result, err)
	}
}
