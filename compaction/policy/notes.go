package policy

import (
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/recall"
)

// Notes uses the working memory as the summary, so that no model is called. Without notes, or if the remaining messages
// are too large, it summarizes everything.
type Notes struct {
	MinTokens   int        `json:"min_tokens" min:"0" max:"10000000" doc:"Of recent messages, that stay at least."`
	MinMessages int        `json:"min_messages" min:"0" max:"10000" doc:"With text, that stay at least."`
	MaxTokens   int        `json:"max_tokens" min:"1" max:"10000000" doc:"That stay at most; at most half of the room."`
	Summary     FormatName `json:"summary" doc:"Its format, without notes."`
}

func (*Notes) describe() Mechanism {
	return Mechanism{Name: "notes", Stage: Compact, Source: "Claude Code, session memory",
		Words: "Makes the working memory the summary, so that no model is called.",
		New: func() Step {
			return &Notes{MinTokens: 10_000, MinMessages: 5, MaxTokens: 40_000, Summary: "claude-code"}
		}}
}

// Plan keeps the newest messages that have enough tokens and enough messages with text; it cuts before them.
func (s *Notes) Plan(v clip.View, at Moment) (plan.Plan, error) {
	full := &Full{Summary: s.Summary}
	if at.Notes == "" {
		return full.Plan(v, at)
	}
	points := clip.CutPointsOf(v.Messages)
	p, err := noted(planCut(v, at, plan.Cut{At: points.After(s.cut(v, at))}))(at.Notes)
	if err != nil || p.After > at.limit(v) && v.Window > 0 {
		return full.Plan(v, at)
	}
	return p, nil
}

func (s *Notes) cut(v clip.View, at Moment) int {
	tokens, most := plan.MessageTokens(v), kept(s.MaxTokens, v, at)
	have, texts := 0, 0
	for i, n := range slices.Backward(tokens) {
		if have >= s.MinTokens && texts >= s.MinMessages || have+n > most {
			return i + 1
		}
		have += n
		if role := v.Messages[i].Role; (role == recall.User || role == recall.Assistant) && v.Messages[i].Text() != "" {
			texts++
		}
	}
	return 0
}
