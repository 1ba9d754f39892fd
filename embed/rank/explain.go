package rank

import (
	"cmp"
	"github.com/loci-memory/loci/embed/lexicon"
	"slices"
)

// Explanation says how a search ranked.
type Explanation struct {
	Terms        []ExplainedTerm `json:"terms" doc:"Of the query as it is searched by words, the heaviest first."`
	Arms         []ExplainedArm  `json:"arms" doc:"The rankings that were fused."`
	Rows         int             `json:"rows" doc:"About how many rows the statistics of words are of."`
	Confidence   float64         `json:"confidence" doc:"The score of the best hit, from 0 to 1."`
	Milliseconds float64         `json:"milliseconds" doc:"That ranking took, without reading the hits."`

	Rerank *ExplainedRerank `json:"rerank,omitempty" doc:"What a second model did to the best rows; absent without one."`
}

// ExplainedTerm is a term of a query.
type ExplainedTerm struct {
	Term   string  `json:"term" doc:"The stem of a word."`
	Weight float64 `json:"weight" doc:"Its rareness: what a text of middling length that has it once scores for it."`
	Share  float64 `json:"share" doc:"Of a sample of the rows, those that have it."`
	Other  bool    `json:"other_writing" doc:"The query has it in another writing, so that it weighs less."`
}

// ExplainedArm is one ranking of a search.
type ExplainedArm struct {
	Arm          string  `json:"arm" enum:"words,meaning" doc:"What it ranks by."`
	Rows         int     `json:"rows" doc:"That it found: at most 200 by words and 100 by meaning, of messages more."`
	Best         float64 `json:"best" doc:"The BM25 score, or the cosine, of its best row."`
	Weight       float64 `json:"weight" doc:"Of a hit's share of the best score; the heavier arm has 1."`
	Milliseconds float64 `json:"milliseconds" doc:"That it took."`
}

// HitExplanation says how a hit got its place.
type HitExplanation struct {
	Terms   []string     `json:"terms" doc:"Of the query's, those that the hit has."`
	Words   float64      `json:"words" doc:"Its share of the best score by words; 0 if it is not among the best."`
	Meaning float64      `json:"meaning" doc:"Its share of the best score by meaning, above what unrelated text has."`
	Boosts  []Boost      `json:"boosts" doc:"What is added to the two shares."`
	Rerank  *float64     `json:"rerank,omitempty" doc:"What a second model says of it; absent if it was not asked."`
	Search  *Explanation `json:"search,omitempty" doc:"How the search ranked; of the first hit alone."`
}

// Boost is a gain of a hit in addition to its shares of words and meaning.
type Boost struct {
	Name  string  `json:"name" enum:"near,neighbors,session,participant,date,passage" doc:"What for."`
	Value float64 `json:"value" doc:"How much, where the best share by words is 1."`
}

// Explanation says how the ranking was made.
func (r Ranking) Explanation() *Explanation {
	explanation := &Explanation{Terms: []ExplainedTerm{}, Arms: []ExplainedArm{}, Rows: r.scope.Rows(),
		Confidence: r.Confidence, Milliseconds: milliseconds(r.took), Rerank: r.judged.explained()}
	weights := make(map[int32]float32, len(r.Query.Terms))
	values := r.Query.Vector.Values()
	for i, id := range r.Query.Vector.Indices() {
		weights[id] = values[i]
	}
	for text, t := range r.Query.Terms {
		if weight, ok := weights[t.ID]; ok {
			share := r.scope.Share([]int32{t.ID})
			explanation.Terms = append(explanation.Terms, ExplainedTerm{text, float64(weight), share, t.Other})
		}
	}
	slices.SortFunc(explanation.Terms, func(a, b ExplainedTerm) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Term, b.Term))
	})
	if r.ByWords {
		explanation.Arms = append(explanation.Arms, r.words.explained("words", r.Weights.Words))
	}
	if r.ByMeaning {
		explanation.Arms = append(explanation.Arms, r.meaning.explained("meaning", r.Weights.Meaning))
	}
	return explanation
}

func (a arm) explained(name string, weight float64) ExplainedArm {
	return ExplainedArm{Arm: name, Rows: a.rows, Best: a.best, Weight: weight, Milliseconds: milliseconds(a.took)}
}

// ExplainHit says how a row got its place. The caller gives the row's searchable text and its boosts.
func (r Ranking) ExplainHit(key int64, text string, boosts ...Boost) *HitExplanation {
	explanation := &HitExplanation{Terms: []string{}, Boosts: []Boost{}, Rerank: r.judged.of(key)}
	for _, t := range lexicon.DistinctTerms(text) {
		if _, ok := r.Query.Terms[t]; ok {
			explanation.Terms = append(explanation.Terms, t)
		}
	}
	for _, row := range r.Rows {
		if row.ID == key {
			explanation.Words, explanation.Meaning = row.Words, row.Meaning
			boosts = append(boosts, Boost{"near", row.Near})
		}
	}
	for _, b := range boosts {
		if b.Value != 0 {
			explanation.Boosts = append(explanation.Boosts, b)
		}
	}
	return explanation
}
