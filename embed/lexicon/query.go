package lexicon

import (
	"iter"
	"slices"
	"strings"
)

// DistinctTerms returns the different terms of a text, sorted. Two texts with a common term share a word; two texts
// with a common TermID may not.
func DistinctTerms(text string) []string {
	all := []string{}
	EachTerm(text, func(t *Term) { all = append(all, t.Text) })
	slices.Sort(all)
	return slices.Compact(all)
}

// In reports whether a text has one of the query's terms, in the query's spelling or another. It reads the text only up
// to the first one.
func (q Query) In(text string) (found bool) {
	for piece := range pieces(text) {
		q.EachTerm(piece, func(t *QueryTerm) { found = found || t != nil })
		if found {
			return true
		}
	}
	return false
}

// pieceBytes is the least size of a piece that is read at once.
const pieceBytes = 128

// pieces yields a text in pieces that end before white space, so that no word is cut in two.
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
