package rank

// The best score by words is divided by the score of a text of medium length that has each word of the query once: the
// sum of the words' weights. A long text that has all words scores less than that, and half of the words are more than
// half a hit. So the share is bent: with halfShare, a share of 1 stays 1, and 0.3 becomes 0.65.
const halfShare = 0.3

// GuessedShare is the factor for a score if the query's words were replaced by others with a similar spelling.
const GuessedShare = 0.8

// Certainty returns how good a row of the ranking is, by its own words or meaning, from 0 to 1.
func (r Ranking) Certainty(row Scored) float64 {
	return max(row.Words*r.wordsConfidence, row.Meaning*r.meaningConfidence)
}

func (r Ranking) confidenceOfWords() float64 {
	share := r.shareOfWhole()
	return min(1, (1+halfShare)*share/(share+halfShare))
}

// shareOfWhole returns the best score by words, divided by the score of a text of medium length that has each word of
// the query once; at most 1.
func (r Ranking) shareOfWhole() float64 {
	whole := 0.0
	for _, t := range r.Query.Terms {
		if !t.Other && t.IsFirst() {
			whole += float64(t.Weight)
		}
	}
	if whole == 0 {
		return 0
	}
	return min(1, r.BestWords/whole)
}

// confidenceOfMeaning returns by how much the best cosine of an arm exceeds the cosine of unrelated text, from 0 to 1.
// Among many rows, unrelated text has the cosine of the last row; among few rows, it counts as 0.
func confidenceOfMeaning(arm []Hit) float64 {
	arm = ranked(arm)
	if len(arm) == 0 {
		return 0
	}
	best, floor := arm[0].Score, 0.0
	if len(arm) >= fewRows {
		floor = min(max(0, arm[min(len(arm), MeaningRows)-1].Score), best)
	}
	if floor >= 1 {
		return 1
	}
	return min(1, max(0, (best-floor)/(1-floor)))
}

// Calibrate scales the scores of rows (the best first) so that the best score is the ranking's Confidence. Then scores
// of different queries can be compared.
func (r Ranking) Calibrate(rows []Scored) {
	if len(rows) == 0 || rows[0].Score <= 0 {
		return
	}
	best := rows[0].Score
	for i := range rows {
		rows[i].Score = r.Calibrated(rows[i].Score, best)
	}
}

// Calibrated scales one score as Calibrate does. best is the best score.
func (r Ranking) Calibrated(score, best float64) float64 {
	if best <= 0 {
		return 0
	}
	return r.Confidence * max(0, score/best)
}
