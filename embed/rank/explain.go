package rank

import (
	"cmp"
	"math"
	"slices"

	"github.com/loci-memory/loci/embed/lexicon"
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
	Score   float64      `json:"score" doc:"In its own memory: the sum of what was added."`
	Added   []Added      `json:"added" doc:"What made its score, which is the sum of the values."`
}

// Added is one part of a hit's score.
type Added struct {
	Of    string  `json:"of" enum:"term,meaning,near,neighbor,session,participant,wish,date,passage,rerank" doc:"For."`
	Name  string  `json:"name,omitempty" doc:"The stem of the word; of a neighbor, the id of the message."`
	Value float64 `json:"value" doc:"How much of the hit's score; a long text or a reranker may take some away."`
}

// boost returns the name of the Boost that an added part belongs to.
func (a Added) boost() string {
	if a.Of == "neighbor" {
		return "neighbors"
	}
	return a.Of
}

// Boost is a gain of a hit in addition to its shares of words and meaning.
type Boost struct {
	Name  string  `json:"name" enum:"near,neighbors,session,participant,wish,date,passage" doc:"What for."`
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

// Ranked is a hit to be explained.
type Ranked struct {
	Key   int64
	Text  string  // by which words find it
	Score float64 // as the caller gets it
	Scale float64 // of a score in the ranking to one that the caller gets
	Gains []Added // in scores of the ranking, in addition to its words, its meaning and Scored.Near
}

// ExplainHit says how a row got its place, and what made its score.
func (r Ranking) ExplainHit(h Ranked) *HitExplanation {
	explanation := &HitExplanation{Terms: []string{}, Boosts: []Boost{}, Added: []Added{}, Score: h.Score,
		Rerank: r.judged.of(h.Key)}
	for _, t := range lexicon.DistinctTerms(h.Text) {
		if _, ok := r.Query.Terms[t]; ok {
			explanation.Terms = append(explanation.Terms, t)
		}
	}
	var parts []Added
	for _, row := range r.Rows {
		if row.ID == h.Key {
			explanation.Words, explanation.Meaning = row.Words, row.Meaning
			parts = append(r.termsOf(h.Text, r.Weights.Words*row.Words), Added{Of: "meaning",
				Value: r.Weights.Meaning * row.Meaning}, Added{Of: "near", Value: row.Near})
		}
	}
	parts = append(parts, h.Gains...)
	boosts := map[string]float64{}
	for _, a := range parts {
		if a.Value != 0 {
			explanation.Added = append(explanation.Added, Added{a.Of, a.Name, h.Scale * a.Value})
		}
		if a.Of != "term" && a.Of != "meaning" {
			boosts[a.boost()] += a.Value
		}
	}
	for _, name := range []string{"near", "neighbors", "session", "participant", "wish", "date", "passage"} {
		if boosts[name] != 0 {
			explanation.Boosts = append(explanation.Boosts, Boost{name, boosts[name]})
		}
	}
	explanation.addRerank()
	return explanation
}

// addRerank adds what a reranker changed: a hit that it judged has the score of its new place.
func (e *HitExplanation) addRerank() {
	rest := e.Score
	for _, a := range e.Added {
		rest -= a.Value
	}
	if e.Rerank != nil && math.Abs(rest) > leastAdded {
		e.Added = append(e.Added, Added{Of: "rerank", Value: rest})
	}
}

// leastAdded is the least score that a reranker changes; less is of rounding.
const leastAdded = 1e-9

// termsOf returns what each term of a text added to its score by words, the most first. Their sum is score.
func (r Ranking) termsOf(text string, score float64) (all []Added) {
	if score == 0 {
		return nil
	}
	document := lexicon.Document(text).Vector
	weights := make(map[int32]float64, len(r.Query.Terms))
	values := document.Values()
	for i, id := range document.Indices() {
		weights[id] = float64(values[i])
	}
	names := make(map[int32]string, len(r.Query.Terms))
	for name, t := range r.Query.Terms {
		if known, has := names[t.ID]; !has || name < known {
			names[t.ID] = name
		}
	}
	sum := 0.0
	values = r.Query.Vector.Values()
	for i, id := range r.Query.Vector.Indices() {
		if value := float64(values[i]) * weights[id]; value > 0 {
			all = append(all, Added{"term", names[id], value})
			sum += value
		}
	}
	if sum == 0 { // by a word with the same id
		return []Added{{"term", "", score}}
	}
	for i := range all {
		all[i].Value *= score / sum
	}
	slices.SortFunc(all, func(a, b Added) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Name, b.Name))
	})
	return all
}
