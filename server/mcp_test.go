package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/tenant/apikey"
)

// versions are the protocol's newest version, which has no sessions, and the newest and the oldest with sessions.
var versions = []string{"2026-07-28", "2025-11-25", "2024-11-05"}

// bearer is a transport that sends a key with each request.
type bearer struct {
	key     string
	headers []string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.key != "" {
		r.Header.Set("Authorization", "Bearer "+b.key)
	}
	for i := 0; i+1 < len(b.headers); i += 2 {
		r.Header.Set(b.headers[i], b.headers[i+1])
	}
	return http.DefaultTransport.RoundTrip(r)
}

// mcpTo says how an MCP client connects.
type mcpTo struct {
	path, version string
	headers       []string
	options       *sdk.ClientOptions
}

// dial connects an MCP client with the key of c.
func (c *client) dial(web *httptest.Server, target mcpTo) (*sdk.ClientSession, error) {
	c.t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, target.options).Connect(c.t.Context(),
		&sdk.StreamableClientTransport{Endpoint: web.URL + target.path, HTTPClient: &http.Client{
			Transport: bearer{c.key, target.headers}}, MaxRetries: -1},
		&sdk.ClientSessionOptions{ProtocolVersion: target.version})
	if err == nil {
		c.t.Cleanup(func() { session.Close() })
	}
	return session, err
}

func (c *client) mustDial(web *httptest.Server, target mcpTo) *sdk.ClientSession {
	c.t.Helper()
	session, err := c.dial(web, target)
	if err != nil {
		c.t.Fatalf("connect to %s with %s: %v", target.path, target.version, err)
	}
	return session
}

// toolNames returns the names of the tools that a session lists.
func toolNames(t *testing.T, session *sdk.ClientSession) (names []string) {
	t.Helper()
	for tl, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tl.Name)
	}
	return names
}

// calledTool calls a tool, checks the form of the result, and returns the result's text.
func calledTool(t *testing.T, session *sdk.ClientSession, name, args string) (text string, failed bool) {
	t.Helper()
	got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("call %s: %v", name, err)
	}
	if len(got.Content) != 1 {
		t.Fatalf("%s has %d contents", name, len(got.Content))
	}
	text = got.Content[0].(*sdk.TextContent).Text
	structured, _ := got.StructuredContent.(map[string]any)
	if !got.IsError && structured["text"] != text {
		t.Errorf("%s: the structured text is %q, the other %q", name, structured["text"], text)
	}
	return text, got.IsError
}

// mcpAgent returns an agent with all tools and something in each memory, and a server on the network.
func (c *client) mcpAgent() (agent string, web *httptest.Server) {
	c.t.Helper()
	web = httptest.NewServer(c)
	c.t.Cleanup(web.Close)
	folder := c.made("/v1/folders", `{"name":"papers"}`)
	agent = c.made("/v1/agents", fmt.Sprintf(`{"name":"a","tool_set":"all",
		"tools":["search_memory","ask_session","query_result","query_log","request_erasure","update_working_memory",
			"memory_files","start_subagent"],
		"folder_ids":[%q],
		"memory_blocks":[{"label":"human","value":"Ada likes tea."}]}`, folder))
	c.uploaded(folder, "ode.txt", "The moon over the port\nof Piraeus")
	c.must("POST", "/v1/agents/"+agent+"/messages/capture",
		`{"messages":[{"role":"user","content":"The code is 8283."},{"role":"assistant","content":"I noted it."}]}`)
	return agent, web
}

// toolCalls are arguments for each tool. With them, the tool does something or says what is missing.
var toolCalls = map[string]string{
	"open_files": `{"file_requests":[{"file_name":"papers/ode.txt"}]}`, "grep_files": `{"pattern":"moon"}`,
	"semantic_search_files": `{"query":"moon"}`, "list_files": `{}`, "close_files": `{"file_names":["papers/ode.txt"]}`,
	"conversation_search": `{"query":"code"}`, "expand": `{"id":"seq 1-3"}`, "query_result": `{"id":"clip-1","query":"."}`,
	"query_log": `{"jq":"length"}`, "search_memory": `{"query":"tea"}`,
	"ask_session":           `{"conversation_id":"conv-1","question":"?"}`,
	"core_memory_append":    `{"label":"human","content":"And figs."}`,
	"core_memory_replace":   `{"label":"human","old_content":"figs","new_content":"dates"}`,
	"memory_insert":         `{"label":"human","new_string":"She sails."}`,
	"memory_replace":        `{"label":"human","old_string":"tea","new_string":"coffee"}`,
	"memory_rethink":        `{"label":"human","new_memory":"Ada likes coffee."}`,
	"memory_apply_patch":    `{"label":"human","patch":"@@\n-Ada likes coffee.\n+Ada likes tea."}`,
	"memory":                `{"command":"view","path":"/memories"}`,
	"update_working_memory": `{"task":"Write"}`, "memory_files": `{"command":"view","path":"/memories"}`,
	"archival_memory_insert": `{"content":"A passage"}`, "archival_memory_search": `{"query":"passage"}`,
	"archival_memory_update": `{"id":"passage-1","content":"x"}`, "archival_memory_delete": `{"id":"passage-1"}`,
	"request_erasure": `{"texts":["8283 of nobody"],"reason":"test"}`, "start_subagent": `{"task":"Count."}`,
	"remember_turns": `{"turns":[{"role":"user","text":"Good night"}]}`,
}

// In each protocol version, an agent has the same tools as over REST, with the same schemas, and each can be called.
func TestAnAgentsToolsAreCalledOverMCP(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent, web := c.mcpAgent()
	for _, version := range versions {
		session := c.mustDial(web, mcpTo{path: "/mcp/agents/" + agent, version: version})
		if got := session.InitializeResult(); got.ProtocolVersion != version || got.ServerInfo.Name != "loci" {
			t.Errorf("asked for %s and got %s from %v", version, got.ProtocolVersion, got.ServerInfo)
		}
		described := map[string]*sdk.Tool{}
		for tl, err := range session.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			described[tl.Name] = tl
			if tl.Title == "" || tl.Annotations == nil || tl.Annotations.DestructiveHint == nil || tl.OutputSchema == nil {
				t.Errorf("%s lacks a title, hints or an output schema: %+v", tl.Name, tl)
			}
			if tl.Name == "archival_memory_insert" && !*tl.Annotations.DestructiveHint { // supersedes ends a passage
				t.Errorf("%s is said to destroy nothing", tl.Name)
			}
		}
		var overREST []struct {
			Name        string
			Description string
			JSONSchema  struct{ Parameters any } `json:"json_schema"`
		}
		if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+agent+"/tools?limit=100", "")), &overREST); err != nil {
			t.Fatal(err)
		}
		if len(described) != len(overREST)+1 || described["remember_turns"] == nil {
			t.Errorf("MCP has %d tools, want the %d of REST and remember_turns", len(described), len(overREST))
		}
		for _, tl := range overREST {
			got := described[tl.Name]
			if got == nil || got.Description != tl.Description || cmp.Diff(got.InputSchema, tl.JSONSchema.Parameters) != "" {
				t.Errorf("%s is not described as over REST: %+v", tl.Name, got)
			}
		}
		for name := range described {
			if toolCalls[name] == "" {
				t.Fatalf("say in toolCalls how %s is called", name)
			}
			calledTool(t, session, name, toolCalls[name])
		}
	}
	for _, name := range []string{"grep_files", "list_files", "conversation_search", "search_memory", "memory_files"} {
		session := c.mustDial(web, mcpTo{path: "/mcp/agents/" + agent})
		got, failed := calledTool(t, session, name, toolCalls[name])
		want := strings.Replace(c.tool(agent, name, toolCalls[name]), "  You see it in your prompt.\n", "", 1)
		if ages.ReplaceAllString(got, "") != ages.ReplaceAllString(want, "") || failed {
			t.Errorf("%s over MCP says %q, over REST %q", name, got, want)
		}
	}
}

// ages matches relative times, which change between two calls.
var ages = regexp.MustCompile(`just now|\d+[a-z]+ ago`)

// If the model makes a mistake, it gets a result that it can read. If the server cannot make a call, the client gets an
// error.
func TestErrorsOfToolsAreResultsOverMCP(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a","tool_set":"all"}`)
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	session := c.mustDial(web, mcpTo{path: "/mcp/agents/" + agent, version: "2025-06-18"})
	for _, call := range []struct{ name, args, want string }{
		{"conversation_search", `{"roles":["king"]}`, "king"},
		{"archival_memory_insert", `{"content":"x","nonsense":true}`, "nonsense"},
	} {
		if text, failed := calledTool(t, session, call.name, call.args); !failed || !strings.Contains(text, call.want) {
			t.Errorf("%+v: got %q, error %v, want an error about %s", call, text, failed, call.want)
		}
	}
	for _, args := range []string{`[1]`, `"x"`, `7`} {
		if text, failed := calledTool(t, session, "archival_memory_insert", args); !failed ||
			!strings.Contains(text, "must be a JSON object of") {
			t.Errorf("the arguments %s: got %q, error %v, want a result with an error", args, text, failed)
		}
	}
	if text, failed := calledTool(t, session, "archival_memory_insert", `"{\"content\":\"figs\"}"`); failed ||
		!strings.HasPrefix(text, "Archived as ") {
		t.Errorf("arguments as a text: got %q, error %v", text, failed)
	}
	for args, want := range map[string]string{`{}`: "turns has 0", `{"turns":[{"role":"king","text":"x"}]}`: "king",
		`{"turns":[{"role":"user","text":""}]}`: "empty", `{"turns":[],"x":1}`: "Unknown argument x",
		`{"turns":[{"role":"user","text":"a"},{"role":"user","said":"b"}]}`: "turns[1] takes role, text, id, at",
		`{"turns":[{"role":"user","text":" \n"}]}`:                          "turns[0].text is empty",
		`{"turns":[null]}`: "turns[0] is null",
		`{"turns":[{"role":"user","text":"x"}],"conversation_id":"conv-1"}`: "onversation",
		`{"turns":[{"role":"user","text":"x"}],"conversation_id":"\u0000"}`: "onversation"} {
		if text, failed := calledTool(t, session, "remember_turns", args); !failed || !strings.Contains(text, want) {
			t.Errorf("%s: got %q, error %v, want an error about %s", args, text, failed, want)
		}
	}
	available := "Your tools are " + strings.Join(toolNames(t, session), ", ") + "."
	for _, name := range []string{"no_such_tool", "changed", "", "a\nb", "../x"} {
		if text, failed := calledTool(t, session, name, `{}`); !failed || !strings.HasSuffix(text, available) {
			t.Errorf("the unknown tool %q: got %q, error %v, want a result with an error and %q", name, text, failed, available)
		}
	}
	for _, name := range []string{"grep_files", "search_memory"} {
		want := "The tool " + name + " is not attached to you"
		if text, failed := calledTool(t, session, name, `{}`); !failed || !strings.HasPrefix(text, want) ||
			!strings.HasSuffix(text, available) {
			t.Errorf("%s, which the agent lacks: got %q, error %v, want %q", name, text, failed, want)
		}
	}
	if err := session.Ping(t.Context(), nil); err != nil {
		t.Errorf("after refused calls: %v", err)
	}
}

// Turns that are remembered several times are in the log once.
func TestTurnsAreRememberedOnceOverMCP(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	conversation := c.made("/v1/conversations?agent_id="+agent, `{}`)
	session := c.mustDial(web, mcpTo{path: "/mcp/agents/" + agent, version: "2025-11-25"})
	for _, turns := range []string{
		`"turns":[{"role":"user","text":"A","id":"1"},{"role":"assistant","text":"B","id":"2"}]`,
		`"turns":[{"role":"assistant","text":"B","id":"2"},{"role":"user","text":"C","id":"3",
			"at":"2026-01-02T03:04:05Z"}]`} {
		for range 2 {
			if text, failed := calledTool(t, session, "remember_turns", "{"+turns+"}"); failed {
				t.Fatal(text)
			}
		}
	}
	calledTool(t, session, "remember_turns", `{"turns":[{"role":"user","text":"D"}],"conversation_id":"`+conversation+`"}`)
	// Models write the turns in several ways: as one text, one alone, one twice.
	for turns, want := range map[string]string{
		`"[{\"role\":\"User\",\"text\":\"A\",\"id\":\"1\"}]"`:                                 "Stored 0 of 1 turns. 1 was",
		`{"role":"assistant","text":"B","id":"2"}`:                                            "Stored 0 of 1 turns. 1 was",
		`[{"role":"assistant","text":"B","id":"2"},{"role":"assistant","text":"B","id":"2"}]`: "Stored 0 of 2 turns. 2 were",
	} {
		text, _ := calledTool(t, session, "remember_turns", `{"turns":`+turns+`}`)
		if !strings.HasPrefix(text, want) {
			t.Errorf("%s: got %q, want %q", turns, text, want)
		}
	}
	for turns, want := range map[string]string{`"x"`: `turns[0] is "x"; it must be an object`, `[1]`: "turns[0] is 1",
		`[{"role":"user","text":"x","at":"yesterday"}]`:            `at is 'yesterday'`,
		`[{"role":"user","text":"x","at":1700000000}]`:             `at is '1700000000'`,
		`[{"role":"user","text":"x","at":"2999-01-01T00:00:00Z"}]`: "turns[0]",
		`[{"role":"user","text":"another","id":"1"}]`:              "the id"} {
		text, failed := calledTool(t, session, "remember_turns", `{"turns":`+turns+`}`)
		if !failed || !strings.Contains(text, want) || strings.Contains(text, "otid") || strings.Contains(text, "Go ") {
			t.Errorf("%s: got %q, want %q", turns, text, want)
		}
	}
	var got []string
	for _, m := range c.log(agent)[1:] {
		got = append(got, string(m.Role)+": "+m.Text())
	}
	if want := []string{"user: A", "assistant: B", "user: C", "user: D"}; !slices.Equal(got, want) {
		t.Errorf("the log has %q, want %q", got, want)
	}
}

// The path, a header, or the key names the agent of a message.
func TestTheAgentOfAnMCPMessageIsNamed(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	admin := c.scoped(apikey.NewKey{Scopes: []string{apikey.Admin}})
	one := admin.made("/v1/agents", `{"name":"one","tools":["expand"],"include_base_tools":false}`)
	two := admin.made("/v1/agents", `{"name":"two","tools":["memory"],"include_base_tools":false}`)
	bound := admin.scoped(apikey.NewKey{Scopes: []string{apikey.Tools}, AgentIDs: []string{one}})
	forBoth := admin.scoped(apikey.NewKey{Scopes: []string{apikey.Tools}, AgentIDs: []string{one, two}})
	read := admin.scoped(apikey.NewKey{Scopes: []string{apikey.Read}})
	foreign := c.as("other")
	for name, test := range map[string]struct {
		c    *client
		to   mcpTo
		want string // the first tool, or a part of the error
	}{
		"the path":                  {admin, mcpTo{path: "/mcp/agents/" + two}, "memory"},
		"a header":                  {admin, mcpTo{path: "/mcp", headers: []string{"Loci-Agent", two}}, "memory"},
		"the key":                   {bound, mcpTo{path: "/mcp"}, "expand"},
		"the header before the key": {forBoth, mcpTo{path: "/mcp", headers: []string{"Loci-Agent", two}}, "memory"},
		"a path and another header": {admin, mcpTo{path: "/mcp/agents/" + one, headers: []string{"Loci-Agent", two}},
			"Unprocessable"},
		"nothing":                      {admin, mcpTo{path: "/mcp"}, "Unprocessable"},
		"a key of several agents":      {forBoth, mcpTo{path: "/mcp"}, "Unprocessable"},
		"another agent's key":          {bound, mcpTo{path: "/mcp/agents/" + two}, "Forbidden"},
		"another agent's key, header":  {bound, mcpTo{path: "/mcp", headers: []string{"Loci-Agent", two}}, "Forbidden"},
		"another organization's agent": {foreign, mcpTo{path: "/mcp/agents/" + one}, "Not Found"},
		"another's agent, header":      {foreign, mcpTo{path: "/mcp", headers: []string{"Loci-Agent", one}}, "Not Found"},
		"no agent's id":                {admin, mcpTo{path: "/mcp/agents/x"}, "Unprocessable"},
		"a chosen tool":                {admin, mcpTo{path: "/mcp/agents/" + one + "?tools=session"}, "remember_turns"},
		"a chosen group":               {admin, mcpTo{path: "/mcp/agents/" + one + "?tools=archival,recall"}, "expand"},
		"an unknown group":             {admin, mcpTo{path: "/mcp/agents/" + one + "?tools=all"}, "Unprocessable"},
		"a misspelt choice":            {admin, mcpTo{path: "/mcp/agents/" + one + "?tool=files"}, "Unprocessable"},
		"a choice with a space":        {admin, mcpTo{path: "/mcp/agents/" + one + "?tools=%20session"}, "remember_turns"},
		"a key that may read":          {read, mcpTo{path: "/mcp/agents/" + one}, ""},
		"an unknown key":               {c.withKey("loci_x"), mcpTo{path: "/mcp/agents/" + one}, "Unauthorized"},
	} {
		for _, test.to.version = range versions {
			session, err := test.c.dial(web, test.to)
			if err != nil {
				if !strings.Contains(err.Error(), test.want) || test.want == "" {
					t.Errorf("%s: got %v, want %s", name, err, test.want)
				}
				continue
			}
			if got := append(toolNames(t, session), ""); got[0] != test.want {
				t.Errorf("%s: got %v, want %q", name, got, test.want)
			}
		}
	}
	session := read.mustDial(web, mcpTo{path: "/mcp/agents/" + one})
	for _, name := range []string{"expand", "remember_turns"} {
		if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name}); err == nil ||
			!strings.Contains(err.Error(), "scope") {
			t.Errorf("a key that may only read called %s: %v", name, err)
		}
	}
	session = admin.mustDial(web, mcpTo{path: "/mcp/agents/" + one + "?tools=archival"})
	if got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "expand"}); err != nil || !got.IsError {
		t.Errorf("a tool that was not chosen was called: %+v, %v", got, err)
	}
}

// A session belongs to its key and its agent. Others do not find it.
func TestSessionsOfOthersAreNotFound(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	admin := c.scoped(apikey.NewKey{Scopes: []string{apikey.Admin}})
	one, two := admin.made("/v1/agents", `{"name":"one"}`), admin.made("/v1/agents", `{"name":"two"}`)
	forOne := admin.scoped(apikey.NewKey{Scopes: []string{apikey.Tools}, AgentIDs: []string{one}})
	session := admin.mustDial(web, mcpTo{path: "/mcp/agents/" + one, version: "2025-11-25"})
	for name, test := range map[string]struct {
		c     *client
		agent string
		want  int
	}{
		"the session's own":      {admin, one, 200},
		"another agent":          {admin, two, 404},
		"another key":            {admin.scoped(apikey.NewKey{Scopes: []string{apikey.Admin}}), one, 404},
		"another organization's": {c.as("other"), one, 404},
		"a key of the agent's":   {forOne, one, 404},
	} {
		headers := append(test.c.headers(), "Mcp-Session-Id", session.ID(), "Accept", "application/json, text/event-stream",
			"Mcp-Protocol-Version", "2025-11-25")
		got := send(t, web, wireRequest{"POST", "/mcp/agents/" + test.agent, `{"jsonrpc":"2.0","id":9,"method":"ping"}`,
			headers})
		if got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
		if name != "the session's own" {
			if got := send(t, web, wireRequest{"DELETE", "/mcp/agents/" + test.agent, "", headers}); got != 404 {
				t.Errorf("%s ended it: %d", name, got)
			}
		}
	}
	if err := session.Ping(t.Context(), nil); err != nil {
		t.Errorf("the session ended: %v", err)
	}
}

type wireRequest struct {
	method, path, body string
	headers            []string
}

// send sends a request, and returns the answer's status.
func send(t *testing.T, web *httptest.Server, q wireRequest) (status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, q.method, web.URL+q.path, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(q.headers); i += 2 {
		r.Header.Add(q.headers[i], q.headers[i+1])
		if strings.EqualFold(q.headers[i], "Host") {
			r.Host = q.headers[i+1]
		}
	}
	if r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	return got.StatusCode
}

// Over MCP, a client's model does not see the agent's prompt. So results contain what a prompt would show.
func TestResultsOverMCPLeaveOutNothingForAPrompt(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent, web := c.mcpAgent()
	session := c.mustDial(web, mcpTo{path: "/mcp/agents/" + agent, version: "2025-11-25"})
	var turns []string
	for i := range 60 {
		turns = append(turns, fmt.Sprintf(`{"role":"user","text":"Question %d about the lighthouse"}`, i))
	}
	calledTool(t, session, "remember_turns", `{"turns":[`+strings.Join(turns, ",")+`]}`)
	c.must("POST", "/v1/agents/"+agent+"/summarize", `{}`)
	calledTool(t, session, "remember_turns", `{"turns":[{"role":"user","text":"My dog is called Quixbury"}]}`)
	for _, name := range []string{"conversation_search", "search_memory"} {
		if text, _ := calledTool(t, session, name, `{"query":"Quixbury"}`); !strings.Contains(text, "My dog is called") {
			t.Errorf("%s does not find what was said last:\n%s", name, text)
		}
	}
	for args, hasText := range map[string]bool{`{"file_requests":["papers/ode.txt"]}`: true,
		`{"file_requests":["papers/ode.txt"],"include_content":false}`: false} {
		text, failed := calledTool(t, session, "open_files", args)
		if failed || strings.Contains(text, "of Piraeus") != hasText {
			t.Errorf("open_files %s has lines: want %v\n%s", args, hasText, text)
		}
	}
}
