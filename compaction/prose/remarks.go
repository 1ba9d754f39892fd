package prose

import (
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/recall/tokens"
)

// ExtractedBy begins a summary that was made without a model.
const ExtractedBy = frame.MadeWithout

// LeftOut precedes the lines that are added to a summary by a model.
const LeftOut = "Not in the text above, word for word:"

// AlsoNamed begins a line of identifiers.
const AlsoNamed = "Also named: "

// ClipSuffix ends a summary that was cut, as in Letta.
const ClipSuffix = frame.SummaryCut

// CutTo cuts a text to at most most tokens.
func CutTo(text string, most int) string {
	if tokens.Estimate(text) <= most {
		return text
	}
	return strings.TrimSpace(tokens.Prefix(text, most-tokens.Estimate(ClipSuffix)-1)) + ClipSuffix
}

// LimitChars cuts a text to *chars characters; nil is no limit.
func LimitChars(text string, chars *int) string {
	if chars == nil || utf8.RuneCountInString(text) <= *chars {
		return text
	}
	return tokens.PrefixChars(text, max(*chars-utf8.RuneCountInString(ClipSuffix), 0)) + ClipSuffix
}

// NothingSaid stands where there is nothing to summarize. The next summary does not repeat it.
const NothingSaid = "Nothing was said."

// SplitFormat is the format for the beginning of a turn that a cut divides.
var SplitFormat = &Format{Sections: []FormatSection{
	{"## Original Request", "What the user asked for in this turn.", []string{"requests", "told"}},
	{"## Early Progress", "What was decided and done in the part of the turn that is hidden.",
		[]string{"decisions", "findings", "state"}},
	{"## Context for Suffix", "What one must know to understand the part of the turn that stays visible.",
		[]string{"open"}},
}}

// Texts that join the two summaries of a divided turn.
const (
	NoHistory  = "No prior history."
	SplitRule  = "---"
	SplitTitle = "**Turn Context (split turn):**"
	SplitTurn  = "\n\n" + SplitRule + "\n\n" + SplitTitle + "\n\n"
)
