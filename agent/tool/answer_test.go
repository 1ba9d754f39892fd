package tool_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/recall"
)

// called appends a message in which the model calls a tool, and returns the call.
func (w world) called(t *testing.T, id, name, args string) tool.Call {
	t.Helper()
	appended, err := w.said.Append(t.Context(), w.org, w.agent.ID, recall.DefaultConversation, []recall.Draft{
		{Role: recall.Assistant, Content: []recall.Part{{Type: recall.ToolCall, CallID: id, Name: name, Input: args}}}})
	if err != nil {
		t.Fatal(err)
	}
	return tool.Call{CallPlace: recall.CallPlace{AgentID: w.agent.ID, Conversation: recall.DefaultConversation, ID: id,
		Position: appended[0].Position}, Name: name, Arguments: json.RawMessage(args)}
}

// results returns the texts of a call's results in the agent's log.
func (w world) results(t *testing.T, id string) (texts []string) {
	t.Helper()
	log, err := w.said.Messages(t.Context(), w.org, recall.MessageFilter{AgentID: w.agent.ID},
		db.Page{Ascending: true, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range log {
		for _, p := range m.Content {
			if p.Type == recall.ToolReturn && p.CallID == id {
				texts = append(texts, fmt.Sprintf("%t %s", p.IsError, p.Text))
			}
		}
	}
	return texts
}

// However often, and by however many requests at once, a call is answered, its tool changes something only once, and
// the call gets one result. A refused call changes nothing. A call that is not in the log is not run.
func TestACallIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	w, _ := newTalk(t)
	blocks := &block.Store{DB: w.pool}
	if _, err := blocks.Add(t.Context(), w.org, w.agent.ID, block.New{Label: "notes", Value: "Notes:"}); err != nil {
		t.Fatal(err)
	}
	caller := tool.Caller{Org: w.org, Agent: w.agent}
	call := w.called(t, "a", "core_memory_append", `{"label":"notes","content":"zebra"}`)
	var all sync.WaitGroup
	var mu sync.Mutex
	times := 0
	for range 8 {
		all.Go(func() {
			_, stored, err := w.tools.Answer(t.Context(), caller, call)
			if mu.Lock(); stored {
				times++
			}
			mu.Unlock()
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := w.results(t, "a"); times != 1 || len(got) != 1 || !strings.HasPrefix(got[0], "false The core memory block") {
		t.Errorf("%d of 8 answers were stored; the results are %q; want one", times, got)
	}

	refused := w.called(t, "b", "memory", `{"command":"rename","old_path":"notes","new_path":"bad label!"}`)
	if got, stored, err := w.tools.Answer(t.Context(), caller, refused); err != nil || !stored || !got.IsError {
		t.Errorf("a call that is refused: %+v, %t, %v", got, stored, err)
	}
	if got := w.results(t, "b"); len(got) != 1 || !strings.HasPrefix(got[0], "true ") {
		t.Errorf("a call that is refused has the results %q", got)
	}
	call.ID = "other"
	if _, stored, err := w.tools.Answer(t.Context(), caller, call); stored || err != nil {
		t.Errorf("a call that the log lacks: %t, %v", stored, err)
	}
	got, err := blocks.OfAgent(t.Context(), w.org, w.agent.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range got {
		if b.Label == "notes" && b.Value != "Notes:\nzebra" {
			t.Errorf("the block reads %q, want one zebra", b.Value)
		}
	}
}

// If the result cannot be stored, the tool's changes are not stored either.
func TestAToolAndItsResultAreStoredTogether(t *testing.T) {
	t.Parallel()
	w, _ := newTalk(t)
	caller := tool.Caller{Org: w.org, Agent: w.agent}
	call := w.called(t, "a", "archival_memory_insert", `{"content":"The safe is behind the lift."}`)
	call.Result.OTID = new(strings.Repeat("too long", 100))
	if _, stored, err := w.tools.Answer(t.Context(), caller, call); err == nil || stored {
		t.Fatalf("a result with an otid of 800 bytes: %t, %v; want it refused", stored, err)
	}
	if got := w.run(t, "archival_memory_search", `{"query":"safe"}`).Text; !strings.Contains(got, "No passage") {
		t.Errorf("the passage is there without the result: %s", got)
	}
	call.Result.OTID = nil
	if _, stored, err := w.tools.Answer(t.Context(), caller, call); err != nil || !stored {
		t.Fatal(stored, err)
	}
	search := w.called(t, "s", "archival_memory_search", "")
	if got, stored, err := w.tools.Answer(t.Context(), caller, search); err != nil || !stored ||
		!strings.Contains(got.Text, "behind the lift") || len(w.results(t, "s")) != 1 {
		t.Errorf("a search without arguments: %+v, %t, %v", got, stored, err)
	}
}

// A call that stores a passage names those that are similar, by meaning too: searching for them leaves the transaction
// that stores the result whole.
func TestAPassageOfACallNamesSimilarOnes(t *testing.T) {
	t.Parallel()
	w, _ := newTalk(t)
	e := embedtest.New(t, 8)
	encoder := e.Endpoint(t)
	e.Use(t, w.pool, encoder)
	passages := archival.New(w.pool, archival.Options{Endpoint: encoder})
	w.tools = tool.New(tool.Memories{Files: w.store, Recall: w.said, Blocks: w.agents.Blocks, Archival: passages,
		Agents: w.agents, Working: w.agents.Working, MemoryFiles: w.agents.MemoryFiles})
	caller := tool.Caller{Org: w.org, Agent: w.agent}
	for i, text := range []string{"Ann likes green tea with lemon in the morning",
		"Ann likes green tea with lemon in the evening"} {
		id := fmt.Sprint("call", i)
		call := w.called(t, id, "archival_memory_insert", `{"content":"`+text+`"}`)
		if _, stored, err := w.tools.Answer(t.Context(), caller, call); err != nil || !stored {
			t.Fatalf("%s: stored %t, %v", text, stored, err)
		}
		got := w.results(t, id)
		if len(got) != 1 || strings.Contains(got[0], "Similar to what is there already") != (i == 1) {
			t.Errorf("%s: got %q, want similar ones named: %t", text, got, i == 1)
		}
	}
}
