package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/recall"
)

// Each case looks at several sizes of a view in a window of 100,000 tokens, one after the other, and names the decision
// at each.
func TestWhatIsDue(t *testing.T) {
	t.Parallel()
	type look struct {
		tokens int
		open   bool
		want   string
	}
	at := func(tokens int, want string) look { return look{tokens: tokens, want: want} }
	calling := func(tokens int, want string) look { return look{tokens, true, want} }
	compacted := func(tokens int) look { return look{tokens: tokens, want: "compacted"} }
	for name, looks := range map[string][]look{
		"above the trigger, and not at it":       {at(90_000, "warn"), at(90_001, "compact")},
		"a warning once, before anything leaves": {at(74_999, ""), at(75_000, "warn"), at(80_000, ""), at(75_000, "")},
		"and again after usage fell below":       {at(76_000, "warn"), at(74_999, ""), at(75_001, "warn")},
		"a compaction and the warning":           {at(93_000, "warn compact")},
		"an open call defers, up to 95 percent": {calling(91_000, "warn deferred"), calling(94_999, "deferred"),
			calling(95_000, "compact")},
		"and what it deferred is done":        {calling(91_000, "warn deferred"), at(91_000, "compact")},
		"disarmed until usage has grown by 5": {compacted(88_000), at(92_999, "warn"), at(93_000, "compact")},
		"never at or above 95":                {compacted(94_000), at(94_999, "warn"), at(95_000, "compact")},
		"growth begins where usage fell to": {compacted(88_000), at(85_500, "warn"), at(90_400, ""),
			at(90_600, "compact")},
		"once armed it stays so": {compacted(80_000), at(86_000, "warn"), at(84_000, ""),
			at(90_500, "compact")},
		"an open call defers a compaction disarmed": {compacted(89_000), calling(94_500, "warn deferred")},
	} {
		var memory plan.TriggerState
		for i, l := range looks {
			if l.want == "compacted" {
				memory.Disarmed, memory.Base = true, l.tokens
				continue
			}
			var d plan.Decision
			d, memory = plan.Check(l.tokens, 100_000, l.open, plan.Defaults(), memory)
			got := ""
			for _, what := range []struct {
				is   bool
				name string
			}{{d.Warn, "warn"}, {d.Compact, "compact"}, {d.Deferred, "deferred"}} {
				if what.is {
					got += map[bool]string{true: " "}[got != ""] + what.name
				}
			}
			if got != l.want {
				t.Errorf("%s: look %d at %d: %q, want %q", name, i, l.tokens, got, l.want)
			}
		}
	}
}

// The trigger comes from the settings.
func TestTheTriggerIsASetting(t *testing.T) {
	t.Parallel()
	for trigger, first := range map[float64]int{0.5: 50_001, 0.9: 90_001, 0.98: 98_001} {
		s := plan.Defaults()
		s.Trigger = trigger
		for tokens := range 110_000 {
			d, _ := plan.Check(tokens, 100_000, false, s, plan.TriggerState{})
			if d.Compact != (tokens >= first) {
				t.Fatalf("trigger %v at %d tokens: %v", trigger, tokens, d.Compact)
			}
		}
	}
}

// In an unknown window nothing is due, and the state does not change.
func TestNothingIsDueInAnUnknownWindow(t *testing.T) {
	t.Parallel()
	before := plan.TriggerState{Warned: true, Disarmed: true, Base: 7}
	for _, w := range []int{0, -1} {
		d, after := plan.Check(1<<40, w, false, plan.Defaults(), before)
		if diff := cmp.Diff(plan.Decision{}, d); diff != "" || after != before {
			t.Errorf("window %d: %+v, %+v", w, d, after)
		}
	}
}

// The trigger works with our own count if no provider ever reported one, and new tool results count before the next
// prompt.
func TestTheTriggerFiresWithoutAProvider(t *testing.T) {
	t.Parallel()
	v := window(20_000, 2000).say(recall.User, 1000).look(14_000)
	due := func() bool {
		d, _ := plan.Check(clip.Estimate(v.View), v.Window, v.Open(), plan.Defaults(),
			plan.TriggerState{})
		return d.Compact
	}
	if due() {
		t.Error("it fires at 17,000 of 20,000")
	}
	v.Usage = &clip.Usage{PromptTokens: 17_000, Position: len(v.Messages)}
	v.look(1100)
	if !due() {
		t.Error("what was returned since the report does not count")
	}
	v.Usage = nil
	if !due() {
		t.Error("without a report it does not fire")
	}
	v.put(recall.Assistant, "", called("open", "{}"))
	if due() || !v.Open() {
		t.Error("it fires while a call is open")
	}
}
