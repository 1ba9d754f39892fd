package lexicon

import "slices"

// Wanted is the words of a query, to be looked for in texts of any language.
type Wanted struct {
	query string
	words int
}

// NewWanted returns the words of a query.
func NewWanted(query string) Wanted {
	w := Wanted{query: compatible(query)}
	_, w.words = w.indexIn(spokenIn(w.query).in())
	return w
}

// Words returns how many different words the query has.
func (w Wanted) Words() int { return w.words }

// indexIn returns term → number of a word, for the query's words in these languages, and how many words there are.
func (w Wanted) indexIn(in Languages) (index map[string]int, words int) {
	index = map[string]int{}
	eachWord(w.query, func(one word) {
		terms := termsAt(w.query, one, in)
		if len(terms) == 0 {
			return
		}
		n, known := index[terms[0].Text]
		if !known {
			n = words
			words++
		}
		for _, t := range terms {
			if _, has := index[t.Text]; !has {
				index[t.Text] = n
			}
		}
	})
	return index, words
}

// In returns a function that counts how many different words of the query a part of a text has.
func (w Wanted) In(text string) func(part string) int {
	in := spokenIn(compatible(text)).in()
	index, words := w.indexIn(in)
	return func(part string) (n int) {
		part = compatible(part)
		has := make([]bool, words)
		eachWord(part, func(one word) {
			for _, t := range termsAt(part, one, in) {
				if i, known := index[t.Text]; known && !has[i] {
					has[i] = true
					n++
				}
			}
		})
		return n
	}
}

// Count returns how many different words of the query a text has.
func (w Wanted) Count(text string) int { return w.In(text)(text) }

// Share returns the share of the query's words that a text has, from 0 to 1; 0 for a query without words.
func (w Wanted) Share(text string) float64 {
	if w.words == 0 {
		return 0
	}
	return float64(w.Count(text)) / float64(w.words)
}

// Terms returns the terms of the query that a text has, sorted.
func (w Wanted) Terms(text string) []string {
	text = compatible(text)
	in := spokenIn(text).in()
	index, _ := w.indexIn(in)
	terms := []string{}
	eachWord(text, func(one word) {
		for _, t := range termsAt(text, one, in) {
			if _, known := index[t.Text]; known && !slices.Contains(terms, t.Text) {
				terms = append(terms, t.Text)
			}
		}
	})
	slices.Sort(terms)
	return terms
}
