package files

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// withDecoded returns a text by which a passage is found: behind the text itself stand the words that it writes with
// escapes, such as \u00fc in JSON and source code, decoded.
func withDecoded(text string) string {
	if !strings.Contains(text, `\u`) {
		return text
	}
	var b strings.Builder
	b.WriteString(text)
	for _, word := range escapedWords.FindAllString(text, -1) {
		if decoded := decodeEscapes(word); decoded != word {
			b.WriteString("\n" + decoded)
		}
	}
	return b.String()
}

var (
	escapedWords = regexp.MustCompile(`[^\s"'\x60]*\\u[^\s"'\x60]*`)
	escapes      = regexp.MustCompile(`\\u(?:[0-9A-Fa-f]{4}|\{[0-9A-Fa-f]{1,6}\})`)
)

// decodeEscapes replaces \uXXXX and \u{XXXXX} by their characters; two that are halves of a surrogate pair by one.
// Control characters, and halves that stand alone, stay as they are.
func decodeEscapes(text string) string {
	var b strings.Builder
	end, high := 0, rune(0)
	for _, at := range escapes.FindAllStringIndex(text, -1) {
		digits := strings.Trim(text[at[0]+2:at[1]], "{}")
		n, _ := strconv.ParseInt(digits, 16, 32) // at most six digits
		r := rune(n)
		isLow := high != 0 && at[0] == end
		if pair := utf16.DecodeRune(high, r); isLow && pair != utf8.RuneError {
			b.WriteRune(pair)
			end, high = at[1], 0
			continue
		}
		if high = 0; utf16.IsSurrogate(r) {
			b.WriteString(text[end:at[0]])
			end, high = at[1], r
			continue
		}
		if r < ' ' || !utf8.ValidRune(r) {
			continue
		}
		b.WriteString(text[end:at[0]])
		b.WriteRune(r)
		end = at[1]
	}
	b.WriteString(text[end:])
	return b.String()
}
