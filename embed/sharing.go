package embed

import (
	"slices"
)

// DistinctTerms returns the different terms of a text, sorted. Two texts that share one share a word; two that share a
// TermID may not.
func DistinctTerms(text string) []string {
	all := []string{}
	eachTerm(text, func(t *term) { all = append(all, t.text) })
	slices.Sort(all)
	return slices.Compact(all)
}

// In reports whether a text has one of the query's terms, or of other writings of these.
func (q Query) In(text string) (found bool) {
	eachTerm(text, func(t *term) {
		if _, ok := q.terms[t.text]; ok {
			found = true
		}
	})
	return found
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
