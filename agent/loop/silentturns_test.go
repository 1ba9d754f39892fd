package loop_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// writing returns an agent that must have a silent turn before its next answer.
func writing(t *testing.T) *fixture {
	t.Helper()
	f := newFixtureOf(t, agent.New{Name: "Ada", WindowLimit: new(32_000), Settings: agent.Settings{
		Tools: []string{insert, look, "core_memory_append"},
		Flush: &agent.FlushSettings{Mode: agent.FlushOn, Tokens: 1_000, BeforeCompaction: new(false), MaxSteps: 2}}})
	for i := range 6 {
		f.record(says(recall.User, fmt.Sprintf("%d: %s", i, strings.Repeat("ships sail the sea. ", 60))),
			says(recall.Assistant, "Noted."))
	}
	return f
}

// silent returns the messages of silent turns, without their instructions.
func (f *fixture) silent() (all []string) {
	f.Helper()
	for _, m := range f.messages() {
		if m.Purpose == recall.ForFlush && m.Role != recall.System {
			text, _, _ := strings.Cut(line(m), " as passage-")
			all = append(all, text)
		}
	}
	return all
}

// Before its answer a model writes its memory in a silent turn, with the turn's tools alone. The client sees nothing of
// it.
func TestAModelWritesItsMemoryInASilentTurn(t *testing.T) {
	t.Parallel()
	f := writing(t)
	f.model.Says(modeltest.Answer{Calls: []modeltest.Call{{ID: "c1", Name: insert, Arguments: content},
		{ID: "c2", Name: look, Arguments: query}}}, modeltest.Answer{Text: "Nothing more."}, modeltest.Answer{Text: "Six."})
	run := f.do(f.request("How many?"))
	f.checkEnd(run, loop.Completed, loop.EndTurn)
	got := f.silent()
	want := []string{"assistant: c1 " + insert + " " + content + "; c2 " + look + " " + query, "tool: c1 = Archived",
		"tool: c2 = The tool " + look + " is not yours in this silent turn. Your tools for it are core_memory_append, " +
			insert + ".", "assistant: Nothing more."}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("the silent turn: got %q, want beginnings %q", got, want)
	}
	var shown []string
	for _, e := range run.events {
		if e.Message != nil {
			shown = append(shown, line(*e.Message))
		}
	}
	if diff := cmp.Diff([]string{"assistant: Six."}, shown); diff != "" {
		t.Errorf("what the client saw (-want +got):\n%s", diff)
	}
	if run.Usage.Steps != 1 {
		t.Errorf("the run counts %d steps, want 1", run.Usage.Steps)
	}
	f.do(f.request("And now?"))
	if n := len(f.silent()); n != 4 {
		t.Errorf("the next request has another silent turn: %q", f.silent())
	}
}

// A silent turn whose model fails is left out, and the user is answered.
func TestASilentTurnThatFailsIsLeftOut(t *testing.T) {
	t.Parallel()
	f := writing(t)
	f.model.Says(modeltest.Answer{Status: 400, Text: `{"error":{"message":"no"}}`}, modeltest.Answer{Text: "Six."})
	f.checkEnd(f.do(f.request("How many?")), loop.Completed, loop.EndTurn)
	if all := f.messages(); line(all[len(all)-1]) != "assistant: Six." || len(f.silent()) != 0 {
		t.Errorf("got %q after the silent turn %q", line(all[len(all)-1]), f.silent())
	}
}

// A client's own loop is handed the silent turn, sends its answer once, and has the calls run.
func TestAClientsLoopTakesASilentTurn(t *testing.T) {
	t.Parallel()
	f := writing(t)
	o := f.clientLoop()
	target := agent.PromptTarget{AgentID: f.agent.ID, Conversation: o.Conversation.ID}
	answer := calling(modeltest.Call{ID: "c1", Name: insert, Arguments: content})
	answer.OTID = new("o1")
	if _, _, err := o.TakeFlush(t.Context(), each(answer), true); !errors.Is(err, db.ErrConflict) {
		t.Errorf("without a silent turn: got %v, want ErrConflict", err)
	}
	p, err := o.NextFlush(t.Context(), target)
	if err != nil || p == nil || p.Flush == nil || p.Flush.StepsLeft != 2 {
		t.Fatalf("got %+v (%v), want a silent turn", p, err)
	}
	for _, time := range []string{"once", "twice"} {
		_, calls, err := o.TakeFlush(t.Context(), each(answer), true)
		if want := []string{"c1 ran = Archived"}; err != nil || !cmp.Equal(want, asked(calls)) || f.archived() != 1 {
			t.Errorf("%s: got %q (%v), want %q, and %d passages", time, asked(calls), err, want, f.archived())
		}
	}
	if p, err = o.NextFlush(t.Context(), target); err != nil || p == nil || p.Flush.StepsLeft != 1 {
		t.Fatalf("after one answer: got %+v (%v)", p, err)
	}
	if _, _, err := o.TakeFlush(t.Context(), each(says(recall.Assistant, "No more.")), true); err != nil {
		t.Error(err)
	}
	if p, err = o.NextFlush(t.Context(), target); err != nil || p != nil {
		t.Errorf("after the last answer: got %+v (%v), want none", p, err)
	}
	flushes, err := f.Agents.Flushes(t.Context(), f.org, o.Conversation, 9)
	if err != nil || len(flushes) != 1 || flushes[0].Status != agent.FlushDone || flushes[0].Calls != 1 {
		t.Errorf("got %+v (%v)", flushes, err)
	}
}

// A client's loop that takes no further prompt of a silent turn, or whose provider refuses it, ends the turn.
func TestAClientsLoopLeavesASilentTurn(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"leave", "refuse"} {
		f := writing(t)
		o := f.clientLoop()
		target := agent.PromptTarget{AgentID: f.agent.ID, Conversation: o.Conversation.ID}
		if p, err := o.NextFlush(t.Context(), target); err != nil || p == nil {
			t.Fatalf("got %+v (%v), want a silent turn", p, err)
		}
		var err error
		if way == "leave" {
			_, _, err = o.TakeFlush(t.Context(), each(calling(modeltest.Call{ID: "c1", Name: insert, Arguments: content})),
				false)
		} else {
			err = o.RefuseFlush(t.Context(), "no room")
		}
		if err != nil {
			t.Errorf("%s: %v", way, err)
		}
		if p, err := o.NextFlush(t.Context(), target); err != nil || p != nil {
			t.Errorf("%s: got %+v (%v), want none", way, p, err)
		}
		flushes, err := f.Agents.Flushes(t.Context(), f.org, o.Conversation, 9)
		if want := map[string]string{"leave": agent.FlushDone, "refuse": agent.FlushFailed}[way]; err != nil ||
			len(flushes) != 1 || flushes[0].Status != want {
			t.Errorf("%s: got %+v (%v), want %s", way, flushes, err, want)
		}
	}
}
