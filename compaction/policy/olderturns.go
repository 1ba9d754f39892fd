package policy

import (
	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
)

// OlderTurns summarizes all but the user's newest turns.
type OlderTurns struct {
	KeepTurns int        `json:"keep_turns" min:"1" max:"10000" doc:"Turns of the user that stay."`
	Summary   FormatName `json:"summary" doc:"Its format."`
}

func (*OlderTurns) describe() Mechanism {
	return Mechanism{Name: "older_turns", Stage: Compact, Source: "the deck",
		Words: "Summarizes all but the newest turns of the user.",
		New:   func() Step { return &OlderTurns{KeepTurns: 3, Summary: "deck"} }}
}

// Plan cuts before the first turn that stays.
func (s *OlderTurns) Plan(v clip.View, at Moment) (plan.Plan, error) {
	cut := 0
	if said := turns(v.Messages); len(said) > s.KeepTurns {
		cut = said[len(said)-s.KeepTurns]
	}
	return planCut(v, at, plan.Cut{At: cut, Format: s.Summary.format()})
}
