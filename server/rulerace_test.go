package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/server/servertest"
)

// If rules arrive while their tool is being renamed, they are refused, so no agent has rules with the old name.
func TestRulesThatMeetARenameAreRefused(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{false, true} {
		c := newClient(t)
		c.made("/v1/tools", weatherTool)
		const rule = `{"type":"requires_approval","tool_name":"weather"}`
		oldRules := `[]`
		if known {
			oldRules = `[` + rule + `]`
		}
		agent := c.made("/v1/agents", `{"name":"a","tool_rules":`+oldRules+`}`)
		for _, request := range [][3]string{{"PATCH", "/v1/agents/" + agent, `"a"`}, {"POST", "/v1/agents", `"b"`}} {
			renaming, err := c.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := renaming.Exec(t.Context(), `UPDATE tools SET name = 'rain' WHERE org = $1`, c.org); err != nil {
				t.Fatal(err)
			}
			reply := make(chan servertest.Reply, 1)
			go func() {
				reply <- c.call(request[0], request[1], fmt.Sprintf(`{"name":%s,"tool_rules":[%s]}`, request[2], rule))
			}()
			dbtest.AwaitWaiters(t, c.pool, renaming.Conn(), 1, func() bool { return len(reply) > 0 })
			if err := renaming.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := <-reply; got.Code != 409 || !strings.Contains(got.Text, "weather was deleted or got another name") {
				t.Errorf("%s: got %d %s", request[0], got.Code, got.Text)
			}
			if _, err := c.pool.Exec(t.Context(), `UPDATE tools SET name = 'weather' WHERE org = $1`,
				c.org); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// If an agent is imported while its tool is being renamed, its tool has the name that its rules have.
func TestAnImportThatMeetsARenameKeepsRulesAndToolsTogether(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"", "?full=true"} {
		c := newClient(t)
		tool := c.made("/v1/tools", weatherTool)
		agent := c.made("/v1/agents", fmt.Sprintf(`{"name":"a","tool_set":"standard","tool_ids":[%q],"tool_rules":[`+
			`{"type":"requires_approval","tool_name":"weather"}]}`, tool))
		file := c.must("GET", "/v1/agents/"+agent+"/export"+query, "")
		renaming, err := c.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := renaming.Exec(t.Context(), `UPDATE tools SET name = 'rain' WHERE org = $1`, c.org); err != nil {
			t.Fatal(err)
		}
		reply := make(chan servertest.Reply, 1)
		go func() { reply <- c.importing(file) }()
		dbtest.AwaitWaiters(t, c.pool, renaming.Conn(), 1, func() bool { return len(reply) > 0 })
		if err := renaming.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := <-reply
		var imported struct {
			AgentIDs []string `json:"agent_ids"`
		}
		if err := json.Unmarshal([]byte(got.Text), &imported); err != nil || got.Code != 200 || len(imported.AgentIDs) != 1 {
			t.Fatalf("%s: got %d %s, %v", query, got.Code, got.Text, err)
		}
		var state struct {
			Tools []struct{ Name string }
			Rules []struct {
				Tool string `json:"tool_name"`
			} `json:"tool_rules"`
		}
		if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+imported.AgentIDs[0], "")), &state); err != nil {
			t.Fatal(err)
		}
		hasTool := false
		for _, one := range state.Tools {
			hasTool = hasTool || one.Name == "weather"
		}
		if len(state.Rules) != 1 || state.Rules[0].Tool != "weather" || !hasTool {
			t.Errorf("%s: the agent has the tools %v and the rules %v", query, state.Tools, state.Rules)
		}
	}
}
