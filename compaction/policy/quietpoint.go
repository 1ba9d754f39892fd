package policy

import (
	"github.com/loci-memory/loci/compaction/clip"
)

// QuietPoint delays a compaction until a planned action has ended.
type QuietPoint struct {
	MaxDeferTurns int     `json:"max_defer_turns" min:"1" max:"1000" doc:"Turns of the user that it waits at most."`
	HardShare     float64 `json:"hard_share" min:"0.5" max:"0.95" doc:"Of the window, from which nothing waits."`
}

func (*QuietPoint) describe() Mechanism {
	return Mechanism{Name: "quiet_point", Stage: Pressure, Source: "the deck",
		Words: "Lets a compaction wait while a call of a tool or a sub-agent is under way, or while a program says by " +
			"PUT /v1/conversations/{id}/hold that a plan is.",
		New: func() Step { return &QuietPoint{MaxDeferTurns: 5, HardShare: 0.95} }}
}

// Wait reports whether something is under way. It returns false if the compaction was already due MaxDeferTurns turns
// ago.
func (s *QuietPoint) Wait(v clip.View, at Moment, due func(clip.View) bool) (wait bool, force float64) {
	if !at.Busy || at.Forced {
		return false, s.HardShare
	}
	userMessages := turns(v.Messages)
	if len(userMessages) < s.MaxDeferTurns {
		return true, s.HardShare
	}
	then := v
	then.Messages = v.Messages[:userMessages[len(userMessages)-s.MaxDeferTurns]]
	if n := len(then.Messages); v.Usage != nil && (n == 0 || then.Messages[n-1].Position < v.Usage.Position) {
		then.Usage = nil
	}
	return !due(then), s.HardShare
}
