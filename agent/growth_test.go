package agent_test

import (
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/recall"
)

// If prompts keep growing by more than 2 % of the window, an event says so, at most once in twenty prompts. Slower
// growth makes no event.
func TestGrowingPromptsAreAnEvent(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	noted := func(a agent.Agent) int {
		t.Helper()
		all, err := event.List(t.Context(), s.DB, s.org, a.ID, event.Query{Types: []event.Type{event.PromptsGrowing}})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			c, err := s.Recall.Conversation(t.Context(), s.org, a.ID, "")
			if err != nil || e.RefID != c.ID {
				t.Errorf("the event is about %s, want %s, %v", e.RefID, c.ID, err)
			}
		}
		return len(all)
	}
	fast := under(t, s, `"letta"`)
	for i := range 16 {
		read(t, s, fast, 1) // adds about 600 tokens to a window of 16,000
		handOut(t, s, fast, agent.OpenAI)
		if n := noted(fast); i < 9 && n != 0 || i >= 9 && n != 1 {
			t.Fatalf("%d events after prompt %d", n, i+1)
		}
	}
	slow := under(t, s, `"letta"`)
	for range 12 {
		say(t, s, slow, said(recall.User, "Go on."), said(recall.Assistant, "Yes."))
		handOut(t, s, slow, agent.OpenAI)
	}
	if n := noted(slow); n != 0 {
		t.Errorf("%d events of slow growth", n)
	}
}
