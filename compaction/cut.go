package compaction

import (
	"unicode"
	"unicode/utf8"
)

// beginningOf is at most so many characters of a text.
func beginningOf(text string, chars int) string {
	if len(text) <= chars {
		return text
	}
	n := 0
	for i := range text {
		if n == chars {
			return text[:wholeBefore(text, i)]
		}
		n++
	}
	return text
}

// prefixWithin is the longest beginning of a text within so many tokens.
func prefixWithin(text string, tokens int) string {
	quarters := 4 * tokens
	for i, r := range text {
		if quarters -= quartersOf(r); quarters < 0 {
			return text[:wholeBefore(text, i)]
		}
	}
	return text
}

// suffixWithin is the longest end of a text within so many tokens.
func suffixWithin(text string, tokens int) string {
	quarters := 4 * tokens
	at := len(text)
	for at > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:at])
		if quarters -= quartersOf(r); quarters < 0 {
			break
		}
		at -= size
	}
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		if !extends(r) {
			break
		}
		at += size
	}
	return text[at:]
}

// quartersOf is what a character takes, in quarters of a token, as recall.Tokens counts.
func quartersOf(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	return 4
}

// wholeBefore moves a cut back to where no character that people see is parted: before accents, and not within joined signs.
func wholeBefore(text string, at int) int {
	for at > 0 && at < len(text) {
		next, _ := utf8.DecodeRuneInString(text[at:])
		last, size := utf8.DecodeLastRuneInString(text[:at])
		if !extends(next) && last != joiner {
			break
		}
		at -= size
	}
	return at
}

const joiner = '\u200D'

func extends(r rune) bool {
	return r >= 0x300 && (r == joiner || unicode.In(r, unicode.Mn, unicode.Me) || r >= 0x1F3FB && r <= 0x1F3FF)
}
