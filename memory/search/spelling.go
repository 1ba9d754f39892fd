package search

import (
	"context"
	"slices"
	"strings"

	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/embed/rank"
)

// respelled returns the query in the spelling that the texts use for its words, and that spelling. If the texts have
// the words as they are written, or no similar words, it returns the query unchanged and "".
func (q Query) respelled(texts []string) (Query, string) {
	if q.AsWritten {
		return q, ""
	}
	spelling := rank.SpellingIn(q.Text, texts)
	if spelling != "" {
		q.Text, q.guessed = spelling, true
	}
	return q, spelling
}

// asWritten repeats the search, with the query as it is written, in memories that replaced a word while another memory
// has that word. It puts the new hits into all, which has one element per kind.
func (m Memories) asWritten(ctx context.Context, q Query, arms map[Kind]arm, all []found) error {
	again := map[Kind]arm{}
	for i, f := range all {
		if f.searchedFor != "" && q.replacedStands(f, all) {
			again[Kinds[i]] = arms[Kinds[i]]
		}
	}
	if len(again) == 0 {
		return nil
	}
	q.AsWritten = true
	second, err := m.side(ctx, q, again)
	for i, f := range second {
		if again[Kinds[i]] != nil {
			all[i] = f
		}
	}
	return err
}

// replacedStands reports whether some memory's hit has a word that respelled's memory replaced.
func (q Query) replacedStands(respelled found, all []found) bool {
	replaced := lexicon.NewWanted(withoutWords(q.Text, respelled.searchedFor))
	return slices.ContainsFunc(all, func(f found) bool {
		return f.searchedFor == "" && slices.ContainsFunc(f.hits, func(h MemoryFound) bool {
			return replaced.Count(h.said()) > 0
		})
	})
}

// withoutWords returns a text's words that another text lacks.
func withoutWords(text, other string) string {
	kept := strings.Fields(other)
	return strings.Join(slices.DeleteFunc(strings.Fields(text), func(word string) bool {
		return slices.Contains(kept, word)
	}), " ")
}
