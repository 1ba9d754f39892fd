package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// Secrets are removed from tasks and results of sub-agents, from working memory and from memory files before these are
// stored, as from messages.
func TestSecretsAreStoredInNoMemory(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada"}`)
	secret := "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bD1fG3hJ5"
	for _, mode := range []string{"blank", "fork"} {
		child := c.child(agent, fmt.Sprintf(`{"mode":%q,"task":"Log in with %s.","name":"with %[2]s","otid":%[1]q}`, mode,
			secret))
		again := c.child(agent, fmt.Sprintf(`{"mode":%q,"task":"Log in with %s.","otid":%[1]q}`, mode, secret))
		if again.ID != child.ID {
			t.Errorf("%s: the same request made %s after %s", mode, again.ID, child.ID)
		}
		c.must("POST", "/v1/agents/"+agent+"/children/"+child.ID+"/return", `{"result":"It was `+secret+`."}`)
	}
	record := "/v1/conversations/default/working-memory?agent_id=" + agent
	c.must("PATCH", record, `{"changes":[{"field":"decisions","text":"Use `+secret+`"},{"field":"task","text":"x"}]}`)
	c.must("PATCH", record, `{"changes":[{"field":"decisions","action":"set","text":"Use it","old":"Use `+secret+`"}]}`)
	tree := "/v1/memory-trees/" + c.made("/v1/memory-trees", `{"name":"team"}`)
	written := c.must("PUT", tree+"/file", `{"path":"/memories/a.md","content":"The token is `+secret+`.\n"}`)
	if !strings.Contains(written, "[REDACTED:github-pat:40:") || !strings.Contains(written, "What looks like a secret") {
		t.Errorf("a memory file: got %s", written)
	}
	again := c.must("PUT", tree+"/file", `{"path":"/memories/a.md","content":"The token is `+secret+`.\n"}`)
	if !strings.Contains(again, `"version":1`) {
		t.Errorf("the same text again: got %s", again)
	}
	for _, table := range []string{"children", "messages", "working_memories", "working_memory_versions", "memory_files",
		"memory_file_versions", "agents"} {
		var n, redacted int
		if err := c.pool.QueryRow(t.Context(), `
			SELECT count(*) FILTER (WHERE strpos(t::text, $1) > 0),
			       count(*) FILTER (WHERE strpos(t::text, '[REDACTED:github-pat:40:') > 0)
			FROM `+table+` t WHERE t.org = $2`, secret, c.org).Scan(&n, &redacted); err != nil {
			t.Fatal(err)
		}
		if n > 0 || redacted == 0 && table != "working_memories" {
			t.Errorf("%s: %d rows have the secret, and %d its placeholder", table, n, redacted)
		}
	}
}
