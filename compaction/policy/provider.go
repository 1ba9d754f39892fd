package policy

import (
	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
)

// Provider replaces all messages by a summary, as a provider's own compaction does, but Loci's summarizer writes it.
type Provider struct {
	KeepTurns int        `json:"keep_turns" min:"0" max:"1000" doc:"Turns of the user that stay; 0: only what must."`
	Summary   FormatName `json:"summary" doc:"Its format."`
}

func (*Provider) describe() Mechanism {
	return Mechanism{Name: "provider", Stage: Compact, Source: "Anthropic, compact_20260112",
		Words: "Replaces all messages by a summary, as the provider's compaction does; open calls stay.",
		New:   func() Step { return &Provider{Summary: "anthropic"} }}
}

// Plan cuts before the turns that stay.
func (s *Provider) Plan(v clip.View, at Moment) (plan.Plan, error) {
	cut := len(v.Messages)
	if userMessages := turns(v.Messages); s.KeepTurns > 0 {
		cut = 0
		if len(userMessages) > s.KeepTurns {
			cut = userMessages[len(userMessages)-s.KeepTurns]
		}
	}
	return planCut(v, at,
		plan.Cut{At: cut, All: s.KeepTurns == 0, Format: s.Summary.format()})
}
