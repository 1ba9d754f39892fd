package rank

import (
	"context"
	"github.com/loci-memory/loci/embed/lexicon"
	"math"
	"slices"
)

// nearShare is what two of a query's terms add to a text's score where they are next to each other, in shares of the
// lower of their weights. Further apart they add less: half as much with a term between them.
const nearShare = 0.4

// phraseShare is what a text gains besides that has all of a query's terms next to each other in their order, in shares
// of the best score by words.
const phraseShare = 0.1

// NearRows is how many of the best rows are ranked by how near they have the query's words to each other, NearChars how
// much of a row's text is looked at for them.
const (
	NearRows  = 40
	NearChars = 4_000
)

const nearTerms = 8 // the greatest distance in a text

// HasNear reports whether a text may gain something by Near.
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
	weights := make(map[int32]float64, len(r.Query.Rarest))
	values := r.Query.Vector.Values()
	for i, id := range r.Query.Vector.Indices() {
		weights[id] = float64(values[i])
	}
	places, n := make(map[int32][]int), 0
	r.Query.EachTerm(text, func(t *lexicon.Term) {
		if t != nil && weights[t.ID] > 0 {
			places[t.ID] = append(places[t.ID], n)
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

// TextsOf returns the texts of rows by their keys, as far as Near or a reranker looks at them. read returns the rows'
// texts in any order; it is not called if nothing looks at them.
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

// RankByText adds the gains by Near to the scores of the NearRows best rows, sorts these rows, and lets the reranker
// order the first of them. read is that of TextsOf.
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

// leastDistance returns the least distance from a place to a later one of the second list, or, counted as one more, to
// an earlier one. Both lists ascend.
func leastDistance(first, second []int) int {
	least, k := math.MaxInt, 0
	for _, at := range first {
		for k < len(second) && second[k] < at {
			k++
		}
		if k < len(second) && second[k] > at {
			least = min(least, second[k]-at)
		}
		if k > 0 {
			least = min(least, at-second[k-1]+1)
		}
	}
	return least
}
