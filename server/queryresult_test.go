package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// query calls query_result with arguments, and returns the text for the model.
func (c *client) query(agentID string, args map[string]any) string {
	c.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.tool(agentID, "query_result", string(raw))
}

func TestKeptResultsAreQueried(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	id := c.made("/v1/agents", `{"name":"a","tools":["expand","query_result"]}`)
	data := *c.fit(id, `{"rows":`+rows(3_000)+`}`, `,"policy":"alyx"`).ID
	log := *c.fit(id, numbered(3_000)+"ERROR 17: disk full\n"+numbered(10)+"ERROR 18: disk gone\n",
		`,"policy":"four-layers"`).ID
	for _, tt := range []struct {
		name  string
		args  map[string]any
		has   []string
		lacks string
	}{
		{"the true count", map[string]any{"id": data, "jq": ".rows | length"}, []string{"\n3000\n", "No more results"}, ""},
		{"a selection", map[string]any{"id": data, "jq": ".rows[] | select(.id == 2999) | .city"}, []string{`"Berlin"`}, ""},
		{"a page, with the call for the next", map[string]any{"id": data, "jq": ".rows[].id", "limit": 2},
			[]string{"showing 1-2", "\n0\n1\n", `offset=2, limit=2)`}, "\n2\n"},
		{"the next page", map[string]any{"id": data, "jq": ".rows[].id", "limit": 2, "offset": 2},
			[]string{"showing 3-4", "\n2\n3\n", "offset=4"}, ""},
		{"a result that is too long is cut", map[string]any{"id": data, "jq": "[.rows, .rows, .rows]"},
			[]string{"[cut: this result has ", "Select a part"}, ""},
		{"nothing", map[string]any{"id": data, "jq": "empty"}, []string{"has no results"}, ""},
		{"a pattern with groups", map[string]any{"id": log, "pattern": `ERROR (\d+): (\w+)`},
			[]string{"line 3001 (offset 61890): ERROR 17: disk", "group 1: 17", "group 2: disk", "line 3012",
				"No more matches"}, ""},
		{"a page of matches", map[string]any{"id": log, "pattern": `ERROR \d+`, "limit": 1},
			[]string{"ERROR 17", "offset=1, limit=1)"}, "ERROR 18"},
		{"across lines", map[string]any{"id": log, "pattern": `(?s)disk full.line 0`}, []string{"line 3001"}, ""},
		{"no match", map[string]any{"id": log, "pattern": `FATAL`}, []string{"No match of 'FATAL'", "(?i)"}, ""},
		{"past the matches", map[string]any{"id": log, "pattern": `ERROR`, "offset": 7},
			[]string{"from offset 7 on; 2 of them in"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := c.query(id, tt.args)
			for _, text := range tt.has {
				if !strings.Contains(got, text) {
					t.Errorf("the result lacks %q: %.2000s", text, got)
				}
			}
			if tt.lacks != "" && strings.Contains(got, tt.lacks) {
				t.Errorf("the result has %q: %.2000s", tt.lacks, got)
			}
		})
	}
}

// If a query cannot be answered, the result is an error that says how the model can do better.
func TestQueriesThatCannotBeAnsweredSayWhy(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	id := c.made("/v1/agents", `{"name":"a","tools":["query_result"]}`)
	other := c.made("/v1/agents", `{"name":"b","tools":["query_result"]}`)
	data, log := *c.fit(id, rows(3_000), `,"policy":"alyx"`).ID, *c.fit(id, numbered(3_000), `,"policy":"deck"`).ID
	for _, tt := range []struct {
		agent string
		args  map[string]any
		says  string
	}{
		{id, map[string]any{"id": "", "jq": "."}, "No id given"},
		{id, map[string]any{"id": data}, "Neither jq nor pattern"},
		{id, map[string]any{"id": data, "jq": ".", "pattern": "x"}, "not both"},
		{id, map[string]any{"id": data, "jq": ".", "offset": -1}, "offset must be between"},
		{id, map[string]any{"id": data, "jq": ".", "limit": 0}, "limit must be between"},
		{id, map[string]any{"id": data, "jq": ".["}, "The jq expression is wrong"},
		{id, map[string]any{"id": data, "pattern": "("}, "not a regular expression"},
		{id, map[string]any{"id": data, "jq": "[repeat(1)]"}, "was stopped"},
		{id, map[string]any{"id": log, "jq": "."}, "The text is not JSON"},
		{id, map[string]any{"id": "clip-123e4567-e89b-42d3-8456-426614174000", "jq": "."}, "There is no text"},
		{other, map[string]any{"id": data, "jq": "."}, "There is no text"},
	} {
		raw, _ := json.Marshal(tt.args)
		got := c.must("POST", "/v1/agents/"+tt.agent+"/tools/query_result/run", fmt.Sprintf(`{"args":%s}`, raw))
		if !strings.Contains(got, tt.says) || !strings.Contains(got, `"status":"error"`) {
			t.Errorf("%s: got %s, want an error with %q", raw, got, tt.says)
		}
	}
}

// If a policy shows data in part, its agent gets the tool that queries the whole data, unless the request chooses
// tools.
func TestPoliciesThatShowPreviewsBringQueries(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	hasTool := func(id string) bool {
		return strings.Contains(c.must("GET", "/v1/agents/"+id+"/tools?limit=100", ""), `"query_result"`)
	}
	alyx := `"compaction_settings":{"policy":"alyx"}`
	for body, want := range map[string]bool{`{"name":"a"}`: false, `{"name":"b",` + alyx + `}`: true,
		`{"name":"c","tools":["expand"],` + alyx + `}`:                                                  false,
		`{"name":"d","compaction_settings":{"policy":{"steps":[{"step":"largest_slice"}]}}}`:            true,
		`{"name":"e","compaction_settings":{"policy":"pi"}}`:                                            false,
		`{"name":"f","compaction_settings":{"policy":{"preset":"alyx","steps":{"json_preview":null}}}}`: true,
	} {
		id := c.madeAs("/v1/agents", body)
		if got := hasTool(id); got != want {
			t.Errorf("%s: has the tool %t, want %t", body, got, want)
		}
		if want {
			c.must("PATCH", "/v1/agents/"+id+"/tools/detach/"+toolIDs()["query_result"], "")
			if hasTool(id) {
				t.Errorf("%s: the tool stays when it is detached", body)
			}
			continue
		}
		c.must("PATCH", "/v1/agents/"+id, "{"+alyx+"}")
		if !hasTool(id) {
			t.Errorf("%s: a later policy does not bring the tool", body)
		}
	}
}

// If a conversation, an organization or a call has its own policy that shows data in part, its prompts get the tool. If
// an agent's tools were chosen, only its conversation or the call brings the tool.
func TestConversationsWithPreviewsBringQueries(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	alyx := `{"compaction_settings":{"policy":"alyx"}}`
	for name, body := range map[string]string{"its tools are not chosen": `{"name":"a"}`,
		"its tools are chosen": `{"name":"b","tools":["expand"]}`} {
		id := c.madeAs("/v1/agents", body)
		talk := c.made("/v1/conversations?agent_id="+id, alyx)
		other := c.made("/v1/conversations?agent_id="+id, `{}`)
		offered := func(conversation string) bool {
			c.greet(id, conversation)
			return strings.Contains(c.must("GET", "/v1/agents/"+id+"/prompt?conversation_id="+conversation, ""),
				`"name":"query_result"`)
		}
		runs := func(conversation string) int {
			got := c.call("POST", "/v1/agents/"+id+"/tools/query_result/run",
				fmt.Sprintf(`{"args":{"id":"clip-1","jq":"."},"conversation_id":%q}`, conversation))
			if strings.Contains(got.Text, "is not attached to you") {
				return 404
			}
			return got.Code
		}
		if !offered(talk) || runs(talk) != 200 {
			t.Errorf("%s: the conversation's prompt offers the tool: %t; running it answers %d", name, offered(talk), runs(talk))
		}
		if offered(other) || runs(other) != 404 {
			t.Errorf("%s: another conversation offers the tool: %t; running it answers %d", name, offered(other), runs(other))
		}
		c.must("PATCH", "/v1/conversations/"+other, alyx)
		if !offered(other) {
			t.Errorf("%s: a later policy of the conversation does not bring the tool", name)
		}
		c.must("PATCH", "/v1/conversations/"+other, `{"compaction_settings":null}`)
		if offered(other) {
			t.Errorf("%s: the tool stays when the policy is taken back", name)
		}
		c.must("PUT", "/v1/admin/policy", `{"policy":"alyx"}`)
		if got, want := offered(other), name == "its tools are not chosen"; got != want {
			t.Errorf("%s: under the organization's policy the tool is offered: %t, want %t", name, got, want)
		}
		c.must("PUT", "/v1/admin/policy", `{"policy":null}`)
	}
}
