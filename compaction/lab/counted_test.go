package lab_test

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
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

// mixed returns a session of results of two kinds, of which the provider counts very different shares of the estimate,
// with the counts of its prompts.
func mixed(turns int) transcript.Transcript {
	t := transcript.Transcript{Name: "mixed"}
	said := func(role recall.Role, parts ...recall.Part) {
		t.Drafts = append(t.Drafts, recall.Draft{Role: role, Content: parts})
	}
	random := rand.New(rand.NewPCG(1, 2))
	counted := 2_000.0
	for i := range turns {
		call := func(name, of string) recall.Part {
			return recall.Part{Type: recall.ToolCall, CallID: fmt.Sprintf("call-%d-%s", i, of), Name: name,
				Input: fmt.Sprintf(`{"path":"data/%s_%03d"}`, of, i)}
		}
		result := func(of, text string) recall.Part {
			return recall.Part{Type: recall.ToolReturn, CallID: fmt.Sprintf("call-%d-%s", i, of), Text: text}
		}
		said(recall.User, recall.Part{Type: recall.Text, Text: fmt.Sprintf("Compare part %d with the last one.", i)})
		said(recall.Assistant, call("read_file", "notes"), call("bash", "dump"))
		prose := strings.Repeat("The parcels of the depot waited for their labels. ", 20+i%7*10)
		sealed := make([]byte, 900+i%5*400)
		for n := range sealed {
			sealed[n] = byte(random.Uint32())
		}
		dump := base64.StdEncoding.EncodeToString(sealed)
		said(recall.Tool, result("notes", prose), result("dump", dump))
		counted += 30 + 0.9*float64(tokens.Estimate(prose)) + 0.4*float64(tokens.Estimate(dump))
		t.Prompts = append(t.Prompts, transcript.Prompt{Answer: len(t.Drafts), Tokens: int(counted)})
		said(recall.Assistant, recall.Part{Type: recall.Text, Text: "They differ in one label."})
	}
	return t
}

// What steps take out of view is counted as the whole is: by the provider. So no prompt is larger than the window, and
// no more leaves than there was.
func TestEditsAreCountedAsTheProviderCounts(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	session := lab.NewSession(mixed(60))
	counts := session.Quote(nil).Counts
	if counts == nil || counts.Off() < 0.2 {
		t.Fatalf("the provider's counts are not used: %+v", counts)
	}
	last := mixed(60).Prompts[59].Tokens
	if off := float64(session.Tokens()+counts.Beside)/float64(last) - 1; math.Abs(off) > 0.05 {
		t.Errorf("%d tokens and %d beside them, where the provider counted %d", session.Tokens(), counts.Beside, last)
	}
	for _, p := range policy.Presets() {
		for _, window := range []int{8_000, 24_000} {
			r, err := lab.ReplayOf(t.Context(), session, lab.Settings{Name: p.Name, Policy: p.Policy(), Window: window,
				Prices: policy.UsualPrices})
			if err != nil {
				t.Fatal(err)
			}
			if r.TooLarge > 0 {
				t.Errorf("%s: %d prompts are larger than the window of %d; the largest has %d", p.Name, r.TooLarge, window,
					r.Most)
			}
			chain := r.Chain()
			for _, link := range chain {
				if link.Tokens < 0 {
					t.Errorf("%s, window %d: a layer leaves %d tokens: %+v", p.Name, window, link.Tokens, chain)
				}
			}
			if end := chain[len(chain)-1].Tokens; end != r.Turns[len(r.Turns)-1].Tokens {
				t.Errorf("%s, window %d: the layers end at %d tokens, and the last prompt has %d", p.Name, window, end,
					r.Turns[len(r.Turns)-1].Tokens)
			}
		}
	}
}
