package policy

import (
	"github.com/loci-memory/loci/compaction/clip"
)

// TurnCount is due every EveryTurns turns of the user.
type TurnCount struct {
	EveryTurns int `json:"every_turns" min:"2" max:"100000" doc:"Turns of the user from one compaction to the next."`
	KeepTurns  int `json:"keep_turns" min:"1" max:"10000" doc:"Turns that a compaction keeps."`
}

func (*TurnCount) describe() Mechanism {
	return Mechanism{Name: "turn_count", Stage: Pressure, Source: "the deck (10)",
		Words: "Compacts every so many turns of the user, whatever their size.",
		New:   func() Step { return &TurnCount{EveryTurns: 10, KeepTurns: 3} }}
}

// Due reports whether the user has had EveryTurns turns since the last compaction.
func (s *TurnCount) Due(v clip.View, _ Moment) bool {
	n := len(turns(v.Messages))
	if v.Summary != nil {
		n -= s.KeepTurns
	}
	return n >= s.EveryTurns
}

func (*TurnCount) paced() {}
