package tokens

import (
	"unicode"
	"unicode/utf8"
)

// Prefix returns the longest beginning of a text that Estimate counts as at most some tokens.
func Prefix(text string, tokens int) string {
	quarters := charsPerToken * tokens
	for i, r := range text {
		if quarters -= quartersOf(r); quarters < 0 {
			return text[:wholeBefore(text, i)]
		}
	}
	return text
}

// Suffix returns the longest end of a text that Estimate counts as at most some tokens.
func Suffix(text string, tokens int) string {
	quarters := charsPerToken * tokens
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

// PrefixChars returns at most some characters of the beginning of a text.
func PrefixChars(text string, chars int) string {
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

// quartersOf returns what Estimate counts for a character, in quarters of a token.
func quartersOf(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	return charsPerToken
}

// wholeBefore moves a cut back until it is neither before an accent nor within joined signs, which people see as one
// character.
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

// extends reports whether a character is shown as a part of the one before it.
func extends(r rune) bool {
	return r >= 0x300 && (r == joiner || unicode.In(r, unicode.Mn, unicode.Me) || r >= 0x1F3FB && r <= 0x1F3FF)
}
