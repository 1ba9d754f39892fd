package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/memory/working"
)

// What an operator does with an agent's memory from the command line.
func TestAnAgentOnTheCommandLine(t *testing.T) {
	t.Parallel()
	p, dir := tenant(t), t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	step := func(wantCode int, want string, args ...string) string {
		t.Helper()
		code, out, errs := command(t, p.asking(args...)...)
		if code != wantCode || !strings.Contains(out+errs, want) {
			t.Errorf("loci %s: ended with %d, want %d and %q:\n%s%s", strings.Join(args, " "), code, wantCode, want, out, errs)
		}
		return strings.TrimSpace(out)
	}
	folder := step(0, "source-", "folders", "create", "handbook")
	human, system := write("human", "Ann, a pilot"), write("system", "Fly well.")
	fields := write("fields.json", `{"tags": ["crew"], "name": "other"}`)
	id := step(0, "agent-", "agents", "create", "reader", "--model=openai/gpt-4o", "--window=32000",
		"--block=human=@"+human, "--block=note=a, b;c", "--folder=handbook", "--policy=pi", "--timezone=Europe/Oslo",
		"--system="+system, "--fields="+fields)
	made := call[struct {
		agent.Agent
		Blocks   []struct{ Label, Value string }
		Sources  []identified
		Settings struct {
			Policy string `json:"policy"`
		} `json:"compaction_settings"`
	}](p, "GET", "/v1/agents/"+id, nil)
	var blocks []string
	for _, b := range made.Blocks {
		blocks = append(blocks, b.Label+": "+b.Value)
	}
	if made.Name != "reader" || textOf(made.Model) != "gpt-4o" && textOf(made.Model) != "openai/gpt-4o" ||
		!slices.Equal(blocks, []string{"human: Ann, a pilot", "note: a, b;c"}) || len(made.Sources) != 1 ||
		made.Sources[0].ID != folder || made.Settings.Policy != "pi" || len(made.Tags) != 1 {
		t.Errorf("created %q, model %q, policy %q, tags %q, blocks %q, folders %v", made.Name, textOf(made.Model),
			made.Settings.Policy, made.Tags, blocks, made.Sources)
	}
	step(1, "no-such-policy", "agents", "create", "x", "--policy=no-such-policy")
	step(2, "LABEL=TEXT", "agents", "create", "x", "--block=human")
	step(2, "JSON object", "agents", "create", "x", "--fields="+human)
	step(1, `no folder "absent"`, "agents", "create", "x", "--folder=absent")

	step(0, "PATH", "memory", "list", "reader") // there are none yet
	step(1, "404", "memory", "read", "reader", "notes.md")
	step(0, "/memories/notes.md", "memory", "write", "reader", "notes.md", write("notes.md", "The heron is blue.\n"))
	step(0, "The heron is blue.", "memory", "read", "reader", "/memories/notes.md")
	tree := call[identified](p, "GET", "/v1/agents/"+id+"/memory-tree", nil).ID
	step(0, "/memories/notes.md", "memory", "list", tree)
	step(1, "409", "memory", "write", "reader", "notes.md", human, "--expected-sha256="+strings.Repeat("0", 64))
	step(2, "--yes", "memory", "delete", "reader", "notes.md")
	step(0, "/memories/notes.md", "memory", "delete", "reader", "notes.md", "--yes")
	step(1, "404", "memory", "read", "reader", "notes.md")

	step(0, "It has no entries.", "working", "show", "reader")
	step(0, "Ship it", "working", "set", "reader", "task", "Ship it")
	step(0, "Use Go", "working", "add", "reader", "decisions", "Use Go")
	var m working.Memory
	out := step(0, "", "working", "set", "reader", "decisions", "Use C", "--old=Use Go", "--json")
	if err := json.Unmarshal([]byte(out), &m); err != nil || len(m.Decisions) != 1 || m.Decisions[0].Text != "Use C" {
		t.Errorf("%v: %s", err, out)
	}
	step(0, "Ship it", "working", "remove", "reader", "decisions", "Use C")
	step(1, "mood", "working", "set", "reader", "mood", "good")

	step(2, "--yes", "agents", "delete", "reader")
	step(0, "", "agents", "delete", "reader", "--yes")
	step(1, `no agent "reader"`, "agents", "delete", "reader", "--yes")
}

// An operator decides from the command line on what waits: updates of a hand-over, and an agent's erasure.
func TestWhatWaitsIsDecidedOnTheCommandLine(t *testing.T) {
	t.Parallel()
	p := tenant(t)
	id := call[identified](p, "POST", "/v1/agents",
		map[string]any{"name": "reader", "tools": []string{"request_erasure"}}).ID
	turn := []map[string]any{{"role": "user", "content": "Ship the release. We decided to use Postgres, not MySQL."},
		{"role": "assistant", "content": "We decided: Postgres it is. Next I will write the migration."}}
	call[any](p, "POST", "/v1/agents/"+id+"/messages/capture", map[string]any{"messages": turn})
	step := func(wantCode int, want string, args ...string) string {
		t.Helper()
		code, out, errs := command(t, p.asking(args...)...)
		if code != wantCode || !strings.Contains(out+errs, want) {
			t.Errorf("loci %s: ended with %d, want %d and %q:\n%s%s", strings.Join(args, " "), code, wantCode, want, out, errs)
		}
		return out
	}
	h := call[identified](p, "POST", "/v1/agents/"+id+"/handover", map[string]any{"pending": true}).ID
	step(0, "proposed", "handovers", "list", "reader")
	step(0, "rejected", "handovers", "reject", "reader", h, "1", "--json")
	if out := step(0, "rejected", "handovers", "approve", "reader", h); strings.Contains(out, "proposed") {
		t.Errorf("an update still waits:\n%s", out)
	}
	step(1, "404", "handovers", "approve", "reader", "handover-123e4567-e89b-42d3-8456-426614174000")

	ask := func(text string) string {
		t.Helper()
		call[any](p, "POST", "/v1/agents/"+id+"/tools/request_erasure/run",
			map[string]any{"args": map[string]any{"texts": []string{text}, "reason": "asked to"}})
		all := call[[]identified](p, "GET", "/v1/erasures", nil)
		return all[0].ID
	}
	denied := ask("Postgres")
	step(0, "pending", "erasures", "list")
	step(0, "denied", "erasures", "deny", denied)
	approved := ask("MySQL")
	step(2, "--yes", "erasures", "approve", approved)
	step(0, "completed", "erasures", "approve", approved, "--yes")
	step(1, "409", "erasures", "deny", approved)
}
