package server_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/server/servertest"
)

// mcpSession sends the messages of a session.
type mcpSession struct {
	c       *client
	agent   string
	headers []string
}

// mcpSession begins a session for an agent.
func (c *client) mcpSession(agent string) mcpSession {
	c.t.Helper()
	s := mcpSession{c, agent, append(c.headers(), "Accept", "application/json, text/event-stream", versionHeader,
		"2025-11-25")}
	began := s.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	s.headers = append(s.headers, "Mcp-Session-Id", began.Header().Get("Mcp-Session-Id"))
	return s
}

func (s mcpSession) send(body string) servertest.Reply {
	s.c.t.Helper()
	return servertest.Send(s.c, "POST", "/mcp/agents/"+s.agent, body, s.headers...)
}

func (s mcpSession) cancel(id string) {
	s.c.t.Helper()
	w := s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
	if w.Code != 202 {
		s.c.t.Errorf("the cancellation of %s: %d %s", id, w.Code, w.Text)
	}
}

// appends adds a word to the block human, and reports whether the request was answered.
func (s mcpSession) appends(id, word string) (answered bool) {
	s.c.t.Helper()
	w := s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"core_memory_append",`+
		`"arguments":{"label":"human","content":%q}}}`, id, word))
	if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
		s.c.t.Errorf("the request %s: %d %s", id, w.Code, w.Text)
	}
	return strings.Contains(w.Text, "data: {")
}

// A request is not run if its cancellation came first. A cancellation that comes late, or in another session, cancels
// no other request.
func TestACancellationBeforeItsRequestIsHeard(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a","tool_set":"all","memory_blocks":[{"label":"human","value":"Ada"}]}`)
	s, other := c.mcpSession(agent), c.mcpSession(agent)
	s.cancel("5")
	s.cancel(`"5"`)
	for _, step := range []struct {
		in       mcpSession
		id, word string
		answered bool
	}{
		{other, "5", "others", true},
		{s, "5.0", "early", false},
		{s, "6", "six", true},
		{s, `"5"`, "text", false},
		{s, "5", "again", true}, // a cancellation counts for one request
	} {
		if got := step.in.appends(step.id, step.word); got != step.answered {
			t.Errorf("%s is answered: %v, want %v", step.word, got, step.answered)
		}
	}
	s.cancel("6") // the request was already answered
	if !s.appends("6", "reused") {
		t.Error("a request with the id of one that was cancelled late is not answered")
	}
	old := mcpSession{s.c, s.agent, append(slices.Clip(s.headers), versionHeader, "2025-03-26")}
	w := old.send(`[{"jsonrpc":"2.0","id":"b1","method":"ping"},{"jsonrpc":"2.0","id":"b2","method":"ping"},` +
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b1"}}]`)
	if strings.Contains(w.Text, `"b1"`) || !strings.Contains(w.Text, `"b2"`) {
		t.Errorf("a batch that cancels its own b1: %s", w.Text)
	}
	block := c.must("GET", "/v1/agents/"+agent+"/core-memory/blocks/human", "")
	for word, want := range map[string]int{"others": 1, "early": 0, "six": 1, "text": 0, "again": 1, "reused": 1} {
		if got := strings.Count(block, word); got != want {
			t.Errorf("%s is there %d times, want %d: %s", word, got, want, block)
		}
	}
}

// Without a session, the calls of a message end when the client goes away, including those of a batch, because nobody
// can come back for their answers.
func TestCallsWithoutASessionEndWithTheirClient(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a","tool_set":"all","memory_blocks":[{"label":"human","value":"Ada"}]}`)
	var calls []string
	for id := range 3 {
		calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":`+
			`"core_memory_append","arguments":{"label":"human","content":"zebra %[1]d"}}}`, id))
	}
	for version, body := range map[string]string{"2025-03-26": "[" + strings.Join(calls, ",") + "]",
		"2025-11-25": calls[0]} {
		blocking, err := c.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		pid := blocking.Conn().PgConn().PID()
		if _, err := blocking.Exec(t.Context(), `SELECT FROM blocks WHERE org = $1 FOR UPDATE`, c.org); err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, "POST", "http://localhost/mcp/agents/"+agent, strings.NewReader(body))
		headers := append(c.headers(), "Accept", "application/json, text/event-stream", versionHeader, version,
			"Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		reply := make(chan servertest.Reply, 1)
		go func() { reply <- servertest.Do(c, r) }()
		embedtest.Eventually(t, "a call waits", func() bool {
			select {
			case got := <-reply:
				t.Fatalf("%s: the calls did not wait: %d %s", version, got.Code, got.Text)
			default:
			}
			return c.waitFor(pid) > 0
		})
		leave()
		<-reply
		embedtest.Eventually(t, "no call waits", func() bool { return c.waitFor(pid) == 0 })
		if err := blocking.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.must("GET", "/v1/agents/"+agent+"/core-memory/blocks/human", "")
	}
	if block := c.must("GET", "/v1/agents/"+agent+"/core-memory/blocks/human", ""); strings.Contains(block, "zebra") {
		t.Errorf("a client that went away has changed %s", block)
	}
}

// waitFor returns how many database sessions wait for another session.
func (c *client) waitFor(pid uint32) int {
	c.t.Helper()
	n, err := db.One[int](c.t.Context(), c.pool, `
		SELECT count(*) FROM pg_stat_activity WHERE $1::integer = ANY (pg_blocking_pids(pid))`, pid)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}
