package server_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/servertest"
)

// Clients encode names that a header cannot hold. The server compares the decoded name with the message.
func TestEncodedNamesOverMCPAreDecoded(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a","tool_set":"all","tools":["memory_files"]}`)
	c.tool(agent, "memory_files", `{"command":"create","path":"/memories/ünï/é.md","file_text":"Ada likes tea."}`)
	encoded := func(name string) string { return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(name)) + "?=" }
	file := "loci://" + agent + "/memory/memories/ünï/é.md"
	tool := func(name string) map[string]any { return map[string]any{"name": name, "arguments": map[string]any{}} }
	for claim, tt := range map[string]struct {
		method string
		params map[string]any
		name   string // the name in the header
		status int
		want   string
	}{
		"a URI with other letters":   {"resources/read", map[string]any{"uri": file}, encoded(file), 200, "likes tea"},
		"another URI":                {"resources/read", map[string]any{"uri": file}, encoded(file + "x"), 400, "-32020"},
		"a plain name":               {"tools/call", tool("list_files"), encoded("list_files"), 200, "list_files"},
		"a name that begins white":   {"tools/call", tool(" grep_files"), encoded(" grep_files"), 200, "is not attached"},
		"a prompt's name":            {"prompts/get", map[string]any{"name": "context"}, encoded("context"), 200, "messages"},
		"a name that looks encoded":  {"tools/call", tool(encoded("x")), encoded(encoded("x")), 200, "There is no tool"},
		"one that is not encoded so": {"tools/call", tool(encoded("x")), encoded("x"), 400, "-32020"},
		"no Base64":                  {"tools/call", tool("list_files"), "=?base64?list files?=", 400, "is no Base64"},
		"Base64 without its end":     {"tools/call", tool("list_files"), "=?base64?bGlzdF9maWxlcw?=", 400, "is no Base64"},
		"an empty name":              {"tools/call", tool(""), encoded(""), 400, "names nothing"},
		"half of the form":           {"tools/call", tool("list_files"), "=?base64?bGlzdF9maWxlcw==", 400, "-32020"},
	} {
		w := servertest.Send(c, "POST", "/mcp/agents/"+agent, stateless(t, 7, tt.method, tt.params), append(c.headers(),
			"Accept", "application/json, text/event-stream", versionHeader, "2026-07-28", "Mcp-Method", tt.method,
			"Mcp-Name", tt.name)...)
		var got struct{ ID int }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.ID != 7 || w.Code != tt.status ||
			!strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s: got %d %s (%v), want %d with %q", claim, w.Code, w.Body, err, tt.status, tt.want)
		}
	}
}

// A request with two values of a header that may have only one is refused, whatever its method.
func TestMCPHeadersThatContradictAreRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	one, two := c.made("/v1/agents", `{"name":"one"}`), c.made("/v1/agents", `{"name":"two"}`)
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	host := web.URL
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	const evil = "http://evil.example"
	path, twoSessions := "/mcp/agents/"+one, []string{"Mcp-Session-Id", "a", "Mcp-Session-Id", "b"}
	accept := []string{"Accept", "application/json, text/event-stream"}
	for name, tt := range map[string]struct {
		method, path string
		headers      []string
		want         int
	}{
		"one agent":               {"POST", "/mcp", []string{"Loci-Agent", one}, 200},
		"one agent twice":         {"POST", "/mcp", []string{"Loci-Agent", one, "Loci-Agent", one}, 200},
		"two agents":              {"POST", "/mcp", []string{"Loci-Agent", one, "Loci-Agent", two}, 400},
		"two agents, one of path": {"POST", path, []string{"Loci-Agent", one, "Loci-Agent", two}, 400},
		"two origins":             {"POST", path, []string{"Origin", host, "Origin", evil}, 400},
		"one origin":              {"POST", path, []string{"Origin", host}, 200},
		"two sessions":            {"GET", path, twoSessions, 400},
		"two sessions to end":     {"DELETE", path, twoSessions, 400},
		"two ends of a stream": {"GET", path, []string{"Mcp-Session-Id", "a", "Last-Event-ID", "x_1",
			"Last-Event-ID", "x_2"}, 400},
	} {
		body := ""
		if tt.method == "POST" {
			body = list
		}
		all := append(append(append([]string{}, accept...), tt.headers...), c.headers()...)
		if got := send(t, web, wireRequest{tt.method, tt.path, body, all}); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}
