package db

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pmezard/go-difflib/difflib"
)

// Clean returns a text that Postgres can store: U+FFFD replaces invalid UTF-8, and ␀ (U+2400) replaces each NUL.
func Clean(text string) string {
	if utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "␀")
}

// Beginning returns the whole characters within the first size bytes of a text.
func Beginning(text string, size int) string {
	if len(text) <= size {
		return text
	}
	for size > 0 && !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:size]
}

// Short returns at most 100 bytes of a caller's text, for quoting it.
func Short(text string) string {
	if len(text) > 100 {
		return Clean(Beginning(text, 100)) + "…"
	}
	return text
}

// CheckUTF8 returns ErrInvalid if a name is not valid UTF-8, or contains U+FFFD, which the JSON decoder puts in place
// of invalid bytes.
func CheckUTF8(what, name string) error {
	if !utf8.ValidString(name) || strings.ContainsRune(name, utf8.RuneError) {
		return Invalid("%s %q is not UTF-8, or has U+FFFD, which replaces what is not", what, name)
	}
	return nil
}

// maxTagChars is the maximum length of a tag in characters.
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

// Tags cleans the tags, and drops empty and repeated ones. The order stays. The result is never nil.
func Tags(given []string) []string {
	kept := []string{}
	for _, t := range given {
		if t = Clean(t); t != "" && !slices.Contains(kept, t) {
			kept = append(kept, t)
		}
	}
	return kept
}

// Nearest returns the known name that is most similar to name; empty if none is similar. Case does not matter.
func Nearest(name string, known []string) (best string) {
	letters := func(s string) []string { return strings.Split(strings.ToLower(s), "") }
	similarity := 0.65
	for _, k := range slices.Sorted(slices.Values(known)) {
		if alike := difflib.NewMatcher(letters(name), letters(k)).Ratio(); alike > similarity {
			best, similarity = k, alike
		}
	}
	return best
}
