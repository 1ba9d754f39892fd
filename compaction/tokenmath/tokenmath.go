// Package tokenmath adds and converts numbers of tokens without overflow.
package tokenmath

import (
	"math"
	"math/bits"
)

// Add returns a sum, at most math.MaxInt. A negative number counts as 0.
func Add(a, b int) int {
	a, b = max(a, 0), max(b, 0)
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// Ratio says that a provider counts Num tokens for Den tokens of ours.
type Ratio struct{ Num, Den int }

// Of converts our tokens, which must not be negative, to the provider's.
func (r Ratio) Of(x int) int {
	if r.Num == r.Den {
		return x
	}
	high, low := bits.Mul64(uint64(x), uint64(r.Num)) // #nosec G115 -- neither is negative
	if high >= uint64(r.Den) {                        // #nosec G115
		return math.MaxInt
	}
	quotient, _ := bits.Div64(high, low, uint64(r.Den)) // #nosec G115
	return int(min(quotient, math.MaxInt))              // #nosec G115
}

// Of compares a provider's count with ours of the same messages. The ratio is at least a half and at most 2, because a
// report beyond these limits is likely about another prompt.
func Of(reported, counted int) Ratio {
	reported, counted = min(reported, math.MaxInt/4), min(counted, math.MaxInt/4)
	if counted <= 0 {
		return Ratio{1, 1}
	}
	return Ratio{Num: min(max(reported, counted/2, 1), 2*counted), Den: counted}
}

// Share returns a share of a window in tokens.
func Share(of float64, window int) int { return int(of*float64(window) + Rounding) }

// Rounding is added to sums of shares such as 0.7 + 0.1, because they may be slightly too small.
const Rounding = 1e-9
