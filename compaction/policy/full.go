package policy

import (
	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
)

// Full summarizes the whole conversation, except the user's newest message and calls that the model has not yet
// answered.
type Full struct {
	Summary FormatName `json:"summary" doc:"Its format."`
}

func (*Full) describe() Mechanism {
	return Mechanism{Name: "full", Stage: Compact, Source: "Claude Code",
		Words: "Summarizes the whole conversation.", New: func() Step { return &Full{Summary: "claude-code"} }}
}

// Plan cuts after all messages.
func (s *Full) Plan(v clip.View, at Moment) (plan.Plan, error) {
	return planCut(v, at,
		plan.Cut{At: len(v.Messages), All: true, Format: s.Summary.format()})
}
