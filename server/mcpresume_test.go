package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// raw sends a request in version 2025-11-25, and returns the whole answer.
func (c *client) raw(web *httptest.Server, q wireRequest) rawAnswer {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, q.method, web.URL+q.path, strings.NewReader(q.body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer " + c.key}, "Content-Type": {"application/json"},
		"Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2025-11-25"}}
	for i := 0; i+1 < len(q.headers); i += 2 {
		r.Header.Set(q.headers[i], q.headers[i+1])
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return rawAnswer{w.StatusCode, w.Header.Get("Mcp-Session-Id"), string(text)}
}

type rawAnswer struct {
	status        int
	session, text string
}

// The server of a stream is killed, and its client resumes the stream at another server. The client is told that the
// stream is unknown, and can begin again. Nothing from the old session is done or sent again.
func TestAStreamIsNotResumedAtAnotherServer(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.work()
	agent, killed := c.mcpAgent()
	path := "/mcp/agents/" + agent
	begin := func(web *httptest.Server) string {
		w := c.raw(web, wireRequest{"POST", path, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{
			"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, nil})
		if w.session == "" {
			t.Fatalf("initialize: %d %s", w.status, w.text)
		}
		return w.session
	}
	old := begin(killed)
	const insert = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"archival_memory_insert",
		"arguments":{"content":"Ada likes tea."}}}`
	events := c.raw(killed, wireRequest{"POST", path, insert, []string{"Mcp-Session-Id", old}}).text
	first, _, _ := strings.Cut(events[strings.Index(events, "id: ")+len("id: "):], "\n")
	resumed := func(web *httptest.Server, session, last string) (int, string) {
		w := c.raw(web, wireRequest{"GET", path, "", []string{"Mcp-Session-Id", session, "Last-Event-ID", last}})
		return w.status, w.text
	}
	if status, text := resumed(killed, old, first); status != 200 || strings.Count(text, `"id":2`) != 1 {
		t.Fatalf("behind %s the server has %d %s, want the result", first, status, text)
	}

	again := httptest.NewServer(c.again()) // this server has no sessions
	t.Cleanup(again.Close)
	killed.Close()
	for name, q := range map[string]wireRequest{
		"a stream":  {"GET", path, "", []string{"Mcp-Session-Id", old, "Last-Event-ID", first}},
		"a call":    {"POST", path, insert, []string{"Mcp-Session-Id", old}},
		"a session": {"DELETE", path, "", []string{"Mcp-Session-Id", old}},
	} {
		w := c.raw(again, q)
		if !strings.Contains(problemIn(t, w.text), "There is no session "+old) || w.status != 404 {
			t.Errorf("%s of the old session: %d %s, want a 404 that says to begin anew", name, w.status, w.text)
		}
	}
	session := begin(again)
	for _, last := range []string{first, "_7", "_0", "nonsense", "_x"} {
		status, text := resumed(again, session, last)
		if status != 400 || !strings.Contains(problemIn(t, text), "Nothing is kept behind the Last-Event-ID "+last) {
			t.Errorf("behind %s: %d %s, want a 400 that says why", last, status, text)
		}
	}
	called := c.raw(again, wireRequest{"POST", path, strings.Replace(insert, "tea", "figs", 1),
		[]string{"Mcp-Session-Id", session}}).text
	if strings.Contains(called, `"isError":true`) || !strings.Contains(called, "result") {
		t.Errorf("a call of the new session: %s", called)
	}
	stored := c.must("GET", "/v1/agents/"+agent+"/archival-memory", "")
	if tea, figs := strings.Count(stored, "tea"), strings.Count(stored, "figs"); tea != 1 || figs != 1 {
		t.Errorf("the calls were made %d and %d times, want each once: %s", tea, figs, stored)
	}
}

// problemIn returns the sentence in an error's answer.
func problemIn(t *testing.T, text string) string {
	t.Helper()
	var p struct{ Detail string }
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Errorf("the answer is no problem: %q", text)
	}
	return p.Detail
}

// If a server is killed, a client of the SDK gets an error, and not another request's answer. It only needs to connect
// again.
func TestAClientGoesOnAfterItsServerWasKilled(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.work()
	agent, _ := c.mcpAgent()
	var serving atomic.Pointer[client] // keeps the port for the test
	serving.Store(c)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving.Load().ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	for _, version := range versions {
		session := c.mustDial(web, mcpTo{path: "/mcp/agents/" + agent, version: version})
		calledTool(t, session, "list_files", `{}`)
	}
	var old []*sdk.ClientSession
	for _, version := range versions {
		old = append(old, c.mustDial(web, mcpTo{path: "/mcp/agents/" + agent, version: version}))
	}
	serving.Store(c.again())
	web.CloseClientConnections()
	http.DefaultClient.CloseIdleConnections() // a call on a connection that the server has closed would fail
	for i, version := range versions {
		_, err := old[i].CallTool(t.Context(), &sdk.CallToolParams{Name: "list_files"})
		if err != nil && version >= "2026-07-28" {
			t.Errorf("%s has no session to lose: %v", version, err)
		}
		if err == nil && version < "2026-07-28" {
			t.Errorf("%s: a session of the killed server is answered", version)
		}
		if text, failed := calledTool(t, c.mustDial(web, mcpTo{path: "/mcp/agents/" + agent, version: version}),
			"list_files", `{}`); failed {
			t.Errorf("%s: in a new session: %s", version, text)
		}
	}
}
