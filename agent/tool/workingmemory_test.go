package tool_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

func TestUpdateWorkingMemoryAnswersWithWhatChanged(t *testing.T) {
	t.Parallel()
	w, other := newTalk(t)
	got := w.run(t, "update_working_memory", `{"changes": [{"field": "task", "text": "Find the zebra report"},
		{"field": "important_files", "text": "/srv/reports/zebra.pdf"},
		{"field": "decisions", "text": "The report is a PDF", "evidence": "zebra report"}]}`)
	checkGolden(t, "working_memory", got.Text)
	got = w.run(t, "update_working_memory", `{"changes": {"field": "decisions", "action": "remove",
		"text": "- [seq 5] The report is a PDF"}}`)
	if got.IsError || !strings.Contains(got.Text, "(version 2, ") ||
		!strings.HasSuffix(got.Text, "\n- decisions: The report is a PDF") {
		t.Errorf("removed as it was shown: %+v", got)
	}
	caller := tool.Caller{Org: w.org, Agent: w.agent, Conversation: other}
	result, err := w.tools.Run(t.Context(), caller, "update_working_memory",
		[]byte(`{"changes":{"field":"next","text":"Wait"}}`))
	if err != nil || result.IsError || strings.Contains(result.Text, "zebra") {
		t.Errorf("in another conversation: %+v, %v", result, err)
	}
}

// Ten changes of one entry cost what changed, however large the record is.
func TestAnswersOfUpdateWorkingMemoryStayShort(t *testing.T) {
	t.Parallel()
	w, _ := newTalk(t)
	for i := range 30 {
		w.run(t, "update_working_memory", fmt.Sprintf(
			`{"changes":[{"field":"decisions","text":"Decision %d: the service listens on port 80%02d"}]}`, i, i))
	}
	n := 0
	for i := range 10 {
		got := w.run(t, "update_working_memory", fmt.Sprintf(`{"changes":[{"field":"next","text":"Step %d"}]}`, i))
		n += tokens.Estimate(got.Text)
	}
	t.Logf("ten answers take %d tokens", n)
	if n > 1_000 {
		t.Errorf("ten answers take %d tokens, want at most 1000", n)
	}
	again := w.run(t, "update_working_memory", `{"changes":[{"field":"next","text":"Step 9"}]}`)
	if again.IsError || !strings.Contains(again.Text, "Step 9") && !strings.Contains(again.Text, "nothing changed") {
		t.Errorf("the same change again: %+v", again)
	}
}

// Above 800 tokens the answer says what to move and where, and names only tools that the agent has. Above 1,500 tokens
// a change is refused.
func TestAFullWorkingMemorySaysWhatToMove(t *testing.T) {
	t.Parallel()
	w, _ := newTalk(t)
	w.agent.Settings.Tools = []string{agent.EveryTool, "memory_files"}
	last := ""
	for i := range 40 {
		got := w.run(t, "update_working_memory", fmt.Sprintf(`{"changes": [{"field": "decisions", "text": "%d %s"}]}`, i,
			strings.Repeat("we will keep it so ", 10)))
		if got.IsError {
			last = got.Text
			break
		}
		large := strings.Contains(got.Text, "It is above 800 tokens") && strings.Contains(got.Text, "decisions (") &&
			strings.Contains(got.Text, "archival_memory_insert") && strings.Contains(got.Text, "(memory_files)")
		var version, tokens int
		if _, err := fmt.Sscanf(got.Text, "The working memory has been updated (version %d, %d tokens)", &version,
			&tokens); err != nil || large != (tokens > working.HealthyTokens) {
			t.Fatalf("with %d tokens, %v: %.400s", tokens, err, got.Text)
		}
	}
	if !strings.Contains(last, "it may have at most 1500") || !strings.Contains(last, "decisions (") {
		t.Errorf("a full record: got %q", last)
	}
}

// A call's change and its result are stored together, so a call that is answered again after a crash changes nothing.
func TestACallChangesWorkingMemoryOnce(t *testing.T) {
	t.Parallel()
	w, _ := newTalk(t)
	caller := tool.Caller{Org: w.org, Agent: w.agent}
	call := w.called(t, "a", "update_working_memory", `{"changes": [{"field": "blockers", "text": "No key"}]}`)
	call.Result.OTID = new(strings.Repeat("too long", 100))
	if _, stored, err := w.tools.Answer(t.Context(), caller, call); err == nil || stored {
		t.Fatalf("a result that cannot be stored: %t, %v", stored, err)
	}
	states := &working.Store{DB: w.pool, Recall: w.said, Files: w.store}
	c, err := w.said.Conversation(t.Context(), w.org, w.agent.ID, recall.DefaultConversation)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := states.Memory(t.Context(), w.org, c); err != nil || m.Version != 0 {
		t.Errorf("the record is at version %d, %v, without a result", m.Version, err)
	}
	call.Result.OTID = nil
	for range 3 {
		if _, _, err := w.tools.Answer(t.Context(), caller, call); err != nil {
			t.Fatal(err)
		}
	}
	list, err := states.Versions(t.Context(), w.org, c, 0, 9)
	if err != nil || len(list) != 1 || list[0].Author.Tool != "update_working_memory" ||
		list[0].Author.AgentID != w.agent.ID || len(w.results(t, "a")) != 1 {
		t.Errorf("versions %+v, %v, want one of the agent's tool", list, err)
	}
}
