package rank

import "math"

// BuiltinWeight is Endpoint.Weight for a model that is known to be good. It was measured on the questions of
// bench/questions with all-MiniLM-L6-v2: weights from 0.3 to 0.8 put the same number of answers among the first ten,
// within half a point.
const BuiltinWeight = 0.5

// Constants for the trust in an arm by meaning if the model is unknown. With any model, even with random vectors, the
// best cosine of many rows is far above their mean. Only a best cosine above the best of as many random rows shows that
// the model has found something. The excess is 0.7 deviations in the median for the good model of bench/questions, and
// -0.5 for a poor one.
const (
	chance     = 0.8  // deviations above random rows that a model without any sense reaches, too
	trusting   = 2.5  // further deviations for full trust
	leastTrust = 0.01 // still orders rows that words leave equal
)

// Least standard deviations of cosines. Nearly equal texts have cosines without a spread. With fewer than 20 rows the
// measured deviation says little, so it is at least what most models have.
const (
	leastDeviation   = 0.02
	fewRowsDeviation = 0.1
)

// wordsPower is the exponent for the best row's share: its score divided by the score of a row with each word of the
// query once. An exponent is needed because many texts on other topics have half of the words. It was measured on the
// questions of bench/questions with models that know nothing: with 2, and chance at 0.5, meaning displaced 6 of 87
// answers that words find.
const wordsPower = 1.5

// weigh returns the weights of both arms. Words weigh as much as their share to the power of wordsPower. Meaning weighs
// as much as the distance of the best cosine from the floor of the shares, in deviations, times the endpoint's weight.
// rows is how many rows the arms cover.
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
	case len(meaning) > 0: // all rows are equal
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

// cosinesOf estimates the cosines of all rows from the ranked best ones. With many rows, the hits from rank 25 to 100
// follow the upper end of a normal distribution. If there are fewer hits than an arm can have, they are all rows.
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

// meanOf returns the mean of the scores and their standard deviation.
func meanOf(hits []Hit) (mean, deviation float64) {
	for _, h := range hits {
		mean += h.Score / float64(len(hits))
	}
	for _, h := range hits {
		deviation += (h.Score - mean) * (h.Score - mean) / float64(len(hits))
	}
	return mean, math.Sqrt(deviation)
}

// fitFrom is a rank. The normal distribution is fitted to the hits from this rank on, because the hits before it are
// relevant.
const fitFrom = 25

// fitTail fits the upper end of a normal distribution to the last of the ranked hits, by least squares, and returns its
// mean and standard deviation.
func fitTail(hits []Hit, rows int) (mean, deviation float64) {
	var n, sumX, sumY, sumXX, sumXY float64
	for i := fitFrom - 1; i < len(hits); i++ {
		x, y := quantile(1-(float64(i)+0.5)/float64(rows)), hits[i].Score
		n, sumX, sumY, sumXX, sumXY = n+1, sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
	}
	deviation = (n*sumXY - sumX*sumY) / (n*sumXX - sumX*sumX)
	return (sumY - deviation*sumX) / n, deviation
}

// bestOfRandom returns by how many deviations, on average, the best of n values of a normal distribution exceeds the
// mean.
func bestOfRandom(n int) float64 { return quantile(1 - 0.56/float64(max(n, 2))) }

// quantile returns the value that a standard normal distribution stays below with probability p.
func quantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }
