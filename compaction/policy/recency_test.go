package policy_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/policy"
)

// The older a turn, the less of it is shown. With equal turns the prompt's length stays the same, and its beginning
// changes only now and then.
func TestRecencyKeepsPromptsFlat(t *testing.T) {
	t.Parallel()
	step := `{"steps":[{"step":"recency","every_turns":5}]}`
	v := window(1_000_000).user(10)
	var sizes []int
	changes := 0
	for range 80 {
		v.repeat(1, "read", 8000)
		after, edits := v.prune(step, policy.Moment{})
		if len(edits) > 0 {
			changes++
		}
		v.Edits = after.Edits
		sizes = append(sizes, clip.Estimate(after))
	}
	if changes > 80/5 {
		t.Errorf("the beginning changed %d times in 80 turns", changes)
	}
	if grown := sizes[79] - sizes[29]; grown > 50*120 {
		t.Errorf("50 turns of equal size grew the prompt by %d tokens, from %d", grown, sizes[29])
	}
	want := map[int]string{78: "whole", 72: "clip", 60: "line", 20: "cleared"}
	for turn, kind := range want {
		text := v.View.AsShown()[2*turn].Content[0].Text
		got := "whole"
		switch {
		case strings.Contains(text, "characters left out"):
			got = "clip"
		case strings.HasPrefix(text, "[compacted without a model"):
			got = "line"
		case strings.HasPrefix(text, "[old result cleared"):
			got = "cleared"
		}
		if got != kind {
			t.Errorf("turn %d of 80 is shown as %s, want %s: %.80s", turn, got, kind, text)
		}
	}
}
