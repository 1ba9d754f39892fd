package clip

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// Range names a range of an agent's log, both ends included, as the tool expand reads it.
func Range(from, to int64) string { return fmt.Sprintf(frame.Range, from, to) }

// SummaryMessage is the text by which a model reads a summary: the range that it replaces, how to read that range, and
// the summary. under says that a request of the user that follows in the view is older than the end of the range.
func SummaryMessage(s Summary, under bool, has recall.Toolset) string {
	request := ""
	if under {
		request = "The user's message after this summary is not new: the work on it began in what is summarized, and " +
			"goes on below. "
	}
	return s.wrapped(hiddenHint(Range(s.FromSeq, s.ToSeq), has), request)
}

// hiddenHint says how to read hidden messages; empty if the model has no tool for it.
func hiddenHint(seqs string, has recall.Toolset) string {
	var ways []string
	for _, way := range []string{has.Hint("expand", fmt.Sprintf("expand(id=%q)", seqs)),
		has.Hint("conversation_search", "conversation_search")} {
		if way != "" {
			ways = append(ways, way)
		}
	}
	if len(ways) == 0 {
		return ""
	}
	return "To read them, call " + strings.Join(ways, " or ") + ". "
}

// SummaryText returns the view's summary as the model reads it; empty if there is none.
func (v View) SummaryText() string {
	if v.Summary == nil {
		return ""
	}
	s, note := *v.Summary, ""
	if clip := v.SummaryClip(); clip != nil {
		s.Text, note = clippedSummary(s.Text, *clip)
	}
	return SummaryMessage(s, slices.ContainsFunc(v.Messages, func(m recall.Message) bool {
		return m.Role == recall.User && m.Position < s.To
	}), v.Has) + note
}

// SummaryClip returns the clip of the view's summary; nil if all of it is shown.
func (v View) SummaryClip() *Edit {
	i := slices.IndexFunc(v.Edits, func(c Edit) bool { return c.Position == 0 })
	if i < 0 {
		return nil
	}
	return &v.Edits[i]
}

// clippedSummary returns the beginning of a summary's text, and a note of what it lacks.
func clippedSummary(text string, c Edit) (head, note string) {
	text = strings.TrimSpace(text)
	head = headOf(text, max(c.Chars, 0))
	if len(head) == len(text) {
		return text, ""
	}
	return head, fmt.Sprintf("\n"+frame.SummaryLeftOut,
		utf8.RuneCountInString(text)-utf8.RuneCountInString(head))
}

// SummaryTokens estimates the tokens of a summary's message.
func SummaryTokens(s Summary) int {
	return tokens.Estimate(SummaryMessage(s, true, nil)) + tokens.PerMessage
}

// shown returns a summary's text as a model is shown it: the line that says that no model made it, or its part of a
// divided turn, is Loci's own.
func (s Summary) shown() string {
	text := strings.TrimSpace(s.Text)
	parts := []string{text}
	if at := strings.LastIndex(text, prose.SplitTurn); at >= 0 {
		parts = []string{text[:at+len(prose.SplitTurn)], text[at+len(prose.SplitTurn):]}
	}
	shown := ""
	for _, part := range parts {
		said, own := strings.CutPrefix(part, prose.ExtractedBy)
		if own && (s.How == Extracted || len(parts) > 1) {
			shown, part = shown+prose.ExtractedBy, said
		}
		shown += frame.Neutralize(part)
	}
	return shown
}

// wrapped returns the words around a summary's text: default ones, or those of its format.
func (s Summary) wrapped(hint, request string) string {
	of, text := Range(s.FromSeq, s.ToSeq), s.shown()
	if s.Before == "" {
		return fmt.Sprintf("%s Earlier messages do not fit the context window and are hidden. %s%sThis is a summary of "+
			"them:\n\n%s", of, hint, request, text)
	}
	after := ""
	if s.After != "" {
		after = "\n\n" + s.After
	}
	return fmt.Sprintf("%s Earlier messages are hidden. %s%s\n%s\n\n%s%s", of, hint, strings.TrimSpace(request), s.Before,
		text, after)
}
