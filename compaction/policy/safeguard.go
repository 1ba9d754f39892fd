package policy

import (
	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
)

// Safeguard keeps the newest messages like KeepRecent, but at most a share of the window.
type Safeguard struct {
	KeepRecentTokens int        `json:"keep_recent_tokens" min:"0" max:"10000000" doc:"At most half of the room."`
	HistoryShare     float64    `json:"history_share" min:"0.05" max:"0.9" doc:"Of the window, that what stays may take."`
	SafetyFactor     float64    `json:"safety_factor" min:"1" max:"2" doc:"By which what stays may exceed the share."`
	Summary          FormatName `json:"summary" doc:"Its format."`
}

func (*Safeguard) describe() Mechanism {
	return Mechanism{Name: "safeguard", Stage: Compact, Source: "OpenClaw",
		Words: "Keeps the newest messages, but no more than a share of the window, and checks the summary's headings.",
		New: func() Step {
			return &Safeguard{KeepRecentTokens: 20_000, HistoryShare: 0.5, SafetyFactor: 1.2, Summary: "openclaw"}
		}}
}

// Plan cuts like KeepRecent, or later if the remaining messages take more than the share.
func (s *Safeguard) Plan(v clip.View, at Moment) (plan.Plan, error) {
	cut := (&KeepRecent{KeepRecentTokens: s.KeepRecentTokens}).cut(v, at)
	if v.Window > 0 {
		cut = s.halved(v, cut)
	}
	return planCut(v, at, plan.Cut{At: cut, Format: s.Summary.format()})
}

// halved moves the cut until the remaining messages take at most the share of the window. Each time the oldest half of
// their tokens leaves.
func (s *Safeguard) halved(v clip.View, cut int) int {
	tokens, points := plan.MessageTokens(v), clip.CutPointsOf(v.Messages)
	most := int(s.HistoryShare * float64(v.Window))
	stays := sum(tokens[cut:])
	if stays <= int(s.HistoryShare*float64(v.Window)*s.SafetyFactor) {
		return cut
	}
	for stays > most {
		i, half := cut, 0
		for i < len(tokens) && 2*half < stays {
			half += tokens[i]
			i++
		}
		next := points.After(i)
		if next <= cut {
			break
		}
		cut, stays = next, sum(tokens[next:])
	}
	return cut
}
