package prose_test

import (
	"testing"

	"github.com/loci-memory/loci/compaction/prose"
)

// A model's tags count in any case, and without the closing one.
func TestTagsOfASummaryAreReadInAnyCase(t *testing.T) {
	t.Parallel()
	tagged := &prose.Format{Tagged: true}
	for answer, want := range map[string]string{
		"<analysis>a</analysis>\n<summary>\nThe pier.\n</summary>": "The pier.",
		"<Analysis>a</ANALYSIS><SUMMARY>The pier.</Summary> more":  "The pier.",
		"<SUMMARY>The pier.":              "The pier.",
		"<ANALYSIS>a</ANALYSIS>The pier.": "The pier.",
		"The pier.":                       "The pier.",
		"<analysis>a":                     "",
	} {
		if got := tagged.SummaryOnly(answer); got != want {
			t.Errorf("%q: %q, want %q", answer, got, want)
		}
	}
}
