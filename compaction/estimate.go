package compaction

import (
	"math"
	"math/bits"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// Estimate is how many tokens a view takes: what a provider counted of the prompt, which is neither its answer nor what it had cached, and
// a count of what came after; without a report a count of all that would be sent. Clipped results count what is shown of them.
func Estimate(v View) int { return estimate(v, shownTokens(v)) }

func estimate(v View, shown []int) int {
	if !v.reported() {
		return counted(v, shown)
	}
	n := v.Usage.PromptTokens
	for i, tokens := range shown {
		if v.Messages[i].Position > v.Usage.Position {
			n = add(n, tokens)
		}
	}
	return n
}

// counted is a view counted without a provider's report.
func counted(v View, shown []int) int {
	n := max(v.Fixed, 0)
	if v.Summary != nil {
		n = add(n, v.Summary.Tokens)
	}
	for _, tokens := range shown {
		n = add(n, tokens)
	}
	return n
}

// Open tells whether a call of a tool waits for its result at the end of the view.
func (v View) Open() bool { return groupsOf(v.Messages).pending < len(v.Messages) }

// reported tells whether a provider counted what the view began with. A count of nothing is none.
func (v View) reported() bool { return v.Usage != nil && v.Usage.PromptTokens > 0 }

// shownTokens are the tokens of each message as it is shown.
func shownTokens(v View) []int {
	clips := clipsOf(v.Clips)
	tokens := make([]int, len(v.Messages))
	for i, m := range v.Messages {
		tokens[i] = max(m.Tokens, 0)
		for _, c := range clips[m.Position] {
			tokens[i] = max(tokens[i]-clipSaves(m, c), 0)
		}
	}
	return tokens
}

// clipSaves is by how many tokens a message is shorter for one of its results that is shown clipped.
func clipSaves(m recall.Message, c Clip) int {
	if !fits(m, c) {
		return 0
	}
	return tokens.Estimate(m.Content[c.Part].Text) - clippedTokens(m, c)
}

// clippedTokens are those of what is shown of a result.
func clippedTokens(m recall.Message, c Clip) int { return tokens.Estimate(clipped(m, c)) }

// Crowding is by how many tokens the fixed parts of a prompt exceed what leaves a quarter of the window to messages; 0 if they do not, or
// if the window is not known. Views of files are shortened by so much before anything else is.
func Crowding(fixed, window int) int {
	if window <= 0 {
		return 0
	}
	return max(fixed-(window-window/4), 0)
}

// add is a sum that stays at the largest number instead of overflowing. What is negative counts nothing.
func add(a, b int) int {
	a, b = max(a, 0), max(b, 0)
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// ratio is how many tokens a provider counts for den of ours.
type ratio struct{ num, den int }

// of is x in the provider's tokens. x is not negative.
func (r ratio) of(x int) int {
	if r.num == r.den {
		return x
	}
	high, low := bits.Mul64(uint64(x), uint64(r.num)) // #nosec G115 -- neither is negative
	if high >= uint64(r.den) {                        // #nosec G115
		return math.MaxInt
	}
	quotient, _ := bits.Div64(high, low, uint64(r.den)) // #nosec G115
	return int(min(quotient, math.MaxInt))              // #nosec G115
}

// ratioOf compares a provider's count with ours of the same. It is believed to the half and to the double: beyond that the report is
// rather one of something else.
func ratioOf(reported, counted int) ratio {
	reported, counted = min(reported, math.MaxInt/4), min(counted, math.MaxInt/4)
	if counted <= 0 {
		return ratio{1, 1}
	}
	return ratio{num: min(max(reported, counted/2, 1), 2*counted), den: counted}
}

// share is so much of a window, in tokens.
func share(of float64, window int) int { return int(of*float64(window) + rounding) }
