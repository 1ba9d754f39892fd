package policy

import (
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/recall"
)

// AutoCompact summarizes the oldest messages until the prompt takes half of a threshold. It keeps the most important
// messages in view, unless even the other messages are too large.
type AutoCompact struct {
	ThresholdShare   float64    `json:"threshold_share" min:"0.1" max:"0.98" doc:"Of the window; a smaller prompt stays."`
	ReduceShare      float64    `json:"reduce_share" min:"0.1" max:"0.9" doc:"Of the threshold, that may stay."`
	KeepUserMessages int        `json:"keep_user_messages" min:"1" max:"1000" doc:"The newest of the user, that stay."`
	KeepResults      int        `json:"keep_results" min:"0" max:"1000" doc:"The newest results, that stay."`
	KeepErrors       int        `json:"keep_errors" min:"0" max:"1000" doc:"The newest failed results, that stay."`
	Summary          FormatName `json:"summary" doc:"Its format."`
}

func (*AutoCompact) describe() Mechanism {
	return Mechanism{Name: "auto_compact", Stage: Compact, Source: "four layers, layer 3",
		Words: "Summarizes the oldest messages until the prompt takes half of a threshold.",
		New: func() Step {
			return &AutoCompact{ThresholdShare: 0.8, ReduceShare: 0.5, KeepUserMessages: 3, KeepResults: 5, KeepErrors: 3,
				Summary: "four-layers"}
		}}
}

// Plan cuts after the oldest messages that together have the tokens to save.
func (s *AutoCompact) Plan(v clip.View, at Moment) (plan.Plan, error) {
	total := at.tokens(v)
	threshold := int(s.ThresholdShare * float64(v.Window))
	if v.Window <= 0 {
		threshold = total
	}
	if total < threshold && !at.Forced && !plan.TooLong(v) {
		return plan.Plan{}, &plan.Nothing{Tokens: total, Goal: threshold}
	}
	points, tokens := clip.CutPointsOf(v.Messages), plan.MessageTokens(v)
	reduction, keep := total-int(s.ReduceShare*float64(threshold)), s.protected(v)
	cut := 0
	for saved := 0; cut < len(tokens) && saved < reduction; cut++ {
		if !slices.Contains(keep, cut) {
			saved += tokens[cut]
		}
	}
	cut = min(points.After(cut), points.Before(s.newest(v)))
	return planCut(v, at, plan.Cut{At: cut, Keep: keep, Format: s.Summary.format()})
}

// protected returns the indexes of messages that stay wherever the view is cut: the newest of the user, and the newest
// errors.
func (s *AutoCompact) protected(v clip.View) (keep []int) {
	userMessages := turns(v.Messages)
	keep = append(keep, userMessages[max(len(userMessages)-s.KeepUserMessages, 0):]...)
	failed := []int{}
	for r := range results(v) {
		if r.failed() {
			failed = append(failed, r.message)
		}
	}
	return append(keep, failed[max(len(failed)-s.KeepErrors, 0):]...)
}

// newest returns the index from which on all messages stay. This includes the assistant's newest message and the newest
// results.
func (s *AutoCompact) newest(v clip.View) int {
	first, seen := len(v.Messages), 0
	for i, m := range slices.Backward(v.Messages) {
		if m.Role == recall.Assistant {
			first = i
			break
		}
	}
	for i, m := range slices.Backward(v.Messages) {
		if seen >= s.KeepResults {
			break
		}
		if m.Role == recall.Tool {
			first, seen = min(first, i), seen+1
		}
	}
	return first
}
