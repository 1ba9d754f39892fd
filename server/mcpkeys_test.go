package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// newDoubtingClient returns a client with its own server, which checks keys before each event of an open answer.
func newDoubtingClient(t *testing.T) *client {
	t.Helper()
	c := newServerClient(t)
	c.work()
	c.own().KeyAge = time.Nanosecond
	return c.again()
}

// When a key is revoked, its session's stream ends. Later events are not sent, but a comment says why.
func TestAnMCPStreamEndsWithItsKey(t *testing.T) {
	t.Parallel()
	c := newDoubtingClient(t)
	agent, web := c.mcpAgent()
	valid, revoked := c.keyed(), c.keyed()
	other, ended := valid.mcpStream(web, agent), revoked.mcpStream(web, agent)
	change := func(value string) {
		t.Helper()
		valid.must("PATCH", "/v1/agents/"+agent+"/core-memory/blocks/human", `{"value":"`+value+`"}`)
	}
	const updated = "notifications/resources/updated"
	change("known to both")
	for _, s := range []*mcpStream{other, ended} {
		if got := s.next(t); !strings.Contains(got, updated) {
			t.Fatalf("told %s of a change", got)
		}
	}
	if _, err := c.server.Keys.Revoke(t.Context(), revoked.key); err != nil {
		t.Fatal(err)
	}
	change("a secret")
	if got := other.next(t); !strings.Contains(got, updated) {
		t.Errorf("told %s of a change with the key that is left", got)
	}
	// The stream of a session has no answers. A comment says why it ended.
	if last, err := io.ReadAll(ended.body); err != nil || !strings.HasPrefix(strings.TrimSpace(string(last)), ": ") ||
		!strings.Contains(string(last), "key") || strings.Contains(string(last), "data: ") {
		t.Errorf("the stream goes on, or does not say why it ends: %q, %v", last, err)
	}
}

// When a key is revoked, its requests that wait for changes without a session end, and are answered with an error.
func TestAListenEndsWithItsKey(t *testing.T) {
	t.Parallel()
	c := newDoubtingClient(t)
	agent, web := c.mcpAgent()
	valid, revoked := c.keyed(), c.keyed()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "POST", web.URL+"/mcp/agents/"+agent, strings.NewReader(
		stateless(t, 7, "subscriptions/listen", map[string]any{"notifications": map[string]any{
			"resourceSubscriptions": []string{"loci://" + agent + "/blocks/human"}}})))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer " + revoked.key}, "Content-Type": {"application/json"},
		"Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2026-07-28"},
		"Mcp-Method": {"subscriptions/listen"}}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	if w.Header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("a stream has the header %v; a proxy may hold its events back", w.Header)
	}
	listen := &mcpStream{bufio.NewReader(w.Body)}
	if got := listen.next(t); !strings.Contains(got, "acknowledged") {
		t.Fatalf("told %s", got)
	}
	if _, err := c.server.Keys.Revoke(t.Context(), revoked.key); err != nil {
		t.Fatal(err)
	}
	valid.must("PATCH", "/v1/agents/"+agent+"/core-memory/blocks/human", `{"value":"a secret"}`)
	var last struct {
		ID    int
		Error struct {
			Code    int
			Message string
		}
	}
	text := listen.next(t)
	if err := json.Unmarshal([]byte(text), &last); err != nil || last.ID != 7 || last.Error.Code != -32600 ||
		!strings.Contains(last.Error.Message, "key") {
		t.Errorf("the last message is %s, %v", text, err)
	}
	if rest, err := io.ReadAll(listen.body); err != nil || strings.TrimSpace(string(rest)) != "" {
		t.Errorf("the stream goes on: %q, %v", rest, err)
	}
}

// mcpStream is the open stream of a session that follows the block human.
type mcpStream struct{ body *bufio.Reader }

func (c *client) mcpStream(web *httptest.Server, agent string) *mcpStream {
	c.t.Helper()
	session := ""
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	c.t.Cleanup(cancel)
	send := func(method, body string) (http.Header, io.Reader) {
		r, err := http.NewRequestWithContext(ctx, method, web.URL+"/mcp/agents/"+agent, strings.NewReader(body))
		if err != nil {
			c.t.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer " + c.key}, "Content-Type": {"application/json"},
			"Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2025-11-25"}}
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		if method == http.MethodGet {
			r.Header.Set("Accept", "text/event-stream")
		}
		w, err := http.DefaultClient.Do(r)
		if err != nil || w.StatusCode >= 300 {
			c.t.Fatalf("%s %s: %v, %v", method, body, w, err)
		}
		c.t.Cleanup(func() { w.Body.Close() })
		if method == http.MethodPost { // the head of an answer may come before the message is handled
			if _, err := io.ReadAll(w.Body); err != nil {
				c.t.Fatal(err)
			}
		}
		return w.Header, w.Body
	}
	began, _ := send("POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",
		"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	session = began.Get("Mcp-Session-Id")
	send("POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send("POST", `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe",
		"params":{"uri":"loci://`+agent+`/blocks/human"}}`)
	_, events := send("GET", "")
	return &mcpStream{bufio.NewReader(events)}
}

// next returns the data of the next event.
func (s *mcpStream) next(t *testing.T) string {
	t.Helper()
	for {
		line, err := s.body.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ends with %q, %v", line, err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok && strings.TrimSpace(data) != "" {
			return strings.TrimSpace(data)
		}
	}
}
