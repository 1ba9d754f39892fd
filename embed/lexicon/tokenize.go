package lexicon

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// EachTerm calls found with the terms of a text, in the text's order and as often as the text has them. Terms are
// shared: found must not change them.
// It reads text in Unicode's compatibility form (ﬁ as fi, Ａ as A), and ignores case and diacritics: café and cafe are
// one term, and so are 資料 and 资料. Straße is strasse, and Müller is both muller and mueller. A word is a run of letters,
// their marks and digits. Every other character separates words, so snake_case, kebab-case, dotted.names and paths are
// split. Words that - or _ joins are also one whole: max_wal_size is max, wal, size and maxwalsize.
// CamelCase is split too, and kept whole in lower case: ReadAll is read and readall, PostgreSQL is postgre, sql and
// postgresql. Letters with a number after or before them are split and kept whole, in every spelling: sha256, SHA-256
// and SHA_256 are sha, 256 and sha256; MySQL8 is mysql, too. 18,500 and 18'500 are 18500, and 18.500 is 18, 500 and
// 18500. A part number is its beginnings, too: SN74LS00N is sn74, sn74ls and sn74ls00. Days, quarters of a year, ISBNs,
// codes of articles and telephone numbers are one more term in each writing (see eachNumber). Characters without a
// width, such as the soft hyphen, are left out. An emoji is a word, whatever its color, and the two letters of a flag
// are one word. A plural acronym (URLs) is one word. English stop words are dropped unless they are names (see isName),
// irregular forms become their base (went is go), and other words are stemmed: those in Latin script by the language of
// the text (see LanguageOf), others by their script. Scripts without spaces, and Hangul, are cut into pairs of adjacent
// characters. A word is cut to 64 characters. Its time is linear in the length of the text. If the terms change,
// LexVersion must change.
func EachTerm(text string, found func(*Term)) {
	text = compatible(text)
	eachTermIn(text, spokenIn(text), found)
}

// eachTermIn is EachTerm for a text in compatibility form and in a known language.
func eachTermIn(text string, in spoken, found func(*Term)) {
	if in.sure || in.Language == English {
		eachWord(text, func(w word) {
			for t := termAt(text, w, in.Language); t != nil && t.Text != ""; t = t.also {
				found(t)
			}
		})
		return
	}
	eachWord(text, func(w word) {
		for _, t := range termsAt(text, w, in.in()) {
			found(t)
		}
	})
}

// termAt returns the term of a word of a text in a language.
func termAt(text string, w word, in Language) *Term {
	t := lookup(w.text, in)
	if t.name != nil && w.at >= 0 && isName(text, w.at, w.at+len(w.text)) {
		return t.name
	}
	return t
}

// termsAt returns the different terms of a word of a text in several languages.
func termsAt(text string, w word, in Languages) (all []*Term) {
	in.each(func(l Language) {
		for t := termAt(text, w, l); t != nil && t.Text != ""; t = t.also {
			if !slices.ContainsFunc(all, func(o *Term) bool { return o.Text == t.Text }) {
				all = append(all, t)
			}
		}
	})
	return all
}

// compatible brings text to its compatibility form without characters that have no width, and with simplified Chinese
// characters.
func compatible(text string) string {
	if isASCII(text) {
		return text
	}
	return norm.NFKC.String(strings.Map(func(r rune) rune {
		switch {
		case hasNoWidth(r):
			return -1
		case r >= firstHan && r <= lastHan:
			if s, ok := simplified()[r]; ok {
				return s
			}
		}
		return r
	}, text))
}

// firstHan and lastHan bound the Chinese characters that are written in two ways.
const firstHan, lastHan = 0x3400, 0x9FFF

// simplified maps a traditional Chinese character → the simplified one.
var simplified = sync.OnceValue(func() map[rune]rune {
	all := map[rune]rune{}
	for groups := range readLines(chineseFile) {
		for _, group := range groups {
			first, size := utf8.DecodeRuneInString(group)
			for _, r := range group[size:] {
				all[r] = first
			}
		}
	}
	return all
})

// plain brings text to its compatibility form without diacritics.
func plain(text string) string { return bare(compatible(text)) }

// bare returns a text without diacritics, and without the vowel signs of Hebrew and Arabic. Other scripts keep their
// marks, which are vowels there.
func bare(text string) string {
	if isASCII(text) {
		return text
	}
	without := strings.Map(func(r rune) rune {
		switch {
		case r == 'ς': // σ at the end of a word
			return 'σ'
		case r == 'ँ': // written for ं
			return 'ं'
		case isDiacritic(r):
			return -1
		}
		return r
	}, norm.NFKD.String(text))
	return norm.NFC.String(undecomposed.Replace(without))
}

// isDiacritic reports whether a character is a mark that words are also written without.
func isDiacritic(r rune) bool {
	switch {
	case r >= 0x0300 && r <= 0x036F, // of Latin, Greek and Cyrillic
		r >= 0x0591 && r <= 0x05C7,                           // Hebrew points
		r >= 0x064B && r <= 0x065F, r == 0x0670, r == 0x0640, // Arabic vowel signs, and its lengthened line
		r == 0x093C: // Devanagari's dot
		return true
	}
	return false
}

// hasNoWidth reports whether a character only says how its neighbors are displayed: where a word may be cut, how
// letters are joined, in which direction they run, and how an emoji looks.
func hasNoWidth(r rune) bool {
	switch {
	case r == '\u00AD', r == '\u061C', r == '\u180E', r == '\uFEFF', r >= '\u200B' && r <= '\u200F',
		r >= '\u202A' && r <= '\u202E', r >= '\u2060' && r <= '\u2069', r >= '\uFE00' && r <= '\uFE0F',
		r >= skinTones && r <= skinTones+4, r >= 0xE0000 && r <= 0xE01EF:
		return true
	}
	return false
}

// undecomposed maps Latin letters that Unicode does not decompose → plain letters.
var undecomposed = strings.NewReplacer("ß", "ss", "ẞ", "SS", "æ", "ae", "Æ", "AE", "œ", "oe", "Œ", "OE", "ø", "o",
	"Ø", "O", "ł", "l", "Ł", "L", "đ", "d", "Đ", "D", "ı", "i")

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// kind is the class of a character. Words are cut where it changes.
type kind uint8

const (
	separator kind = iota
	upper
	lower   // also letters of scripts without case
	mark    // continues the character before it
	digit   // continues a word
	unspace // a letter of a script without spaces, of Hangul (its words have endings), or of a flag
	emoji   // a word by itself
)

var asciiKinds = func() (kinds [utf8.RuneSelf]kind) {
	for r := range rune(utf8.RuneSelf) {
		kinds[r] = kindOf(r)
	}
	return kinds
}()

// firstUnspaced is the beginning of the first script without spaces: Thai.
const firstUnspaced = 0x0E00

// Beginnings of the blocks of emoji and their parts.
const (
	firstSymbol = 0x2600 // the blocks of symbols and dingbats, up to 0x27BF
	stars       = 0x2B50
	firstEmoji  = 0x1F000 // up to 0x1FAFF
	flags       = 0x1F1E6 // 26 letters; two of them are a flag
	skinTones   = 0x1F3FB // five
)

var unspaced = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer,
	unicode.Myanmar,
}

func kindOf(r rune) kind {
	switch {
	case r >= firstUnspaced && (unicode.In(r, unspaced...) || r == 'ー') && !unicode.IsDigit(r):
		return unspace
	case unicode.IsUpper(r) || unicode.IsTitle(r):
		return upper
	case unicode.IsLetter(r):
		return lower
	case unicode.IsDigit(r):
		return digit
	case r >= utf8.RuneSelf && unicode.IsMark(r):
		return mark
	case r >= flags && r < flags+26:
		return unspace
	case r >= firstSymbol && r <= 0x27BF, r == stars, r >= firstEmoji && r <= 0x1FAFF:
		return emoji
	}
	return separator
}

// kindAt returns the kind and the number of bytes of the character at text[i:].
func kindAt(text string, i int) (kind, int) {
	if c := text[i]; c < utf8.RuneSelf {
		return asciiKinds[c], 1
	}
	r, size := utf8.DecodeRuneInString(text[i:])
	if r == utf8.RuneError && size == 1 {
		return separator, 1
	}
	return kindOf(r), size
}

// eachPair finds the pairs of neighboring characters in the run of unspaced script at text[start:], or its only
// character. It returns where the run ends.
func eachPair(text string, start int, found func(word)) int {
	before, last, i := -1, -1, start
	for i < len(text) {
		k, size := kindAt(text, i)
		if k != unspace && k != mark {
			break
		}
		if before = last; before >= 0 {
			found(word{text[before : i+size], before})
		}
		last = i
		i += size
	}
	if before < 0 {
		found(word{text[start:i], start})
	}
	return i
}

// pluralAt reports whether text[i:] is the s of a plural acronym, as in URLs.
func pluralAt(text string, i int) bool {
	return text[i] == 's' && !lowerAt(text, i+1)
}

func lowerAt(text string, i int) bool {
	if i >= len(text) {
		return false
	}
	k, _ := kindAt(text, i)
	return k == lower
}
