package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// thinker is a model that calls a function of the test during its first answer.
type thinker struct {
	asks      atomic.Int64
	meanwhile func()
}

// Complete implements summary.Summarizer.
func (m *thinker) Complete(context.Context, summary.Request) (summary.Reply, error) {
	if m.asks.Add(1) == 1 {
		m.meanwhile()
	}
	return summary.Reply{Text: strings.Repeat("It went on and on, and nothing came of it. ", 5), Finish: "stop"}, nil
}

// fill appends more text than a window holds.
func fill(t *testing.T, s fixture, a agent.Agent) {
	t.Helper()
	var messages []recall.Draft
	for i := range 40 {
		messages = append(messages,
			said(recall.User, fmt.Sprintf("Question %d: %s", i, strings.Repeat("and so it goes on ", 60))),
			said(recall.Assistant, "Yes."))
	}
	say(t, s, a, messages...)
}

// A user message that is far larger than the window is refused by its number of tokens, without reading its text.
func TestAMessageBeyondTheWindowIsNotRead(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := create(t, s, agent.New{Name: "a", WindowLimit: new(30_000)})
	for _, text := range []string{"What I ask first.", strings.Repeat("All that was said. ", 150_000)} {
		say(t, s, a, said(recall.User, text))
	}
	read := int64(0)
	ctx := db.WithReading(t.Context(), func(bytes int64) error {
		read += bytes
		return nil
	})
	_, err := s.NextPrompt(ctx, s.org, agent.PromptTarget{AgentID: a.ID})
	if tooBig, is := errors.AsType[*plan.TooBig](err); !is || len(tooBig.Items) != 1 || tooBig.Items[0].Position != 3 {
		t.Errorf("got %v", err)
	}
	if read > 100_000 {
		t.Errorf("%d bytes were read", read)
	}
	say(t, s, a, said(recall.Assistant, "That was long."), said(recall.User, "So?")) // it may leave the view now
	if _, err := s.NextPrompt(t.Context(), s.org, agent.PromptTarget{AgentID: a.ID}); err != nil {
		t.Errorf("after the next message: %v", err)
	}
}

// A message of the user that alone takes between 90 and 95 % of a window is handed out: nothing else can leave. The
// messages before it leave first.
func TestAPromptUpTo95PercentIsHandedOut(t *testing.T) {
	t.Parallel()
	for _, preset := range policy.Presets() {
		policyName := fmt.Sprintf(`{"policy":%q}`, preset.Name)
		s, _ := newStore(t)
		settings := agent.Settings{CompactionSettings: json.RawMessage(policyName)}
		a := create(t, s, agent.New{Name: "a", WindowLimit: new(20_000), Settings: settings})
		say(t, s, a, said(recall.User, "First."), said(recall.Assistant, strings.Repeat("So it was. ", 400)))
		empty, err := s.NextPrompt(t.Context(), s.org, agent.PromptTarget{AgentID: a.ID})
		if err != nil {
			t.Fatal(err)
		}
		fixed := empty.Tokens.Total - empty.Tokens.Messages
		long := strings.Repeat("and so it goes on ", (17_700-fixed)/4)
		for tokens.Estimate(long) > 17_600-fixed {
			long = long[:len(long)-len("and so it goes on ")]
		}
		alone := create(t, s, agent.New{Name: "b", WindowLimit: new(20_000), Settings: a.Settings})
		for what, a := range map[string]agent.Agent{"after others": a, "alone": alone} {
			say(t, s, a, said(recall.User, long))
			p, err := s.NextPrompt(t.Context(), s.org, agent.PromptTarget{AgentID: a.ID})
			if err != nil || p.Tokens.Total <= 18_000 || p.Tokens.Total >= 19_000 {
				t.Errorf("with %q, %s: %d tokens, %v", policyName, what, p.Tokens.Total, err)
			}
		}
	}
}

// So it is where the model's tokens are counted rather than estimated.
func TestACountedPromptUpTo95PercentIsHandedOut(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	for _, share := range []int{91, 93, 94} {
		for _, history := range []int{0, 3} {
			a := create(t, s, agent.New{Name: fmt.Sprint(share, "-", history), Model: new("openai/gpt-4o"),
				WindowLimit: new(20_000)})
			empty, err := s.NextPrompt(t.Context(), s.org, agent.PromptTarget{AgentID: a.ID})
			if err != nil {
				t.Fatal(err)
			}
			for range history {
				say(t, s, a, said(recall.User, "First."), said(recall.Assistant, strings.Repeat("So it was. ", 400)))
			}
			say(t, s, a, said(recall.User, strings.Repeat(" so", 200*share-100-empty.Tokens.Total)))
			p, err := s.NextPrompt(t.Context(), s.org, agent.PromptTarget{AgentID: a.ID})
			if err != nil || p.Tokens.Total >= 19_000 {
				t.Errorf("%d %% after %d turns: %d tokens, %v", share, history, p.Tokens.Total, err)
			}
		}
	}
}

// hard_truncate acts above its share, whatever the other steps do.
func TestHardTruncateActsAboveItsShare(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := create(t, s, agent.New{Name: "a", WindowLimit: new(20_000),
		Settings: agent.Settings{CompactionSettings: json.RawMessage(
			`{"policy":{"steps":[{"step":"hard_truncate","above_share":0.5}]}}`)}})
	for i := range 16 {
		say(t, s, a, said(recall.User, fmt.Sprint("Question ", i, strings.Repeat(" and so on", 300))),
			said(recall.Assistant, "Yes."))
	}
	p, err := s.NextPrompt(t.Context(), s.org, agent.PromptTarget{AgentID: a.ID})
	if err != nil || p.Tokens.Total > 10_000 || p.Tokens.Total < 7_000 {
		t.Errorf("%d tokens, %v", p.Tokens.Total, err)
	}
}

// If the texts of a view are too large for any prompt, an overview shows a part of the view, and the next prompt
// compacts it first.
func TestAViewOfManyBytesIsCompacted(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	s, _ := newStore(t)
	a := create(t, s, agent.New{Name: "a"})
	say(t, s, a, said(recall.User, "What I ask first."))
	for range 3 {
		say(t, s, a, said(recall.Assistant, strings.Repeat("All that was said. ", 500_000)))
	}
	say(t, s, a, said(recall.User, "What I ask last."))
	o, messages, err := s.Overview(t.Context(), s.org, a.ID, "")
	if err != nil || o.NumMessages != 6 || len(messages) >= 6 || o.WindowCurrent < 4_000_000 {
		t.Errorf("got %d of %d messages with %d tokens, %v", len(messages), o.NumMessages, o.WindowCurrent, err)
	}
	if h := handOut(t, s, a, agent.OpenAI); h.Tokens.Total > h.Window ||
		!strings.Contains(string(h.Request), "What I ask last.") {
		t.Errorf("the prompt has %d tokens, of %d: %.300s", h.Tokens.Total, h.Window, h.Request)
	}
	o, _, err = s.Overview(t.Context(), s.org, a.ID, "")
	if err != nil || o.SummaryMemory == nil || !strings.Contains(*o.SummaryMemory, "What I ask first.") {
		t.Errorf("the summary: %v, %v", o.SummaryMemory, err)
	}
}

// A prompt fits even if another request compacted the view while this request's model was thinking.
func TestAPromptFitsThoughAnotherMadeRoom(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := create(t, s, agent.New{Name: "a", WindowLimit: new(8000)})
	fill(t, s, a)
	model := &thinker{meanwhile: func() {
		_, err := s.DB.Exec(t.Context(), `DELETE FROM compaction_claims WHERE org = $1`, s.org) // of a server that stalled
		c, failed := s.Recall.Conversation(t.Context(), s.org, a.ID, "")
		if err = errors.Join(err, failed); err == nil {
			_, err = s.Compact(t.Context(), s.org, c, agent.CompactOptions{})
		}
		if err != nil {
			t.Errorf("another compacts: %v", err)
		}
	}}
	s.Compaction.Models = func(context.Context, string) *summary.Model { return &summary.Model{Summarizer: model} }
	if h := handOut(t, s, a, agent.OpenAI); h.Tokens.Total > 7600 {
		t.Errorf("the prompt has %d tokens, of %d", h.Tokens.Total, h.Window)
	}
	list, err := s.Compaction.Compactions(t.Context(), s.org, a.ID, "", db.Page{Limit: 9})
	if err != nil || len(list) != 1 {
		t.Errorf("%d compactions, %v, want 1: the view was compacted once", len(list), err)
	}
}

// A provider's token count for an earlier prompt is not trusted for a prompt that has grown otherwise than by messages,
// or by a reverted compaction.
func TestAPromptFitsWhateverWasReportedBefore(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := create(t, s, agent.New{Name: "a", WindowLimit: new(8000)})
	var messages []recall.Draft
	for i := range 13 {
		messages = append(messages,
			said(recall.User, fmt.Sprintf("Question %d: %s", i, strings.Repeat("and so it goes on ", 108))),
			said(recall.Assistant, "Yes."))
	}
	say(t, s, a, messages...)
	p, err := s.Assemble(t.Context(), s.org, a.ID, "", agent.OpenAI)
	if err != nil || p.Tokens.Total < 7600 || p.Tokens.Total > 8000 {
		t.Fatalf("the prompt has %d tokens, %v; the test wants it between 95 and 100 %% of 8,000", p.Tokens.Total, err)
	}
	if err := s.Recall.RecordReport(t.Context(), s.org, p.Conversation.Key, p.Conversation.Messages, 5000); err != nil {
		t.Fatal(err)
	}
	if h := handOut(t, s, a, agent.OpenAI); h.Tokens.Total > 7600 {
		t.Errorf("the prompt has %d tokens, of %d", h.Tokens.Total, h.Window)
	}
}

// crowd is a model. While it answers, many messages are appended.
type crowd struct{ say func() }

// Complete implements summary.Summarizer.
func (m crowd) Complete(context.Context, summary.Request) (summary.Reply, error) {
	m.say()
	return summary.Reply{Text: strings.Repeat("It went on and on, and nothing came of it. ", 5), Finish: "stop"}, nil
}

// A prompt that does not fit is not handed out, however many attempts were made.
func TestAPromptThatDoesNotFitIsNotHandedOut(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := create(t, s, agent.New{Name: "a", WindowLimit: new(8000)})
	fill(t, s, a)
	model := crowd{say: func() { fill(t, s, a) }}
	s.Compaction.Models = func(context.Context, string) *summary.Model { return &summary.Model{Summarizer: model} }
	h, err := s.NextPrompt(t.Context(), s.org, agent.PromptTarget{AgentID: a.ID, Format: agent.OpenAI})
	if !errors.Is(err, db.ErrBusy) {
		t.Errorf("got a prompt of %d tokens, %v, want ErrBusy", h.Tokens.Total, err)
	}
}

// If two servers ask for prompts of one conversation at once, only one compaction is made.
func TestPromptsAtOnceAskForOneSummary(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := create(t, s, agent.New{Name: "a", WindowLimit: new(8000)})
	fill(t, s, a)
	var wait sync.WaitGroup
	var assembled atomic.Int64
	all := make(chan struct{})
	other := *s.Store
	other.Tools = func(a agent.Agent, folder bool) []agent.Definition {
		if assembled.Add(1) == 7 {
			close(all)
		}
		return oneTool(a, folder)
	}
	model := &thinker{meanwhile: func() {
		for range 7 {
			wait.Go(func() {
				h, err := other.NextPrompt(t.Context(), s.org, agent.PromptTarget{AgentID: a.ID, Format: agent.OpenAI})
				if err != nil || h.Tokens.Total > 7200 {
					t.Errorf("a prompt of %d tokens, %v", h.Tokens.Total, err)
				}
			})
		}
		<-all // each server has read the view that does not fit
	}}
	s.Compaction.Models = func(context.Context, string) *summary.Model { return &summary.Model{Summarizer: model} }
	handOut(t, s, a, agent.OpenAI)
	wait.Wait()
	list, err := s.Compaction.Compactions(t.Context(), s.org, a.ID, "", db.Page{Limit: 9})
	if err != nil || len(list) != 1 || int64(list[0].ModelCalls) != model.asks.Load() {
		t.Errorf("%d compactions, %v, and the model was asked %d times; want 1 for all of these", len(list), err,
			model.asks.Load())
	}
}

// The next prompt does not undo an accepted revert, even if the model's window is unknown.
func TestARevertIsNotUndoneByTheNextPrompt(t *testing.T) {
	t.Parallel()
	for name, window := range map[string]*int{"known": new(32_768), "unknown": nil} {
		s, _ := newStore(t)
		a := create(t, s, agent.New{Name: name, WindowLimit: window})
		accepted, refused := 0, 0
		for range 3 {
			var messages []recall.Draft
			for range 25 {
				messages = append(messages, said(recall.User, strings.Repeat("and so it goes on ", 110)),
					said(recall.Assistant, "Yes."))
			}
			say(t, s, a, messages...)
			c, err := s.Recall.Conversation(t.Context(), s.org, a.ID, "")
			if err != nil {
				t.Fatal(err)
			}
			compacted, err := s.Compact(t.Context(), s.org, c, agent.CompactOptions{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if _, err := s.Revert(t.Context(), s.org, *compacted.Made); err != nil {
				if refused++; !errors.Is(err, db.ErrConflict) {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			accepted++
			handOut(t, s, a, agent.OpenAI)
			handOut(t, s, a, agent.OpenAI)
			list, err := s.Compaction.Compactions(t.Context(), s.org, a.ID, "", db.Page{Limit: 9})
			if err != nil || slices.ContainsFunc(list, func(k store.Compaction) bool { return k.RevertedAt == nil }) {
				t.Errorf("%s: the revert was undone: %+v, %v", name, list, err)
			}
		}
		if accepted == 0 || refused == 0 {
			t.Errorf("%s: %d reverts were accepted and %d refused; the test wants both", name, accepted, refused)
		}
	}
}
