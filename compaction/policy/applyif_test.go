package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/policy"
)

// A change of a cached prompt waits until it is worth its cost.
func TestChangesWaitForTheCache(t *testing.T) {
	t.Parallel()
	v := window(1_000_000).user(10)
	for i := range 10 {
		v.call("read", 2, fmt.Sprint(i)+strings.Repeat(" the", 12_000))
	}
	v.says(10)
	applyIf := func(when string, turns int) string {
		gate := fmt.Sprintf(`{"step":"apply_if","when":%q,"turns_left":%d}`, when, turns)
		return `{"steps":[{"step":"clear_tool_uses"},` + gate + `]}`
	}
	warm, cold := touched(time.Minute), touched(5*time.Minute)
	small := *v
	small.Window = clip.Estimate(v.View) * 100 / 96
	for _, c := range []struct {
		name   string
		v      *viewBuilder
		policy string
		at     policy.Moment
		want   bool
	}{
		{"always", v, applyIf("always", 0), warm, true},
		{"warm", v, applyIf("only_if_cold", 100), warm, false},
		{"cold", v, applyIf("only_if_cold", 0), cold, true},
		{"not full", v, applyIf("under_pressure", 0), cold, false},
		{"full", &small, applyIf("under_pressure", 0), warm, true},
		{"full, whatever the mode", &small, applyIf("only_if_cold", 0), warm, true},
		{"84,000 of 120,000 tokens, 4 turns left", v, applyIf("break_even", 4), warm, false},
		{"84,000 of 120,000 tokens, 5 turns left", v, applyIf("break_even", 5), warm, true},
		{"cold, no turns left", v, applyIf("break_even", 0), cold, true},
	} {
		after, edits := c.v.prune(c.policy, c.at)
		if len(edits) > 0 != c.want || len(after.Edits) != len(edits) {
			t.Errorf("%s: %d edits", c.name, len(edits))
		}
	}
	warm.Sent = 3 // only the oldest result was sent
	if _, edits := v.prune(applyIf("only_if_cold", 0), warm); len(edits) != 6 {
		t.Errorf("of results that were not sent yet, %d are cleared", len(edits))
	}
}

// If 50,000 of 150,000 tokens leave, the change pays for itself after 23 prompts.
func TestBreakEven(t *testing.T) {
	t.Parallel()
	change := policy.Change{First: 1, Saved: 50_000, Suffix: 100_000}
	if n := policy.UsualPrices.BreakEven(change); n < 22.99 || n > 23.01 {
		t.Errorf("after %v prompts", n)
	}
	gate := policy.ApplyIf{When: "break_even", CacheTTL: policy.Duration(5 * time.Minute), PressureShare: 0.95,
		TurnsLeft: 10, Read: 0.1, Write: 1.25}
	if gate.Opens(change, clip.View{}, touched(time.Minute)) {
		t.Error("10 more prompts pay for it")
	}
}
