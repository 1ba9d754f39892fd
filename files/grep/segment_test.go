package grep_test

import (
	"iter"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/files/grep"
)

// anyText draws texts of short lines, empty lines and lines longer than a segment. The last line may have no line end.
func anyText() *rapid.Generator[string] {
	line := rapid.OneOf(rapid.StringMatching(`[a-c x.]{0,12}`),
		rapid.SampledFrom([]string{"", "é", "日本語", "\r", "\f", "\U0001f600 x"}),
		rapid.Custom(func(t *rapid.T) string {
			unit := rapid.SampledFrom([]string{"a", "é", "日", "\U0001f600", "ab日"}).Draw(t, "unit")
			return strings.Repeat(unit, rapid.IntRange(grep.SegmentBytes/8, grep.SegmentBytes).Draw(t, "times"))
		}))
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for range rapid.IntRange(0, 8).Draw(t, "runs") {
			b.WriteString(strings.Repeat(line.Draw(t, "line")+"\n", rapid.SampledFrom([]int{1, 1, 1, 3}).Draw(t, "times")))
		}
		return b.String() + rapid.SampledFrom([]string{"", "end", "日"}).Draw(t, "end")
	})
}

// stored yields the segments of a text as the database returns them.
func stored(text string) iter.Seq2[grep.Segment, error] {
	return func(yield func(grep.Segment, error) bool) {
		for s := range grep.Segments(text) {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// lineCount returns the number of lines in a text. A last line without line end counts.
func lineCount(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

func checkSegments(t interface{ Fatalf(string, ...any) }, text string) {
	all := slices.Collect(grep.Segments(text))
	start, lines, ends := 0, 0, 0
	for i, s := range all {
		begins := start == 0 || text[start-1] == '\n'
		switch {
		case s.Ordinal != i || s.StartByte != start || !strings.HasPrefix(text[start:], s.Text):
			t.Fatalf("segment %d: ordinal %d, start %d, want start %d", i, s.Ordinal, s.StartByte, start)
		case s.Text == "" || len(s.Text) > grep.SegmentBytes || utf8.ValidString(text) && !utf8.ValidString(s.Text):
			t.Fatalf("segment %d: %d bytes, valid UTF-8: %t", i, len(s.Text), utf8.ValidString(s.Text))
		case s.Continues == begins || s.FirstLine != ends+1:
			t.Fatalf("segment %d: continues %t, first line %d, after %d line ends", i, s.Continues, s.FirstLine, ends)
		case s.Continues && strings.Contains(strings.TrimSuffix(s.Text, "\n"), "\n"):
			t.Fatalf("segment %d: continues a line and holds others", i)
		case !s.Continues && !strings.HasSuffix(s.Text, "\n") && strings.Contains(s.Text, "\n") && i+1 < len(all):
			t.Fatalf("segment %d: begins a line among whole ones", i)
		}
		start += len(s.Text)
		lines += s.Lines
		ends += strings.Count(s.Text, "\n")
	}
	if start != len(text) || lines != lineCount(text) {
		t.Fatalf("segments hold %d bytes and %d lines, want %d and %d", start, lines, len(text), lineCount(text))
	}
}

func TestSegmentsAreTheText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { checkSegments(t, anyText().Draw(t, "text")) })
}

func TestSegmentsOfHostileTexts(t *testing.T) {
	t.Parallel()
	full := strings.Repeat("x", grep.SegmentBytes-1)
	long := scale.Of(5, 50) << 20 // bytes
	for name, tt := range map[string]struct {
		text string
		want int
	}{
		"nothing":                      {"", 0},
		"one empty line":               {"\n", 1},
		"a line that fills a segment":  {full + "\n" + "next", 2},
		"a line one byte too long":     {full + "x\n" + "next", 3},
		"a long line without end":      {full + "xx", 2},
		"many megabytes in one line":   {strings.Repeat("01234567", long/8), long / grep.SegmentBytes},
		"a million empty lines":        {strings.Repeat("\n", 1_000_000), 16},
		"a character at the edge":      {full + "é" + full, 3},
		"what is no UTF-8 at the edge": {strings.Repeat("\x80", 2*grep.SegmentBytes+1), 3},
	} {
		checkSegments(t, tt.text)
		if got := len(slices.Collect(grep.Segments(tt.text))); got != tt.want {
			t.Errorf("%s: %d segments, want %d", name, got, tt.want)
		}
	}
	for range grep.Segments("a\n" + full + "xx\n") {
		break
	}
}
