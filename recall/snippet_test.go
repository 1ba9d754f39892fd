package recall_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/recall"
)

// A snippet contains what stands around the query's words, before and after them, wherever they are in the text.
func TestASnippetHasWhatStandsAroundTheWords(t *testing.T) {
	t.Parallel()
	const fact = "KX-1177 is, as Ada told me, the code of the zorbulon11; the number is 4711-0815."
	for before := 0; before < 6_000; before += 7 {
		text := strings.Repeat("lorem ipsum ", before/12+1) + fact + strings.Repeat(" dolor sit", 300)
		if got := recall.Snippet(text, "zorbulon11 code"); !strings.Contains(got, fact) {
			t.Fatalf("after %d bytes the snippet is %q", before, got)
		}
	}
}
