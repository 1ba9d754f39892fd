package tool_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/recall/chat"
)

// drawnText draws lines of words, markup, marks and what looks like a prompt's own frames. It has no line end's mark:
// whether the text has it or a result shows it cannot be told from a selection.
func drawnText(t *rapid.T) string {
	pieces := rapid.SliceOfN(rapid.OneOf(
		rapid.SampledFrom([]string{"<system>", "</value>", "< / value >", "<~/value>", "<~~/b", "</human>", "<file status=",
			"[seq 1]", "[~seq 2]", "[~~seq 3", "[cut]", "[no result yet]", "&lt;", "&amp;", "<", ">", "[", "~", "~/", "</",
			"\\", "\"", "\n", "\n", "\r", "\v", "\u2028", "\u0085", "\t", "\u200b", "\u00a0",
			"＜/system＞", "‹/val\u200bue›", "［seq 1", "＜", "【cut】", " ", "  ", "$1", "${x}", "(.*)"}),
		rapid.StringMatching(`[a-z]{1,7}`), rapid.StringOfN(rapid.Rune(), 1, 3, -1)), 1, 24).Draw(t, "pieces")
	text := strings.ReplaceAll(strings.Join(pieces, ""), "\x00", "")
	return strings.ToValidUTF8(text, "") + "."
}

// A selection of any text, as a block, a result or a file shows it, matches in the tools that edit and search.
func TestAnySelectionOfAnyTextCanBePasted(t *testing.T) {
	t.Parallel()
	var shownFiles []document
	for i := range scale.Of(20, 100) {
		text := strings.Map(parsed, rapid.Custom(drawnText).Example(i))
		shownFiles = append(shownFiles, document{"drawn", fmt.Sprintf("f%d.txt", i), text})
	}
	w := newWorld(t, shownFiles...)
	blocks := &block.Store{DB: w.pool}
	for _, label := range []string{"human", "notes"} {
		if _, err := blocks.Add(t.Context(), w.org, w.agent.ID, block.New{Label: label, Value: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(drawn *rapid.T) {
		value := drawnText(drawn)
		whole := encodedArgs("label", "notes", "new_memory", frame.Neutralize(value, "human"))
		if got := w.run(t, "memory_rethink", whole); got.IsError {
			drawn.Fatalf("memory_rethink of %q: %s", value, got.Text)
		}
		now := func() string {
			b, err := blocks.Labelled(t.Context(), w.org, w.agent.ID, "notes")
			if err != nil {
				t.Fatal(err)
			}
			return b.Value
		}
		if now() != value {
			drawn.Fatalf("memory_rethink stores %q of %q, shown as %q", now(), value, frame.Neutralize(value, "human"))
		}
		shown := frame.Neutralize(value, "human")
		if rapid.Bool().Draw(drawn, "line ends are marked") {
			shown = frame.Neutralize(frame.MarkLineEnds(value), "human")
		}
		part := selection(drawn, shown)
		if part == "" {
			return
		}
		got := w.run(t, "memory_replace", encodedArgs("label", "notes", "old_string", part, "new_string", part))
		if got.IsError && !strings.Contains(got.Text, "Multiple occurrences") || now() != value {
			drawn.Fatalf("memory_replace of %q by itself: the block reads %q, was %q; %s", part, now(), value, got.Text)
		}
	})
	rapid.Check(t, func(drawn *rapid.T) {
		d := rapid.SampledFrom(shownFiles).Draw(drawn, "file")
		lines := strings.Split(d.text, "\n")
		line := rapid.SampledFrom(lines).Draw(drawn, "line")
		part := selection(drawn, frame.Neutralize(frame.MarkLineEnds(line)))
		if part == "" {
			return
		}
		got := w.run(t, "grep_files", encodedArgs("pattern", part, "literal", true, "include", d.name))
		if !strings.Contains(got.Text, d.name) || strings.Contains(got.Text, "No matches") {
			drawn.Fatalf("grep_files for %q of %q: %s", part, d.text, got.Text)
		}
	})
}

// parsed maps a character to what a parser of plain text leaves of it: line ends become LF, control characters go.
func parsed(r rune) rune {
	switch {
	case r == '\r':
		return '\n'
	case unicode.IsControl(r) && !strings.ContainsRune("\n\t\v\f\u0085", r):
		return -1
	}
	return r
}

func encodedArgs(namesAndValues ...any) string {
	args := map[string]any{}
	for i := 0; i < len(namesAndValues); i += 2 {
		args[namesAndValues[i].(string)] = namesAndValues[i+1]
	}
	return string(chat.Encode(args))
}

// selection draws a part of a text that is more than white space and marks.
func selection(t *rapid.T, text string) string {
	runes := []rune(text)
	if len(runes) == 0 {
		return ""
	}
	from := rapid.IntRange(0, len(runes)-1).Draw(t, "from")
	to := rapid.IntRange(from+1, len(runes)).Draw(t, "to")
	part := string(runes[from:to])
	if strings.ContainsFunc(part, func(r rune) bool {
		return !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r) && r != '~' && r != '⏎'
	}) {
		return part
	}
	return ""
}
