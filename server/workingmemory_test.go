package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/servertest"
)

func TestWorkingMemoryOverREST(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	target := "/v1/conversations/" + agent + "/working-memory"
	if got := pick(t, c.must("GET", target, ""), "version", "tokens", "text", "task"); got !=
		`{"task":null,"text":"","tokens":0,"version":0}` {
		t.Errorf("an empty record: got %s", got)
	}
	c.must("PATCH", target, `{"changes":[{"field":"task","text":"Ship it"},{"field":"decisions","text":"No globals"}],
		"expected_version":0}`)
	got := fields(t, c.must("PATCH", target, `{"changes":[{"field":"task","text":"Ship it now"}],"expected_version":1}`))
	if got["version"] != 2.0 || got["agent_id"] != agent {
		t.Errorf("changed: got %v", got)
	}
	for _, w := range []struct {
		name, method, target, body string
		status                     int
		detail                     string
	}{
		{"another version", "PATCH", target, `{"changes":[{"field":"task","text":"x"}],"expected_version":1}`, 409,
			"version 2"},
		{"the version before the first", "PATCH", target, `{"changes":[{"field":"task","text":"x"}],"expected_version":0}`,
			409, "version 2"},
		{"no changes", "PATCH", target, `{"changes":[]}`, 422, "0 changes"},
		{"an unknown field", "PATCH", target, `{"changes":[{"field":"plan","text":"x"}]}`, 422, "There is no field"},
		{"no such version", "GET", target + "/versions/9", "", 404, "has no version 9"},
		{"no such conversation", "GET", "/v1/conversations/conv-123e4567-e89b-42d3-8456-426614174000/working-memory", "",
			404, "not found"},
		{"too many turns", "GET", target + "/churn?turns=101", "", 422, "turns"},
	} {
		if got := c.call(w.method, w.target, w.body); got.Code != w.status || !strings.Contains(got.Text, w.detail) {
			t.Errorf("%s: got %d %s, want %d with %q", w.name, got.Code, got.Text, w.status, w.detail)
		}
	}
	stale := servertest.Send(c, "PATCH", target, `{"changes":[{"field":"task","text":"x"}]}`,
		append(c.headers(), "If-Match", `"1"`)...)
	if current, _ := fields(t, stale.Text)["current"].(map[string]any); stale.Code != 409 || current["version"] != 2.0 {
		t.Errorf("If-Match of another version: got %d %s, want 409 with the record", stale.Code, stale.Text)
	}
	if got := c.must("GET", target+"/diff?from=1&to=2", ""); !strings.Contains(got, "Ship it now") {
		t.Errorf("diff: got %s", got)
	}
	if got := c.must("GET", target+"/versions?limit=1", ""); !strings.Contains(got, `"kind":"operator"`) ||
		strings.Count(got, `"version"`) != 1 {
		t.Errorf("versions: got %s", got)
	}
	if got := pick(t, c.must("POST", target+"/versions/1/restore", `{"expected_version":2}`), "version"); got !=
		`{"version":3}` {
		t.Errorf("restored: got %s", got)
	}
	if got := c.must("GET", target+"/churn", ""); !strings.Contains(got, `"turns":[]`) {
		t.Errorf("churn: got %s", got)
	}
	c.greet(agent, "default")
	prompt := c.must("GET", "/v1/agents/"+agent+"/prompt", "")
	overview := fields(t, c.must("GET", "/v1/agents/"+agent+"/context", ""))
	if !strings.Contains(prompt, "task: [seq ") || fmt.Sprint(overview["num_tokens_working_memory"]) == "0" {
		t.Errorf("the prompt lacks the record, or it does not count: %s", prompt)
	}
}
