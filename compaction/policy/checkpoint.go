package policy

import (
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/recall"
)

// Checkpoint hides messages from before a checkpoint that the model wrote into working memory. Without a checkpoint it
// cuts like KeepRecent.
type Checkpoint struct {
	KeepRecentTokens int        `json:"keep_recent_tokens" min:"0" max:"10000000" doc:"That stay without a checkpoint."`
	Summary          FormatName `json:"summary" doc:"Its format, without a checkpoint."`
}

func (*Checkpoint) describe() Mechanism {
	return Mechanism{Name: "checkpoint", Stage: Compact, Source: "Alyx",
		Words: "Hides what came before a checkpoint that the model wrote; agents have it write one by their flush settings.",
		New:   func() Step { return &Checkpoint{KeepRecentTokens: 20_000, Summary: "pi"} }}
}

// Plan cuts after the checkpoint.
func (s *Checkpoint) Plan(v clip.View, at Moment) (plan.Plan, error) {
	cut := slices.IndexFunc(v.Messages, func(m recall.Message) bool { return m.Position > at.Noted })
	if at.Noted == 0 || at.Notes == "" || cut == 0 {
		return (&KeepRecent{KeepRecentTokens: s.KeepRecentTokens, SplitTurns: true, Summary: s.Summary}).Plan(v, at)
	}
	if cut < 0 {
		cut = len(v.Messages)
	}
	return noted(planCut(v, at, plan.Cut{At: cut}))(at.Notes)
}

// noted returns a function that sets notes as the summary of a plan.
func noted(p plan.Plan, err error) func(notes string) (plan.Plan, error) {
	return func(notes string) (plan.Plan, error) {
		if p.Evicted > 0 {
			p.NeedsModel, p.Self, p.Notes = false, false, notes
		}
		return p, err
	}
}
