package server_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/loci-memory/loci/agent/agenttest"
	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/llm/llmtest"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall"
)

// drivenWindow is the window of the agents below, in tokens.
const drivenWindow = 16_000

// faults returns a provider's faults, in order; nil is a good answer.
func faults(release <-chan struct{}) []llmtest.Fault {
	overflow := llmtest.Overflows(llmtest.Wordings[0], 4_000, 9_000)
	return []llmtest.Fault{nil, overflow, overflow, overflow, overflow, nil,
		llmtest.Fails(), llmtest.Fails(), llmtest.Fails(), llmtest.RateLimited(0), llmtest.RateLimited(
			0), llmtest.RateLimited(0),
		llmtest.Garbage(), llmtest.Malformed(), llmtest.NoChoices(), llmtest.Empty(), llmtest.Empty(),
		llmtest.Echo(), llmtest.Echo(),
		llmtest.TooLong(200_000), llmtest.TooLong(200_000), llmtest.Hangs(
			release), llmtest.Hangup(), llmtest.Hangup(), llmtest.Hangup(),
		llmtest.ErrorText(), llmtest.Refuses(), llmtest.OutOfLength(), llmtest.Page(502), nil}
}

// An agent lives through many compactions. No prompt is fuller than the trigger allows, none has a result without its
// call, and the cut never goes back. Each fact that the agent heard can still be reached, whether or not the summary
// model fails.
func TestAnAgentLosesNothing(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]struct {
		model, fails bool
		counts       float64    // the agent provider's tokens for one of ours
		ways         []clip.How // ways in which some summaries are made
	}{
		"no model":                      {counts: 1, ways: []clip.How{clip.Extracted}},
		"a model that counts half more": {model: true, counts: 1.5, ways: []clip.How{clip.Whole}},
		"a provider that fails": {model: true, fails: true, counts: 1,
			ways: []clip.How{clip.Whole, clip.Extracted}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newServerClient(t)
			if w.model {
				c.own().Agents.Compaction.Models = modelsOf(t, w.fails)
			}
			web := httptest.NewServer(c)
			t.Cleanup(web.Close)
			turns := scale.Of(24, 60)
			agentProvider := llmtest.New(t)
			agentProvider.Count = func(r llmtest.Asked) int {
				return int(w.counts * float64(llmtest.Tokens(r.Text())+4*len(r.Messages)))
			}
			a, err := agenttest.New(t.Context(), web.URL, agentProvider, agenttest.Life{Turns: turns, Facts: turns / 2,
				Window: drivenWindow, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			v := viewer{client: c, agent: a.ID}
			a.Captured = v.look
			if err := a.Live(t.Context()); err != nil {
				t.Fatal(err)
			}
			o, err := a.Outcome(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Check(o, 0.9); err != nil {
				t.Error(err)
			}
			compactions := o.Compactions
			if len(compactions) < turns/8 {
				t.Errorf("%d compactions in %d turns are too few to tell anything", len(compactions), turns)
			}
			for _, way := range w.ways {
				if !slices.ContainsFunc(compactions, func(k store.Compaction) bool { return k.How != nil && *k.How == way }) {
					t.Errorf("of %d summaries none was made in the way %q", len(compactions), way)
				}
			}
		})
	}
}

// modelsOf returns a function that gives the model of a provider. The provider fails if fails is set.
func modelsOf(t *testing.T, fails bool) func(context.Context, string) *summary.Model {
	t.Helper()
	p := llmtest.New(t)
	p.Window = drivenWindow
	timeout := patience
	if fails {
		timeout = summaryPatience
		release := make(chan struct{})
		t.Cleanup(func() { close(release) })
		for range 20 {
			p.Next(faults(release)...)
		}
	}
	models, err := agenttest.Models(p, timeout)
	if err != nil {
		t.Fatal(err)
	}
	return models
}

// summaryPatience is how long a failing model may take for a summary. A model that hangs takes all of it.
const summaryPatience = 10 * time.Second

// viewer looks at the model's view after captures.
type viewer struct {
	*client
	agent    string
	captured int
	first    int // first message in view
}

// look checks the window after every third capture, because servers do that after appends. It also checks the stored
// view.
func (v *viewer) look(ctx context.Context) error {
	if v.captured++; v.captured%3 > 0 {
		return nil
	}
	if err := v.server.Agents.CheckWindow(ctx, v.org, v.agent, recall.DefaultConversation); err != nil {
		return fmt.Errorf("check the window: %w", err)
	}
	c, err := v.server.Recall.Conversation(ctx, v.org, v.agent, recall.DefaultConversation)
	if err != nil {
		return err
	}
	if c.FirstVisible < v.first {
		return fmt.Errorf("the first message in view is at %d, and was at %d", c.FirstVisible, v.first)
	}
	v.first = c.FirstVisible
	view, err := v.server.Recall.View(ctx, v.org, c)
	if err != nil {
		return err
	}
	calls := map[string]bool{}
	for _, m := range view {
		for _, p := range m.Content {
			switch {
			case p.Type == recall.ToolCall:
				calls[p.CallID] = true
			case p.Type == recall.ToolReturn && !calls[p.CallID]:
				return fmt.Errorf("the view has the result of the call %s at %d, and not the call", p.CallID, m.Position)
			}
		}
	}
	return nil
}
