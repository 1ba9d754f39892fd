package rank

import (
	"context"
	"github.com/loci-memory/loci/embed/lexicon"
	"math"
	"slices"
)

// nearShare is the gain of a text that has two terms of a query next to each other, as a share of the lower of the two
// terms' weights. With one term between them the gain is half as much.
const nearShare = 0.4

// phraseShare is the additional gain of a text that has all terms of a query next to each other, in order, as a share
// of the best score by words.
const phraseShare = 0.1

// NearRows is how many of the best rows gain by Near. NearChars is how many characters of a row's text are read for it.
const (
	NearRows  = 40
	NearChars = 4_000
)

const nearTerms = 8 // greatest distance in a text

// HasNear reports whether a text may gain by Near.
func (r Ranking) HasNear() bool { return r.BestWords > 0 && len(r.Query.Pairs) > 0 }

// ShareOfWords returns what a BM25 score adds to Scored.Score.
func (r Ranking) ShareOfWords(score float64) float64 {
	if r.BestWords == 0 {
		return 0
	}
	return r.Weights.Words * score / r.BestWords
}

// Near returns what a text gains for having the query's terms near each other and in the query's order.
func (r Ranking) Near(text string) float64 {
	if !r.HasNear() {
		return 0
	}
	weights := make(map[int32]float64, len(r.Query.Terms)) // of words
	for _, t := range r.Query.Terms {
		weights[t.Word] = max(weights[t.Word], float64(t.Weight))
	}
	places, n := make(map[int32][]int), 0
	r.Query.EachTerm(text, func(t *lexicon.QueryTerm) {
		if t != nil {
			places[t.Word] = append(places[t.Word], n)
		}
		n++
	})
	gain, phrase := 0.0, phraseShare
	for _, p := range r.Query.Pairs {
		least := leastDistance(places[p.First], places[p.Second])
		if p.Distance == 1 && least > 1 {
			phrase = 0
		}
		if least <= nearTerms {
			gain += min(weights[p.First], weights[p.Second]) / float64(least*p.Distance)
		}
	}
	return r.ShareOfWords(nearShare*gain) + r.Weights.Words*phrase
}

// Text is the beginning of a row's text.
type Text struct {
	Key  int64  `db:"key"`
	Text string `db:"text"`
}

// TextsOf returns key → text of rows, if Near or a reranker needs the texts. read returns the rows' texts in any order;
// it is called only if they are needed.
func (r Ranking) TextsOf(keys []int64, read func(keys []int64) ([]Text, error)) (map[int64]string, error) {
	if !r.HasNear() && !r.Reranks() {
		return nil, nil
	}
	texts, err := read(keys)
	byKey := make(map[int64]string, len(texts))
	for _, t := range texts {
		byKey[t.Key] = t.Text
	}
	return byKey, err
}

// RankByText adds the gains by Near to the NearRows best rows, sorts these rows, and lets the reranker order the first
// of them. read is as for TextsOf.
func (r *Ranking) RankByText(ctx context.Context, read func(keys []int64) ([]Text, error)) error {
	r.Rows = slices.Clone(r.Rows)
	best := r.Rows[:min(len(r.Rows), NearRows)]
	keys := make([]int64, len(best))
	for i, row := range best {
		keys[i] = row.ID
	}
	texts, err := r.TextsOf(keys, read)
	if err != nil {
		return err
	}
	for i, row := range best {
		best[i].Near = r.Near(texts[row.ID])
		best[i].Score += best[i].Near
	}
	sortBest(best)
	r.RerankTexts(ctx, best, texts)
	return nil
}

// leastDistance returns the least distance from a place in first to a later place in second, or to an earlier one,
// which counts one more. Both lists ascend.
func leastDistance(first, second []int) int {
	least, k := math.MaxInt, 0
	for _, position := range first {
		for k < len(second) && second[k] < position {
			k++
		}
		if k < len(second) && second[k] > position {
			least = min(least, second[k]-position)
		}
		if k > 0 {
			least = min(least, position-second[k-1]+1)
		}
	}
	return least
}
