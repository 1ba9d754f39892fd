package policy

import (
	"math"

	"github.com/loci-memory/loci/compaction/clip"
)

// CachePrices are what a provider charges for a prompt.
type CachePrices struct {
	Input float64 `json:"input_per_million"` // of a million tokens that are neither read from the cache nor written to it
	Read  float64 `json:"read_multiplier"`   // of Input, for tokens read from the cache
	Write float64 `json:"write_multiplier"`  // of Input, for tokens written to the cache
}

// UsualPrices are those of a cache that lives five minutes, for prompts of $15 per million tokens.
var UsualPrices = CachePrices{Input: 15, Read: 0.1, Write: 1.25}

// Change is what edits change of a prompt that a provider has in its cache.
type Change struct {
	First  int // position of the first message that is shown otherwise; 0 if none is
	Saved  int // tokens that the prompt no longer has
	Suffix int // tokens from the first changed message to the end of what was sent, which are written again
}

// Prompt returns what a prompt costs of which some tokens are in the cache. The others are written to it.
func (c CachePrices) Prompt(tokens, cached int) float64 {
	cached = min(max(cached, 0), tokens)
	return c.Input / 1e6 * (c.Read*float64(cached) + c.Write*float64(tokens-cached))
}

// Uncached returns what a prompt costs without a cache.
func (c CachePrices) Uncached(tokens int) float64 { return c.Input / 1e6 * float64(tokens) }

// Penalty returns what a change costs once while the cache is warm: what follows it is written again instead of read.
func (c CachePrices) Penalty(change Change) float64 {
	return c.Input / 1e6 * (c.Write - c.Read) * float64(change.Suffix)
}

// BreakEven returns after how many prompts a change has saved what it costs; infinite if it saves nothing.
func (c CachePrices) BreakEven(change Change) float64 {
	if change.Suffix <= 0 {
		return 0
	}
	if change.Saved <= 0 || c.Read <= 0 {
		return math.Inf(1)
	}
	return float64(change.Suffix) * (c.Write - c.Read) / (float64(change.Saved) * c.Read)
}

// changeOf returns what some edits change of a view of which messages were sent up to a position.
func changeOf(before, after clip.View, edits []clip.Edit, sent int) (c Change) {
	for _, e := range edits {
		if e.Position <= sent && (c.First == 0 || e.Position < c.First) {
			c.First = e.Position
		}
	}
	if c.First == 0 {
		return c
	}
	was, is := clip.ShownTokens(before), clip.ShownTokens(after)
	for i, m := range before.Messages {
		if m.Position >= c.First && m.Position <= sent {
			c.Suffix += is[i]
			c.Saved += was[i] - is[i]
		}
	}
	return c
}

// sentOf returns the position of the last message that was sent to a provider.
func sentOf(v clip.View, at Moment) int {
	switch {
	case at.Sent > 0:
		return at.Sent
	case v.Usage != nil && v.Usage.Position > 0:
		return v.Usage.Position
	}
	return math.MaxInt
}
