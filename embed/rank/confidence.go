package rank

// A score by words is compared with that of a text of middling length that has each of the query's words once, which
// is the sum of their weights. Long texts that have all of them score less than that, and half of the words found are
// more than half a hit: the share is bent by halfShare, so that a share of 1 stays 1, and one of 0.3 becomes 0.65.
const halfShare = 0.3

// GuessedShare is what a score is worth where the query's words were replaced by others that are spelled like them.
const GuessedShare = 0.8

// Certainty returns how good a row of the ranking is by its own words or meaning, from 0 to 1.
func (r Ranking) Certainty(row Scored) float64 {
	return max(row.Words*r.wordsConfidence, row.Meaning*r.meaningConfidence)
}

func (r Ranking) confidenceOfWords() float64 {
	share := r.shareOfWhole()
	return min(1, (1+halfShare)*share/(share+halfShare))
}

// shareOfWhole returns the best score by words in shares of what a text of middling length scores that has each of the
// query's words once; at most 1.
func (r Ranking) shareOfWhole() float64 {
	whole := 0.0
	for _, t := range r.Query.Terms {
		if !t.Other {
			whole += float64(t.Weight)
		}
	}
	if whole == 0 {
		return 0
	}
	return min(1, r.BestWords/whole)
}

// confidenceOfMeaning returns the best cosine of an arm, above what unrelated text has: the last of many rows. Among
// few rows, it is the cosine itself.
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

// Calibrate scales the scores of rows, the best first, so that the best has the ranking's Confidence: scores of
// different queries can then be compared.
func (r Ranking) Calibrate(rows []Scored) {
	if len(rows) == 0 || rows[0].Score <= 0 {
		return
	}
	best := rows[0].Score
	for i := range rows {
		rows[i].Score = r.Calibrated(rows[i].Score, best)
	}
}

// Calibrated returns a score as Calibrate does, of rows of which the best has the given one.
func (r Ranking) Calibrated(score, best float64) float64 {
	if best <= 0 {
		return 0
	}
	return r.Confidence * max(0, score/best)
}
