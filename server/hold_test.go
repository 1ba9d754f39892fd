package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// planning is an agent that compacts above 30 % of its window, at a quiet point.
const planning = `{"name":"a","context_window_limit":16000,"compaction_settings":{"policy":{"steps":[
	{"step":"fraction","window_share":0.3},{"step":"quiet_point"},{"step":"keep_recent","keep_recent_tokens":1000}]}}}`

// A compaction waits for the end of a plan: until the program says so, or the plan's time limit has passed.
func TestACompactionWaitsForAPlan(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(c *client, hold string){
		"it is released": func(c *client, hold string) { c.must("DELETE", hold, "") },
		"its time is over": func(c *client, _ string) {
			c.own().Agents.Now = func() time.Time { return time.Now().Add(601 * time.Second) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newServerClient(t)
			agent := c.made("/v1/agents", planning)
			hold := "/v1/conversations/" + agent + "/hold"
			if got := fields(t, c.must("PUT", hold, `{}`)); got["held_until"] == nil || got["agent_id"] != agent {
				t.Errorf("held: %v", got)
			}
			c.must("PATCH", "/v1/conversations/"+agent+"/working-memory",
				`{"changes":[{"field":"next","text":"Step 2 of 4: rename the field"}]}`)
			for n := range 3 {
				c.must("POST", "/v1/agents/"+agent+"/messages/capture", fmt.Sprintf(`{"messages":[
					{"role":"user","content":"Question %d: %s"},{"role":"assistant","content":"Answer %[1]d."}]}`, n,
					strings.Repeat("which of the ports is open here ", 300)))
			}
			c.handedOut(agent)
			if n := len(c.compactions(agent)); n != 0 {
				t.Fatalf("%d compactions in the middle of a plan", n)
			}
			end(c, hold)
			c.handedOut(agent)
			if n := len(c.compactions(agent)); n != 1 {
				t.Errorf("%d compactions after the plan, want 1", n)
			}
			if got := c.must("GET", "/v1/agents/"+agent+"/prompt", ""); !strings.Contains(got, "Step 2 of 4: rename the field") {
				t.Errorf("the prompt lacks the plan: %s", got)
			}
		})
	}
}

func TestHoldsAreChecked(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", planning)
	hold := "/v1/conversations/" + agent + "/hold"
	for body, want := range map[string]int{`{"seconds":0}`: 422, `{"seconds":86401}`: 422, `{"seconds":"soon"}`: 422,
		`{"seconds":86400}`: 200, ``: 200} {
		if got := c.call("PUT", hold, body); got.Code != want {
			t.Errorf("%s: got %d %s, want %d", body, got.Code, got.Text, want)
		}
	}
	for range 2 {
		if got := fields(t, c.must("DELETE", hold, "")); got["held_until"] != nil {
			t.Errorf("released: %v", got)
		}
	}
	missing := "/v1/conversations/conv-123e4567-e89b-42d3-8456-426614174000/hold"
	for _, method := range []string{"PUT", "DELETE"} {
		if got := c.call(method, missing, ""); got.Code != 404 {
			t.Errorf("%s of no conversation: got %d %s", method, got.Code, got.Text)
		}
	}
}
