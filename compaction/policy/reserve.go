package policy

import (
	"github.com/loci-memory/loci/compaction/clip"
)

// Reserve is due when less than a reserve of the window is free.
type Reserve struct {
	ReserveTokens int `json:"reserve_tokens" min:"1" max:"10000000" doc:"That stay free; at most half of the room, and in a smaller window a quarter of it."` //nolint:lll // a tag is one line

	Counting
}

func (*Reserve) describe() Mechanism {
	return Mechanism{Name: "reserve", Stage: Pressure, Source: "Pi (16,384), OpenClaw (20,000)",
		Words: "Compacts when less than a reserve of the window is free.",
		New:   func() Step { return &Reserve{ReserveTokens: 16_384, Counting: asLoci} }}
}

// Due reports whether the prompt takes more than the window without the reserve.
func (s *Reserve) Due(v clip.View, at Moment) bool {
	return v.Window > 0 && s.tokens(v, at) > s.most(v, at)
}

func (*Reserve) reserves() {}

func (s *Reserve) most(v clip.View, _ Moment) int { return withFree(v, s.ReserveTokens) }
