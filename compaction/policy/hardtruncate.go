package policy

import (
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
)

// HardTruncate hides the oldest messages without a summary. The view names their range, so that the model can read
// them.
type HardTruncate struct {
	AboveShare   float64 `json:"above_share" min:"0.5" max:"1" doc:"Of the window; a smaller prompt is left alone."`
	SafetyTokens int     `json:"safety_tokens" min:"0" max:"1000000" doc:"Of the window, that stay free."`
}

func (*HardTruncate) describe() Mechanism {
	return Mechanism{Name: "hard_truncate", Stage: Truncate, Source: "four layers, layer 4",
		Words: "Hides the oldest messages of a view that is still too large, and says where they can be read.",
		New:   func() Step { return &HardTruncate{AboveShare: 0.95, SafetyTokens: 1_000} }}
}

// Plan cuts before the newest messages that fit. It needs no model.
func (s *HardTruncate) Plan(v clip.View, at Moment) (plan.Plan, error) {
	total := at.tokens(v)
	most := s.most(v.Window)
	if (v.Window <= 0 || total <= most) && !plan.TooLong(v) {
		return plan.Plan{}, &plan.Nothing{Tokens: total, Goal: most}
	}
	points := clip.CutPointsOf(v.Messages)
	cut := points.After(s.cut(plan.MessageTokens(v), most-plan.FixedTokens(v)))
	p, err := plan.ByCut(v, at.settings(), plan.Cut{At: cut})
	if p.Evicted > 0 {
		p.NeedsModel, p.Self = false, false
		p.Hidden = true
	}
	return p, err
}

// most returns the tokens above which messages are hidden.
func (s *HardTruncate) most(window int) int { return int(s.AboveShare * float64(window)) }

// cut returns the index of the oldest message to keep. The newest messages are kept as long as they fit room, with a
// margin for safety.
func (s *HardTruncate) cut(tokens []int, room int) int {
	room -= s.SafetyTokens
	for i, n := range slices.Backward(tokens) {
		if room -= n; room < 0 {
			return i + 1
		}
	}
	return 0
}
