package lab_test

import (
	"math"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/compaction/policy"
)

// A recording with counts of its prompts is replayed with these in place of Loci's estimate, and the report says how
// far the estimate was off.
func TestTheProvidersCountIsPreferred(t *testing.T) {
	t.Parallel()
	plain := work(12)
	plain.System = ""
	estimated := lab.NewSession(plain)
	for name, c := range map[string]struct {
		share  float64 // of the estimate that the provider counts
		beside int     // system prompt and tools
		every  int     // prompts with a count
		shrink bool    // the recording's harness compacted in the middle
		counts bool
	}{
		"a little less":               {0.7, 9_000, 1, false, true},
		"more":                        {1.3, 0, 1, false, true},
		"not all prompts":             {0.7, 500, 3, false, true},
		"with a compaction":           {0.7, 9_000, 1, true, true},
		"counts of something else":    {30, 0, 1, false, false},
		"a single count says nothing": {0.7, 0, 1_000, false, false},
	} {
		recorded := work(12)
		recorded.System = ""
		cut := 0.0
		for i, d := range recorded.Drafts {
			if c.shrink && i == 24 {
				cut = c.share * float64(estimated.TokensBefore(12))
			}
			if d.Role == "assistant" && i/2%c.every == 0 {
				recorded.Prompts = append(recorded.Prompts, transcript.Prompt{Answer: i,
					Tokens: c.beside + int(c.share*float64(estimated.TokensBefore(i))-cut)})
			}
		}
		session := lab.NewSession(recorded)
		counts := session.Quote(nil).Counts
		if (counts != nil) != c.counts {
			t.Errorf("%s: got %+v", name, counts)
			continue
		}
		if counts == nil {
			if session.Tokens() != estimated.Tokens() {
				t.Errorf("%s: %d tokens, want the estimate, %d", name, session.Tokens(), estimated.Tokens())
			}
			continue
		}
		want := c.share * float64(estimated.Tokens())
		if off := math.Abs(float64(session.Tokens())/want - 1); off > 0.02 ||
			math.Abs(counts.Off()-(1/c.share-1)) > 0.02 || math.Abs(float64(counts.Beside-c.beside)) > 30 {
			t.Errorf("%s: %d tokens, want %.0f; %+v", name, session.Tokens(), want, counts)
		}
		r, err := lab.ReplayOf(t.Context(), session, lab.Settings{Window: 1_000_000, Prices: policy.UsualPrices})
		if err != nil || math.Abs(float64(r.Whole)/want-1) > 0.05 {
			t.Errorf("%s: the last prompt has %d tokens, %v", name, r.Whole, err)
		}
	}
	text := lab.Counts{Prompts: 40, Estimated: 198_552, Counted: 142_138, Beside: 17_000}.Text()
	if want := "142138 tokens, where Loci estimated 198552, 40 % too high."; !strings.Contains(text, want) {
		t.Errorf("got %q, want %q", text, want)
	}
}
