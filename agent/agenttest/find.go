package agenttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/loci-memory/loci/compaction/store"
)

// Found says in which ways a fact can still be reached.
type Found struct {
	Window  bool // the prompt contains it word for word
	Summary bool // the prompt's summary contains its code
	Search  bool // conversation_search finds it by its words
	Expand  bool // expand finds it by an id that the prompt names
}

// Any reports whether there is a way.
func (f Found) Any() bool { return f.Window || f.Summary || f.Search || f.Expand }

// named matches ids that a prompt names for expand.
var named = regexp.MustCompile(`expand\(id="([^"]+)"`)

// summaryMark matches the beginning of a summary's message.
var summaryMark = regexp.MustCompile(`^\[seq \d+–\d+\] Earlier messages`)

// find looks for the facts in all ways that an agent has.
func (a *Agent) find(ctx context.Context) ([]Found, error) {
	var out struct {
		Request struct {
			Messages []struct {
				Role    string          `json:"role"`
				Content string          `json:"content"`
				Calls   json.RawMessage `json:"tool_calls"`
			} `json:"messages"`
		} `json:"request"`
	}
	if err := a.call(ctx, http.MethodGet, "/v1/agents/"+a.ID+"/prompt?format=openai", nil, &out); err != nil {
		return nil, err
	}
	var summary string
	var window strings.Builder
	var ids []string
	for _, m := range out.Request.Messages {
		if summaryMark.MatchString(m.Content) {
			summary = m.Content
		} else {
			window.WriteString(m.Content + "\n" + string(m.Calls) + "\n")
		}
		for _, id := range named.FindAllStringSubmatch(m.Content, -1) {
			ids = append(ids, id[1])
		}
	}
	all := make([]Found, len(a.Facts))
	for i, f := range a.Facts {
		found := Found{Window: strings.Contains(window.String(), f.Code), Summary: strings.Contains(summary, f.Code)}
		var err error
		if found.Search, err = a.searched(ctx, f); err != nil {
			return nil, err
		}
		if found.Expand, err = a.expanded(ctx, ids, f); err != nil {
			return nil, err
		}
		all[i] = found
	}
	return all, nil
}

// searched reports whether conversation_search finds a fact.
func (a *Agent) searched(ctx context.Context, f Fact) (bool, error) {
	var out struct {
		Return string `json:"func_return"`
	}
	err := a.call(ctx, http.MethodPost, "/v1/agents/"+a.ID+"/tools/conversation_search/run",
		map[string]any{"args": map[string]string{"query": f.Asks}}, &out)
	return strings.Contains(out.Return, f.Code), err
}

// expanded reports whether expand finds a fact in the text of one of these ids.
func (a *Agent) expanded(ctx context.Context, ids []string, f Fact) (bool, error) {
	for _, id := range ids {
		var out struct {
			Lines []struct {
				Text string `json:"text"`
			} `json:"lines"`
		}
		err := a.call(ctx, http.MethodGet, "/v1/agents/"+a.ID+"/expand/"+url.PathEscape(id)+"?pattern="+f.Code, nil, &out)
		if err != nil {
			return false, err
		}
		for _, line := range out.Lines {
			if strings.Contains(line.Text, f.Code) {
				return true, nil
			}
		}
	}
	return false, nil
}

// compactions returns the compactions of the agent's conversation, in order.
func (a *Agent) compactions(ctx context.Context) (all []store.Compaction, err error) {
	after := ""
	for {
		var page []store.Compaction
		if err := a.call(ctx, http.MethodGet, "/v1/agents/"+a.ID+"/compactions?order=asc&limit=200&after="+after, nil,
			&page); err != nil {
			return nil, err
		}
		if len(page) == 0 {
			return all, nil
		}
		all, after = append(all, page...), page[len(page)-1].ID
	}
}

// slack is by how much of the window a provider's count may exceed the server's, for what it puts around calls and
// results.
const slack = 0.02

// Outcome is the result of a life.
type Outcome struct {
	Compactions []store.Compaction // in order
	Found       []Found            // for each fact
}

// Outcome returns the result of the life so far.
func (a *Agent) Outcome(ctx context.Context) (o Outcome, err error) {
	if o.Compactions, err = a.compactions(ctx); err == nil {
		o.Found, err = a.find(ctx)
	}
	return o, err
}

// Check returns what is wrong with a life: a prompt that its model refused, or that fills more of the window than
// trigger allows (plus half of the rest while a call is open); a cut that moved back; or a fact that is out of reach.
func (a *Agent) Check(o Outcome, trigger float64) error {
	var wrong []error
	for _, p := range a.Prompts {
		limit := trigger
		if p.Open {
			limit += (1 - trigger) / 2
		}
		if window := float64(a.window); p.Counted == 0 || float64(p.Tokens) > limit*window ||
			float64(p.Counted) > (limit+slack)*window {
			wrong = append(wrong, fmt.Errorf("turn %d: a prompt of %d tokens, %d as its provider counts, of %d (open: %v)",
				p.Turn, p.Tokens, p.Counted, a.window, p.Open))
		}
	}
	last := int64(0)
	for _, k := range o.Compactions {
		if k.ToSeq == nil {
			continue
		}
		if *k.ToSeq <= last {
			wrong = append(wrong, fmt.Errorf("compaction %s ends at seq %d, one before it at %d", k.ID, *k.ToSeq, last))
		}
		last = *k.ToSeq
	}
	for i, f := range o.Found {
		if !f.Any() {
			wrong = append(wrong, fmt.Errorf("out of reach, said in %s in turn %d: %s", a.Facts[i].In, a.Facts[i].Turn,
				a.Facts[i].Text))
		}
	}
	return errors.Join(wrong...)
}
