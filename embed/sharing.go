package embed

import (
	"iter"
	"slices"
	"strings"
)

// DistinctTerms returns the different terms of a text, sorted. Two texts that share one share a word; two that share a
// TermID may not.
func DistinctTerms(text string) []string {
	all := []string{}
	eachTerm(text, func(t *term) { all = append(all, t.text) })
	slices.Sort(all)
	return slices.Compact(all)
}

// In reports whether a text has one of the query's terms, or of other writings of these. It reads no further than the
// first.
func (q Query) In(text string) (found bool) {
	for piece := range pieces(text) {
		eachSifted(piece, q.sieve, func(t *term) {
			if t == nil {
				return
			}
			if _, ok := q.terms[t.text]; ok {
				found = true
			}
		})
		if found {
			return true
		}
	}
	return false
}

// pieceBytes is the least of a piece that is read at once.
const pieceBytes = 128

// pieces yields a text in pieces that end before white space, so that no word is in two.
func pieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(text) > pieceBytes {
			n := strings.IndexAny(text[pieceBytes:], " \n\t")
			if n < 0 {
				break
			}
			if !yield(text[:pieceBytes+n]) {
				return
			}
			text = text[pieceBytes+n:]
		}
		yield(text)
	}
}

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
