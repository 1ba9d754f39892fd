package local

import (
	_ "embed" // the vocabulary
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// vocabulary has a word piece a line; its number is the line's, from 0. A piece that continues a word begins with ##.
//
//go:embed vocab.txt
var vocabulary string

const (
	continues = "##"
	// longestWord is how many characters a word has at most; a longer one is unknown.
	longestWord = 100
)

// wordPieces cuts texts into the pieces of a vocabulary, as BERT's tokenizer without case does.
type wordPieces struct {
	first, next         map[string]int32 // the pieces that begin a word, and those that continue one, without ##
	short               []bool           // of each piece: it is one character, or unknown
	longest             int              // bytes of the longest piece
	begin, end, unknown int32
}

func newWordPieces(vocabulary string) wordPieces {
	w := wordPieces{first: map[string]int32{}, next: map[string]int32{}}
	for piece := range strings.Lines(vocabulary) {
		piece = strings.TrimSuffix(piece, "\n")
		id := int32(len(w.short)) //nolint:gosec // a vocabulary is small
		rest, found := strings.CutPrefix(piece, continues)
		if found = found && rest != ""; found {
			w.next[rest] = id
		} else {
			w.first[piece] = id
		}
		w.short = append(w.short, found && utf8.RuneCountInString(rest) == 1 || utf8.RuneCountInString(piece) == 1)
		w.longest = max(w.longest, len(piece))
	}
	w.begin, w.end, w.unknown = w.first["[CLS]"], w.first["[SEP]"], w.first["[UNK]"]
	w.short[w.unknown] = true
	return w
}

// text is what the encoder takes of a text.
type text struct {
	pieces        []int32
	words         int // words with letters
	apart         int // those of them that are mostly single letters, or unknown
	latin, others int // letters
}

// suits reports whether most letters are Latin, and most words do not fall apart into single letters.
func (t text) suits() bool { return t.latin > t.others && t.words >= 2*t.apart }

// cut returns the pieces of a text, without those that begin and end a text.
func (w wordPieces) cut(s string) text {
	var t text
	for word := range words(s) {
		before := len(t.pieces)
		t.pieces = w.appendWord(t.pieces, word)
		if t.countLetters(word) {
			t.words++
			if w.fallsApart(t.pieces[before:]) {
				t.apart++
			}
		}
	}
	return t
}

// fallsApart reports whether more than half of a word's pieces are single characters. A word of one letter does not.
func (w wordPieces) fallsApart(pieces []int32) bool {
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

// countLetters reports whether the word has any.
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

// appendWord appends the longest piece that begins the word, then the longest one that continues it, and so on; or the
// unknown piece if the word cannot be made so.
func (w wordPieces) appendWord(ids []int32, word string) []int32 {
	if utf8.RuneCountInString(word) > longestWord {
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

// words yields the words of a text in lower case and without accents. A punctuation mark or a Chinese character is a
// word.
func words(text string) func(yield func(string) bool) {
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
		for _, r := range decomposed(text) {
			switch {
			case isDropped(r) || unicode.Is(unicode.Mn, r):
			case isSpace(r):
				if !flush() {
					return
				}
			case isPunctuation(r) || isChinese(r):
				if !flush() || !yield(string(unicode.ToLower(r))) {
					return
				}
			default:
				word = utf8.AppendRune(word, unicode.ToLower(r))
			}
		}
		flush()
	}
}

// decomposed returns a text with accents as characters of their own.
func decomposed(text string) string {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return norm.NFD.String(text)
		}
	}
	return text
}

// isDropped reports whether a character is a control character, or stands for what is not text.
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

// isChinese reports whether a character is of the blocks that BERT's tokenizer sets spaces around.
func isChinese(r rune) bool {
	return r >= 0x4e00 && r <= 0x9fff || r >= 0x3400 && r <= 0x4dbf || r >= 0x20000 && r <= 0x2a6df ||
		r >= 0x2a700 && r <= 0x2b73f || r >= 0x2b740 && r <= 0x2b81f || r >= 0x2b920 && r <= 0x2ceaf ||
		r >= 0xf900 && r <= 0xfaff || r >= 0x2f800 && r <= 0x2fa1f
}
