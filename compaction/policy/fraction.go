package policy

import (
	"github.com/loci-memory/loci/compaction/clip"
)

// Fraction is due when the prompt takes more than a share of the window.
type Fraction struct {
	WindowShare float64 `json:"window_share" min:"0" max:"1" doc:"Of the window; 0: compaction_settings.trigger."`

	Counting
}

func (*Fraction) describe() Mechanism {
	return Mechanism{Name: "fraction", Stage: Pressure, Source: "Letta, four layers, the deck, deepagents",
		Words: "Compacts above a share of the window.",
		New:   func() Step { return &Fraction{Counting: asLoci} }}
}

// Due reports whether the prompt takes more than the share.
func (s *Fraction) Due(v clip.View, at Moment) bool {
	if v.Window <= 0 {
		return false
	}
	return s.tokens(v, at) > s.most(v, at)
}

func (s *Fraction) most(v clip.View, at Moment) int {
	of := at.settings()
	if s.WindowShare > 0 {
		of.Trigger = s.WindowShare
	}
	return of.Limit(v.Window)
}
