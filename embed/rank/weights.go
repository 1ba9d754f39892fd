package rank

import "math"

// BuiltinWeight is Endpoint.Weight for a model that is known to be good. Measured on the questions of bench/questions
// with all-MiniLM-L6-v2: from 0.3 to 0.8, as many answers are among the first ten, within half a point.
const BuiltinWeight = 0.5

// The trust in an arm by meaning whose model is unknown. With any model, the best cosine of many rows is far above
// their mean, even with random vectors. Only what it is above the best of as many random rows says that the model has
// found something: for the good model of bench/questions 0.7 deviations in the median, for a poor one -0.5.
const (
	chance     = 0.8  // deviations above that of random rows which a model without any sense has, too
	trusting   = 2.5  // deviations more, for full trust
	leastTrust = 0.01 // orders what words leave alone
)

// The least standard deviation of cosines: those of nearly equal texts are not apart. That of fewer than 20 rows says
// little, and is at least what most models have.
const (
	leastDeviation   = 0.02
	fewRowsDeviation = 0.1
)

// wordsPower is the power of the share that the best row has of what a row with all words of the query once scores.
// Half of the words are found in many texts that are about something else. Measured on the questions of bench/questions
// with models that know nothing: with 2, and chance at 0.5, meaning pushed out 6 of 87 answers that words find.
const wordsPower = 1.5

// weigh returns the weights of both arms. Words weigh as their share to the power of wordsPower.
// Meaning weighs as the number of deviations that the best cosine is above the floor of the shares, times the weight of
// the endpoint. rows is how many rows the arms are of.
func (r Ranking) weigh(meaning []Hit, rows int, weight float64) Weights {
	w := Weights{Words: math.Pow(r.shareOfWhole(), wordsPower)}
	if meaning = ranked(meaning); len(meaning) > 0 {
		c := cosinesOf(meaning, rows)
		if weight == 0 {
			weight = BuiltinWeight * c.trust()
		}
		w.Meaning = weight * (c.best - c.floor) / c.deviation
	}
	switch heavier := max(w.Words, w.Meaning); {
	case heavier > 0:
		return Weights{w.Words / heavier, w.Meaning / heavier}
	case len(meaning) > 0: // of equal rows
		return Weights{Words: 1, Meaning: 1}
	default:
		return Weights{Words: 1}
	}
}

// cosines describes the cosines of a question and all rows of a scope.
type cosines struct {
	rows                         int
	best, floor, mean, deviation float64
}

// cosinesOf estimates the cosines of all rows from those of the best, which are ranked. Of many rows, the hits from
// rank 25 to 100 lie on the line of a normal distribution's upper end; fewer hits than an arm holds are all rows.
func cosinesOf(meaning []Hit, rows int) cosines {
	n := min(len(meaning), MeaningRows)
	if n < MeaningRows {
		rows = n
	}
	c := cosines{rows: max(rows, n), best: meaning[0].Score, floor: floorOf(meaning)}
	if c.rows > MeaningRows {
		c.mean, c.deviation = fitTail(meaning[:n], c.rows)
	} else {
		c.mean, c.deviation = meanOf(meaning[:n])
	}
	if c.deviation = max(c.deviation, leastDeviation); n < fewRows {
		c.deviation = max(c.deviation, fewRowsDeviation)
	}
	if n == 1 {
		c.floor = 0
	}
	return c
}

// trust returns how far the best row can be trusted, from leastTrust to 1.
func (c cosines) trust() float64 {
	found := (c.best-c.mean)/c.deviation - bestOfRandom(c.rows)
	return min(1, max(leastTrust, (found-chance)/trusting))
}

// meanOf returns the mean of scores and their standard deviation.
func meanOf(hits []Hit) (mean, deviation float64) {
	for _, h := range hits {
		mean += h.Score / float64(len(hits))
	}
	for _, h := range hits {
		deviation += (h.Score - mean) * (h.Score - mean) / float64(len(hits))
	}
	return mean, math.Sqrt(deviation)
}

// fitFrom is the first rank of the hits that a normal distribution is fitted to. Those before are relevant.
const fitFrom = 25

// fitTail returns the mean and the standard deviation of the normal distribution whose upper end is nearest to the last
// of the ranked hits, by least squares.
func fitTail(hits []Hit, rows int) (mean, deviation float64) {
	var n, sumX, sumY, sumXX, sumXY float64
	for i := fitFrom - 1; i < len(hits); i++ {
		x, y := quantile(1-(float64(i)+0.5)/float64(rows)), hits[i].Score
		n, sumX, sumY, sumXX, sumXY = n+1, sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
	}
	deviation = (n*sumXY - sumX*sumY) / (n*sumXX - sumX*sumX)
	return (sumY - deviation*sumX) / n, deviation
}

// bestOfRandom returns about how many deviations the best of n values of a normal distribution is above its mean.
func bestOfRandom(n int) float64 { return quantile(1 - 0.56/float64(max(n, 2))) }

// quantile returns the value that a standard normal distribution is below with probability p.
func quantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }
