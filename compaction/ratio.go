package compaction

import (
	"math"
	"math/bits"
)

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

// rounding bounds the error of a sum of shares, for example 0.7 + 0.1.
const rounding = 1e-9
