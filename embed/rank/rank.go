// Package rank searches rows and texts by words and by meaning, and fuses both rankings ([Fuse]). Each memory adds only
// the condition for its own rows.
// Each file uses only the files named before it: fuse.go rerank.go rank.go confidence.go weights.go near.go remarks.go
// bywords.go compounds.go search.go spelling.go explain.go reweigh.go texts.go
package rank

import (
	"time"

	"github.com/pgvector/pgvector-go"

	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/embed/wordindex"
)

// Ranking is the result of a search.
type Ranking struct {
	Rows      []Scored      // the best first; never nil
	Query     lexicon.Query // the query's words
	BestWords float64       // BM25 score of the best row by words; 0 if there is none
	Weights   Weights       // weights of the arms in Rows
	ByWords   bool
	ByMeaning bool
	Note      string // a sentence that says what the ranking lacks, or ""
	cut       bool   // the first filter leaves, or may leave, rows that are not ranked

	Confidence float64 // how good the best row is, from 0 to 1, by words or by meaning

	Vector *pgvector.HalfVector // of the query, in Space; nil if the ranking is not by meaning
	Space  endpoint.Space

	text           string // of the query
	scope          *lexicon.IDF
	match          *wordindex.Match // the index's answer for the query's words; nil if no index answered
	words, meaning arm
	took           time.Duration

	wordsConfidence, meaningConfidence float64 // confidence in the best row of each arm

	judged *judgement // the reranker's judgement of the best rows; nil without a reranker. Copies of the ranking share it
}

// arm is the result of one arm of a search.
type arm struct {
	rows  int
	first int // rows of the first filter
	best  float64
	took  time.Duration
}

// armOf returns the arm with the hits of each filter.
func armOf(hits [][]Hit, started time.Time) arm {
	a := arm{took: time.Since(started)}
	for i, found := range hits {
		if i == 0 {
			a.first = len(found)
		}
		for _, h := range found {
			if a.rows == 0 || h.Score > a.best {
				a.best = h.Score
			}
			a.rows++
		}
	}
	return a
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Weights are how much the arms of a search count. The heavier arm has 1.
type Weights struct{ Words, Meaning float64 }

// Confirm reports whether a row that a ranking found is a hit. Terms with the same TermID count as one, so a row may be
// found by a word that its text does not have. Then Confirm sets its rank by words to 0, and the row is a hit only if
// it was found by meaning.
func (r Ranking) Confirm(text string, wordsRank *int, meaningRank int) bool {
	if *wordsRank == 0 || r.Query.In(text) {
		return true
	}
	*wordsRank = 0
	return meaningRank > 0
}
