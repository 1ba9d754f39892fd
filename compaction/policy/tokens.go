package policy

import (
	"github.com/loci-memory/loci/compaction/clip"
)

// Tokens is due above a number of tokens, whatever the window.
type Tokens struct {
	AboveTokens int `json:"above_tokens" min:"1" max:"100000000" doc:"Tokens of a prompt above which it is compacted."`

	Counting
}

func (*Tokens) describe() Mechanism {
	return Mechanism{Name: "tokens", Stage: Pressure, Source: "Alyx (50,000), Anthropic (150,000)",
		Words: "Compacts above a number of tokens, whatever the window.",
		New:   func() Step { return &Tokens{AboveTokens: 50_000, Counting: asLoci} }}
}

// Due reports whether the prompt has more than AboveTokens.
func (s *Tokens) Due(v clip.View, at Moment) bool {
	return s.tokens(v, at) > s.AboveTokens
}

func (s *Tokens) most(clip.View, Moment) int { return s.AboveTokens }
