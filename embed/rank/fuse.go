package rank

import (
	"cmp"
	"math"
	"slices"
)

// ArmRows is the most rows that a search passes to Fuse by words, and MeaningRows by meaning. An index of vectors takes
// twice as long for twice as many rows.
const (
	ArmRows     = 200
	MeaningRows = 100
)

// fewRows is the least number of rows for the lowest score to count as the score of unrelated text.
const fewRows = 20

// Hit is a row that one arm of a search found. Its score is BM25 by words, or the cosine by meaning.
type Hit struct {
	ID    int64
	Score float64
}

// Scored is a row with its rank and its share of the best score in both arms.
type Scored struct {
	ID          int64
	Words       float64 // share of the best score by words, 0 to 1
	Meaning     float64 // share of the best score by meaning, 0 to 1, measured from the score of unrelated text
	Near        float64 // gain by Ranking.Near
	Score       float64 // Weights.Words*Words + Weights.Meaning*Meaning + Near
	WordsRank   int     // 1-based; 0 if the arm did not find the row
	MeaningRank int     // 1-based; 0 if the arm did not find the row
}

// Fuse ranks the rows of both arms by Scored.Score. Of rows with the same score, the better one by words comes first,
// then the lower id. Each arm may be in any order. A row with a score by words of 0 or less has no word of the query,
// and does not count in that arm.
// With many models, the cosines of unrelated texts are far above 0. So a share by meaning is measured from a floor: the
// score at rank 100 or, if the arm is shorter, of its last row (a shorter arm has the whole scope). Among fewer than 20
// rows, even the last may be relevant. The distance between the best and the last is then scaled to 20 rows, and the
// floor is at least 0. So 3 rows with nearly equal cosines get nearly equal shares, and a single row gets a share of 1.
// A cosine of 0 or less gets a share of 0.
func Fuse(words, meaning []Hit, weights Weights) []Scored {
	found := make(map[int64]*Scored, len(words)+len(meaning))
	row := func(id int64) *Scored {
		if found[id] == nil {
			found[id] = &Scored{ID: id}
		}
		return found[id]
	}
	words = ranked(words)
	for i, h := range words {
		if h.Score > 0 {
			r := row(h.ID)
			r.Words, r.WordsRank = h.Score/words[0].Score, i+1
		}
	}
	meaning = ranked(meaning)
	share := meaningShare(meaning)
	for i, h := range meaning {
		r := row(h.ID)
		r.Meaning, r.MeaningRank = share(h.Score), i+1
	}
	return ordered(found, weights)
}

// ranked returns an arm, best first, each row once and with a finite score.
func ranked(arm []Hit) []Hit {
	arm = slices.DeleteFunc(slices.Clone(arm), func(h Hit) bool { return math.IsNaN(h.Score) || math.IsInf(h.Score, 0) })
	slices.SortFunc(arm, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	seen := make(map[int64]bool, len(arm))
	return slices.DeleteFunc(arm, func(h Hit) bool {
		again := seen[h.ID]
		seen[h.ID] = true
		return again
	})
}

// meaningShare returns a function that converts a score of the arm to a share of the best score.
func meaningShare(arm []Hit) func(score float64) float64 {
	if len(arm) == 0 || arm[0].Score <= 0 {
		return func(float64) float64 { return 0 }
	}
	best, floor := arm[0].Score, floorOf(arm)
	return func(score float64) float64 {
		if score >= best {
			return 1
		}
		return max(0, (score-floor)/(best-floor))
	}
}

// floorOf returns the score that the shares of a ranked arm are measured from.
func floorOf(arm []Hit) float64 {
	n := min(len(arm), MeaningRows)
	best, last := arm[0].Score, arm[n-1].Score
	return max(0, best-(best-last)*max(1, fewRows/float64(n)))
}

// ordered adds up the shares and sorts the rows, best first. Never nil.
func ordered(found map[int64]*Scored, weights Weights) []Scored {
	rows := make([]Scored, 0, len(found))
	for _, r := range found {
		r.Score = weights.Words*r.Words + weights.Meaning*r.Meaning
		rows = append(rows, *r)
	}
	sortBest(rows)
	return rows
}

func sortBest(rows []Scored) {
	slices.SortFunc(rows, func(a, b Scored) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Words, a.Words), cmp.Compare(a.ID, b.ID))
	})
}
