package db

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Clean returns the text as Postgres can store it: with U+FFFD in place of what is not UTF-8, and ␀ (U+2400) in place
// of each NUL.
func Clean(text string) string {
	if utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "␀")
}

// Beginning returns the whole characters in the first size bytes of a text.
func Beginning(text string, size int) string {
	if len(text) <= size {
		return text
	}
	for size > 0 && !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:size]
}

// Short returns at most 100 bytes of a caller's text, for a quotation.
func Short(text string) string {
	if len(text) > 100 {
		return Clean(Beginning(text, 100)) + "…"
	}
	return text
}

// CheckUTF8 returns ErrInvalid if a name is not UTF-8. JSON's decoder puts U+FFFD in the place of bytes that are not.
func CheckUTF8(what, name string) error {
	if !utf8.ValidString(name) || strings.ContainsRune(name, utf8.RuneError) {
		return Invalid("%s %q is not UTF-8, or has U+FFFD, which replaces what is not", what, name)
	}
	return nil
}

// maxTagChars bounds a tag.
const maxTagChars = 200

// CheckTags returns ErrInvalid if a tag is too long.
func CheckTags(tags []string) error {
	for _, t := range tags {
		if n := utf8.RuneCountInString(t); n > maxTagChars {
			return Invalid("a tag has %d characters; it may have at most %d", n, maxTagChars)
		}
	}
	return nil
}

// Tags returns the tags clean, without empty and repeated ones, in their order; never nil.
func Tags(given []string) []string {
	kept := []string{}
	for _, t := range given {
		if t = Clean(t); t != "" && !slices.Contains(kept, t) {
			kept = append(kept, t)
		}
	}
	return kept
}
