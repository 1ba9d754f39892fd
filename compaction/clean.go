package compaction

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/recall/tokens"
)

// clean returns a text as valid UTF-8 whose only control characters are tabs and line feeds, which end all lines.
func clean(text string) string {
	if !strings.ContainsFunc(text, unclean) && utf8.ValidString(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if unclean(r) {
			return -1
		}
		return r
	}, frame.LineFeeds(strings.ToValidUTF8(text, "\uFFFD")))
}

func unclean(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || r == '\u2028' || r == '\u2029')
}

// oneLine returns a text on one line, of at most some characters.
func oneLine(text string, chars int) string {
	text = strings.Join(strings.Fields(clean(text)), " ")
	if cut := tokens.PrefixChars(text, chars); len(cut) < len(text) {
		return strings.TrimSpace(cut) + "…"
	}
	return text
}
