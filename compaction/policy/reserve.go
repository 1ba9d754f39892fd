package policy

import "github.com/loci-memory/loci/compaction"

// Reserve is due if less than a reserve of the window is free.
type Reserve struct {
	ReserveTokens int     `json:"reserve_tokens" min:"1" max:"10000000" doc:"Of the window that stay free; at most half."`
	Count         string  `json:"count" oneof:"loci,chars" doc:"By Loci, or four characters a token."`
	CountFactor   float64 `json:"count_factor" min:"1" max:"4" doc:"Raises the count."`
}

func (*Reserve) describe() Mechanism {
	return Mechanism{Name: "reserve", Stage: Pressure, Source: "Pi (16,384), OpenClaw (20,000)",
		Words: "Compacts when less than a reserve of the window is free.",
		New:   func() Step { return &Reserve{ReserveTokens: 16_384, Count: byLoci, CountFactor: 1} }}
}

// Due reports whether the prompt takes more than the window without its reserve.
func (s *Reserve) Due(v compaction.View, at Moment) bool {
	return v.Window > 0 && counting{s.Count, s.CountFactor}.tokens(v, at) > v.Window-min(s.ReserveTokens, v.Window/2)
}
