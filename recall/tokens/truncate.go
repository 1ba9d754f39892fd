package tokens

import (
	"sort"
	"unicode"
	"unicode/utf8"
)

// MaxBytesPerToken bounds how much text Estimate counts as one token: a piece of maxEntryBytes, and a space.
const MaxBytesPerToken = maxEntryBytes + 1

// MaxPerByte bounds how many tokens Estimate counts of a byte.
const MaxPerByte = 2

// Prefix returns the beginning of a text that Estimate counts as at most some tokens, as long as can be.
func Prefix(text string, tokens int) string {
	within := min(len(text), MaxBytesPerToken*(max(tokens, 0)+1))
	if within == len(text) && Estimate(text) <= tokens {
		return text
	}
	cut := func(at int) string {
		for 0 < at && at < len(text) && !utf8.RuneStart(text[at]) {
			at--
		}
		return text[:wholeBefore(text, at)]
	}
	return cut(max(sort.Search(within+1, func(at int) bool { return Estimate(cut(at)) > tokens })-1, 0))
}

// Suffix returns the end of a text that Estimate counts as at most some tokens, as long as can be.
func Suffix(text string, tokens int) string {
	within := min(len(text), MaxBytesPerToken*(max(tokens, 0)+1))
	if within == len(text) && Estimate(text) <= tokens {
		return text
	}
	cut := func(bytes int) string { return text[wholeAfter(text, len(text)-bytes):] }
	return cut(max(sort.Search(within+1, func(bytes int) bool { return Estimate(cut(bytes)) > tokens })-1, 0))
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

// wholeAfter moves a cut forward until it is neither within a character nor before an accent.
func wholeAfter(text string, at int) int {
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		if utf8.RuneStart(text[at]) && !extends(r) {
			break
		}
		at += size
	}
	return at
}

const joiner = '\u200D'

// extends reports whether a character is shown as a part of the one before it.
func extends(r rune) bool {
	return r >= 0x300 && (r == joiner || unicode.In(r, unicode.Mn, unicode.Me) || r >= 0x1F3FB && r <= 0x1F3FF)
}
