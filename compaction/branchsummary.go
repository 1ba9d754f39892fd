package compaction

import (
	"context"
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// Sizes for a model that summarizes a branch, in tokens: Pi's reserve of the window, and Pi's bound of the summary.
const (
	branchReserve = 16_384
	branchTokens  = 2_048
)

// Branch returns what to summarize of a branch: messages that were said after it parted from another conversation. It
// takes the newest messages that fit the window minus a reserve, without tool results. If older ones do not fit, the
// branch's newest summary stands in for them. Its calls come from all messages, for the list of files. Evicted.Messages
// is empty if nothing was said.
func Branch(messages []recall.Message, window int, format *prose.Format) clip.Evicted {
	e := clip.Evicted{Budget: branchTokens, Making: prose.Making{Format: format}}
	room := max(window-branchReserve, window/2)
	from := len(messages)
	for ; from > 0; from-- {
		m := messages[from-1]
		if !isSpoken(m) {
			continue
		}
		n := 0
		for _, p := range m.Content {
			n += tokens.Estimate(p.Text) + tokens.Estimate(p.Input)
		}
		if room -= n + tokens.PerMessage; window > 0 && room < 0 {
			break
		}
		e.Messages = append(e.Messages, m)
	}
	slices.Reverse(e.Messages)
	for i, m := range slices.Backward(messages) {
		for _, p := range m.Content {
			if p.Type == recall.ToolCall {
				e.Calls = append(e.Calls, p)
			}
		}
		if m.Role == recall.Summary && from > 0 && i <= from && e.Previous == nil {
			if s, err := store.SummaryOf(m); err == nil {
				e.Previous = s
			}
		}
	}
	return e
}

// isSpoken reports whether a message is from the user or the assistant.
func isSpoken(m recall.Message) bool { return m.Role == recall.User || m.Role == recall.Assistant }

// SummarizeBranch summarizes a branch with the model that writes summaries, or without a model.
func (s *Compactor) SummarizeBranch(ctx context.Context, e clip.Evicted, settings plan.Settings) (clip.Summary, error) {
	return summary.Summarize(ctx, e, settings, s.model(ctx, Task{Settings: settings}, plan.Plan{}))
}
