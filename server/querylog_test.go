package server_test

import (
	"strings"
	"testing"
)

// query_log computes on a range of the log: entries by position, type and tool, and a jq expression over them.
func TestTheLogIsQueried(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	id := c.made("/v1/agents", `{"name":"a","tools":["query_log"]}`)
	c.must("POST", "/v1/agents/"+id+"/messages/capture", `{"messages":[
		{"role":"user","content":"Run the tests"},
		{"role":"assistant","content":"I run them.","tool_calls":[{"id":"c1","type":"function","function":{"name":"shell",
			"arguments":"{\"command\":\"go test\"}"}}]},
		{"role":"tool","tool_call_id":"c1","content":"{\"failed\":3}"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c2","type":"function","function":{"name":"read",
			"arguments":"{\"path\":\"a.go\"}"}}]},
		{"role":"tool","tool_call_id":"c2","content":"package a"},
		{"role":"assistant","content":"Three tests fail."}]}`)
	for _, tt := range []struct {
		name, args string
		has        []string
		lacks      string
	}{
		{"a slice of all", `{}`, []string{"showing 1-7 of 7", `"type":"user","text":"Run the tests"`, "No more entries"}, ""},
		{"a page of it", `{"limit":2,"offset":1}`, []string{"showing 2-3 of 7", `query_log(offset=3, limit=2)`},
			"Run the tests"},
		{"by type", `{"type":"user"}`, []string{"showing 1-1 of 1", "Run the tests"}, "Three tests"},
		{"by tool", `{"tool":"shell"}`, []string{"showing 1-2 of 2", `{"command":"go test"}`, "tool_result"}, "a.go"},
		{"by type and tool", `{"type":["tool_result"],"tool":"shell"}`, []string{"showing 1-1 of 1", "failed"}, "go test"},
		{"jq over all", `{"jq":"length"}`, []string{"\n7\n", "No more results"}, ""},
		{"jq over arguments", `{"type":["tool_call"],"jq":".[].arguments | keys[]"}`, []string{`"command"`, `"path"`}, ""},
		{"jq over a result that is JSON", `{"type":["tool_result"],"tool":"shell","jq":".[0].text | fromjson | .failed"}`,
			[]string{"\n3\n"}, ""},
		{"a page of jq, with the call for the next", `{"type":["tool_call","tool_result"],"jq":".[].tool","limit":1}`,
			[]string{"showing 1-1", `"shell"`,
				`query_log(type=["tool_call","tool_result"], jq=".[].tool", offset=1, limit=1)`}, ""},
		{"a range with nothing", `{"seq":"100000-100001"}`, []string{"The log has nothing there"}, ""},
		{"a tool that is not called", `{"tool":"bash"}`,
			[]string{"No tool bash is called in the log. The tools called there are read (1 call), shell (1 call)."}, ""},
		{"the same with jq", `{"tool":"bash","jq":"length"}`, []string{"No tool bash is called"}, "\n0\n"},
		{"names that are nearly right", `{"types":["user"],"expression":"length"}`,
			[]string{"not used", "Run the tests"}, ""},
	} {
		got := c.tool(id, "query_log", tt.args)
		for _, text := range tt.has {
			if !strings.Contains(got, text) {
				t.Errorf("%s: the result lacks %q: %s", tt.name, text, got)
			}
		}
		if tt.lacks != "" && strings.Contains(got, tt.lacks) {
			t.Errorf("%s: the result has %q: %s", tt.name, tt.lacks, got)
		}
	}
	for args, want := range map[string]string{`{"type":"thought"}`: "type may be user, assistant",
		`{"seq":"yesterday"}`: "must be a range such as 120-188", `{"jq":".["}`: "jq", `{"limit":501}`: "between 1 and 500",
		`{"seq":"9-3"}`: "ends before it begins"} {
		body := c.must("POST", "/v1/agents/"+id+"/tools/query_log/run", `{"args":`+args+`}`)
		if got := fields(t, body); got["status"] != "error" || !strings.Contains(body, want) {
			t.Errorf("%s: %s, want an error with %q", args, body, want)
		}
	}
	long := c.made("/v1/agents", `{"name":"b","tools":["query_log"]}`)
	c.must("POST", "/v1/agents/"+long+"/messages/capture", `{"messages":[{"role":"user","content":"`+
		strings.Repeat("wide ", 20_000)+`"}]}`)
	if got := c.tool(long, "query_log", `{}`); len(got) > 1_000 || !strings.Contains(got, "…") {
		t.Errorf("a slice shows a long text: %d bytes", len(got))
	}
	if got := c.tool(long, "query_log", `{"jq":".[0].text | length"}`); !strings.Contains(got, "\n100000\n") {
		t.Errorf("jq does not see the whole text: %s", got)
	}
}
