// Package rank searches rows and texts by their words and by their meaning, and fuses both rankings ([Fuse]). Each
// memory keeps only the condition of its own rows.
//
// Each file uses those that are named before it: fuse.go rerank.go rank.go confidence.go weights.go near.go remarks.go
// bywords.go search.go spelling.go explain.go reweigh.go texts.go
package rank

import (
	"time"

	"github.com/pgvector/pgvector-go"

	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/embed/wordindex"
)

// Ranking is what a search found.
type Ranking struct {
	Rows      []Scored      // the best first; never nil
	Query     lexicon.Query // the query's words
	BestWords float64       // the BM25 score of the best row by words; 0 if there is none
	Weights   Weights       // of the arms that Rows are fused of
	ByWords   bool
	ByMeaning bool
	Note      string // a sentence on what the ranking lacks; empty if nothing
	cut       bool   // the first filter leaves rows, or may leave some, that are not ranked

	Confidence float64 // how good the best row is, from 0 to 1: the better one of its words and its meaning

	Vector *pgvector.HalfVector // of the query, in Space; nil where the ranking is not by meaning
	Space  endpoint.Space

	text           string // of the query
	scope          *lexicon.IDF
	match          *wordindex.Match // of its words; nil where no index answered
	words, meaning arm
	took           time.Duration

	wordsConfidence, meaningConfidence float64 // of the best row of each arm

	judged *judgement // of the best rows; nil if nothing judges them. Copies of the ranking share it
}

// arm is what one ranking of a search found.
type arm struct {
	rows  int
	first int // rows of the first filter
	best  float64
	took  time.Duration
}

// armOf describes a ranking by the hits of each filter.
func armOf(hits [][]Hit, started time.Time) arm {
	a := arm{took: time.Since(started)}
	for i, of := range hits {
		if i == 0 {
			a.first = len(of)
		}
		for _, h := range of {
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

// Confirm reports whether a row that a ranking found is a hit. Terms of the same TermID count as one, so a row may be
// found by a word that its text does not have: its rank by words becomes 0, and it is a hit only if it was found by
// meaning.
func (r Ranking) Confirm(text string, wordsRank *int, meaningRank int) bool {
	if *wordsRank == 0 || r.Query.In(text) {
		return true
	}
	*wordsRank = 0
	return meaningRank > 0
}
