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
	from := bestWindow(text, lexicon.NewWanted(query).In(text))
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

// bestWindow returns the start of the window of snippetBytes with the most words, as count counts them. Among
// overlapping windows with equally many it returns the middle one, because the answer to a query stands around its
// words. A piece of a long text is searched only if it has more words than the best window so far.
func bestWindow(text string, count func(part string) int) int {
	const step = snippetBytes / 4
	best, last, most := 0, 0, 0
	for begin := 0; begin < len(text); begin += pieceBytes - snippetBytes {
		end := min(begin+pieceBytes, len(text))
		if count(text[begin:end]) <= most {
			continue
		}
		for from := begin; from < end; from += step {
			switch n := count(text[from:min(from+snippetBytes, end)]); {
			case n > most:
				best, last, most = from, from, n
			case n == most && from == last+step:
				last = from
			}
		}
	}
	return (best + last) / 2
}
