package prose

import (
	"slices"
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

// CutSections cuts a text to at most most tokens. If it has sections, the longest are shortened until all have as much
// room as they need, or the same: each keeps its heading and its beginning.
func CutSections(text string, most int, isHeading func(line string) bool) string {
	if tokens.Estimate(text) <= most {
		return text
	}
	parts := sectionsOf(text, isHeading)
	free := most - len(parts)
	if len(parts) < 2 || free < len(parts)*leastSection {
		return CutTo(text, most)
	}
	sizes := make([]int, len(parts))
	for i, part := range parts {
		sizes[i] = tokens.Estimate(part)
	}
	room := evenly(sizes, free)
	for i, part := range parts {
		if sizes[i] > room {
			parts[i] = cutSection(part, room)
		}
	}
	return CutTo(strings.Join(parts, "\n"), most)
}

// leastSection is how many tokens a section needs to say anything.
const leastSection = 12

// evenly returns the most that each of some sizes may take, so that together they take at most most.
func evenly(sizes []int, most int) (each int) {
	for i, size := range slices.Sorted(slices.Values(sizes)) {
		if each = most / (len(sizes) - i); size > each {
			return each
		}
		most -= size
	}
	return each
}

// cutSection cuts a section at the end of a line or, if its lines are long, within one.
func cutSection(part string, most int) string {
	cut := tokens.Prefix(part, most-3)
	if end := strings.LastIndexByte(cut, '\n'); end > len(cut)/2 {
		cut = cut[:end]
	}
	return strings.TrimSpace(cut) + " …"
}

// sectionsOf divides a text before its headings.
func sectionsOf(text string, isHeading func(line string) bool) (parts []string) {
	var part []string
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if isHeading(strings.TrimSpace(line)) && len(part) > 0 {
			parts, part = append(parts, strings.Join(part, "\n")), nil
		}
		part = append(part, line)
	}
	return append(parts, strings.Join(part, "\n"))
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
