package lexicon

import (
	"iter"
	"slices"
	"strings"
)

// DistinctTerms returns the different terms of a text, sorted. Two texts that share one share a word; two that share a
// TermID may not.
func DistinctTerms(text string) []string {
	all := []string{}
	EachTerm(text, func(t *Term) { all = append(all, t.Text) })
	slices.Sort(all)
	return slices.Compact(all)
}

// EachTerm calls fn with each term of a text, and with nil for a word that cannot be of one of the query's terms.
func (q Query) EachTerm(text string, fn func(*Term)) { eachSifted(text, q.sieve, fn) }

// In reports whether a text has one of the query's terms, or of other writings of these. It reads no further than the
// first.
func (q Query) In(text string) (found bool) {
	for piece := range pieces(text) {
		q.EachTerm(piece, func(t *Term) {
			if t == nil {
				return
			}
			if _, ok := q.Terms[t.Text]; ok {
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
