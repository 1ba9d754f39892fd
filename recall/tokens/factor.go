package tokens

import "math"

// Factor is how many tokens a model's provider counts for one that Loci counts.
type Factor float64

// Bounds of a factor, and of what one report of a provider's usage changes of it. It falls slowly, because the content
// of prompts differs, and a prompt that is too long does more harm than one that is too short.
const (
	leastFactor               Factor = 0.9
	mostFall, mostRise        Factor = 0.05, 0.5
	leastCredible, mostReport        = 0.5, 2.5 // a report beyond these is of another prompt
)

// MostFactor is the highest factor.
const MostFactor Factor = 2

// Uncalibrated is the factor of an estimate for a model of which no usage was reported.
const Uncalibrated Factor = 1.05

// InitialFactor returns the factor of a model of which no usage was reported: 1 if its vocabulary is known.
func InitialFactor(model string) Factor {
	if encodingOf(model) == "" {
		return Uncalibrated
	}
	return 1
}

// After returns the factor after a provider reported its count of a prompt, of which ours is known. first says that it
// is the model's first report, which raises the factor at once. It ignores a report of less than half of our count or
// of more than two and a half times as much, which is of another prompt.
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

// Of returns a count of ours as the provider counts it, rounded up.
func (f Factor) Of(tokens int) int { return int(math.Ceil(float64(f) * float64(tokens))) }
