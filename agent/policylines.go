package agent

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/recall/chat"
)

// Bounds of the lines that a model writes before a prompt. Results that it was not asked about stay as they are until
// the next prompt.
const (
	linePatience = 15 * time.Second
	linesAtOnce  = 4
	maxLines     = 16
)

// lineWriter asks the model that writes summaries for lines about results.
type lineWriter struct {
	model *summary.Model
	mu    sync.Mutex
	asked plan.Asked
}

// newLineWriter returns a writer of lines for a prompt's policy. It has no model if the policy wants no lines, or if
// there is none.
func (s *Store) newLineWriter(ctx context.Context, p Prompt) *lineWriter {
	w := &lineWriter{}
	if p.policy.WantsLines() && s.Compaction.Models != nil {
		handle := ""
		if p.settings.Model != nil {
			handle = *p.settings.Model
		}
		w.model = s.Compaction.Models(ctx, handle)
	}
	return w
}

// write returns the function that writes lines; nil without a model.
func (w *lineWriter) write(ctx context.Context) func([]policy.LineRequest) []policy.Line {
	if w.model == nil {
		return nil
	}
	return func(requests []policy.LineRequest) []policy.Line {
		limited, cancel := context.WithTimeout(ctx, linePatience)
		defer cancel()
		ask := func(r policy.LineRequest) (string, error) { return w.ask(limited, r) }
		return policy.LineWriter{Ask: ask, Parallel: linesAtOnce, Most: maxLines}.Write(requests)
	}
}

// ask asks the model for one line, and redacts secrets in it.
func (w *lineWriter) ask(ctx context.Context, r policy.LineRequest) (string, error) {
	reply, err := w.model.Complete(ctx, summary.Request{Model: w.model.Name, MaxTokens: 4 * r.MaxTokens,
		Messages: []chat.Message{{Role: "user", Content: r.Prompt}}})
	w.mu.Lock()
	w.asked.Calls += summary.Calls(err)
	w.asked.PromptTokens += max(reply.PromptTokens, 0)
	w.asked.OutputTokens += max(reply.OutputTokens, 0)
	w.mu.Unlock()
	if err != nil || reply.Finish == summary.Refused {
		return "", err
	}
	line := strings.TrimSpace(reply.Text)
	if w.model.Redact != nil {
		line = w.model.Redact(line)
	}
	return line, nil
}
