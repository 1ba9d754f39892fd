package server_test

import (
	"strings"
	"testing"
)

// A search that ignored a misspelled filter would find everything. Each route that searches refuses the name.
func TestSearchesRefuseNamesThatTheyDoNotKnow(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	folder := c.made("/v1/folders", `{"name":"f"}`)
	for _, row := range []struct{ name, method, path, body, want string }{
		{"a parameter of passages", "GET", "/v1/agents/" + agent + "/archival-memory/search?query=sea&tag=x", "",
			"query.tag: Loci does not know this parameter; did you mean tags?"},
		{"a parameter that resembles nothing", "GET", "/v1/agents/" + agent + "/archival-memory/search?query=sea&zzz=x", "",
			"query.zzz: Loci does not know this parameter; there are after, as_of, "},
		{"a user of all memories", "GET", "/v1/agents/" + agent + "/memory-search?query=sea&user=ann", "",
			"query.user: Loci does not know this parameter; did you mean user_id?"},
		{"a folder", "GET", "/v1/folders/" + folder + "/search?query=sea&limits=3", "",
			"query.limits: Loci does not know this parameter; did you mean limit?"},
		{"an identity in the query", "GET", "/v1/agents/" + agent + "/memory-search?query=sea&identity_id=x", "",
			"query.identity_id: Loci does not know this parameter"},
		{"an order that a search has not", "GET", "/v1/agents/" + agent + "/memory-search?query=sea&order_by=created_at", "",
			"query.order_by: Loci does not know this parameter"},
		{"passages", "POST", "/v1/passages/search", `{"query":"sea","identity_id":"x"}`,
			"body.identity_id: Loci does not know this field; did you mean user_id?"},
		{"a field that objects have", "POST", "/v1/passages/search", `{"query":"sea","created_at":"2026-01-01"}`,
			"body.created_at: Loci does not know this field"},
		{"a field without a value", "POST", "/v1/passages/search", `{"query":"sea","agentid":null}`,
			"body.agentid: Loci does not know this field; did you mean agent_id?"},
		{"messages", "POST", "/v1/messages/search", `{"query":"sea","role":["user"]}`,
			"body.role: Loci does not know this field; did you mean roles?"},
		{"messages of agents", "POST", "/v1/agents/messages/search", `{"query":"sea","conversation":"x"}`,
			"body.conversation: Loci does not know this field; did you mean conversation_id?"},
		{"a parameter of a POST", "POST", "/v1/agents/messages/search?agent_id=x", `{"query":"sea"}`,
			"query.agent_id: Loci does not know this parameter; there are explain, weight; fields go into the body"},
		{"tools", "POST", "/v1/tools/search", `{"query":"sea","types":["custom"]}`,
			"body.types: Loci does not know this field; did you mean tool_types?"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := c.call(row.method, row.path, row.body); got.Code != 422 || !strings.Contains(got.Text, row.want) {
				t.Errorf("got %d %s, want 422 with %s", got.Code, got.Text, row.want)
			}
		})
	}
	for _, body := range []string{`{"query":"sea","project_id":null,"template_id":null}`,
		`{"query":"sea","project_id":"x"}`} {
		if got := c.must("POST", "/v1/messages/search", body); got != "[]" {
			t.Errorf("%s: got %s, want nothing", body, got)
		}
	}
}
