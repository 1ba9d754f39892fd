package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// Lists take a limit as Letta does: 0 is nothing, and more than the most items of a page is that many.
func TestLimitsOfLists(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada","memory_blocks":[{"label":"human","value":"Zoe"}]}`)
	c.capture(agent, chatter(1, 3, "hello"))
	c.must("POST", "/v1/agents/"+agent+"/archival-memory", `{"text":"A fact."}`)
	for _, path := range []string{"/v1/agents", "/v1/blocks", "/v1/tools", "/v1/agents/" + agent + "/messages",
		"/v1/agents/" + agent + "/archival-memory", "/v1/agents/" + agent + "/core-memory/blocks",
		"/v1/conversations?agent_id=" + agent, "/v1/models", "/v1/agents/" + agent + "/tools",
		"/v1/agents/" + agent + "/files", "/v1/runs", "/v1/folders"} {
		with := func(limit int) string {
			mark := "?"
			if strings.Contains(path, "?") {
				mark = "&"
			}
			return c.must("GET", fmt.Sprintf("%s%slimit=%d", path, mark, limit), "")
		}
		if all, many := with(1000), with(5000); all != many {
			t.Errorf("%s: 5000 items are %.200s, 1000 are %.200s", path, many, all)
		}
		if none := strings.TrimSpace(with(0)); none != "[]" && !strings.Contains(none, `"files":[]`) {
			t.Errorf("%s: no items are %.200s", path, none)
		}
	}
	if got := c.call("GET", "/v1/agents?limit=-1", ""); got.Code != 422 {
		t.Errorf("a negative limit: %d %s", got.Code, got.Text)
	}
}

// What clients list before they work, and Loci has not, is an empty list.
func TestListsOfWhatLociHasNot(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada"}`)
	for path, want := range map[string]string{"/v1/groups/": "[]", "/v1/groups/count": "0", "/v1/mcp-servers/": "[]",
		"/v1/tools/mcp/servers": "{}", "/v1/providers/?limit=5": "[]", "/v1/sandbox-config/": "[]",
		"/v1/agents/" + agent + "/groups": "[]"} {
		if got := strings.TrimSpace(c.must("GET", path, "")); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}
