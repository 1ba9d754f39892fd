package tokens

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// Factor is how many tokens a model's provider counts for each token that Loci counts.
type Factor float64

// Of returns the provider's count for a count of ours, rounded up.
func (f Factor) Of(tokens int) int { return int(math.Ceil(float64(f) * float64(tokens))) }

// MostFactor is the highest factor.
const MostFactor Factor = 2

// Uncalibrated is the factor of an estimate for a model without any reported usage.
const Uncalibrated Factor = 1.05

// Calibration holds a model's factor for each class of text, learned from its provider's counts of prompts. It is a
// linear regression, updated by a Kalman filter: a count changes the factors of the prompt's largest classes most, and
// the first counts change them more than later ones. It is stored as JSON, by the numbers of the classes.
type Calibration struct {
	Factors    [classes]float64
	Covariance [classes][classes]float64 // of the errors of Factors
	Deviation  float64                   // how far the latest reports were from what was predicted, as a share of it
	Latest     float64                   // of the prompt that was reported latest; 0 before any
	Reports    int
}

// Standard deviations of the regression.
const (
	priorDeviation  = 0.35  // of a factor of words before any report,
	priorOfOthers   = 0.7   // and of another class, of which vocabularies differ more
	reportDeviation = 0.03  // of a report from what the factors say, because texts of one class differ
	driftDeviation  = 0.015 // of a factor's change between two reports
	usualDeviation  = 0.04  // of the prediction of a prompt like those reported
)

// Shares by which a new deviation replaces the latest ones, and the highest that a prediction is raised by.
const (
	newestShare   = 0.3
	mostDeviation = 0.05
)

// A report belongs to another prompt if it is below leastFactors or above mostReport times our count: a proxy cut the
// prompt, or a program reports a prompt of its own.
const mostReport = 2.5

var leastFactors = [classes]float64{0.5, 0.3, 0.3, 0.25, 0.2, 0.2, 0.2, 0.3, 0.3, 0.2, 0, 0.3, 0.2}

// leastKnown is the least factor of texts counted with the model's own vocabulary.
const leastKnown = 0.9

// NewCalibration returns the calibration of a model without any reported usage. Its factors are 1 if the model's
// vocabulary is known, and else Uncalibrated.
func NewCalibration(model string) (c Calibration) {
	first := float64(Uncalibrated)
	if encodingOf(model) != "" {
		first = 1
	}
	for class := range classes {
		c.Factors[class], c.Covariance[class][class] = first, priorVariance(class)
	}
	for _, s := range starts {
		if strings.Contains(strings.ToLower(model), s.model) {
			c.Factors[s.class] = s.factor
		}
	}
	return c
}

// inThrees is the factor of digits for vocabularies with tokens of up to three digits. Long numbers take 0.32 of our
// tokens, and short ones 0.9.
const inThrees = 0.75

// priorVariance returns the variance of a class's factor before any report. A lower one would keep the factor of a
// class that is a small part of the reported prompts near its first value.
func priorVariance(class Class) float64 {
	if class != Words && class != LongWords && class != Frames {
		return priorOfOthers * priorOfOthers
	}
	return priorDeviation * priorDeviation
}

// starts are the first factors of classes that models with unpublished vocabularies count far off our estimate: Claude
// counted Thai as 1.6 times our tokens. Claude and Llama 3 have tokens of up to three digits.
var starts = []struct {
	model  string // a part of the model's name, lower-case
	class  Class
	factor float64
}{
	{"claude", Syllabic, 1.65},
	{"claude", Digits, inThrees},
	{"llama-3", Digits, inThrees},
	{"llama3", Digits, inThrees},
}

// Factor predicts the factor of a prompt. A prompt that is too long does more harm than one that is too short. So it is
// raised by how far the latest predictions were off. It is also raised for a prompt unlike those that were reported, at
// most to that of a model without any report. And if the latest prompt had more tokens than without any report, then
// classes of which little was reported are taken to have more, too.
func (c Calibration) Factor(of Composition) Factor {
	if c.Latest > float64(Uncalibrated) {
		for class, factor := range c.Factors {
			c.Factors[class] = max(factor, min(c.Latest, factor+2*math.Sqrt(c.Covariance[class][class])))
		}
	}
	shares := of.shares()
	factor := c.expected(shares) * (1 + min(c.Deviation, mostDeviation))
	if c.Reports > 0 {
		unlike := max(c.deviation(shares)-usualDeviation, 0)
		factor = max(factor, min(factor+unlike, float64(Uncalibrated)))
	}
	return min(Factor(factor), MostFactor)
}

// Mean returns the factor of a text as reported, without what Factor adds to be safe.
func (c Calibration) Mean(of Composition) Factor { return Factor(c.expected(of.shares())) }

// deviation returns the standard deviation of a prediction: how little was reported of such a prompt.
func (c Calibration) deviation(shares [classes]float64) float64 {
	variance := 0.0
	for i := range classes {
		for j := range classes {
			variance += shares[i] * c.Covariance[i][j] * shares[j]
		}
	}
	return math.Sqrt(max(variance, 0))
}

func (c Calibration) expected(shares [classes]float64) (factor float64) {
	for class, share := range shares {
		factor += share * c.Factors[class]
	}
	return factor
}

// shares returns the share of each class in all tokens. Without any, all are words.
func (c Composition) shares() (all [classes]float64) {
	total := c.Total()
	if total <= 0 {
		all[Words] = 1
		return all
	}
	for class, tokens := range c {
		all[class] = float64(tokens) / float64(total)
	}
	return all
}

// UnmarshalJSON implements json.Unmarshaler. A class that the storing version did not have has the factor of the class
// that it was part of, as little known as without a report.
func (c *Calibration) UnmarshalJSON(data []byte) error {
	type stored Calibration
	if err := json.Unmarshal(data, (*stored)(c)); err != nil {
		return fmt.Errorf("a model's calibration: %w", err)
	}
	for class, was := range map[Class]Class{Hashes: Fragments, Hebrew: Abjads} {
		if c.Covariance[class][class] == 0 {
			c.Factors[class], c.Covariance[class][class] = c.Factors[was], priorVariance(class)
		}
	}
	return nil
}

// After returns the calibration of a model after a provider reported its count of a prompt. believed is false if the
// report belongs to another prompt; it changes nothing.
func (c Calibration) After(reported int, of Composition, model string) (after Calibration, believed bool) {
	least, shares := leastFactors, of.shares()
	if encodingOf(model) != "" {
		least[Words] = leastKnown
	}
	seen, lowest := float64(reported)/float64(max(of.Total(), 1)), 0.0
	for class, share := range shares {
		lowest += share * min(least[class], leastFactors[class])
	}
	if seen < lowest || seen > mostReport || of.Total() <= 0 {
		return c, false
	}
	expected := c.expected(shares)
	off := seen - expected
	var toward [classes]float64 // covariance of each factor's error with the error of the prediction
	variance := reportDeviation * reportDeviation
	for i := range classes {
		for j := range classes {
			toward[i] += c.Covariance[i][j] * shares[j]
		}
		variance += shares[i] * toward[i]
	}
	for i := range classes {
		gain := toward[i] / variance
		c.Factors[i] = min(max(c.Factors[i]+gain*off, least[i]), float64(MostFactor))
	}
	for i := range classes {
		for j := range classes {
			c.Covariance[i][j] -= toward[i] * toward[j] / variance
		}
		if shares[i] > 0 {
			c.Covariance[i][i] = min(c.Covariance[i][i]+driftDeviation*driftDeviation, priorVariance(i))
		}
	}
	if c.Reports > 0 {
		error := off / max(expected, 0.1)
		c.Deviation = math.Sqrt((1-newestShare)*c.Deviation*c.Deviation + newestShare*error*error)
	}
	c.Latest = min(seen, float64(MostFactor))
	c.Reports++
	return c, true
}
