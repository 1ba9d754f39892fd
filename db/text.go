package db

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Clean makes a text storable: UTF-8 without NUL.
func Clean(text string) string {
	if utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

// Tags are tags as rows have them: clean, each once, in their order, none empty. Never nil.
func Tags(given []string) []string {
	kept := []string{}
	for _, t := range given {
		if t = Clean(t); t != "" && !slices.Contains(kept, t) {
			kept = append(kept, t)
		}
	}
	return kept
}
