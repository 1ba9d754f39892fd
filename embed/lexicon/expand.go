package lexicon

import (
	"slices"
	"strings"
	"unicode"
)

// expandedShare is the weight of a term that a query has only in another spelling, relative to its weight in a query
// that has the term itself.
const expandedShare = 0.3

// maxExpanded is the most such terms of a query.
const maxExpanded = 32

// alternative is a term of another spelling of one or two of a query's words.
type alternative struct {
	*Term
	of *Term
}

// alternatives returns the terms of other spellings of a query's words, without the query's own terms: the long form of
// an abbreviation, the short forms of a word, and two neighboring words as one (time zone as timezone, 18 500 as
// 18500).
func alternatives(text string, terms []*Term) []alternative {
	var all []alternative
	add := func(t, original *Term) {
		sameID := func(o *Term) bool { return o.ID == t.ID }
		same := func(a alternative) bool { return sameID(a.Term) }
		if len(all) < maxExpanded && !slices.ContainsFunc(terms, sameID) && !slices.ContainsFunc(all, same) {
			all = append(all, alternative{t, original})
		}
	}
	for _, original := range terms {
		for _, t := range abbreviations[original.Text] {
			add(t, original)
		}
	}
	previous := ""
	noLetter := func(r rune) bool { return !unicode.IsLetter(r) }
	for word := range strings.FieldsFuncSeq(strings.ToLower(plain(text)), noLetter) {
		if stopwords[word] || len(word) < minJoined || len(word) > maxTermRunes/2 {
			previous = ""
			continue
		}
		if previous != "" {
			add(TermOf("", previous+word), TermOf("", word))
		}
		previous = word
	}
	number := ""
	for word := range strings.FieldsSeq(text) {
		if number != "" && len(word) == 3 && isDigits(word) { // 18 500
			add(TermOf("", number+word), TermOf("", word))
		}
		if number = ""; len(word) <= 3 && isDigits(word) {
			number = word
		}
	}
	return all
}

// minJoined is the least length of a word that is joined with its neighbor.
const minJoined = 3
