// Package prose reads what texts say: their sentences and names, the requests and decisions in them, the transcript of
// messages, and the headings and remarks that Loci writes into a summary.
//
// Each file uses those that are named before it: prose.go warning.go identifiers.go format.go remarks.go score.go
// sentences.go mustmention.go quotation.go transcript.go appended.go decides.go
package prose

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/recall/tokens"
)

// Clean returns a text as valid UTF-8 whose only control characters are tabs and line feeds, which end all lines.
func Clean(text string) string {
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

// OneLine returns a text on one line, of at most some characters.
func OneLine(text string, chars int) string {
	text = strings.Join(strings.Fields(Clean(text)), " ")
	if cut := tokens.PrefixChars(text, chars); len(cut) < len(text) {
		return strings.TrimSpace(cut) + "…"
	}
	return text
}
