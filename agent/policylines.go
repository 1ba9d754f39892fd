package agent

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/recall/chat"
)

// Bounds of the lines that a model writes before a prompt. Results that it was not asked about stay as they are until
// the next prompt. The description of the step one_line names maxLines.
const (
	linePatience = 15 * time.Second // for all lines of a prompt
	linesAtOnce  = 4
	maxLines     = 8
)

// lineWriter asks the model that writes summaries for lines about results, for one prompt. If the model fails at the
// first line, it is not asked again before the prompt, and rules write the lines.
type lineWriter struct {
	model *summary.Model // nil: rules write the lines
	left  int            // results that the model may still be asked about
	ends  time.Time      // when the patience ends; zero before the model is asked

	mu    sync.Mutex
	lines map[string]string // hash of a request → its line
	asked plan.Asked        // since the last take
	fails bool              // the model failed before it had written a line
}

func newLineWriter() *lineWriter { return &lineWriter{left: maxLines, lines: map[string]string{}} }

// lineModel returns the model that writes lines for a prompt's policy; nil if the policy wants none, or there is none.
func (s *Store) lineModel(ctx context.Context, p Prompt) *summary.Model {
	if !p.policy.WantsLines() || s.Compaction.Models == nil {
		return nil
	}
	handle := ""
	if p.settings.Model != nil {
		handle = *p.settings.Model
	}
	return s.Compaction.Models(ctx, handle)
}

// write returns the function that writes lines; nil without a model.
func (w *lineWriter) write(ctx context.Context) func([]policy.LineRequest) []policy.Line {
	if w.model == nil {
		return nil
	}
	return func(requests []policy.LineRequest) []policy.Line {
		if w.fails {
			return make([]policy.Line, len(requests))
		}
		if w.ends.IsZero() {
			w.ends = time.Now().Add(linePatience)
		}
		limited, cancel := context.WithDeadline(ctx, w.ends)
		defer cancel()
		ask := func(r policy.LineRequest) (string, error) { return w.ask(limited, r) }
		return policy.LineWriter{Ask: ask, Parallel: linesAtOnce, Most: &w.left, Cache: w, Try: len(w.lines) == 0}.Write(
			requests)
	}
}

// take returns the work of the model since the last call.
func (w *lineWriter) take() plan.Asked {
	asked := w.asked
	w.asked = plan.Asked{}
	return asked
}

// Line implements policy.LineCache.
func (w *lineWriter) Line(hash string) (line string, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	line, ok = w.lines[hash]
	return line, ok
}

// Keep implements policy.LineCache.
func (w *lineWriter) Keep(hash, line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines[hash] = line
}

// ask asks the model for one line, and redacts secrets in it.
func (w *lineWriter) ask(ctx context.Context, r policy.LineRequest) (string, error) {
	reply, err := w.model.Complete(ctx, summary.Request{Model: w.model.Name, MaxTokens: 4 * r.MaxTokens,
		Messages: []chat.Message{{Role: "user", Content: r.Prompt}}})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked.Calls += summary.Calls(err)
	w.asked.PromptTokens += max(reply.PromptTokens, 0)
	w.asked.OutputTokens += max(reply.OutputTokens, 0)
	switch {
	case err != nil:
		w.asked.Why = "rules wrote lines: " + w.redacted(whyOf(err))
		w.fails = w.fails || len(w.lines) == 0
		return "", err
	case reply.Finish == summary.Refused:
		w.asked.Why = "rules wrote lines: the model refused to answer"
		return "", nil
	}
	return w.redacted(strings.TrimSpace(reply.Text)), nil
}

func (w *lineWriter) redacted(text string) string {
	if w.model.Redact == nil {
		return text
	}
	return w.model.Redact(text)
}

// whyOf returns what an organization may read of why a model gave no answer.
func whyOf(err error) string {
	if known, ok := errors.AsType[interface {
		error
		Public() string
	}](err); ok {
		return known.Public()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "the model took longer than " + linePatience.String()
	}
	return "the language model fails"
}
