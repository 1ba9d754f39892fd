package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/servertest"
)

func TestBlocks(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	id := c.made("/v1/blocks/", `{"label":"human","value":"Ada","tags":["x"],"unknown":1}`)
	got := fields(t, c.must("GET", "/v1/blocks/"+id, ""))
	if got["limit"] != 100000.0 || got["read_only"] != false || got["version"] != 1.0 ||
		!strings.HasPrefix(fmt.Sprint(got["description"]), "The human block:") {
		t.Errorf("a new block: got %v", got)
	}
	if got := pick(t, c.must("PATCH", "/v1/blocks/"+id, `{"value":"Ada Lovelace","description":null,"limit":20}`), "value",
		"limit", "version", "tags"); got !=
		`{"limit":20,"tags":["x"],"value":"Ada Lovelace","version":2}` {
		t.Errorf("changed: got %s", got)
	}
	for _, w := range []struct{ method, target, body, want string }{
		{"GET", "/v1/blocks/count", "", "1"},
		{"GET", "/v1/blocks/count?label_search=HUM", "", "1"},
		{"GET", "/v1/blocks/?label=persona", "", "[]"},
		{"GET", "/v1/blocks/" + id + "/agents", "", "[]"},
		{"GET", "/v1/blocks/" + id + "/diff?from=1&to=2", "", `{"from":1,"to":2,"diff":"--- human@1\n+++ human@2\n@@ -1 +1 ` +
			`@@\n-Ada\n+Ada Lovelace\n"}`},
	} {
		if got := c.must(w.method, w.target, w.body); got != w.want {
			t.Errorf("%s %s: got %s, want %s", w.method, w.target, got, w.want)
		}
	}
	for _, w := range []struct {
		name, method, target, body string
		status                     int
		detail                     string
	}{
		{"a value beyond the limit", "PATCH", "/v1/blocks/" + id, `{"value":"` + strings.Repeat("x", 21) + `"}`, 422,
			"Exceeds 20 character limit (requested 21)"},
		{"a new value beyond the limit", "POST", "/v1/blocks", `{"label":"a","value":"xx","limit":1}`, 422,
			"Exceeds 1 character limit (requested 2)"},
		{"an agent's block beyond its limit", "POST", "/v1/agents",
			`{"memory_blocks":[{"label":"a","value":"xx","limit":1}]}`, 422, "Exceeds 1 character limit (requested 2)"},
		{"a limit that is no number", "POST", "/v1/blocks", `{"label":"a","limit":""}`, 422, "body.limit"},
		{"a limit below nothing", "PATCH", "/v1/blocks/" + id, `{"limit":-1}`, 422, "body.limit"},
		{"a label that is none", "POST", "/v1/blocks", `{"label":"a b"}`, 400, "is not allowed"},
		{"an id of another kind", "GET", "/v1/blocks/agent-1", "", 422, "block_id"},
		{"no such version", "POST", "/v1/blocks/" + id + "/versions/9/restore", "", 404, "its versions are 1 to 2"},
		{"another version", "PATCH", "/v1/blocks/" + id, `{"value":"x","expected_version":1}`, 409,
			"Its value is: Ada Lovelace"},
		{"a version before the first", "PATCH", "/v1/blocks/" + id, `{"value":"x","expected_version":0}`, 409,
			"Its value is: Ada Lovelace"},
		{"another value", "PATCH", "/v1/blocks/" + id, `{"value":"x","expected_sha256":"00"}`, 409, "is at version 2"},
	} {
		if got := c.call(w.method, w.target, w.body); got.Code != w.status || !strings.Contains(got.Text, w.detail) {
			t.Errorf("%s: got %d %s, want %d with %q", w.name, got.Code, got.Text, w.status, w.detail)
		}
	}
	stale := servertest.Send(c, "PATCH", "/v1/blocks/"+id, `{"value":"x"}`, "If-Match", `"1"`)
	current, _ := fields(t, stale.Text)["current"].(map[string]any)
	if stale.Code != 409 || current["value"] != "Ada Lovelace" || current["version"] != 2.0 {
		t.Errorf("If-Match of another version: got %d %s, want 409 with the block", stale.Code, stale.Text)
	}
	if got := pick(t, c.must("POST", "/v1/blocks/"+id+"/versions/1/restore", ""), "value",
		"version"); got != `{"value":"Ada","version":3}` {
		t.Errorf("restored: got %s", got)
	}
	if got := c.must("DELETE", "/v1/blocks/"+id, ""); got != "null" {
		t.Errorf("delete: got %s, want null", got)
	}
	if got := c.call("GET", "/v1/blocks/"+id, ""); got.Code != 404 {
		t.Errorf("deleted: got %d", got.Code)
	}
}

func TestBlocksOfAgents(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	shared := c.made("/v1/blocks", `{"label":"team/notes","value":"<b> & co"}`)
	state := fields(t, c.must("POST", "/v1/agents", `{"memory_blocks":[{"label":"persona","value":"calm",`+
		`"id":"block-ignored"}],"block_ids":["`+shared+`"]}`))
	agent := fmt.Sprint(state["id"])
	blocks, _ := state["blocks"].([]any)
	memory, _ := state["memory"].(map[string]any)
	if len(blocks) != 2 || len(memory["blocks"].([]any)) != 2 {
		t.Fatalf("the new agent has the blocks %v and the memory %v", blocks, memory)
	}
	base := "/v1/agents/" + agent + "/core-memory/blocks"
	if got := pick(t, c.must("PATCH", base+"/team%2Fnotes", `{"value":"v2"}`), "id",
		"value"); got != `{"id":"`+shared+`","value":"v2"}` {
		t.Errorf("changed by its label: got %s", got)
	}
	prompt := c.must("POST", "/v1/agents/"+agent+"/recompile", "")
	for _, part := range []string{`\u003cmemory_blocks\u003e`, `\u003cpersona\u003e`, "v2"} {
		if !strings.Contains(strings.NewReplacer("<", `\u003c`, ">", `\u003e`).Replace(prompt), part) {
			t.Errorf("the prompt lacks %q: %s", part, prompt)
		}
	}
	other := c.made("/v1/blocks", `{"label":"persona","value":"loud"}`)
	if got := c.call("PATCH", base+"/attach/"+other, ""); got.Code != 409 ||
		got.Header().Get("X-Should-Retry") != "false" {
		t.Errorf("a second block of a label: got %d %s", got.Code, got.Text)
	}
	if got := c.must("PATCH", base+"/detach/"+shared, ""); strings.Contains(got, shared) {
		t.Errorf("detached: the agent still shows it: %s", got)
	}
	if got := c.call("PATCH", base+"/detach/"+shared, ""); got.Code != 404 ||
		!strings.Contains(got.Text, "is not attached to agent") {
		t.Errorf("detached twice: got %d %s", got.Code, got.Text)
	}
	if got := c.call("GET", base+"/team%2Fnotes", ""); got.Code != 404 ||
		!strings.Contains(got.Text, "No block with label") {
		t.Errorf("by the label of what is detached: got %d %s", got.Code, got.Text)
	}
	c.must("PATCH", base+"/attach/"+shared, "")
	c.must("PATCH", base+"/attach/"+shared, "")
	if got := c.must("GET", "/v1/blocks/"+shared+"/agents", ""); !strings.Contains(got, agent) {
		t.Errorf("the agents of the block: got %s", got)
	}
	if got := fields(t, c.must("PATCH", "/v1/agents/"+agent, `{"block_ids":["`+shared+`"]}`)); len(
		got["blocks"].([]any)) != 1 {
		t.Errorf("block_ids replaces the blocks: got %v", got["blocks"])
	}
	twice := `{"memory_blocks":[{"label":"a","value":"1"},{"label":"a","value":"2"}]}`
	if got := c.call("POST", "/v1/agents", twice); got.Code != 409 {
		t.Errorf("two new blocks of a label: got %d %s", got.Code, got.Text)
	}
	if got := c.must("GET", "/v1/agents/count", ""); got != "1" {
		t.Errorf("%s agents, want 1: what failed left none", got)
	}
}
