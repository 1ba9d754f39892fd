package lexicon

import (
	"cmp"
	"slices"

	"github.com/pgvector/pgvector-go"
)

// Query is the words of a search.
type Query struct {
	// Vector has each term's idf, however often the query has the term. Its inner product with a row's Lex.Vector is the
	// row's BM25 score; pgvector's <#> is the negative of that product. Terms of other spellings have a share of their
	// idf (see alternatives). It has at most MaxTerms terms, and none if the query has no word.
	Vector pgvector.SparseVector
	// Common is true if the query has only stop words. They are searched as names: "will" finds Will.
	Common bool
	// Rarest are the terms that the query itself has: the rarest in the scope first, then the lower id first. Never nil.
	Rarest []int32

	Pairs []Pair               // words that are near each other
	Terms map[string]QueryTerm // text → term in Vector

	languages Languages
	sieve     *prefilter // passes words that may be among the terms
}

// QueryTerm is a term of a query.
type QueryTerm struct {
	ID     int32
	Word   int32 // the id of the first term of the same word
	Weight float32
	Other  bool // in another spelling
}

// IsFirst reports whether the term is the first one of its word. Others are its stems in other languages.
func (t QueryTerm) IsFirst() bool { return t.ID == t.Word }

// queryWord is the terms of a word of a query, without duplicates: one for each different stem in the languages of the
// scope. It has at least one.
type queryWord []*Term

func (w queryWord) ids() (ids []int32) {
	for _, t := range w {
		ids = append(ids, t.ID)
	}
	return ids
}

// wordsIn returns the words of a query in the languages of the scope, and in the query's own.
func (f *IDF) wordsIn(text string, in Languages) (words []queryWord) {
	eachWord(text, func(w word) {
		found := queryWord(termsAt(text, w, in))
		if len(found) > 0 {
			words = append(words, f.known(found))
		}
	})
	return words
}

// known drops the terms of a word that the scope lacks, if it has another one. If the sample has none of them, all stay
// unless it is complete.
func (f *IDF) known(w queryWord) queryWord {
	if len(w) == 1 {
		return w
	}
	known := slices.DeleteFunc(slices.Clone(w), func(t *Term) bool { return f.having[t.ID] == 0 })
	switch {
	case len(known) > 0:
		return known
	case f.IsComplete():
		return w[:1]
	}
	return w
}

// Query weighs the terms of a query.
func (f *IDF) Query(text string) Query { return f.QueryWith(text, nil) }

// QueryWith weighs the terms of a query, and of compound words that have its words as parts. The compound words may be
// nil.
func (f *IDF) QueryWith(text string, compounds *Compounds) Query {
	text = compatible(text)
	in := f.languages
	if own := spokenIn(text); own.sure {
		in = in.add(own.Language)
	}
	words := f.wordsIn(text, in)
	common := len(words) == 0
	if common {
		for _, t := range namesOf(text) {
			words = append(words, queryWord{t})
		}
	}
	terms := make(map[string]QueryTerm, len(words))
	var firsts []*Term
	for _, w := range words {
		weight := float32(f.weight(w.ids()...))
		for i, t := range w {
			if _, has := terms[t.Text]; has {
				continue
			}
			terms[t.Text] = QueryTerm{ID: t.ID, Word: w[0].ID, Weight: weight}
			if i == 0 {
				firsts = append(firsts, t)
			}
		}
	}
	weights := weightsOf(terms)
	rarest := make([]int32, 0, len(weights))
	for _, w := range heaviest(slices.Clone(weights)) {
		rarest = append(rarest, w.id)
	}
	for _, a := range alternatives(text, different(firsts)) {
		if _, has := terms[a.Text]; has {
			continue
		}
		share := expandedShare * float32(min(f.weight(a.ID), f.weight(a.of.ID)))
		terms[a.Text] = QueryTerm{ID: a.ID, Word: a.ID, Weight: share, Other: true}
	}
	for _, a := range compounds.compoundsOf(words) {
		if _, has := terms[a.Text]; has || len(terms) >= mostTerms {
			continue
		}
		share := compoundShare * float32(min(f.weight(a.ID), f.weight(a.of.ID)))
		terms[a.Text] = QueryTerm{ID: a.ID, Word: a.of.ID, Weight: share, Other: true}
	}
	v := sparse(heaviest(weightsOf(terms)))
	slices.SortFunc(rarest, func(a, b int32) int {
		return cmp.Or(cmp.Compare(f.having[a], f.having[b]), cmp.Compare(a, b))
	})
	return Query{Vector: v, Rarest: rarest, Common: common, Pairs: pairsOf(words), Terms: terms, languages: in,
		sieve: newPrefilter(terms)}
}

// weightsOf returns the weights of terms, ordered by id. Of terms with the same id, the higher weight counts.
func weightsOf(terms map[string]QueryTerm) []weight {
	weights := make([]weight, 0, len(terms))
	for _, t := range terms {
		weights = append(weights, weight{t.ID, t.Weight})
	}
	slices.SortFunc(weights, func(a, b weight) int {
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(b.value, a.value))
	})
	return slices.CompactFunc(weights, func(a, b weight) bool { return a.id == b.id })
}

// EachTerm calls found with the query's term for each word of a text, and with nil for a word that has none. Stop words
// are left out.
func (q Query) EachTerm(text string, found func(*QueryTerm)) {
	text = compatible(text)
	eachWord(text, func(w word) {
		if !q.sieve.passes(w.text) {
			found(nil)
			return
		}
		if t := lookup(w.text, English); t.Text == "" {
			if t.name != nil && w.at >= 0 && isName(text, w.at, w.at+len(w.text)) {
				found(q.term(t.name))
			}
			return
		}
		var own *QueryTerm
		q.languages.each(func(l Language) {
			if own == nil {
				own = q.term(lookup(w.text, l))
			}
		})
		found(own)
	})
}

// TermsOf returns the terms of a word in the languages in which the query is searched.
func (q Query) TermsOf(word string) (all []*Term) {
	q.languages.each(func(l Language) {
		for t := lookup(word, l); t != nil && t.Text != ""; t = t.also {
			all = append(all, t)
		}
	})
	return all
}

// term returns the query's term among those of a word; nil if it has none.
func (q Query) term(t *Term) *QueryTerm {
	for ; t != nil; t = t.also {
		if own, has := q.Terms[t.Text]; has && t.Text != "" {
			return &own
		}
	}
	return nil
}
