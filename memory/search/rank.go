package search

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/recall"
)

// ranked returns the best hits of all arms. The scores of two memories cannot be compared, because each memory weighs
// words by its own statistics. A hit therefore counts by its share of the query's words and by its rank in its memory.
// In the mode ByMeaning it counts by its score.
func (q Query) ranked(arms []found) []MemoryFound {
	all, sure := []MemoryFound{}, 0.0
	for _, a := range arms {
		query := lexicon.NewWanted(cmp.Or(a.searchedFor, q.Text))
		for i, h := range a.hits {
			sure = max(sure, h.Score)
			if q.Mode != recall.ByMeaning {
				h.Score = query.Share(h.said()) + 1/float64(i+2)
			}
			h.Text = db.Beginning(h.Text, maxTextBytes)
			all = append(all, h)
		}
	}
	slices.SortStableFunc(all, func(a, b MemoryFound) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(slices.Index(Kinds, a.Kind), slices.Index(Kinds, b.Kind)))
	})
	// The best hit gets the highest score that any memory gave.
	if len(all) > 0 && all[0].Score > 0 {
		for i, best := len(all)-1, all[0].Score; i >= 0; i-- {
			all[i].Score *= sure / best
		}
	}
	return all[:min(len(all), q.Limit)]
}

// named returns the place's path and label.
func (p FoundPlace) named() string { return strings.TrimSpace(p.Path + " " + p.Label) }

// said returns the text by which a hit is found.
func (h MemoryFound) said() string { return h.Place.named() + " " + h.Text }

// minKnown is how many words a query must have for a text with all of them to count as the answer.
const minKnown = 2

// known returns the place in a near layer that answers a query: the query contains its path, or its text has all words
// of the query.
func (q Query) known(near []found) string {
	query := lexicon.NewWanted(q.Text)
	for _, f := range near {
		for _, h := range f.hits {
			if names(q.Text, h.Place.Path) || query.Words() >= minKnown && query.Share(h.said()) == 1 {
				return cmp.Or(h.Place.Path, h.Place.Label, h.Place.Field)
			}
		}
	}
	return ""
}

// names reports whether a text contains a path, or the path's last name, as separate words. A last name without an
// extension is like any other word, so that only the whole path counts.
func names(text, of string) bool {
	if of == "" {
		return false
	}
	name := path.Base(of)
	return hasWord(text, of) || strings.Contains(strings.Trim(name, "."), ".") && hasWord(text, name)
}

// hasWord reports whether a text contains a name with no letter, digit, '_' or '-' directly before or after it.
func hasWord(text, name string) bool {
	continues := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-' }
	for start := 0; ; {
		i := strings.Index(text[start:], name)
		if i < 0 {
			return false
		}
		before, _ := utf8.DecodeLastRuneInString(text[:start+i])
		after, _ := utf8.DecodeRuneInString(text[start+i+len(name):])
		if !continues(before) && !continues(after) {
			return true
		}
		start += i + len(name)
	}
}

// best returns the hits that share words with the query, best first.
func (q Query) best(hits []MemoryFound) []MemoryFound {
	query := lexicon.NewWanted(q.Text)
	share := func(h MemoryFound) float64 { return query.Share(h.said()) }
	hits = slices.DeleteFunc(hits, func(h MemoryFound) bool { return share(h) == 0 })
	for i, h := range hits {
		hits[i].Score = share(h)
		if q.guessed {
			hits[i].Score *= rank.GuessedShare
		}
		if q.Explain {
			hits[i].Explanation = q.explained(h)
		}
	}
	slices.SortStableFunc(hits, func(a, b MemoryFound) int { return cmp.Compare(share(b), share(a)) })
	return hits[:min(len(hits), q.Limit)]
}

// explained says which words of the query a hit has.
func (q Query) explained(h MemoryFound) *rank.HitExplanation {
	e := &rank.HitExplanation{Words: h.Score, Score: h.Score, Boosts: []rank.Boost{}, Added: []rank.Added{},
		Terms: lexicon.NewWanted(q.Text).Terms(h.said())}
	for _, t := range e.Terms { // all words count the same
		e.Added = append(e.Added, rank.Added{Of: "term", Name: t, Value: h.Score / float64(len(e.Terms))})
	}
	return e
}

// bestLines returns the part of a text around the line with the most words of the query. part has at most maxTextBytes;
// first and last are its line numbers, from 1.
func (q Query) bestLines(text string) (part string, first, last int) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	count, bestLine, most := lexicon.NewWanted(q.Text).In(text), 0, -1
	for i, line := range lines {
		if n := count(line); n > most {
			bestLine, most = i, n
		}
	}
	first, last = bestLine, bestLine
	for size := len(lines[bestLine]); ; {
		grown := false
		if last+1 < len(lines) && size+len(lines[last+1]) < maxTextBytes {
			last, grown = last+1, true
			size += len(lines[last]) + 1
		}
		if first > 0 && size+len(lines[first-1]) < maxTextBytes {
			first, grown = first-1, true
			size += len(lines[first]) + 1
		}
		if !grown {
			break
		}
	}
	return strings.Join(lines[first:last+1], "\n"), first + 1, last + 1
}
