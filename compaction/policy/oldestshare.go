package policy

import (
	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
)

// OldestShare summarizes a share of the user's turns, the oldest ones.
type OldestShare struct {
	TurnsShare float64    `json:"turns_share" min:"0.05" max:"0.95" doc:"Of the turns, that leave."`
	Summary    FormatName `json:"summary" doc:"Its format."`
}

func (*OldestShare) describe() Mechanism {
	return Mechanism{Name: "oldest_share", Stage: Compact, Source: "the deck",
		Words: "Summarizes the oldest turns of the user, 70 % of them.",
		New:   func() Step { return &OldestShare{TurnsShare: 0.7, Summary: "deck"} }}
}

// Plan cuts before the first turn that stays. With fewer than two turns, the share is of the messages instead.
func (s *OldestShare) Plan(v clip.View, at Moment) (plan.Plan, error) {
	said := turns(v.Messages)
	cut := int(s.TurnsShare * float64(len(v.Messages)))
	if n := int(s.TurnsShare * float64(len(said))); n > 0 {
		cut = said[n]
	}
	return planCut(v, at, plan.Cut{At: cut, Format: s.Summary.format()})
}
