package policy

import (
	"github.com/loci-memory/loci/compaction/clip"
)

// Buffer is due when the free part of the window is no larger than a summary plus a buffer.
type Buffer struct {
	SummaryTokens int `json:"summary_tokens" min:"0" max:"10000000" doc:"Of the window, for a summary."`
	BufferTokens  int `json:"buffer_tokens" min:"0" max:"10000000" doc:"Also free; both at most half of the room, and in a smaller window a quarter of it."` //nolint:lll // a tag is one line

	Counting
}

func (*Buffer) describe() Mechanism {
	return Mechanism{Name: "buffer", Stage: Pressure, Source: "Claude Code (20,000 and 13,000)",
		Words: "Compacts when no more of the window is free than a summary needs, and a buffer.",
		New: func() Step {
			return &Buffer{SummaryTokens: 20_000, BufferTokens: 13_000, Counting: asLoci}
		}}
}

// Due reports whether the prompt, a summary and the buffer fill the window.
func (s *Buffer) Due(v clip.View, at Moment) bool {
	return v.Window > 0 && s.tokens(v, at) > s.most(v, at)
}

func (*Buffer) reserves() {}

func (s *Buffer) most(v clip.View, _ Moment) int {
	return withFree(v, s.SummaryTokens+s.BufferTokens) - 1
}
