package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/loci-memory/loci/agent/agenttest"
	"github.com/loci-memory/loci/compaction/llm/llmtest"
	"github.com/loci-memory/loci/compaction/plan"
)

const (
	agentWindow = 32_768 // window of the agent, in tokens
	mostFacts   = 100    // facts that the agent is told
	mostCalls   = 5      // model calls for one summary
)

// compaction leads an agent through many compactions, once with a model that answers immediately and once without a
// model. It checks whether the facts that the agent was told can still be found.
func (b *bench) compaction(ctx context.Context) error {
	var panels []panel
	var failed error
	for _, model := range []bool{true, false} {
		name := "summaries by extraction"
		if model {
			name = "summaries by a model that answers at once"
		}
		d, err := b.drive(ctx, model)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		}
		if d == nil || d.Agent == nil || len(d.Ends) == 0 {
			continue
		}
		say("%s: %d turns, %d prompts, %d compactions", name, len(d.Ends), len(d.Prompts), len(d.Compactions))
		panels = append(panels, d.panel(fmt.Sprintf("An agent of %d turns, %s: %d compactions", len(d.Ends), name,
			len(d.Compactions))))
		b.report.add(d.rows(name)...)
	}
	if b.report.figures == nil {
		b.report.figures = map[string][]byte{}
	}
	b.report.figures["compaction.svg"] = plot(panels)
	return failed
}

// driven is an agent's life, and how long the model worked on its summaries.
type driven struct {
	*agenttest.Agent
	agenttest.Outcome
	model *timed // nil without a model
}

// drive runs a server of its own for a life. If it returns an error, it also returns how far the agent came.
func (b *bench) drive(ctx context.Context, model bool) (*driven, error) {
	home := filepath.Join(b.work, "compaction")
	d, settings := &driven{}, []string(nil)
	if model {
		d.model = newTimed(agentWindow)
		defer d.model.Close()
		settings = []string{"LOCI_LLM_BASE_URL=" + d.model.BaseURL(), "LOCI_LLM_MODEL=fake", "LOCI_LLM_CONTEXT_WINDOW=" +
			strconv.Itoa(agentWindow)}
	}
	s, _, err := b.serve(ctx, home, settings...)
	if err != nil {
		return nil, err
	}
	err = d.live(ctx, s.base, agenttest.Life{Turns: b.Turns, Facts: min(b.Turns, mostFacts), Window: agentWindow, Seed: 4})
	return d, errors.Join(err, s.stop(), os.RemoveAll(home))
}

func (d *driven) live(ctx context.Context, base string, l agenttest.Life) (err error) {
	provider := llmtest.Start()
	defer provider.Close()
	if d.Agent, err = agenttest.New(ctx, base, provider, l); err != nil {
		return err
	}
	lived := d.Live(ctx)
	if d.Outcome, err = d.Agent.Outcome(ctx); err != nil {
		return errors.Join(lived, err)
	}
	return errors.Join(lived, d.Check(d.Outcome, plan.Defaults().Trigger))
}

// rows are the rows that are reported about a life.
func (d *driven) rows(name string) []Row {
	life := fmt.Sprintf("an agent of %d turns in a window of %d tokens, %s", len(d.Ends), agentWindow, name)
	accepted := Row{What: life + ": prompts that its provider takes", Unit: "%", AtLeast: 100,
		Note: fmt.Sprintf("%d prompts, %d compactions", len(d.Prompts), len(d.Compactions))}
	fullest := Row{What: "the same: the fullest prompt, of the window, as its provider counts", Unit: "%", AtMost: 92}
	out := Row{What: "the same: hand-out of a prompt, p50", Unit: "ms"}
	fits, open := 0, 0.0
	for _, p := range d.Prompts {
		if p.Counted > 0 {
			fits++
		}
		if share := 100 * float64(p.Counted) / agentWindow; p.Open {
			open = max(open, share)
		} else {
			fullest.Loci.Raw = append(fullest.Loci.Raw, share)
		}
		out.Loci.Raw = append(out.Loci.Raw, p.Took.Seconds()*1e3)
	}
	accepted.Loci.Raw = []float64{100 * float64(fits) / float64(len(d.Prompts))}
	accepted.settle(median)
	fullest.settle(slices.Max)
	fullest.Note = fmt.Sprintf("%s %% while a call was open", number(open))
	fullest.thin()
	out.settle(median)
	out.thin()
	rows := []Row{accepted, fullest, out, d.reached()}
	if len(d.Compactions) > 0 {
		rows = append(rows, d.overhead())
		if d.model != nil {
			rows = append(rows, d.calls())
		}
	}
	return rows
}

// reached counts the facts that can still be found, and in which ways.
func (d *driven) reached() Row {
	reachable, window, summary, search, expand := 0, 0, 0, 0, 0
	for _, f := range d.Found {
		reachable += b2i(f.Any())
		window += b2i(f.Window)
		summary += b2i(f.Summary)
		search += b2i(f.Search)
		expand += b2i(f.Expand)
	}
	r := Row{What: "the same: facts it was told that it can still reach", Unit: fmt.Sprintf("of %d", len(d.Facts)),
		AtLeast: float64(len(d.Facts)),
		Note: fmt.Sprintf("in the window %d, in the summary %d, by the first five of conversation_search %d, by expand %d",
			window, summary, search, expand),
		Loci: Side{Raw: []float64{float64(reachable)}}}
	r.settle(median)
	return r
}

// calls reports the model calls for each summary.
func (d *driven) calls() Row {
	total := 0
	r := Row{What: "the same: calls of the model for a summary, at most", Unit: "calls", AtMost: mostCalls}
	for _, k := range d.Compactions {
		total += k.ModelCalls
		r.Loci.Raw = append(r.Loci.Raw, float64(k.ModelCalls))
	}
	r.settle(slices.Max)
	r.Note = fmt.Sprintf("mean %s", number(float64(total)/float64(len(d.Compactions))))
	r.Loci.Raw = []float64{r.Loci.Value}
	return r
}

// overhead reports the time of compactions without the model's time.
func (d *driven) overhead() Row {
	r := Row{What: "the same: what a compaction takes beside the model's time, p50", Unit: "ms", AtMost: 50}
	for _, k := range d.Compactions {
		duration := time.Duration(k.Milliseconds) * time.Millisecond
		withoutModel := duration
		if d.model != nil {
			withoutModel -= d.model.between(k.CreatedAt.Add(-duration), k.CreatedAt)
		}
		r.Loci.Raw = append(r.Loci.Raw, withoutModel.Seconds()*1e3)
	}
	r.settle(median)
	r.thin()
	return r
}

// panel shows how full the window was after each turn.
func (d *driven) panel(title string) panel {
	p := panel{title: title, window: agentWindow, usage: make([]int, len(d.Ends)), trigger: plan.Defaults().Trigger,
		goal: plan.Defaults().Goal}
	for _, prompt := range d.Prompts {
		if prompt.Turn <= len(p.usage) {
			p.usage[prompt.Turn-1] = prompt.Counted
		}
	}
	turn := 0
	for _, k := range d.Compactions {
		for turn < len(d.Ends)-1 && d.Ends[turn].Before(k.CreatedAt) {
			turn++
		}
		p.compacted = append(p.compacted, turn+1)
	}
	return p
}

// timed is a provider that records when it worked.
type timed struct {
	*llmtest.Provider
	mu   sync.Mutex
	work [][2]time.Time
}

func newTimed(window int) *timed {
	t := &timed{Provider: &llmtest.Provider{Window: window}}
	t.Server = httptest.NewServer(http.HandlerFunc(t.serve))
	return t
}

func (t *timed) serve(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	t.ServeHTTP(w, r)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Take() // nobody reads the requests
	t.work = append(t.work, [2]time.Time{start, time.Now()})
}

// between returns how long the provider worked in calls that began between two times.
func (t *timed) between(start, end time.Time) (d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.work {
		if w[0].After(start) && w[0].Before(end) {
			d += w[1].Sub(w[0])
		}
	}
	return d
}
