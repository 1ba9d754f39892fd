package local

import (
	"math"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// unigram cuts words into pieces of a vocabulary: those with the greatest sum of scores, as SentencePiece does.
type unigram struct {
	normalize func(string) string
	split     func(string) []string // splits a text into words
	pieces    []string              // in order
	ids       []int32
	scores    []float64
	starts    [257]int // first byte of a piece → index of the first such piece
	unknown   int32
	penalty   float64 // the score of a character that is in no piece
}

// scored is a piece and its score.
type scored struct {
	piece string
	score float64
}

// unknownPenalty is by how much an unknown character scores less than the worst piece.
const unknownPenalty = 10

// newUnigram makes a tokenizer of a vocabulary, in which pieces are ordered by number. unknown is the number of the
// unknown piece.
func newUnigram(vocabulary []scored, unknown int32) *unigram {
	u := &unigram{unknown: unknown}
	least := 0.0
	last := map[string]int32{} // if pieces are equal, the last one counts
	for i, p := range vocabulary {
		least = min(least, p.score)
		last[p.piece] = int32(i) //nolint:gosec // a vocabulary is small
	}
	if len(vocabulary) > 0 {
		least = slices.MinFunc(vocabulary, func(a, b scored) int {
			if a.score < b.score {
				return -1
			}
			return 1
		}).score
	}
	u.penalty = least - unknownPenalty
	for piece, id := range last {
		if piece != "" {
			u.pieces, u.ids = append(u.pieces, piece), append(u.ids, id)
		}
	}
	sort.Sort(byPiece{u})
	u.scores = make([]float64, len(u.ids))
	for i, id := range u.ids {
		u.scores[i] = vocabulary[id].score
	}
	for b := range 256 {
		u.starts[b] = sort.Search(len(u.pieces), func(i int) bool { return int(u.pieces[i][0]) >= b })
	}
	u.starts[256] = len(u.pieces)
	return u
}

type byPiece struct{ *unigram }

func (b byPiece) Len() int           { return len(b.pieces) }
func (b byPiece) Less(i, j int) bool { return b.pieces[i] < b.pieces[j] }
func (b byPiece) Swap(i, j int) {
	b.pieces[i], b.pieces[j] = b.pieces[j], b.pieces[i]
	b.ids[i], b.ids[j] = b.ids[j], b.ids[i]
}

// cut implements tokenizer.
func (u *unigram) cut(s string) text {
	var t text
	for _, word := range u.split(u.normalize(s)) {
		t.pieces = u.appendWord(t.pieces, word)
	}
	for _, id := range t.pieces {
		if id == u.unknown {
			t.unknown++
		}
	}
	return t
}

// path is the best way to a byte of a word.
type path struct {
	score float64
	from  int // where its last piece begins; -1 if nothing leads there
	id    int32
}

func (u *unigram) appendWord(ids []int32, word string) []int32 {
	paths := make([]path, len(word)+1)
	for i := range paths {
		paths[i] = path{math.Inf(-1), -1, u.unknown}
	}
	paths[0].score = 0
	for from := 0; from < len(word); {
		_, size := utf8.DecodeRuneInString(word[from:])
		known := false
		u.prefixes(word[from:], func(piece int) {
			length := len(u.pieces[piece])
			known = known || length == size
			better(&paths[from+length], path{paths[from].score + u.scores[piece], from, u.ids[piece]})
		})
		if !known {
			better(&paths[from+size], path{paths[from].score + u.penalty, from, u.unknown})
		}
		from += size
	}
	first := len(ids)
	for end := len(word); end > 0; end = paths[end].from {
		if id := paths[end].id; id != u.unknown || len(ids) == first || ids[len(ids)-1] != u.unknown {
			ids = append(ids, id) // unknown characters in a row are one piece
		}
	}
	slices.Reverse(ids[first:])
	return ids
}

func better(to *path, p path) {
	if to.from < 0 || p.score > to.score {
		*to = p
	}
}

// prefixes calls f for each piece that the text begins with, the shortest first.
func (u *unigram) prefixes(text string, f func(piece int)) {
	first, end := u.starts[text[0]], u.starts[int(text[0])+1]
	for length := 1; first < end; length++ {
		if len(u.pieces[first]) == length { // a shorter piece comes before those that it begins
			f(first)
			first++
		}
		if length == len(text) {
			return
		}
		next := text[length]
		within := u.pieces[first:end]
		end = first + sort.Search(len(within), func(i int) bool { return within[i][length] > next })
		first += sort.Search(len(within), func(i int) bool { return within[i][length] >= next })
	}
}

// metaspace stands for a space in the pieces of a vocabulary.
const metaspace = "▁"

// splitMetaspace marks the beginnings of words. If split is true, it also splits there.
func splitMetaspace(mark string, prepend, split bool) func([]string) []string {
	return func(words []string) (parts []string) {
		for _, word := range words {
			if word == "" {
				continue
			}
			word = strings.ReplaceAll(word, " ", mark)
			if prepend && !strings.HasPrefix(word, mark) {
				word = mark + word
			}
			if !split {
				parts = append(parts, word)
				continue
			}
			for word != "" {
				next := strings.Index(word[1:], mark) + 1
				if next == 0 {
					next = len(word)
				}
				parts, word = append(parts, word[:next]), word[next:]
			}
		}
		return parts
	}
}
