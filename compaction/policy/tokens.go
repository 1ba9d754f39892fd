package policy

import "github.com/loci-memory/loci/compaction"

// Tokens is due above a number of tokens, whatever the window.
type Tokens struct {
	AboveTokens int     `json:"above_tokens" min:"1" max:"100000000" doc:"Tokens of a prompt above which it is compacted."`
	Count       string  `json:"count" oneof:"loci,chars" doc:"By Loci, or four characters a token."`
	CountFactor float64 `json:"count_factor" min:"1" max:"4" doc:"Raises the count."`
}

func (*Tokens) describe() Mechanism {
	return Mechanism{Name: "tokens", Stage: Pressure, Source: "Alyx (50,000), Anthropic (150,000)",
		Words: "Compacts above a number of tokens, whatever the window.",
		New:   func() Step { return &Tokens{AboveTokens: 50_000, Count: byLoci, CountFactor: 1} }}
}

// Due reports whether the prompt takes more tokens.
func (s *Tokens) Due(v compaction.View, at Moment) bool {
	return counting{s.Count, s.CountFactor}.tokens(v, at) > s.AboveTokens
}
