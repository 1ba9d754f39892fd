package search

import (
	"context"
	"slices"

	"github.com/loci-memory/loci/embed/rank"
)

// respelled returns a query of a list of texts in the spelling in which these have its words, and that spelling; the
// query as it is, and nothing, where they have its words as they are written, or none that is spelled like one.
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

// asWritten searches the memories again, as the query is written, that found another spelling of a word while some
// other memory has that word. All are the memories' hits, in the order of Kinds.
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

// replacedStands reports whether a hit of all has a word of the query that a memory replaced.
func (q Query) replacedStands(by found, all []found) bool {
	kept := terms(by.searchedFor)
	replaced := slices.DeleteFunc(terms(q.Text), func(t string) bool { return slices.Contains(kept, t) })
	return slices.ContainsFunc(all, func(f found) bool {
		return f.searchedFor == "" && slices.ContainsFunc(f.hits, func(h MemoryFound) bool {
			return covered(replaced, h.Place.named()+" "+h.Text) > 0
		})
	})
}
