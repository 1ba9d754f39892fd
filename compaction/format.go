package compaction

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/recall"
)

// Format says what a summary is like: what a model is asked for, what Loci adds, and the words around it.
type Format struct {
	Sections  []FormatSection `json:"sections"`             // in order
	MaxTokens int             `json:"max_tokens,omitempty"` // of the text; 0: the plan's budget
	MaxWords  int             `json:"max_words,omitempty"`  // that a model is asked for; 0: as many as in the mode
	Before    string          `json:"before,omitempty"`     // where a model reads the summary: before it
	After     string          `json:"after,omitempty"`      // where a model reads the summary: after it

	Tagged  bool `json:"tagged,omitempty"`  // the model thinks in <analysis> first; only what is in <summary> counts
	Checked bool `json:"checked,omitempty"` // a summary without a heading is asked for again

	Staged   bool `json:"staged,omitempty"`    // what is too long for the model is summarized in parts, then merged
	HeadDrop bool `json:"head_drop,omitempty"` // of what is too long for the model, the oldest rounds are left out

	UserMessages bool `json:"user_messages,omitempty"` // all messages of the user follow, word for word
	RecentTurns  int  `json:"recent_turns,omitempty"`  // so many newest turns of those that leave follow, shortened
	Failures     int  `json:"failures,omitempty"`      // so many failed calls follow
	Files        bool `json:"files,omitempty"`         // lists of the files that were read and modified follow
}

// FormatSection is a section of a summary.
type FormatSection struct {
	Heading string   `json:"heading"` // a line of its own
	Words   string   `json:"words"`   // what it is to hold, for a model
	From    []string `json:"from"`    // what it holds without a model, of extractedNames; none: nothing
}

// Making says how the summary of a plan is made.
type Making struct {
	Format *Format       // nil: that of the settings' mode
	Quoted int           // tokens of the budget for the messages of the user that the format quotes; 0: half of it
	Notes  string        // the text that becomes the summary, without a model; empty: one is written
	Hidden bool          // it says only that messages are hidden
	Split  int           // position of the first message of the turn that the cut divides; 0: it divides none
	Calls  []recall.Part // of which the list of files has the files, too
	Named  []Named       // what was read, is too long to be shown again, and is named after the summary
}

// Named is a file that was read, and the message with what was read of it.
type Named struct {
	Path string
	Seq  int64
}

// extractedNames are the names of the sections of an extraction, in formats.
var extractedNames = [sectionCount]string{"earlier", "requests", "told", "decisions", "findings", "open", "errors",
	"named", "calls", "state"}

// layout says under which headings the sections of an extraction stand, and in which order.
type layout struct {
	titles [sectionCount]string
	groups [][]section // of the same title
}

// layoutOf returns the layout of a format; nil has that of Loci. Sections that the format does not have keep theirs and
// follow.
func layoutOf(f *Format) layout {
	l := layout{titles: titles}
	used := [sectionCount]bool{}
	if f != nil {
		for _, s := range f.Sections {
			var group []section
			for _, name := range s.From {
				if i := slices.Index(extractedNames[:], name); i >= 0 && !used[i] {
					group, used[i], l.titles[i] = append(group, section(i)), true, s.Heading
				}
			}
			l.groups = append(l.groups, group)
		}
	}
	for i := range sectionCount {
		if !used[i] {
			l.groups = append(l.groups, []section{i})
		}
	}
	return l
}

// sectionsOf returns the sections under a heading, nil if the layout does not have the heading.
func (l layout) sectionsOf(heading string) []section {
	for _, group := range l.groups {
		if len(group) > 0 && l.titles[group[0]] == heading {
			return group
		}
	}
	return nil
}

// sectionOfLine returns the section of a line, without its number, that stands under the heading of several sections.
func sectionOfLine(group []section, line string) section {
	has := func(s section) bool { return slices.Contains(group, s) }
	switch {
	case len(group) == 1:
		return group[0]
	case has(state) && (strings.HasPrefix(line, "assistant: ") || strings.HasPrefix(line, "result of ") && !has(findings)):
		return state
	}
	for _, general := range []section{requests, findings, told, decisions, open} {
		if !has(general) {
			continue
		}
		if said := sentenceOf(line).sectionIn(general); has(said) && trust[general] > 0 {
			return said
		}
		return general
	}
	return group[0]
}

// FormatPrompt returns the instruction of a format for a summary of at most some tokens.
func FormatPrompt(f *Format, m Mode, budget int) string {
	var parts strings.Builder
	for _, s := range f.Sections {
		parts.WriteString(s.Heading + "\n" + s.Words + "\n\n")
	}
	how := "nothing but the summary"
	if f.Tagged {
		how = "first your analysis between <analysis> tags, then the summary between <summary> tags"
	}
	return promptIntro(m) + "Use exactly these headings, each on a line of its own:\n\n" + parts.String() +
		fmt.Sprintf("Write at most %d words, and %s.", f.words(m, budget), how)
}

// words returns how many words a summary of the format may have.
func (f *Format) words(m Mode, budget int) int {
	if f == nil || f.MaxWords == 0 {
		return words(m, budget)
	}
	return max(min(f.MaxWords, budget*5/8), leastWords)
}

// lacks returns the headings that a text lacks.
func (f *Format) lacks(text string) (missing []string) {
	if f == nil || !f.Checked {
		return nil
	}
	for _, s := range f.Sections {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(strings.Trim(s.Heading, "#: "))) {
			missing = append(missing, s.Heading)
		}
	}
	return missing
}

// summaryOnly returns what stands between the summary tags of a tagged format's answer; empty if it has none. A closing
// tag may be missing.
func (f *Format) summaryOnly(text string) string {
	if f == nil || !f.Tagged {
		return text
	}
	_, text, _ = strings.Cut(text, "<summary>")
	text, _, _ = strings.Cut(text, "</summary>")
	return strings.TrimSpace(text)
}

// shown returns a summary's text as a model is shown it: the line that says that no model made it, or its part of a
// divided turn, is Loci's own.
func (s Summary) shown() string {
	text := strings.TrimSpace(s.Text)
	parts := []string{text}
	if at := strings.LastIndex(text, splitTurn); at >= 0 {
		parts = []string{text[:at+len(splitTurn)], text[at+len(splitTurn):]}
	}
	shown := ""
	for _, part := range parts {
		said, own := strings.CutPrefix(part, extractedBy)
		if own && (s.How == Extracted || len(parts) > 1) {
			shown, part = shown+extractedBy, said
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
