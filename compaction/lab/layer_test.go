package lab_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db/dbtest/scale"
)

// What the layers of a policy saved is the difference between the whole session and the last prompt, and each use that
// was not in view was hidden by a layer.
func TestLayersAddUp(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	session := lab.NewSession(work(60))
	for _, p := range policy.Presets() {
		r, err := lab.ReplayOf(t.Context(), session, lab.Settings{Name: p.Name, Policy: p.Policy(), Window: 16_000,
			Prices: policy.UsualPrices})
		if err != nil {
			t.Fatal(err)
		}
		saved, hidden := 0, 0
		for _, l := range r.Layers {
			saved += l.Saved
			hidden += l.Hidden
			if l.Fired == 0 && l.Saved+l.Hidden != 0 {
				t.Errorf("%s: %+v did something and did not fire", p.Name, l)
			}
		}
		last := r.Turns[len(r.Turns)-1]
		if r.Whole-saved != last.Tokens || r.Whole < 20_000 {
			t.Errorf("%s: of %d tokens the layers saved %d, and the last prompt has %d: %+v", p.Name, r.Whole, saved,
				last.Tokens, r.Layers)
		}
		if want := r.Evidence.Total() - r.Evidence.InView; hidden != want || len(r.Fired()) == 0 {
			t.Errorf("%s: the layers hid %d uses, want %d: %+v", p.Name, hidden, want, r.Layers)
		}
		chain := r.Chain()
		if end := chain[len(chain)-1]; chain[0].Tokens != r.Whole || end.Tokens != last.Tokens ||
			end.InView-r.Evidence.Share() > 1e-9 || r.Evidence.Share()-end.InView > 1e-9 {
			t.Errorf("%s: the chain is %+v, in view %v", p.Name, chain, r.Evidence.Share())
		}
	}
}

// A replay says which steps of the policy never did anything. Policies of which none did are equal, to the token.
func TestStepsThatNeverFiredAreNamed(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	session := lab.NewSession(work(10))
	report := lab.Report{}
	for _, window := range []int{6_000, 1_000_000} {
		for _, name := range []string{"letta", "pi", "four-layers", "claude-code"} {
			p, err := policy.Preset(name)
			if err != nil {
				t.Fatal(err)
			}
			r, err := lab.ReplayOf(t.Context(), session, lab.Settings{Name: name, Policy: p, Window: window,
				Prices: policy.UsualPrices})
			if err != nil {
				t.Fatal(err)
			}
			if window == 1_000_000 && len(r.Fired()) > 0 || window == 6_000 && len(r.Fired()) == 0 {
				t.Errorf("%s in %d: %v fired", name, window, r.Fired())
			}
			report.Results = append(report.Results, r)
		}
	}
	if got, want := report.Results[6].NeverFired(), []string{"snip", "one_line", "fraction", "auto_compact",
		"hard_truncate"}; !slices.Equal(got, want) {
		t.Errorf("of four-layers %v never fired, want %v", got, want)
	}
	equal := report.Equals()
	want := []lab.Equal{{Session: "work", Window: 1_000_000, Why: equal[len(equal)-1].Why,
		Policies: []string{"letta", "pi", "four-layers", "claude-code"}}}
	if diff := cmp.Diff(want, equal); diff != "" || !strings.HasPrefix(want[0].Why, "their steps did not fire: ") {
		t.Errorf("equal (-want +got): %s", diff)
	}
	advice := report.Advise()
	if len(advice) != 2 || len(advice[0].Winners) != 3 || len(advice[1].Winners) != 0 ||
		!strings.Contains(advice[1].Text, "any of the 4 policies, because they are equal here: their steps did not fire") {
		t.Errorf("advice: %+v", advice)
	}
}

// Advice names the best policy for each goal with the reason. Policies whose prompts do not fit do not win.
func TestAdviceNamesAWinnerForEachGoal(t *testing.T) {
	t.Parallel()
	turns := []lab.Turn{{Tokens: 100}, {Tokens: 200, Kept: 100}}
	result := func(name string, cost float64, inView, breaks int) lab.Result {
		return lab.Result{Session: "s", Window: 1000, Policy: name, CachedCost: cost, Breaks: breaks, Turns: turns,
			Evidence: lab.Evidence{InView: inView, Search: 100 - inView}, Compactions: breaks, KeptShare: 0.9,
			Layers: []lab.Layer{{Step: "full", Fired: breaks, Saved: 7000}}}
	}
	tooLarge := result("large", 0.1, 100, 0)
	tooLarge.TooLarge = 1
	for name, c := range map[string]struct {
		results []lab.Result
		want    []string
	}{
		"three winners": {[]lab.Result{result("cheap", 1, 50, 9), result("keeps", 2, 90, 8), result("calm", 3, 60, 1),
			tooLarge}, []string{
			"To pay least take cheap: it costs 1.00, and calm 3.00, because full acted 9 times and took 7000 tokens out of",
			"; to keep most in view take keeps: 90.0 % of what answers used was in view, and under cheap 50.0 %, because",
			"; for the fewest cache breaks take calm: 1 of its 2 prompts change what was sent before, and under cheap 9"}},
		"one wins all": {[]lab.Result{result("best", 1, 90, 1), result("other", 2, 50, 2)},
			[]string{"To pay least, to keep most in view and for the fewest cache breaks take best: it costs 1.00, and other"}},
		"one as good": {[]lab.Result{result("a", 1, 90, 1), result("b", 1, 90, 1), result("other", 2, 50, 2)},
			[]string{"take a (1 others do the same): "}},
		"the same to all": {[]lab.Result{result("a", 1, 90, 1), {Session: "s", Window: 1000, Policy: "b", CachedCost: 1,
			Breaks: 1, Evidence: lab.Evidence{InView: 90, Search: 10}, Turns: []lab.Turn{{Tokens: 7}}}},
			[]string{"Take any, because they cost the same"}},
		"none fits": {[]lab.Result{tooLarge, tooLarge}, []string{"Take a larger window, because under no policy"}},
		"one fits": {[]lab.Result{tooLarge, result("small", 1, 1, 1)},
			[]string{"Take small, because under the others some prompts do not fit 1000 tokens"}},
	} {
		advice := lab.Report{Results: c.results}.Advise()
		if len(advice) != 1 {
			t.Fatalf("%s: %+v", name, advice)
		}
		for _, want := range c.want {
			if !strings.Contains(advice[0].Text, want) {
				t.Errorf("%s: got %q, want %q", name, advice[0].Text, want)
			}
		}
	}
}
