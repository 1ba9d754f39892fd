package recall

import (
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/lexicon"
)

// snippetBytes is about the length of a snippet.
const snippetBytes = 400

// snippet returns the part of a text that contains the most of the query's words, in whole characters. An ellipsis
// marks omitted text.
func snippet(text, query string) string {
	if len(text) <= snippetBytes {
		return text
	}
	from := bestWindow(text, lexicon.TermIDs(query))
	to := min(from+snippetBytes, len(text))
	from = len(db.Beginning(text, max(to-snippetBytes, 0)))
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	if i := strings.IndexAny(text[from:min(from+40, to)], " \n"); from > 0 && i >= 0 {
		from += i + 1
	}
	s := text[from:to]
	if from > 0 {
		s = "…" + s
	}
	if to < len(text) {
		s += "…"
	}
	return s
}

// bestWindow returns the start of the window of snippetBytes with the most different terms. Among overlapping windows
// with equally many it returns the middle one, because the answer to a query stands around its words. A piece of a long
// text is searched only if it has more different terms than the best window so far.
func bestWindow(text string, terms []int32) int {
	wanted := map[int32]bool{}
	for _, t := range terms {
		wanted[t] = true
	}
	const step = snippetBytes / 4
	best, last, most := 0, 0, 0
	for begin := 0; begin < len(text); begin += pieceBytes - snippetBytes {
		end := min(begin+pieceBytes, len(text))
		if different(text[begin:end], wanted) <= most {
			continue
		}
		for from := begin; from < end; from += step {
			switch n := different(text[from:min(from+snippetBytes, end)], wanted); {
			case n > most:
				best, last, most = from, from, n
			case n == most && from == last+step:
				last = from
			}
		}
	}
	return (best + last) / 2
}

// different counts how many of the wanted terms a text contains.
func different(text string, wanted map[int32]bool) int {
	found := map[int32]bool{}
	for _, t := range lexicon.TermIDs(text) {
		if wanted[t] {
			found[t] = true
		}
	}
	return len(found)
}
