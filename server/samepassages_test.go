package server_test

import (
	"net/url"
	"strings"
	"testing"
)

// Letta's insert answers with the stored passage, Loci's routes too, and a tool says so. A new passage names what is
// similar.
func TestAPassageThatIsThereIsAnswered(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"tools":["archival_memory_insert","archival_memory_search"],
		"include_base_tools":false}`)
	base := "/v1/agents/" + agent
	stored := fields(t, strings.Trim(c.must("POST", base+"/archival-memory",
		`{"text":"Ann likes green tea with a little lemon every morning before work",
		"metadata":{"by":"Ann"},"tags":["tea"]}`), "[]"))
	tool := func(name, args string) string {
		return c.call("POST", base+"/tools/"+name+"/run", `{"args":`+args+`}`).Text
	}
	id := stored["id"].(string)
	for _, text := range []string{"ann likes green tea with a little lemon every morning before work.",
		"Ann likes  green tea\\nwith a little lemon every morning before work"} {
		again := fields(t, strings.Trim(c.must("POST", base+"/archival-memory", `{"text":"`+text+`"}`), "[]"))
		if again["id"] != id || again["duplicate"] != true || again["text"] != stored["text"] {
			t.Errorf("%q: got %v, want the stored %s", text, again, id)
		}
		got := tool("archival_memory_insert", `{"content":"`+text+`"}`)
		if !strings.Contains(got, "has this already, as "+id) {
			t.Errorf("%q by the tool: got %s, want %s", text, got, id)
		}
	}
	similar := c.must("POST", base+"/archival-memory",
		`{"text":"Ann likes green tea with a little sugar every morning before work"}`)
	if !strings.Contains(similar, `"similar":[{"id":"`+id) {
		t.Errorf("a similar one: got %s, want %s named", similar, id)
	}
	got := tool("archival_memory_insert",
		`{"content":"Ann likes green tea with a little milk every morning before work"}`)
	if !strings.Contains(got, "Similar to what is there already") || !strings.Contains(got, id) {
		t.Errorf("a similar one by the tool: got %s, want %s named", got, id)
	}
	for _, row := range []struct{ name, got, want string }{
		{"facets of an agent", c.must("GET", base+"/archival-memory/facets", ""), `"passages":3`},
		{"facets of a filter", c.must("GET", base+"/archival-memory/facets?filter="+
			url.QueryEscape(`{"metadata.by":"Ann"}`), ""), `"metadata.by":[{"value":"Ann","count":1}]`},
		{"facets of all", c.must("POST", "/v1/passages/facets", `{"agent_id":"`+agent+`","filter":{"tags":"tea"}}`),
			`"tags":[{"value":"tea","count":1}]`},
		{"facets with a misspelled scope", c.call("POST", "/v1/passages/facets", `{"agnt_id":"x"}`).Text,
			"did you mean agent_id?"},
		{"a tool of facets", tool("archival_memory_search", `{"query":"","facets":true}`), "tags: tea (1)"},
		{"a tool of facets with a query", tool("archival_memory_search", `{"query":"tea","facets":true}`),
			"facets counts what is there"},
		{"another order", c.call("POST", "/v1/passages/search", `{"query":"tea","order_by":"created_at"}`).Text,
			"expected value to be one of"},
	} {
		if !strings.Contains(row.got, row.want) {
			t.Errorf("%s: got %s, want %s", row.name, row.got, row.want)
		}
	}
	newest := c.must("GET", base+"/archival-memory/search?query=tea&order_by=time", "")
	first, last := strings.Index(newest, "milk"), strings.Index(newest, "lemon")
	if first < 0 || last < first || !strings.Contains(newest, "sugar") {
		t.Errorf("by time: got %s, want milk, sugar, lemon", newest)
	}
}
