package local

import (
	_ "embed" // for the vocabulary
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// vocabulary has one word piece per line. Its number is the line's number, from 0. A piece that continues a word begins
// with ##.
//
//go:embed vocab.txt
var vocabulary string

const (
	continues   = "##"
	longestWord = 100 // of the embedded model
)

// wordPieces cuts texts into the pieces of a vocabulary, as BERT's tokenizer does.
type wordPieces struct {
	bert
	first, next map[string]int32 // pieces that begin a word, and pieces (without ##) that continue one
	short       []bool           // of each piece: it is one character, or unknown
	longest     int              // bytes of the longest piece
	unknown     int32
	longestWord int // most characters of a word; a longer one is unknown
}

// bert says how BERT's tokenizer splits a text into words.
type bert struct {
	clean        bool // drop control characters
	chinese      bool // a Chinese character is a word
	stripAccents bool
	lowerCase    bool
}

var uncased = bert{clean: true, chinese: true, stripAccents: true, lowerCase: true}

// linesOf returns piece → number, for a vocabulary with one piece per line.
func linesOf(vocabulary string) map[string]int32 {
	ids := map[string]int32{}
	for piece := range strings.Lines(vocabulary) {
		ids[strings.TrimSuffix(piece, "\n")] = int32(len(ids)) //nolint:gosec // a vocabulary is small
	}
	return ids
}

// newWordPieces makes a tokenizer of a vocabulary that has the piece [UNK].
func newWordPieces(vocabulary map[string]int32, words bert) *wordPieces {
	w := &wordPieces{bert: words, first: map[string]int32{}, next: map[string]int32{}, unknown: vocabulary["[UNK]"],
		longestWord: longestWord}
	for piece, id := range vocabulary {
		rest, found := strings.CutPrefix(piece, continues)
		if found = found && rest != ""; found {
			w.next[rest] = id
		} else {
			w.first[piece] = id
		}
		if more := int(id) + 1 - len(w.short); more > 0 {
			w.short = append(w.short, make([]bool, more)...)
		}
		w.short[id] = found && utf8.RuneCountInString(rest) == 1 || utf8.RuneCountInString(piece) == 1
		w.longest = max(w.longest, len(piece))
	}
	w.short[w.unknown] = true
	return w
}

// text is the pieces of a text. Only wordPieces sets words, apart, latin and others.
type text struct {
	pieces        []int32
	unknown       int // unknown pieces
	words         int // words with letters
	apart         int // words that are mostly single letters, or unknown
	latin, others int // letters
}

// cut returns the pieces of a text, without the pieces before and after a text.
func (w *wordPieces) cut(s string) text {
	var t text
	for word := range w.split(s) {
		before := len(t.pieces)
		t.pieces = w.appendWord(t.pieces, word)
		if t.countLetters(word) {
			t.words++
			if w.fallsApart(t.pieces[before:]) {
				t.apart++
			}
		}
	}
	for _, id := range t.pieces {
		if id == w.unknown {
			t.unknown++
		}
	}
	return t
}

// fallsApart reports whether more than half of a word's pieces are single characters. A word of one letter does not
// fall apart.
func (w *wordPieces) fallsApart(pieces []int32) bool {
	if len(pieces) == 1 {
		return pieces[0] == w.unknown
	}
	short := 0
	for _, id := range pieces {
		if w.short[id] {
			short++
		}
	}
	return 2*short > len(pieces)
}

// countLetters counts the letters of a word, and reports whether it has any.
func (t *text) countLetters(word string) bool {
	before := t.latin + t.others
	for _, r := range word {
		switch {
		case 'a' <= r && r <= 'z' || r >= utf8.RuneSelf && unicode.Is(unicode.Latin, r):
			t.latin++
		case r >= utf8.RuneSelf && unicode.IsLetter(r):
			t.others++
		}
	}
	return t.latin+t.others > before
}

// appendWord appends the longest piece that begins the word, then the longest one that continues it, and so on. If the
// word cannot be built so, it appends the unknown piece.
func (w *wordPieces) appendWord(ids []int32, word string) []int32 {
	if utf8.RuneCountInString(word) > w.longestWord {
		return append(ids, w.unknown)
	}
	before, pieces := len(ids), w.first
	for word != "" {
		size := min(len(word), w.longest)
		id, found := pieces[word[:size]]
		for !found && size > 1 {
			size--
			id, found = pieces[word[:size]]
		}
		if !found {
			return append(ids[:before], w.unknown)
		}
		ids, word, pieces = append(ids, id), word[size:], w.next
	}
	return ids
}

// split yields the words of a text. A punctuation mark is a word.
func (b bert) split(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		var word []byte
		flush := func() bool {
			if len(word) == 0 {
				return true
			}
			w := string(word)
			word = word[:0]
			return yield(w)
		}
		if b.stripAccents {
			text = decomposed(text)
		}
		for _, r := range text {
			switch {
			case b.clean && isDropped(r) || b.stripAccents && unicode.Is(unicode.Mn, r):
			case isSpace(r):
				if !flush() {
					return
				}
			case isPunctuation(r) || b.chinese && isChinese(r):
				if !flush() || !yield(string(b.lower(nil, r))) {
					return
				}
			default:
				word = b.lower(word, r)
			}
		}
		flush()
	}
}

// lower appends a character, in lower case if the model has only lower case. One capital, I with a dot, becomes two
// characters.
func (b bert) lower(to []byte, r rune) []byte {
	switch {
	case !b.lowerCase:
	case r == 'İ':
		return append(to, "i\u0307"...)
	default:
		r = unicode.ToLower(r)
	}
	return utf8.AppendRune(to, r)
}

// decomposed returns a text with accents as separate characters.
func decomposed(text string) string {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return norm.NFD.String(text)
		}
	}
	return text
}

// isDropped reports whether a character is a control character, or replaces something that is no text.
func isDropped(r rune) bool {
	switch r {
	case '\t', '\n', '\r':
		return false
	case 0, utf8.RuneError:
		return true
	}
	return unicode.IsControl(r) || r >= utf8.RuneSelf && unicode.In(r, unicode.Cf, unicode.Co)
}

func isSpace(r rune) bool { return unicode.IsSpace(r) }

func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return r > ' ' && r < 0x7f && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}
	return unicode.IsPunct(r)
}

// isChinese reports whether a character is in the blocks that BERT's tokenizer puts spaces around.
func isChinese(r rune) bool {
	return r >= 0x4e00 && r <= 0x9fff || r >= 0x3400 && r <= 0x4dbf || r >= 0x20000 && r <= 0x2a6df ||
		r >= 0x2a700 && r <= 0x2b73f || r >= 0x2b740 && r <= 0x2b81f || r >= 0x2b920 && r <= 0x2ceaf ||
		r >= 0xf900 && r <= 0xfaff || r >= 0x2f800 && r <= 0x2fa1f
}
