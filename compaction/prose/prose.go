// Package prose reads what texts say: sentences and names, requests and decisions, transcripts of messages, and the
// headings and remarks that Loci writes into summaries.
//
// Each file uses those that are named before it: prose.go warning.go identifiers.go format.go remarks.go
// languages.go easternlanguages.go everyday.go cues.go score.go sentences.go mustmention.go quotation.go transcript.go
// appended.go decides.go skill.go
package prose

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/recall/tokens"
)

// Clean returns a text as valid UTF-8. Line feeds end all lines; the only other control characters are tabs.
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

// OneLine returns a text on one line, at most chars characters of it.
func OneLine(text string, chars int) string {
	text = strings.Join(strings.Fields(Clean(text)), " ")
	if cut := tokens.PrefixChars(text, chars); len(cut) < len(text) {
		return strings.TrimSpace(cut) + "…"
	}
	return text
}
