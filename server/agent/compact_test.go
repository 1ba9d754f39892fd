package agent_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/agent"
)

// thinker is a model that does what it is told to while it is asked for the first time.
type thinker struct {
	asks      atomic.Int64
	meanwhile func()
}

// Complete implements compaction.Summarizer.
func (m *thinker) Complete(context.Context, compaction.Request) (compaction.Reply, error) {
	if m.asks.Add(1) == 1 {
		m.meanwhile()
	}
	return compaction.Reply{Text: strings.Repeat("It went on and on, and nothing came of it. ", 5), Finish: "stop"}, nil
}

// fill says more than a window takes.
func fill(t *testing.T, s *agent.Store, a agent.Agent) {
	t.Helper()
	for i := range 40 {
		say(t, s, a, said(recall.User, fmt.Sprintf("Question %d: %s", i, strings.Repeat("and so it goes on ", 60))),
			said(recall.Assistant, "Yes."))
	}
}

// A prompt that does not fit is not handed out because another request made room while its model was thinking.
func TestAPromptFitsThoughAnotherMadeRoom(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := create(t, s, agent.New{Name: "a", WindowLimit: new(8000)})
	fill(t, s, a)
	model := &thinker{meanwhile: func() {
		c, err := s.Recall.Conversation(t.Context(), org, a.ID, "")
		if err == nil {
			_, err = s.Compact(t.Context(), org, c, agent.CompactOptions{})
		}
		if err != nil {
			t.Errorf("another compacts: %v", err)
		}
	}}
	s.Compaction.Models = func(context.Context, string) *compaction.Model { return &compaction.Model{Summarizer: model} }
	if h := handOut(t, s, a, agent.OpenAI); h.Tokens.Total > 7600 {
		t.Errorf("the prompt has %d tokens, of %d", h.Tokens.Total, h.Window)
	}
	list, err := s.Compaction.Compactions(t.Context(), org, a.ID, "", db.Page{Limit: 9})
	if err != nil || len(list) != 1 {
		t.Errorf("%d compactions, %v, want 1: the view was compacted once", len(list), err)
	}
}

// What a provider counted of an earlier prompt does not speak for one that has grown beside its messages, or by a
// compaction that was reverted.
func TestAPromptFitsWhateverWasReportedBefore(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := create(t, s, agent.New{Name: "a", WindowLimit: new(8000)})
	for i := range 13 {
		say(t, s, a, said(recall.User, fmt.Sprintf("Question %d: %s", i, strings.Repeat("and so it goes on ", 126))),
			said(recall.Assistant, "Yes."))
	}
	p, err := s.Assemble(t.Context(), org, a.ID, "", agent.OpenAI)
	if err != nil || p.Tokens.Total < 7600 || p.Tokens.Total > 8000 {
		t.Fatalf("the prompt has %d tokens, %v; the test wants it between 95 and 100 %% of 8,000", p.Tokens.Total, err)
	}
	if err := s.Recall.RecordReport(t.Context(), org, p.Conversation.Key, p.Conversation.Messages, 5000); err != nil {
		t.Fatal(err)
	}
	if h := handOut(t, s, a, agent.OpenAI); h.Tokens.Total > 7600 {
		t.Errorf("the prompt has %d tokens, of %d", h.Tokens.Total, h.Window)
	}
}
