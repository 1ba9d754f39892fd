package server_test

import (
	"net/url"
	"strings"
	"testing"
)

// One grammar narrows all searches: of REST, of Letta's routes and of agents' tools.
func TestFiltersNarrowEachSearch(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"tools":["archival_memory_search","conversation_search","search_memory"],
		"include_base_tools":false}`)
	base := "/v1/agents/" + agent
	c.must("POST", base+"/archival-memory", `{"text":"the blue sea","metadata":{"food":"sushi"},"tags":["a"]}`)
	c.must("POST", base+"/archival-memory", `{"text":"the red sea","metadata":{"food":"soup"}}`)
	c.capture(agent,
		`{"messages":[{"role":"user","content":"the wide sea"},{"role":"assistant","content":"the deep sea"}]}`)
	sushi, role := `{"metadata":{"food":"sushi"}}`, `{"role":"user"}`
	tool := func(name, args string) string {
		return c.call("POST", base+"/tools/"+name+"/run", `{"args":`+args+`}`).Text
	}
	for _, row := range []struct{ name, got, want, without string }{
		{"an agent's passages", c.must("GET", base+"/archival-memory/search?query=sea&filter="+url.QueryEscape(sushi), ""),
			"blue", "the red"},
		{"passages", c.must("POST", "/v1/passages/search", `{"query":"sea","filter":`+sushi+`}`), "blue", "the red"},
		{"the newest passages", c.must("POST", "/v1/passages/search", `{"filter":{"metadata.food":{"ne":"soup"}}}`), "blue",
			"the red"},
		{"messages", c.must("POST", "/v1/messages/search", `{"query":"sea","filter":`+role+`}`), "wide", "deep"},
		{"messages of agents", c.must("POST", "/v1/agents/messages/search", `{"query":"sea","filter":`+role+`}`), "wide",
			"deep"},
		{"all memories", c.must("GET", base+"/memory-search?query=sea&filter="+url.QueryEscape(sushi), ""), "blue", "deep"},
		{"a tool of passages", tool("archival_memory_search", `{"query":"sea","filter":`+sushi+`}`), "blue", "the red"},
		{"a filter as a text", tool("archival_memory_search", `{"query":"sea","filter":"{\"tags\": \"a\"}"}`), "blue",
			"the red"},
		{"a tool of messages", tool("conversation_search", `{"query":"sea","filter":`+role+`}`), "wide", "deep"},
		{"a tool of all memories", tool("search_memory", `{"query":"sea","filter":`+role+`}`), "wide", "blue"},
		{"a tool that finds nothing", tool("archival_memory_search", `{"query":"sea","filter":{"tags":"b"}}`),
			"that fit the filter", "blue"},
	} {
		if !strings.Contains(row.got, row.want) || strings.Contains(row.got, row.without) {
			t.Errorf("%s: got %s, want what has %q, and nothing with %q", row.name, row.got, row.want, row.without)
		}
	}
	for _, row := range []struct{ name, got, want string }{
		{"passages", c.call("POST", "/v1/passages/search", `{"query":"sea","filter":{"metdata.food":"x"}}`).Text,
			"filter.metdata.food: there is no field 'metdata'; did you mean metadata?"},
		{"an operator", c.call("POST", "/v1/messages/search", `{"query":"sea","filter":{"role":{"eqq":"x"}}}`).Text,
			"filter.role.eqq: there is no operator 'eqq'; did you mean eq?"},
		{"a parameter", c.call("GET", base+"/archival-memory/search?query=sea&filter=food", "").Text,
			"filter: it is no JSON object"},
		{"all memories", c.call("GET", base+"/memory-search?query=sea&filter="+url.QueryEscape(`{"tags":"a","role":"user"}`),
			"").Text, "filter: no memory that is searched has all of its fields: role, tags"},
		{"metadata beside the filter", c.call("POST", "/v1/passages/search", sushi).Text,
			"body.metadata: Loci does not know this field; did you mean filter?"},
		{"a tool", tool("conversation_search", `{"query":"sea","filter":{"rol":"user"}}`),
			"filter.rol: there is no field 'rol'; did you mean role?"},
		{"a tool's filter of another type", tool("search_memory", `{"query":"sea","filter":["a"]}`),
			"Argument filter of search_memory must be a JSON object"},
		{"a filter around a message", tool("conversation_search", `{"around":"message-1","filter":{"role":"user"}}`),
			"filter"},
	} {
		if !strings.Contains(row.got, row.want) {
			t.Errorf("%s: got %s, want %s", row.name, row.got, row.want)
		}
	}
}
