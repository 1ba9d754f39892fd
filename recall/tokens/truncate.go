package tokens

import (
	"sort"
	"unicode"
	"unicode/utf8"
)

// MaxBytesPerToken bounds the bytes that Estimate counts as one token: a piece of maxEntryBytes and a space.
const MaxBytesPerToken = maxEntryBytes + 1

// MaxPerByte bounds the tokens that Estimate counts for one byte.
const MaxPerByte = 2

// Prefix returns the longest beginning of a text that Estimate counts as at most this many tokens.
func Prefix(text string, tokens int) string {
	within := min(len(text), MaxBytesPerToken*(max(tokens, 0)+1))
	if within == len(text) && Estimate(text) <= tokens {
		return text
	}
	cut := func(length int) string {
		for 0 < length && length < len(text) && !utf8.RuneStart(text[length]) {
			length--
		}
		return text[:wholeBefore(text, length)]
	}
	return cut(max(sort.Search(within+1, func(length int) bool { return Estimate(cut(length)) > tokens })-1, 0))
}

// Suffix returns the longest end of a text that Estimate counts as at most this many tokens.
func Suffix(text string, tokens int) string {
	within := min(len(text), MaxBytesPerToken*(max(tokens, 0)+1))
	if within == len(text) && Estimate(text) <= tokens {
		return text
	}
	cut := func(bytes int) string { return text[wholeAfter(text, len(text)-bytes):] }
	return cut(max(sort.Search(within+1, func(bytes int) bool { return Estimate(cut(bytes)) > tokens })-1, 0))
}

// PrefixChars returns the beginning of a text, at most chars characters.
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

// wholeBefore moves a cut back until it stands neither before an accent nor within joined signs that people see as one
// character.
func wholeBefore(text string, cut int) int {
	for cut > 0 && cut < len(text) {
		next, _ := utf8.DecodeRuneInString(text[cut:])
		last, size := utf8.DecodeLastRuneInString(text[:cut])
		if !extends(next) && last != joiner {
			break
		}
		cut -= size
	}
	return cut
}

// wholeAfter moves a cut forward until it stands neither within a character nor before an accent.
func wholeAfter(text string, cut int) int {
	for cut < len(text) {
		r, size := utf8.DecodeRuneInString(text[cut:])
		if utf8.RuneStart(text[cut]) && !extends(r) {
			break
		}
		cut += size
	}
	return cut
}

const joiner = '\u200D'

// extends reports whether a character is displayed as a part of the one before it.
func extends(r rune) bool {
	return r >= 0x300 && (r == joiner || unicode.In(r, unicode.Mn, unicode.Me) || r >= 0x1F3FB && r <= 0x1F3FF)
}
