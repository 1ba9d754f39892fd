package compaction

import (
	"math"
	"math/bits"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// Estimate returns how many tokens a view takes: a provider's count of the prompt, and ours of the messages after it;
// without a provider's count, ours of all that is sent. A clipped result counts as it is shown.
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

// counted counts a view without a provider's report.
func counted(v View, shown []int) int {
	n := add(v.Fixed, v.summaryTokens(v.summaryClip()))
	for _, tokens := range shown {
		n = add(n, tokens)
	}
	return n
}

// shownTokens returns the tokens of each message as it is shown.
func shownTokens(v View) []int {
	clips := clipsByPosition(v.Clips)
	tokens := make([]int, len(v.Messages))
	for i, m := range v.Messages {
		tokens[i] = max(m.Tokens, 0)
		for _, c := range clips[m.Position] {
			tokens[i] = max(tokens[i]-v.clipSaves(m, c), 0)
		}
	}
	return tokens
}

func (v View) count(text string) int {
	if v.Count == nil {
		return tokens.Estimate(text)
	}
	return v.Count(text)
}

func (v View) clipSaves(m recall.Message, c Clip) int {
	if !isClipOf(c, m) {
		return 0
	}
	return v.partTokens(m.Content[c.Part]) - v.clippedTokens(m, c)
}

func (v View) clippedTokens(m recall.Message, c Clip) int {
	return v.partTokens(clippedPart(v.Messages, m, c, v.Has))
}

func (v View) partTokens(p recall.Part) int {
	n := v.count(p.Text) + v.count(p.Name) + v.count(p.Input) + p.SealedTokens() + len(p.Images)*tokens.PerImage
	if p.Type == recall.Image {
		n += tokens.PerImage
	}
	return n
}

// summaryTokens returns the tokens of the summary, clipped if clip is not nil; 0 if there is none.
func (v View) summaryTokens(clip *Clip) int {
	if v.Summary == nil {
		return 0
	}
	n := max(v.Summary.Tokens, 0)
	if clip != nil {
		head, note := clippedSummary(v.Summary.Text, *clip)
		n = max(n-v.count(v.Summary.Text)+v.count(head+note), 0)
	}
	return n
}

// Crowding returns by how many tokens the fixed parts of a prompt exceed three quarters of the window, which leaves
// messages less than a quarter; 0 if they do not, or if the window is unknown.
func Crowding(fixed, window int) int {
	if window <= 0 {
		return 0
	}
	return max(fixed-(window-window/4), 0)
}

// add returns a sum that is at most math.MaxInt. A negative number counts as 0.
func add(a, b int) int {
	a, b = max(a, 0), max(b, 0)
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// ratio is how many tokens a provider counts for den of ours.
type ratio struct{ num, den int }

// of converts tokens of ours, which are not negative, to the provider's.
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

// ratioOf compares a provider's count with ours of the same messages. It is at least a half and at most 2: a report
// beyond that is likely about another prompt.
func ratioOf(reported, counted int) ratio {
	reported, counted = min(reported, math.MaxInt/4), min(counted, math.MaxInt/4)
	if counted <= 0 {
		return ratio{1, 1}
	}
	return ratio{num: min(max(reported, counted/2, 1), 2*counted), den: counted}
}

// share returns a share of a window, in tokens.
func share(of float64, window int) int { return int(of*float64(window) + rounding) }
