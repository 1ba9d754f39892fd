package compaction

import (
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/recall/tokens"
)

// extractedBy begins a summary that no model wrote.
const extractedBy = frame.MadeWithout

// leftOut precedes the lines that are added to a summary which a model wrote.
const leftOut = "Not in the text above, word for word:"

// alsoNamed begins a line of identifiers.
const alsoNamed = "Also named: "

// clipSuffix ends a summary that was cut, as in Letta.
const clipSuffix = frame.SummaryCut

// cutTo returns a text of at most some tokens.
func cutTo(text string, most int) string {
	if tokens.Estimate(text) <= most {
		return text
	}
	return strings.TrimSpace(tokens.Prefix(text, most-tokens.Estimate(clipSuffix)-1)) + clipSuffix
}

// limitChars returns a text of at most some characters; nil is no limit.
func limitChars(text string, chars *int) string {
	if chars == nil || utf8.RuneCountInString(text) <= *chars {
		return text
	}
	return tokens.PrefixChars(text, max(*chars-utf8.RuneCountInString(clipSuffix), 0)) + clipSuffix
}

// nothingSaid stands where there is nothing to summarize; the next summary does not carry it on.
const nothingSaid = "Nothing was said."

// splitFormat is that of the beginning of a turn that a cut divides.
var splitFormat = &Format{Sections: []FormatSection{
	{"## Original Request", "What the user asked for in this turn.", []string{"requests", "told"}},
	{"## Early Progress", "What was decided and done in the part of the turn that is hidden.",
		[]string{"decisions", "findings", "state"}},
	{"## Context for Suffix", "What one must know to understand the part of the turn that stays visible.",
		[]string{"open"}},
}}

// The texts that join the summaries of a divided turn.
const (
	noHistory  = "No prior history."
	splitRule  = "---"
	splitTitle = "**Turn Context (split turn):**"
	splitTurn  = "\n\n" + splitRule + "\n\n" + splitTitle + "\n\n"
)
