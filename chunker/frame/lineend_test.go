package frame_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/chunker/frame"
)

func TestUnmarkLineEndsUndoesTheMarks(t *testing.T) {
	t.Parallel()
	piece := rapid.OneOf(rapid.String(), rapid.SampledFrom(
		[]string{"\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\u0085", "\u2028", "\u2029", "⏎",
			"\n"}))
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"), "")
		shown := frame.MarkLineEnds(text)
		if got := frame.UnmarkLineEnds(shown); got != text {
			t.Fatalf("%q is shown as %q, and read as %q", text, shown, got)
		}
		for i, r := range shown {
			marked := strings.HasPrefix(shown[i+len(string(r)):], "⏎")
			if strings.ContainsRune("\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029", r) && !marked {
				t.Fatalf("%q is shown as %q", text, shown)
			}
		}
	})
}
