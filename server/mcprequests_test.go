package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/server/servertest"
)

const versionHeader = "Mcp-Protocol-Version"

// batchOf returns a batch of n calls.
func batchOf(n int) string {
	var calls []string
	for id := range n {
		calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id))
	}
	return "[" + strings.Join(calls, ",") + "]"
}

// Invalid messages are refused with a status, and change nothing.
func TestBrokenMCPMessagesAreRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	const noText = `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"\u0000"}}`
	versions := func(one, two string) []string { return []string{versionHeader, one, versionHeader, two} }
	accept := []string{"Accept", "application/json, text/event-stream"}
	for name, test := range map[string]struct {
		method, body string
		headers      []string
		want         int
	}{
		"a message":                  {"POST", list, accept, 200},
		"a message of an old batch":  {"POST", "[" + list + "]", append(accept, versionHeader, "2025-03-26"), 200},
		"fifty in an old batch":      {"POST", batchOf(50), append(accept, versionHeader, "2025-03-26"), 200},
		"more in an old batch":       {"POST", batchOf(51), append(accept, versionHeader, "2025-03-26"), 400},
		"a batch":                    {"POST", "[" + list + "]", append(accept, versionHeader, "2025-06-18"), 400},
		"a new batch":                {"POST", "[" + list + "]", append(accept, versionHeader, "2026-07-28"), 400},
		"an empty batch":             {"POST", "[]", accept, 400},
		"no body":                    {"POST", "", accept, 400},
		"no JSON":                    {"POST", "{", accept, 400},
		"two messages":               {"POST", list + list, accept, 400},
		"no object":                  {"POST", "7", accept, 400},
		"an answer to nothing":       {"POST", `{"jsonrpc":"2.0","id":1,"result":{}}`, accept, 202},
		"neither call nor answer":    {"POST", `{"jsonrpc":"2.0","id":1}`, accept, 400},
		"no message":                 {"POST", "null", accept, 400},
		"an unknown notification":    {"POST", `{"jsonrpc":"2.0","method":"tools/burn"}`, accept, 202},
		"unknown ones of a batch":    {"POST", `[{"jsonrpc":"2.0","method":"tools/burn"}]`, accept, 202},
		"a call without an id":       {"POST", `{"jsonrpc":"2.0","method":"tools/call"}`, accept, 400},
		"an id that is no number":    {"POST", `{"jsonrpc":"2.0","id":true,"method":"ping"}`, accept, 400},
		"another JSON-RPC":           {"POST", `{"jsonrpc":"1.0","id":1,"method":"tools/list"}`, accept, 400},
		"nested arrays":              {"POST", strings.Repeat("[", 100_000), accept, 422},
		"a long body":                {"POST", `{"x":"` + strings.Repeat("x", 4<<20) + `"}`, accept, 413},
		"no accepted type":           {"POST", list, []string{"Accept", "text/html"}, 400},
		"another type of body":       {"POST", list, append(accept, "Content-Type", "text/plain"), 415},
		"an unknown version":         {"POST", list, append(accept, versionHeader, "2019-01-01"), 400},
		"a version of the future":    {"POST", list, append(accept, versionHeader, "2099-01-01"), 400},
		"two versions":               {"POST", list, append(accept, versions("2025-11-25", "2025-06-18")...), 400},
		"one version twice":          {"POST", list, append(accept, versions("2025-11-25", "2025-11-25")...), 200},
		"a compressed body":          {"POST", list, append(accept, "Content-Encoding", "gzip"), 415},
		"a text that cannot be kept": {"POST", noText, accept, 200},
		"an id that is there twice":  {"POST", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, accept, 400},
		"a page of another origin":   {"POST", list, append(accept, "Origin", "https://evil.example"), 403},
		"a page without an origin":   {"POST", list, append(accept, "Origin", "null"), 403},
		"another host":               {"POST", list, append(accept, "Host", "evil.example"), 403},
		"an unknown session":         {"POST", list, append(accept, "Mcp-Session-Id", "x"), 404},
		"a stream without a session": {"GET", "", accept, 400},
		"a stream of an unknown one": {"GET", "", append(accept, "Mcp-Session-Id", "x"), 404},
		"an end of no session":       {"DELETE", "", accept, 400},
		"another HTTP method":        {"PUT", list, accept, 405},
	} {
		got := send(t, web, wireRequest{test.method, "/mcp/agents/" + agent, test.body,
			slices.Concat(test.headers, c.headers())})
		if got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}

// An answer has the id of its message, even if the answer is an error. A message that cannot be answered in this way is
// refused.
func TestMCPMessagesAreAnsweredWithTheirIDs(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	call := func(id, method string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"}` }
	for body, want := range map[string]struct {
		status int
		id     string
		code   int
	}{
		call("1", "ping"):                                         {200, "1", 0},
		call("1e3", "ping"):                                       {200, "1000", 0},
		call(`"a"`, "ping"):                                       {200, `"a"`, 0},
		call("-9007199254740991", "ping"):                         {200, "-9007199254740991", 0},
		call("1.5", "ping"):                                       {400, "null", -32600},
		call("null", "ping"):                                      {400, "null", -32600},
		call("true", "ping"):                                      {400, "null", -32600},
		`{"jsonrpc":"2.0","id":1}`:                                {400, "1", -32600},
		`{"jsonrpc":"2.0","id":1,"method":5}`:                     {400, "1", -32600},
		`{"jsonrpc":"2.0","id":1,"Method":"ping"}`:                {400, "1", -32600},
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`:                {400, "1", -32600},
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`:         {400, "null", -32600},
		"[" + call("1", "ping") + `,{"a":1}]`:                     {400, "null", -32600},
		"[" + call("1", "ping") + "," + call("1e0", "ping") + "]": {400, "null", -32600},
		call("9007199254740993", "ping"):                          {400, "null", -32600},
		call("12345678901234567890", "ping"):                      {400, "null", -32600},
		call("1e999", "ping"):                                     {400, "null", -32600},
		call("7", "nope"):                                         {200, "7", -32601},
		call("8", "initialize"):                                   {200, "8", -32602},
		call("9", "logging/setLevel"):                             {200, "9", -32601},
		call(`"a"`, "nope"):                                       {200, `"a"`, -32601},
		"null":                                                    {400, "null", -32600},
		"[" + call("1", "ping") + "," + call("1", "ping") + "]":   {400, "null", -32600},
		"[" + call("1", "ping") + "," + call("2", "nope") + "]":   {400, "null", -32600},
		"[" + call("1", "nope") + "]":                             {400, "null", -32600},
	} {
		w := servertest.Send(c, "POST", "/mcp/agents/"+agent, body, append(c.headers(), "Accept",
			"application/json, text/event-stream")...)
		var got struct {
			ID    json.RawMessage
			Error struct{ Code int }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != want.status || string(got.ID) != want.id ||
			got.Error.Code != want.code {
			t.Errorf("%s: got %d %s (%v), want %d with the id %s and the code %d", body, w.Code, w.Body, err, want.status,
				want.id, want.code)
		}
	}
}

// If a method's params have a wrong type, the error names the field, the expected type and the received type, in words
// of the protocol.
func TestWrongParamsOverMCPAreNamed(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	for _, tt := range []struct{ method, params, want string }{
		{"tools/call", `{"name":5}`, "params.name: expected a text, not a number"},
		{"tools/call", `[1]`, "params: expected an object, not a list"},
		{"tools/call", `"x"`, "params: expected an object, not a text"},
		{"tools/call", `{"arguments":{}}`, "params.name is missing: it is a text"},
		{"tools/call", `null`, "params.name is missing: it is a text"},
		{"tools/list", `{"cursor":5}`, "params.cursor: expected a text, not a number"},
		{"tools/list", `{"_meta":true}`, "params._meta: expected an object, not true or false"},
		{"resources/read", `{"uri":{}}`, "params.uri: expected a text, not an object"},
		{"resources/read", `{}`, "params.uri is missing: it is a text"},
		{"prompts/get", `{"name":"recall","arguments":{"query":5}}`, "params.arguments.query: expected a text, not a number"},
		{"prompts/get", `{"name":"recall","arguments":"x"}`, "params.arguments: expected an object, not a text"},
		{"tools/call", `{"name":"list_files","_meta":{"progressToken":{}}}`,
			"params._meta.progressToken: expected a text or a number, not an object"},
		{"tools/call", `{"name":"a","name":"list_files"}`, "params.name: the field is there twice"},
		{"tools/call", `{"name":"list_files","arguments":{},"arguments":{}}`, "params.arguments: the field is there twice"},
		{"resources/read", `{"uri":"loci://\ud800"}`, "params.uri: the text has a NUL, half of a surrogate pair"},
		{"initialize", `null`, "params is missing: it is an object with protocolVersion"},
		{"initialize", `{"protocolVersion":5}`, "params.protocolVersion: expected a text, not a number"},
		{"initialize", `{"protocolVersion":"2025-11-25","clientInfo":"x"}`,
			"params.clientInfo: expected an object, not a text"},
		{"initialize", `{"clientInfo":{"name":[]}}`, "params.clientInfo.name: expected a text, not a list"},
		{"completion/complete", `{"ref":"x"}`, "params.ref: expected an object, not a text"},
		{"subscriptions/listen", `{}`, "params.notifications is missing: it is an object"},
		{"subscriptions/listen", `{"notifications":[]}`, "params.notifications: expected an object, not a list"},
		{"subscriptions/listen", `{"notifications":{"resourceSubscriptions":"x"}}`,
			"params.notifications.resourceSubscriptions: expected a list of texts, not a text"},
		{"subscriptions/listen", `{"notifications":{"resourceSubscriptions":["x",5]}}`,
			"params.notifications.resourceSubscriptions[1]: expected a text, not a number"},
		{"subscriptions/listen", `{"notifications":{"toolsListChanged":"yes"}}`,
			"params.notifications.toolsListChanged: expected true or false, not a text"},
	} {
		message := fmt.Sprintf(`{"jsonrpc":"2.0","id":"of %s","method":%[1]q,"params":%s}`, tt.method, tt.params)
		for body, id := range map[string]string{message: `"of ` + tt.method + `"`, "[" + message + "]": "null"} {
			w := servertest.Send(c, "POST", "/mcp/agents/"+agent, body, append(c.headers(), "Accept",
				"application/json, text/event-stream")...)
			var got struct {
				ID    json.RawMessage
				Error struct{ Message string }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || string(got.ID) != id ||
				!strings.HasPrefix(got.Error.Message, tt.want) {
				t.Errorf("%s: got %d %s (%v), want %q", body, w.Code, w.Body, err, tt.want)
			}
		}
	}
}

// A request with an unsupported protocol version is refused in the protocol's form, and the error names the supported
// versions.
func TestVersionsThatAreNotServedAreNamed(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	for _, version := range []string{"2099-01-01", "latest"} {
		w := servertest.Send(c, "POST", "/mcp/agents/"+agent, `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`,
			append(c.headers(), "Accept", "application/json, text/event-stream", versionHeader, version)...)
		var got struct {
			ID    int
			Error struct {
				Code int64
				Data sdk.UnsupportedProtocolVersionData
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 400 || got.ID != 7 ||
			got.Error.Code != sdk.CodeUnsupportedProtocolVersion || got.Error.Data.Requested != version ||
			!slices.Contains(got.Error.Data.Supported, "2026-07-28") {
			t.Errorf("%s: got %d %s (%v)", version, w.Code, w.Body, err)
		}
	}
}

// If arguments contain a text that cannot be stored, or a field twice, nothing changes, and the result says why.
func TestArgumentsThatCannotBeKeptAreRefusedOverMCP(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a","tool_set":"all"}`)
	for _, tt := range []struct{ tool, arguments, want string }{
		{"archival_memory_insert", `{"content":"a\u0000b"}`, "content: the text has a NUL"},
		{"archival_memory_insert", `{"content":"a\ud800b"}`, "content: the text has a NUL"},
		{"archival_memory_insert", "{\"content\":\"a\xffb\"}", "content: the text has a NUL"},
		{"archival_memory_insert", `{"content":"a","content":"b"}`, "content: the field is there twice"},
		{"remember_turns", `{"turns":[{"role":"user","text":"a"},{"role":"user","text":"\u0000"}]}`,
			"turns[1].text: the text has a NUL"},
	} {
		w := servertest.Send(c, "POST", "/mcp/agents/"+agent, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call",`+
			`"params":{"name":%q,"arguments":%s}}`, tt.tool, tt.arguments),
			append(c.headers(), "Accept", "application/json, text/event-stream")...)
		var got struct{ Result sdk.CallToolResult }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || !got.Result.IsError ||
			!strings.HasPrefix(got.Result.Content[0].(*sdk.TextContent).Text, tt.want) {
			t.Errorf("%s %s: got %d %s (%v), want %q", tt.tool, tt.arguments, w.Code, w.Body, err, tt.want)
		}
	}
	if stored := c.list("/v1/agents/" + agent + "/archival-memory"); len(stored) > 0 {
		t.Errorf("stored %v", stored)
	}
}

// For an unknown resource, the error has the code of the protocol version.
func TestUnknownResourcesHaveTheCodeOfTheVersion(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	for version, want := range map[string]int64{"2026-07-28": -32602, "2025-11-25": -32002, "2025-06-18": -32002,
		"2024-11-05": -32002} {
		session := c.mustDial(web, mcpTo{path: "/mcp/agents/" + agent, version: version})
		_, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "loci://" + agent + "/blocks/none"})
		got, ok := errors.AsType[*jsonrpc.Error](err)
		if !ok || got.Code != want {
			t.Errorf("%s: got %v, want the code %d", version, err, want)
		}
	}
}

// If a client goes away during a call, or cancels it, the server still answers others.
func TestCancelledMCPCallsLeaveTheServer(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent, web := c.mcpAgent()
	for _, version := range versions {
		session := c.mustDial(web, mcpTo{path: "/mcp/agents/" + agent, version: version})
		var calls sync.WaitGroup
		for range 20 {
			calls.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				go cancel()
				_, _ = session.CallTool(ctx, &sdk.CallToolParams{Name: "search_memory",
					Arguments: map[string]any{"query": "tea"}}) // it may have ended before it was cancelled
			})
		}
		calls.Wait()
		if text, failed := calledTool(t, session, "list_files", `{}`); failed {
			t.Errorf("%s: after cancelled calls: %s", version, text)
		}
	}
}

// A client that asks for progress is told that a tool runs.
func TestProgressIsToldOverMCP(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent, web := c.mcpAgent()
	for _, version := range versions {
		progress := make(chan string, 10)
		session := c.mustDial(web, mcpTo{path: "/mcp/agents/" + agent, version: version, options: &sdk.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
				progress <- r.Params.Message
			}}})
		params := &sdk.CallToolParams{Name: "list_files", Arguments: map[string]any{}}
		params.SetProgressToken("token")
		if _, err := session.CallTool(t.Context(), params); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		select {
		case got := <-progress:
			if got != "running list_files" {
				t.Errorf("%s: told %q", version, got)
			}
		case <-ctx.Done():
			t.Errorf("%s: not told of the progress", version)
		}
	}
}
