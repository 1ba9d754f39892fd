package tokens

import "math"

// Factor is how many tokens a model's provider counts for each token that Loci counts.
type Factor float64

// Limits of a factor, and of how much one report of a provider's usage changes it. A factor falls slowly, because
// prompts differ in content, and a prompt that is too long does more harm than one that is too short.
const (
	leastFactor               Factor = 0.9
	mostFall, mostRise        Factor = 0.05, 0.5
	leastCredible, mostReport        = 0.5, 2.5 // a report outside of these limits belongs to another prompt
)

// MostFactor is the highest factor.
const MostFactor Factor = 2

// Uncalibrated is the factor of an estimate for a model without any reported usage.
const Uncalibrated Factor = 1.05

// InitialFactor returns the factor of a model without any reported usage: 1 if its vocabulary is known.
func InitialFactor(model string) Factor {
	if encodingOf(model) == "" {
		return Uncalibrated
	}
	return 1
}

// After returns the factor after a provider reported its count of a prompt; ours is Loci's count of the same prompt.
// first says that this is the model's first report; it raises the factor at once. A report below half of our count or
// above two and a half times our count is ignored, because it belongs to another prompt.
func (f Factor) After(reported, ours int, first bool) Factor {
	seen := Factor(reported) / Factor(max(ours, 1))
	if seen < leastCredible || seen > mostReport {
		return f
	}
	if !first {
		seen = min(seen, f+mostRise)
	}
	return min(max(seen, f-mostFall, leastFactor), MostFactor)
}

// Of returns the provider's count for a count of ours, rounded up.
func (f Factor) Of(tokens int) int { return int(math.Ceil(float64(f) * float64(tokens))) }
