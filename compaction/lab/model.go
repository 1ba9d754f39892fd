package lab

import (
	"context"

	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/recall/chat"
)

// lineCache maps the hash of a request → the line that a model wrote for it.
type lineCache map[string]string

// Line implements policy.LineCache.
func (c lineCache) Line(hash string) (string, bool) {
	line, ok := c[hash]
	return line, ok
}

// Keep implements policy.LineCache.
func (c lineCache) Keep(hash, line string) { c[hash] = line }

// writer returns the function that has the model write lines about results; nil without a model. If the model fails,
// that is counted, and rules write the line.
func (r *Replaying) writer(ctx context.Context) func([]policy.LineRequest) []policy.Line {
	m := r.settings.Model
	if m == nil {
		return nil
	}
	return policy.LineWriter{Parallel: 1, Cache: r.lines, Ask: func(q policy.LineRequest) (string, error) {
		reply, err := m.Complete(ctx, summary.Request{Model: m.Name, MaxTokens: q.MaxTokens,
			Messages: []chat.Message{{Role: "user", Content: q.Prompt}}})
		r.result.ModelCalls += summary.Calls(err)
		r.result.ModelTokens += reply.PromptTokens + reply.OutputTokens
		if err != nil || reply.Text == "" {
			r.result.ModelFailures++
		}
		return reply.Text, err
	}}.Write
}
