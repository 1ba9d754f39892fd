package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci/server/servertest"
)

// stateless returns a message in the protocol version without sessions.
func stateless(t *testing.T, id any, method string, params map[string]any) string {
	t.Helper()
	meta := map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28",
		"io.modelcontextprotocol/clientCapabilities": map[string]any{}}
	params = maps.Clone(params)
	if params == nil {
		params = map[string]any{}
	}
	if given, ok := params["_meta"].(map[string]any); ok {
		maps.Copy(meta, given)
	}
	params["_meta"] = meta
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// post sends a message to an agent's memory in a protocol version.
func (c *client) post(agent, version, body string) servertest.Reply {
	c.t.Helper()
	headers := append(c.headers(), "Accept", "application/json, text/event-stream", versionHeader, version)
	var message struct {
		Method string
		Params struct{ Name, URI string }
	}
	if json.Unmarshal([]byte(body), &message) == nil && version == "2026-07-28" {
		headers = append(headers, "Mcp-Method", message.Method)
		if name := message.Params.Name + message.Params.URI; name != "" {
			headers = append(headers, "Mcp-Name", name)
		}
	}
	return servertest.Send(c, "POST", "/mcp/agents/"+agent, body, headers...)
}

// answerIn returns the last message of an answer, which is JSON or a stream of events.
func answerIn(w servertest.Reply) string {
	text := w.Body.String()
	if at := strings.LastIndex(text, "\ndata: "); at >= 0 {
		text, _, _ = strings.Cut(text[at+len("\ndata: "):], "\n")
	}
	return text
}

// The protocol version without sessions requires that each result says that it is complete. In other versions, results
// do not say so.
func TestResultsSayThatTheyAreComplete(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a","memory_blocks":[{"label":"human","value":"Ada"}]}`)
	search := func(arguments map[string]any) map[string]any {
		return map[string]any{"name": "conversation_search", "arguments": arguments}
	}
	for _, call := range []struct {
		method string
		params map[string]any
	}{
		{"server/discover", nil},
		{"tools/list", nil},
		{"tools/call", search(map[string]any{"query": "tea"})},
		{"tools/call", search(map[string]any{"nonsense": 1})}, // a mistake of the model
		{"tools/call", map[string]any{"name": "conversation_search", "arguments": map[string]any{"query": "tea"},
			"_meta": map[string]any{"progressToken": 1}}}, // answered with a stream of events
		{"resources/list", nil},
		{"resources/templates/list", nil},
		{"resources/read", map[string]any{"uri": "loci://" + agent + "/blocks/human"}},
		{"prompts/list", nil},
		{"prompts/get", map[string]any{"name": "context"}},
	} {
		for version, want := range map[string]string{"2026-07-28": "complete", "2025-11-25": ""} {
			body := stateless(t, 1, call.method, call.params)
			if version == "2025-11-25" {
				if call.method == "server/discover" {
					continue
				}
				body = strings.Replace(body, "2026-07-28", version, 1)
			}
			w := c.post(agent, version, body)
			var got struct{ Result *struct{ ResultType string } }
			if err := json.Unmarshal([]byte(answerIn(w)), &got); err != nil || got.Result == nil ||
				got.Result.ResultType != want {
				t.Errorf("%s of %s: got %d %s (%v), want the resultType %q", body, version, w.Code, w.Body, err, want)
			}
		}
	}
}

// If a batch contains unknown notifications, they are ignored, and its valid messages are processed.
func TestUnknownNotificationsAreIgnored(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	w := c.post(agent, "2025-03-26", `[{"jsonrpc":"2.0","method":"notifications/nobody"},`+
		`{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"}]`)
	if got := strings.TrimSpace(w.Body.String()); w.Code != 200 || got != `[{"jsonrpc":"2.0","id":1,"result":{}}]` {
		t.Errorf("got %d %s, want the answer to the ping", w.Code, got)
	}
}

// A request to follow changes is accepted, without resources that do not exist. The acknowledgement names the accepted
// resources.
func TestTheAcknowledgementNamesTheResourcesThatAreFollowed(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a","memory_blocks":[{"label":"human","value":"Ada"}]}`)
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	block := "loci://" + agent + "/blocks/human"
	for _, tt := range []struct{ want, honoured []string }{{[]string{block, "loci://" + agent + "/blocks/none", "bogus"},
		[]string{block}}, {[]string{"bogus"}, nil}} {
		body := stateless(t, 1, "subscriptions/listen", map[string]any{
			"notifications": map[string]any{"resourcesListChanged": true, "resourceSubscriptions": tt.want}})
		r, err := http.NewRequestWithContext(t.Context(), "POST", web.URL+"/mcp/agents/"+agent, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Accept": "application/json, text/event-stream",
			versionHeader: "2026-07-28", "Mcp-Method": "subscriptions/listen", "Content-Type": "application/json"} {
			r.Header.Set(name, value)
		}
		res, err := bearer{key: c.key}.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var got struct {
			Method string
			Params struct {
				Notifications struct {
					ResourcesListChanged  bool
					ResourceSubscriptions []string
				}
			}
		}
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && len(data) > 0 {
				if err := json.Unmarshal([]byte(data), &got); err != nil {
					t.Fatal(err)
				}
				break
			}
		}
		if acknowledged := got.Params.Notifications; !acknowledged.ResourcesListChanged ||
			!slices.Equal(acknowledged.ResourceSubscriptions, tt.honoured) {
			t.Errorf("asked for %v: got %d %+v, want %v", tt.want, res.StatusCode, got, tt.honoured)
		}
	}
}

// A list's cursor is refused if it belongs to another agent or another list, or if it was changed.
func TestCursorsAreOfOneListOfAnAgent(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent, other := c.made("/v1/agents", `{"name":"a"}`), c.made("/v1/agents", `{"name":"b"}`)
	for i := range 101 {
		c.made("/v1/conversations?agent_id="+agent, fmt.Sprintf(`{"summary":"c%d"}`, i))
	}
	list := func(owner, method, cursor string) (next string, code int) {
		t.Helper()
		params := map[string]any{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		w := c.post(owner, "2026-07-28", stateless(t, 1, method, params))
		var got struct {
			Result struct{ NextCursor string }
			Error  struct{ Code int }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v", w.Body, err)
		}
		return got.Result.NextCursor, got.Error.Code
	}
	cursor, _ := list(agent, "resources/list", "")
	if _, code := list(agent, "resources/list", cursor); cursor == "" || code != 0 {
		t.Errorf("the cursor %q has the code %d", cursor, code)
	}
	for name, wrong := range map[string]struct{ agent, method, cursor string }{
		"another agent's": {other, "resources/list", cursor}, "another list's": {agent, "tools/list", cursor},
		"one that is cut": {agent, "resources/list", cursor[:len(cursor)-1]},
		"a longer one":    {agent, "resources/list", cursor + "A"}} {
		if next, code := list(wrong.agent, wrong.method, wrong.cursor); code != -32602 {
			t.Errorf("%s: got %q and the code %d, want -32602", name, next, code)
		}
	}
}

// A block without text is a resource with an empty text.
func TestAnEmptyResourceHasAnEmptyText(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a","memory_blocks":[{"label":"human","value":""}]}`)
	for _, version := range versions {
		body := strings.Replace(stateless(t, 1, "resources/read", map[string]any{"uri": "loci://" + agent + "/blocks/human"}),
			"2026-07-28", version, 1)
		w := c.post(agent, version, body)
		var got struct {
			Result struct{ Contents []struct{ Text *string } }
		}
		if err := json.Unmarshal([]byte(answerIn(w)), &got); err != nil || len(got.Result.Contents) != 1 ||
			got.Result.Contents[0].Text == nil || *got.Result.Contents[0].Text != "" {
			t.Errorf("%s: got %s (%v), want an empty text", version, w.Body, err)
		}
	}
}

// A request that its client cancels gets no answer. A second initialize in a session is an invalid request.
func TestCancelledRequestsAreNotAnswered(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a","tool_set":"all","memory_blocks":[{"label":"human","value":"Ada"}]}`)
	headers := append(c.headers(), "Accept", "application/json, text/event-stream", versionHeader, "2025-11-25")
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	began := servertest.Send(c, "POST", "/mcp/agents/"+agent, initialize, headers...)
	headers = append(headers, "Mcp-Session-Id", began.Header().Get("Mcp-Session-Id"))
	send := func(body string) servertest.Reply {
		return servertest.Send(c, "POST", "/mcp/agents/"+agent, body, headers...)
	}
	if again := send(initialize); !strings.Contains(again.Text, `"code":-32600`) {
		t.Errorf("a second initialize is answered with %d %s", again.Code, again.Text)
	}
	tx, err := c.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), `SELECT seq FROM agent_heads WHERE agent_id = $1 FOR UPDATE`, agent); err != nil {
		t.Fatal(err)
	}
	var waits sync.WaitGroup
	defer waits.Wait()
	answered := make(chan servertest.Reply, 1)
	waits.Go(func() {
		answered <- send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"core_memory_append",` +
			`"arguments":{"label":"human","content":"figs"}}}`)
	})
	for got := (servertest.Reply{}); got.ResponseRecorder == nil; {
		send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		select {
		case got = <-answered:
			if got.Code != 200 || strings.Contains(got.Text, "data: {") {
				t.Errorf("a cancelled request is answered with %d %s", got.Code, got.Text)
			}
		case <-time.After(10 * time.Millisecond): // it may not have arrived yet
		}
	}
}

// If /mcp refuses a request, the answer is JSON that describes the error, and has that content type.
func TestRefusedMCPRequestsAreJSON(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	for want, headers := range map[int][]string{404: {"Mcp-Session-Id", "x"}, 400: {"Accept", "text/html"},
		415: {"Content-Type", "text/plain"}} {
		all := append(c.headers(), "Accept", "application/json, text/event-stream", versionHeader, "2025-11-25")
		w := servertest.Send(c, "POST", "/mcp/agents/"+agent, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
			append(all, headers...)...)
		if kind := w.Header().Get("Content-Type"); w.Code != want || !strings.Contains(kind, "json") ||
			!json.Valid(w.Body.Bytes()) {
			t.Errorf("%v: got %d %s with the type %s, want %d and JSON", headers, w.Code, w.Body, kind, want)
		}
	}
}
