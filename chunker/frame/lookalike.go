package frame

import (
	_ "embed"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// These are characters that a model may read as the beginning of a tag or a notice. The last one of each list is a
// Unicode tag character, which has no width.
const (
	tagBrackets    = "<＜﹤‹〈\u2329⟨❬❮❰⦑⧼˂ᐸᚲ\U0001d236︿﹀\U000e003c"
	noticeBrackets = "[［【〔〖⟦⟬❲﹝⦋⦍⦏⁅﹇︻︹︗\U000e005b"
	roundBrackets  = "(（﹙⁽₍❨❪⟮⦅｟⸨﴾︵\U000e0028"
	crosses        = "#＃﹟♯⌗⋕\U000e0023"
)

// Brackets are the characters behind which Neutralize puts its mark.
const Brackets = tagBrackets + noticeBrackets + roundBrackets + crosses

// confusables lists characters that look like ASCII letters, from Unicode's confusables.txt. A line is an ASCII letter
// and the code points of its lookalikes.
//
//go:embed confusables.txt
var confusables string

// lookalikes maps a character to the ASCII character that it looks like: brackets, slashes and other signs, and letters
// of other alphabets.
var lookalikes = sync.OnceValue(func() map[rune]byte {
	all := map[rune]byte{}
	for line := range strings.Lines(confusables) {
		letter, points, _ := strings.Cut(line, " ")
		for point := range strings.FieldsSeq(points) {
			r, err := strconv.ParseInt(point, 16, 32)
			if err != nil {
				panic(err)
			}
			all[rune(r)] = letter[0]
		}
	}
	for _, list := range []struct{ signs, ascii string }{
		{tagBrackets, "<"}, {noticeBrackets, "["}, {roundBrackets, "("}, {crosses, "#"},
		{"＞﹥›〉\u232a⟩❭❯❱⦒⧽˃ᐳ", ">"}, {"］】〕〗⟧⟭❳﹞⦌⦎⦐⁆﹈︼︺︘", "]"}, {"⁄∕⧸╱⟋⧶", "/"}, {"：﹕։׃܃܄ः᠃꞉︰", ":"},
		{"–—‒―‐‑−﹘﹣－", "-"}, {"\u2800", " "}, // braille without a dot
		{"асеорхуѕіјһԁӏѵмткАВСЕНІЈКМОРЅТХУ", "aceopxysijhdlvmtkABCEHIJKMOPSTXY"},
		{"οανιρυκτΑΒΕΗΙΚΜΝΟΡΤΥΧηгпи", "oaviputtABEHIKMNOPTYXnrnu"},
		{"ıɩɪɑɡʟɴʀʏʙʜⲟᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢꜰꜱ", "iiiaglnrybhoacdejkmoptuvwzfs"},
	} {
		i := 0
		for _, r := range list.signs {
			all[r] = list.ascii[min(i, len(list.ascii)-1)]
			i++
		}
	}
	for _, end := range LineEnds {
		all[end] = '\n'
	}
	for first, letter := range map[rune]byte{'🄰': 'A', '🅐': 'A', '🅰': 'A', '🇦': 'A'} { // squared, and of flags
		for i := range 26 {
			all[first+rune(i)] = letter + byte(i)
		}
	}
	for _, sign := range "<[(#" {
		delete(all, sign)
	}
	return all
})

// reading is a text as a model may read it: ASCII in place of lookalikes, and nothing that has no width.
type reading struct {
	text  string
	given string
	at    []int32 // offset of each byte of text in given; nil if text equals given
}

// isPlain reports whether a text consists of printable ASCII, tabs and line feeds. Its reading is the text itself.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\n' && c != '\t' || c >= '\x7f' {
			return false
		}
	}
	return true
}

// readingsOf returns the readings of a text, usually one. Unicode's tag characters mirror ASCII and have no width, but
// some models read them. A text with tag characters therefore has a second reading that includes them.
func readingsOf(given string) []reading {
	if isPlain(given) {
		return []reading{{text: given, given: given}}
	}
	all := []reading{readingBy(given, likeASCII)}
	if strings.Contains(given, firstTag[:2]) && strings.ContainsFunc(given, isTag) {
		all = append(all, readingBy(given, func(r rune) string {
			if isTag(r) {
				return string(r & 0x7f)
			}
			return likeASCII(r)
		}))
	}
	return all
}

const firstTag = "\U000e0020"

func isTag(r rune) bool { return r >= 0xe0020 && r < 0xe007f }

// readingBy returns the reading in which like(r) stands for each character r.
func readingBy(given string, like func(rune) string) reading {
	var b strings.Builder
	b.Grow(len(given))
	positions := make([]int32, 0, len(given))
	for i, r := range given {
		before := b.Len()
		switch {
		case r < '\x7f' && (r >= ' ' || r == '\n' || r == '\t'):
			b.WriteRune(r)
		case r == utf8.RuneError:
			_, size := utf8.DecodeRuneInString(given[i:])
			b.WriteString(given[i : i+size])
		default:
			b.WriteString(like(r))
		}
		for range b.Len() - before {
			positions = append(positions, int32(i)) //nolint:gosec // no text is longer than 2 GB
		}
	}
	return reading{b.String(), given, positions}
}

// table holds the results of likeASCII for all characters before tabled.
const tabled = '\u3400'

var table = sync.OnceValue(func() *[tabled]string {
	all := new([tabled]string)
	for r := range all {
		all[r] = folded(rune(r))
	}
	return all
})

// likeASCII returns what a model may read a character as: ASCII, nothing, or the character itself.
func likeASCII(r rune) string {
	switch {
	case r < tabled:
		return table()[r]
	case r < '\ua4d0' || r >= '\uac00' && r <= '\ud7a3': // ideographs of Chinese, syllables of Yi and Korean
		return string(r)
	case r >= '🌀' && r <= '\U0001faff': // pictures
		return string(r)
	}
	return folded(r)
}

// folded computes the result of likeASCII.
func folded(r rune) string {
	// U+FF5E, the fullwidth "~", stays as it is, because a mark is the "~" of ASCII.
	if r < '\x7f' && unicode.IsPrint(r) || r == '\n' || r == '\t' || r == '\uff5e' {
		return string(r)
	}
	if like, ok := lookalikes()[r]; ok {
		return string(rune(like))
	}
	parts := norm.NFKD.PropertiesString(string(r)).Decomposition()
	if parts == nil {
		return foldedPart(r)
	}
	var b strings.Builder
	for _, part := range string(parts) {
		if like, ok := lookalikes()[part]; ok {
			b.WriteByte(like)
		} else {
			b.WriteString(foldedPart(part))
		}
	}
	// A character that is not in Brackets cannot begin a frame.
	if strings.ContainsAny(b.String(), "<"+signs) {
		return string(r)
	}
	return b.String()
}

// foldedPart returns the reading of a character that has no decomposition and no lookalike.
func foldedPart(r rune) string {
	switch {
	case unicode.IsControl(r): // a terminal shows nothing for it
		return ""
	case unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, unicode.Mn,
		unicode.Me):
		return ""
	case unicode.Is(unicode.Zs, r):
		return " "
	case unicode.Is(unicode.Nd, r):
		return string(digit(r))
	}
	return string(r)
}

// digit returns the ASCII digit with the value of a decimal digit. In each script, the ten digits follow each other.
func digit(r rune) rune {
	for _, digits := range unicode.Nd.R16 {
		if r >= rune(digits.Lo) && r <= rune(digits.Hi) {
			return '0' + (r-rune(digits.Lo))%10
		}
	}
	for _, digits := range unicode.Nd.R32 {
		if r >= rune(digits.Lo) && r <= rune(digits.Hi) { //nolint:gosec // a rune has 21 bits
			return '0' + (r-rune(digits.Lo))%10 //nolint:gosec // as above
		}
	}
	return r
}

// brackets finds the matches of an expression that begin with a bracket. For each it returns the position directly
// behind the bracket in the given text. Matches for which leftOut returns true are skipped; leftOut may be nil.
func (r reading) brackets(expression *regexp.Regexp, leftOut func(from, to int) bool) (ends []int) {
	for _, match := range expression.FindAllStringIndex(r.text, -1) {
		if leftOut == nil || !leftOut(match[0], match[1]) {
			ends = append(ends, r.afterBracket(match[0]))
		}
	}
	return ends
}

// inGiven returns the position in the given text of byte i of the reading.
func (r reading) inGiven(i int) int {
	if r.at == nil {
		return i
	}
	return int(r.at[i])
}

// afterBracket returns the position in the given text directly behind the bracket that is byte i of the reading.
func (r reading) afterBracket(i int) int {
	if r.at == nil {
		return i + 1
	}
	_, size := utf8.DecodeRuneInString(r.given[r.inGiven(i):])
	return r.inGiven(i) + size
}
