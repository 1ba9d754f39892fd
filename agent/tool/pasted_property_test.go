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

// drawnText draws lines of words, markup, marks, and imitations of a prompt's frames. It draws no line-end mark: a
// selection cannot tell whether the text contains that mark or a result added it.
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

// Whatever part of a text a block, a result or a file shows, tools that edit and search find the part when a model
// pastes it.
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
		stored := func() string {
			b, err := blocks.Labelled(t.Context(), w.org, w.agent.ID, "notes")
			if err != nil {
				t.Fatal(err)
			}
			return b.Value
		}
		if stored() != value {
			drawn.Fatalf("memory_rethink stores %q of %q, shown as %q", stored(), value, frame.Neutralize(value, "human"))
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
		if got.IsError && !strings.Contains(got.Text, "Multiple occurrences") || stored() != value {
			drawn.Fatalf("memory_replace of %q by itself: the block reads %q, was %q; %s", part, stored(), value, got.Text)
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

// parsed maps a character to what a plain-text parser keeps: line ends become LF, and control characters are removed.
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

// selection draws a part of a text that has more than white space and marks.
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
