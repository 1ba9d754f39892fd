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

// Signs that a model may read as the beginning of a tag or a notice. The last ones are tags of Unicode, which have no
// width.
const (
	tagBrackets    = "<＜﹤‹〈\u2329⟨❬❮❰⦑⧼˂ᐸᚲ\U0001d236︿﹀\U000e003c"
	noticeBrackets = "[［【〔〖⟦⟬❲﹝⦋⦍⦏⁅﹇︻︹︗\U000e005b"
	roundBrackets  = "(（﹙⁽₍❨❪⟮⦅｟⸨﴾︵\U000e0028"
	crosses        = "#＃﹟♯⌗⋕\U000e0023"
)

// Brackets are the signs behind which Neutralize puts its mark.
const Brackets = tagBrackets + noticeBrackets + roundBrackets + crosses

// confusables are the letters of other alphabets that look like those of ASCII. A line is a letter of ASCII and the
// code points of some that look like it, as in Unicode's confusables.txt.
//
//go:embed confusables.txt
var confusables string

// lookalikes maps signs to those of ASCII that they look like: brackets, slashes, and the letters of other alphabets.
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
	for first, letter := range map[rune]byte{'🄰': 'A', '🅐': 'A', '🅰': 'A', '🇦': 'A'} { // squares, and flags' letters
		for i := range 26 {
			all[first+rune(i)] = letter + byte(i)
		}
	}
	for _, sign := range "<[(#" {
		delete(all, sign)
	}
	return all
})

// reading is a text as a model may read it: without what has no width, and with ASCII for what looks like it.
type reading struct {
	text  string
	given string
	at    []int32 // where each byte of text stands in given; nil if it is the same
}

// isPlain reports whether a text has only what stands for itself: printable ASCII, tabs and line feeds.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\n' && c != '\t' || c >= '\x7f' {
			return false
		}
	}
	return true
}

// readingsOf returns the readings of a text: mostly one. The tags of Unicode, which mirror ASCII, have no width, but
// some models read them: with those there are two.
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

// readingBy returns a reading by what it has for a sign.
func readingBy(given string, like func(rune) string) reading {
	var b strings.Builder
	b.Grow(len(given))
	at := make([]int32, 0, len(given))
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
			at = append(at, int32(i)) //nolint:gosec // no text is longer than 2 GB
		}
	}
	return reading{b.String(), given, at}
}

// What likeASCII returns of the signs before this one is in a table.
const tabled = '\u3400'

var table = sync.OnceValue(func() *[tabled]string {
	all := new([tabled]string)
	for r := range all {
		all[r] = folded(rune(r))
	}
	return all
})

// likeASCII returns what a model may read a sign as: signs of ASCII, nothing, or the sign itself.
func likeASCII(r rune) string {
	switch {
	case r < tabled:
		return table()[r]
	case r < '\ua4d0' || r >= '\uac00' && r <= '\ud7a3': // the ideographs of Chinese, the syllables of Yi and Korean
		return string(r)
	case r >= '🌀' && r <= '\U0001faff': // pictures
		return string(r)
	}
	return folded(r)
}

// folded makes what likeASCII returns.
func folded(r rune) string {
	if r < '\x7f' && unicode.IsPrint(r) || r == '\n' || r == '\t' || r == '\uff5e' { // a mark is the ~ of ASCII
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
	if strings.ContainsAny(b.String(), "<"+signs) { // it is none of Brackets
		return string(r)
	}
	return b.String()
}

// foldedPart returns what a sign is read as that has no parts and is no lookalike.
func foldedPart(r rune) string {
	switch {
	case unicode.IsControl(r): // a terminal shows nothing
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

// digit returns the digit of ASCII that has the value of a decimal digit: those of an alphabet follow each other.
func digit(r rune) rune {
	for _, of := range unicode.Nd.R16 {
		if r >= rune(of.Lo) && r <= rune(of.Hi) {
			return '0' + (r-rune(of.Lo))%10
		}
	}
	for _, of := range unicode.Nd.R32 {
		if r >= rune(of.Lo) && r <= rune(of.Hi) { //nolint:gosec // a rune has 21 bits
			return '0' + (r-rune(of.Lo))%10 //nolint:gosec // as above
		}
	}
	return r
}

// brackets returns where, in the given text, the brackets end with which the matches of an expression begin, without
// the matches that are left out. leftOut may be nil.
func (r reading) brackets(expression *regexp.Regexp, leftOut func(from, to int) bool) (ends []int) {
	for _, match := range expression.FindAllStringIndex(r.text, -1) {
		if leftOut == nil || !leftOut(match[0], match[1]) {
			ends = append(ends, r.afterBracket(match[0]))
		}
	}
	return ends
}

// inGiven returns where, in the given text, a byte of the reading stands.
func (r reading) inGiven(i int) int {
	if r.at == nil {
		return i
	}
	return int(r.at[i])
}

// afterBracket returns where, in the given text, the bracket ends that a byte of the reading is.
func (r reading) afterBracket(i int) int {
	if r.at == nil {
		return i + 1
	}
	_, size := utf8.DecodeRuneInString(r.given[r.inGiven(i):])
	return r.inGiven(i) + size
}
