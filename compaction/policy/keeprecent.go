package policy

import (
	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
)

// KeepRecent keeps the newest messages up to a number of tokens, as Pi does. A later compaction summarizes the messages
// that an earlier one kept, together with the earlier summary.
type KeepRecent struct {
	KeepRecentTokens int        `json:"keep_recent_tokens" min:"0" max:"10000000" doc:"At most half of the room."`
	SplitTurns       bool       `json:"split_turns" doc:"If there is room, the beginning of a divided turn has a summary."`
	Summary          FormatName `json:"summary" doc:"Its format."`
}

func (*KeepRecent) describe() Mechanism {
	return Mechanism{Name: "keep_recent", Stage: Compact, Source: "Pi",
		Words: "Keeps the newest messages by their tokens, and summarizes all others with the summary before.",
		New:   func() Step { return &KeepRecent{KeepRecentTokens: 20_000, SplitTurns: true, Summary: "pi"} }}
}

// Plan cuts so that the messages behind the cut have about the tokens to keep.
func (s *KeepRecent) Plan(v clip.View, at Moment) (plan.Plan, error) {
	cut := s.cut(v, at)
	return planCut(v, at, plan.Cut{At: cut, Format: s.Summary.format(),
		Split: s.SplitTurns})
}

func (s *KeepRecent) cut(v clip.View, at Moment) int {
	points := clip.CutPointsOf(v.Messages)
	return points.After(recent(plan.MessageTokens(v), max(kept(s.KeepRecentTokens, v, at), 1)))
}
