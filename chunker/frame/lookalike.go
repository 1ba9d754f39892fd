package frame

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Signs that a model may read as the beginning of a tag or a notice.
const (
	tagBrackets    = "<＜﹤‹〈\u2329⟨❬❮˂ᐸ"
	noticeBrackets = "[［【〔⟦❲﹝"
	otherSigns     = "(（﹙⁽❨#＃﹟"
)

// Brackets are the signs behind which Neutralize puts its mark.
const Brackets = tagBrackets + noticeBrackets + otherSigns

// lookalikes maps signs to those of ASCII that they look like: brackets, slashes, and the letters of other alphabets.
var lookalikes = func() map[rune]byte {
	all := map[rune]byte{}
	for _, list := range []struct{ signs, ascii string }{
		{tagBrackets, strings.Repeat("<", utf8.RuneCountInString(tagBrackets))},
		{noticeBrackets, strings.Repeat("[", utf8.RuneCountInString(noticeBrackets))},
		{otherSigns, "(((((###"},
		{"＞﹥›〉\u232a⟩❭❯˃ᐳ］】〕⟧❳﹞⁄∕⧸╱", ">>>>>>>>>>]]]]]]////"},
		{"асеорхуѕіјһԁӏѵмткАВСЕНІЈКМОРЅТХУ", "aceopxysijhdlvmtkABCEHIJKMOPSTXY"},
		{"οανιρυκτΑΒΕΗΙΚΜΝΟΡΤΥΧ", "oaviputtABEHIKMNOPTYX"},
		{"ıɩɪɑɡʟɴʀʏʙʜⲟ", "iiiaglnrybho"},
		{"ᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢꜰꜱ", "acdejkmoptuvwzfs"},
		{"\u2800", " "}, // braille without a dot
	} {
		i := 0
		for _, r := range list.signs {
			all[r] = list.ascii[i]
			i++
		}
	}
	for _, end := range LineEnds {
		all[end] = '\n'
	}
	for _, sign := range "<[(#" {
		delete(all, sign)
	}
	return all
}()

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

// readingOf returns the reading of a text.
func readingOf(given string) reading {
	if isPlain(given) {
		return reading{text: given, given: given}
	}
	var b strings.Builder
	b.Grow(len(given))
	at := make([]int32, 0, len(given))
	for i, r := range given {
		before := b.Len()
		if r == utf8.RuneError {
			_, size := utf8.DecodeRuneInString(given[i:])
			b.WriteString(given[i : i+size])
		} else if r = likeASCII(r); r >= 0 {
			b.WriteRune(r)
		}
		for range b.Len() - before {
			at = append(at, int32(i)) //nolint:gosec // no text is longer than 2 GB
		}
	}
	return reading{b.String(), given, at}
}

// The ideographs of Chinese and the syllables of Korean, none of which looks like a sign of ASCII.
const (
	firstIdeograph = '\u3400'
	lastSyllable   = '\ud7ff'
)

// likeASCII returns the sign of ASCII that a model may read a sign as, -1 for none, or the sign itself.
func likeASCII(r rune) rune {
	if r >= ' ' && r < '\x7f' || r == '\n' || r == '\t' || r >= firstIdeograph && r <= lastSyllable {
		return r
	}
	if like, ok := lookalikes[r]; ok {
		return rune(like)
	}
	switch {
	case unicode.IsControl(r): // a terminal shows nothing
		return -1
	case r == '\uff5e': // a mark is the ~ of ASCII
		return r
	case unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return -1
	case unicode.Is(unicode.Zs, r):
		return ' '
	case r >= 0xff00 && r <= 0xffef, r >= 0x1d400 && r <= 0x1d7ff, r >= 0x2100 && r <= 0x218f, r >= 0x2460 && r <= 0x24ff:
		if plain := norm.NFKC.String(string(r)); len(plain) == 1 {
			return rune(plain[0])
		}
	}
	return r
}

// brackets returns where, in the given text, the brackets end with which the matches of an expression begin.
func (r reading) brackets(expression *regexp.Regexp) (ends []int) {
	for _, match := range expression.FindAllStringIndex(r.text, -1) {
		ends = append(ends, r.afterBracket(match[0]))
	}
	return ends
}

// afterBracket returns where, in the given text, the bracket ends that a byte of the reading is.
func (r reading) afterBracket(i int) int {
	if r.at == nil {
		return i + 1
	}
	_, size := utf8.DecodeRuneInString(r.given[r.at[i]:])
	return int(r.at[i]) + size
}
