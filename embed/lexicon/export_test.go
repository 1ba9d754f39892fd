package lexicon

import (
	"maps"
	"slices"
	"strings"
)

// Terms returns the terms of a text.
func Terms(text string) []string {
	var terms []string
	EachTerm(text, func(t *Term) { terms = append(terms, t.Text) })
	return terms
}

// ListedWords returns the words of the lists.
func ListedWords() (words []string) {
	words = slices.AppendSeq(words, maps.Keys(irregular))
	words = slices.AppendSeq(words, maps.Keys(families))
	return slices.AppendSeq(words, maps.Keys(abbreviations))
}

// Words returns the words of a text, including those that are not indexed.
func Words(text string) (words []string) {
	eachWord(plain(text), func(w word) { words = append(words, w.text) })
	return words
}

// PrefilterPasses reports whether the prefilter for the terms of one word passes another word.
func PrefilterPasses(term, word string) bool {
	terms := map[string]QueryTerm{}
	for _, t := range []*Term{lookup(term, English), lookup(term, English).name, lookup(term, English).also} {
		if t != nil && t.Text != "" {
			terms[t.Text] = QueryTerm{}
		}
	}
	return newPrefilter(terms).passes(word)
}

// PlainEnd returns the first word of a text if it is a plain one, and where it ends.
func PlainEnd(text string) (words []string, end int) {
	if end = plainEnd(text, 0); end > 0 {
		words = append(words, text[:end])
	}
	return words, end
}

// Joined returns the first words of a text, with all their parts and wholes, and where the last one ends.
func Joined(text string) (words []string, end int) {
	end = eachJoined(text, 0, func(w word) { words = append(words, w.text) })
	return words, end
}

// EnglishTerms returns the terms of a text in English.
func EnglishTerms(text string) (terms []string) {
	eachTermIn(compatible(text), spoken{English, true}, func(t *Term) { terms = append(terms, t.Text) })
	return terms
}

// Stems returns the stems of a word in a text of a language.
func Stems(language, word string) []string {
	l, _ := LanguageNamed(language)
	return stemsIn(l, strings.ToLower(word))
}
