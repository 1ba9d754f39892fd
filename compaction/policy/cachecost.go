package policy

import (
	"math"

	"github.com/loci-memory/loci/compaction/clip"
)

// CachePrices are a provider's prices for a prompt.
type CachePrices struct {
	Input float64 `json:"input_per_million"` // price of a million tokens that the cache neither has nor gets
	Read  float64 `json:"read_multiplier"`   // factor of Input for tokens read from the cache
	Write float64 `json:"write_multiplier"`  // factor of Input for tokens written to the cache
}

// UsualPrices are the prices of a five-minute cache, for prompts of $15 per million tokens.
var UsualPrices = CachePrices{Input: 15, Read: 0.1, Write: 1.25}

// Change says how edits change a prompt that a provider has in its cache.
type Change struct {
	First  int // position of the first message that is shown differently; 0 if none is
	Saved  int // tokens by which the prompt gets shorter
	Suffix int // tokens of the sent prompt from the first changed message on; they are written again
}

// Prompt returns the price of a prompt with cached tokens in the cache. The others are written to it.
func (c CachePrices) Prompt(tokens, cached int) float64 {
	cached = min(max(cached, 0), tokens)
	return c.Input / 1e6 * (c.Read*float64(cached) + c.Write*float64(tokens-cached))
}

// Counted returns the price of prompts, by a provider's counts of their tokens: all, those read from its cache, and
// those written to it.
func (c CachePrices) Counted(tokens, read, write int) float64 {
	read = min(max(read, 0), tokens)
	write = min(max(write, 0), tokens-read)
	return c.Input / 1e6 * (c.Read*float64(read) + c.Write*float64(write) + float64(tokens-read-write))
}

// Uncached returns the price of a prompt without a cache.
func (c CachePrices) Uncached(tokens int) float64 { return c.Input / 1e6 * float64(tokens) }

// Penalty returns the one-time cost of a change while the cache is warm: the tokens behind it are written again instead
// of read.
func (c CachePrices) Penalty(change Change) float64 {
	return c.Input / 1e6 * (c.Write - c.Read) * float64(change.Suffix)
}

// BreakEven returns the number of prompts after which a change has saved as much as it cost; infinite if it saves
// nothing.
func (c CachePrices) BreakEven(change Change) float64 {
	if change.Suffix <= 0 {
		return 0
	}
	if change.Saved <= 0 || c.Read <= 0 {
		return math.Inf(1)
	}
	return float64(change.Suffix) * (c.Write - c.Read) / (float64(change.Saved) * c.Read)
}

// changeOf returns how edits change the part of a view that was sent, up to position sent.
func changeOf(before, after clip.View, edits []clip.Edit, sent int) (c Change) {
	for _, e := range edits {
		if e.Position <= sent && (c.First == 0 || e.Position < c.First) {
			c.First = e.Position
		}
	}
	if c.First == 0 {
		return c
	}
	tokensBefore, tokensAfter := clip.ShownTokens(before), clip.ShownTokens(after)
	for i, m := range before.Messages {
		if m.Position >= c.First && m.Position <= sent {
			c.Suffix += tokensAfter[i]
			c.Saved += tokensBefore[i] - tokensAfter[i]
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
