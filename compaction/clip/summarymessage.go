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

// Range returns the name of a range of an agent's log in the form that the tool expand reads. Both ends are included.
func Range(from, to int64) string { return fmt.Sprintf(frame.Range, from, to) }

// SummaryMessage returns a summary as the model reads it: the range that it replaces, how to read that range, and the
// summary. under reports whether the view still has a user's request from before the end of the range.
func SummaryMessage(s Summary, under bool, has recall.Toolset) string {
	request := ""
	if under {
		request = "The user's message after this summary is not new: the work on it began in what is summarized, and " +
			"goes on below. "
	}
	return s.wrapped(hiddenHint(Range(s.FromSeq, s.ToSeq), has), request)
}

// hiddenHint says how to read hidden messages; empty if the model lacks the tool for it.
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

// SummaryClip returns the clip of the view's summary; nil if it is shown whole.
func (v View) SummaryClip() *Edit {
	i := slices.IndexFunc(v.Edits, func(c Edit) bool { return c.Position == 0 })
	if i < 0 {
		return nil
	}
	return &v.Edits[i]
}

// clippedSummary returns the beginning of a summary's text, and a note about the rest.
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

// shown returns a summary's text for a model. It neutralizes the text, except the line by which Loci says that no model
// made the summary; a divided turn's parts may have that line, too.
func (s Summary) shown() string {
	text := strings.TrimSpace(s.Text)
	parts := []string{text}
	if i := strings.LastIndex(text, prose.SplitTurn); i >= 0 {
		parts = []string{text[:i+len(prose.SplitTurn)], text[i+len(prose.SplitTurn):]}
	}
	shown := ""
	for _, part := range parts {
		rest, isExtracted := strings.CutPrefix(part, prose.ExtractedBy)
		if isExtracted && (s.How == Extracted || len(parts) > 1) {
			shown, part = shown+prose.ExtractedBy, rest
		}
		shown += frame.Neutralize(part)
	}
	return shown
}

// wrapped returns the summary's text with the words around it: the default ones, or the format's own.
func (s Summary) wrapped(hint, request string) string {
	seqs, text := Range(s.FromSeq, s.ToSeq), s.shown()
	if s.Before == "" {
		return fmt.Sprintf("%s Earlier messages do not fit the context window and are hidden. %s%sThis is a summary of "+
			"them:\n\n%s", seqs, hint, request, text)
	}
	after := ""
	if s.After != "" {
		after = "\n\n" + s.After
	}
	return fmt.Sprintf("%s Earlier messages are hidden. %s%s\n%s\n\n%s%s", seqs, hint, strings.TrimSpace(request),
		s.Before, text, after)
}
