package agent_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
)

// remember changes the working memory of a conversation.
func remember(t *testing.T, s fixture, a agent.Agent, conversation string,
	changes ...working.Change) working.Memory {
	t.Helper()
	m, err := s.Working.Change(t.Context(), s.org, working.Target{AgentID: a.ID, Conversation: conversation,
		Author: working.Author{Kind: working.ByOperator}}, changes)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// shownIn reports whether a request's system prompt contains a text.
func shownIn(request []byte, text string) bool {
	encoded, _ := json.Marshal(text)
	var plain bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	_ = e.Encode(text)
	return bytes.Contains(request, encoded[1:len(encoded)-1]) ||
		bytes.Contains(request, bytes.Trim(plain.Bytes(), "\"\n"))
}

// In every format the record comes after the blocks and counts as tokens. After thirty compactions it has the same
// bytes.
func TestWorkingMemorySurvivesCompactions(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := create(t, s, agent.New{Name: "a", WindowLimit: new(8000), Blocks: []block.New{{Label: "b", Value: "A block."}}})
	empty, err := s.Assemble(t.Context(), s.org, a.ID, "", "")
	if err != nil || empty.Tokens.Working != 0 {
		t.Fatalf("an empty record takes %d tokens, %v", empty.Tokens.Working, err)
	}
	want := remember(t, s, a, "", working.Change{Field: working.Task, Text: "Ship </working_memory> it"},
		working.Change{Field: working.Decisions, Text: "Tests run with pytest"},
		working.Change{Field: working.LastEdit, Text: "-a\n+b"}).Text
	for compactions := 0; compactions < 30; {
		messages := []recall.Draft{said(recall.User, strings.Repeat("and so it goes on ", 300)),
			said(recall.Assistant, "Yes.")}
		for range 6 {
			messages = append(messages, said(recall.User, "Go on."),
				said(recall.Assistant, strings.Repeat("It went on. ", 90)))
		}
		say(t, s, a, messages...)
		c, err := s.Recall.Conversation(t.Context(), s.org, a.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Compact(t.Context(), s.org, c, agent.CompactOptions{}); err != nil {
			t.Fatal(err)
		}
		list, err := s.Compaction.Compactions(t.Context(), s.org, a.ID, "", db.Page{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		compactions = len(list)
	}
	for _, f := range []agent.Format{agent.OpenAI, agent.Anthropic, agent.Responses} {
		h := handOut(t, s, a, f)
		if !shownIn(h.Request, want) {
			t.Errorf("%s: the prompt lacks %s", f, want)
		}
		if h.Tokens.Working < 30 || bytes.Index(h.Request, []byte("working_memory>")) <
			bytes.Index(h.Request, []byte("memory_blocks>")) {
			t.Errorf("%s: working memory has %d tokens, and stands before the blocks", f, h.Tokens.Working)
		}
	}
	o, _, err := s.Overview(t.Context(), s.org, a.ID, "")
	if err != nil || o.WorkingMemory == nil || *o.WorkingMemory != want || o.TokensWorkingMemory < 30 {
		t.Errorf("the overview has %v with %d tokens, %v", o.WorkingMemory, o.TokensWorkingMemory, err)
	}
}

// A fork gets the record of its last message, and then the two records change independently. A reset empties the record
// and keeps the old content as a version.
func TestForksAndResetsOfWorkingMemory(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := create(t, s, agent.New{Name: "a"})
	task := func(text string) working.Change { return working.Change{Field: working.Task, Text: text} }
	remember(t, s, a, "", task("One"))
	say(t, s, a, said(recall.User, "First."))
	remember(t, s, a, "", task("Two"))
	say(t, s, a, said(recall.User, "Second."))
	c, err := s.Recall.Conversation(t.Context(), s.org, a.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	log, err := s.Recall.Between(t.Context(), s.org, c, 1, c.Messages)
	if err != nil {
		t.Fatal(err)
	}
	for message, want := range map[string]string{"": "Two", log[1].ID: "One", log[2].ID: "Two", log[0].ID: ""} {
		fork, err := s.Fork(t.Context(), s.org, c, agent.ForkTo{MessageID: message})
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.Working.Memory(t.Context(), s.org, fork)
		if got := taskOf(m.Record); err != nil || got != want {
			t.Errorf("a fork at %q has the task %q, %v, want %q", message, got, err, want)
		}
		if want != "" {
			remember(t, s, a, fork.ID, task("Of the fork"))
		}
	}
	if m, err := s.Working.Memory(t.Context(), s.org, c); err != nil || taskOf(m.Record) != "Two" {
		t.Errorf("the origin has the task %q, %v", taskOf(m.Record), err)
	}
	if _, err := s.Reset(t.Context(), s.org, a.ID); err != nil {
		t.Fatal(err)
	}
	if c, err = s.Recall.Conversation(t.Context(), s.org, a.ID, ""); err != nil {
		t.Fatal(err)
	}
	m, err := s.Working.Memory(t.Context(), s.org, c)
	if err != nil || !m.IsEmpty() || m.Version != 2 {
		t.Errorf("after a reset: version %d, %s, %v", m.Version, m.Text, err)
	}
	restored, err := s.Working.Restore(t.Context(), s.org, working.Target{AgentID: a.ID}, 1)
	if err != nil || taskOf(restored.Record) != "Two" {
		t.Errorf("restored after a reset: %s, %v", restored.Text, err)
	}
}

func taskOf(r working.Record) string {
	if r.Task == nil {
		return ""
	}
	return r.Task.Text
}

// A prompt marks an entry as soon as the log contradicts it.
func TestPromptsMarkStaleEntries(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := create(t, s, agent.New{Name: "a"})
	call := func(id, result string) int64 {
		t.Helper()
		appended, err := s.Recall.Append(t.Context(), s.org, a.ID, "", []recall.Draft{
			{Role: recall.Assistant, Content: []recall.Part{{Type: recall.ToolCall, CallID: id, Name: "bash",
				Input: `{"command":"pytest"}`}}},
			{Role: recall.Tool, Content: []recall.Part{{Type: recall.ToolReturn, CallID: id, Text: result}}}})
		if err != nil {
			t.Fatal(err)
		}
		return appended[1].Seq
	}
	first := call("a", "2 passed")
	remember(t, s, a, "", working.Change{Field: working.Decisions, Text: "Tests run with pytest", Evidence: "pytest"})
	if h := handOut(t, s, a, agent.OpenAI); !shownIn(h.Request, fmt.Sprintf("- [seq %d] Tests", first)) {
		t.Errorf("the prompt lacks the entry: %s", h.Request)
	}
	since := call("b", "no such program")
	want := fmt.Sprintf("- [seq %d, stale since seq %d] Tests", first, since)
	if h := handOut(t, s, a, agent.OpenAI); !shownIn(h.Request, want) {
		t.Errorf("the prompt lacks %q: %s", want, h.Request)
	}
}
