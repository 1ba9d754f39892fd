package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/recall"
)

// pressureOf returns a policy of these steps.
func pressureOf(t *testing.T, steps ...map[string]any) policy.Policy {
	t.Helper()
	p, err := policy.Parse(policyOf(steps...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

type step = map[string]any

// Each trigger is due at its number, and not one token, message or second earlier.
func TestTriggersFireAtTheirNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what   string
		step   step
		window int
		not    int // tokens of a prompt that is left alone
		due    int // tokens of a prompt that is compacted
	}{
		{"Pi: 16,384 of 200,000 stay free", step{"step": "reserve"}, 200_000, 183_616, 183_617},
		{"OpenClaw: 20,000 stay free", step{"step": "reserve", "reserve_tokens": 20_000}, 200_000, 180_000, 180_001},
		{"a reserve takes half of a small window", step{"step": "reserve"}, 20_000, 10_000, 10_001},
		{"and a quarter of a smaller one", step{"step": "reserve"}, 8_000, 6_000, 6_001},
		{"Claude Code: 167,000 of 200,000", step{"step": "buffer"}, 200_000, 166_999, 167_000},
		{"a buffer takes half of a small window", step{"step": "buffer"}, 40_000, 19_999, 20_000},
		{"and a quarter of a smaller one", step{"step": "buffer"}, 4_000, 2_999, 3_000},
		{"four layers: 80 %", step{"step": "fraction", "window_share": 0.8}, 200_000, 160_000, 160_001},
		{"the deck: 30 %", step{"step": "fraction", "window_share": 0.3}, 200_000, 60_000, 60_001},
		{"Letta: 90 %", step{"step": "fraction"}, 200_000, 180_000, 180_001},
		{"Alyx: 50,000", step{"step": "tokens"}, 200_000, 50_000, 50_001},
		{"Alyx: 50,000 of a window that is unknown", step{"step": "tokens"}, 0, 50_000, 50_001},
		{"no reserve goes above 95 %", step{"step": "reserve"}, 1_000_000, 949_999, 950_000},
		{"a share, at most that of the settings", step{"step": "fraction", "window_share": 0.95}, 200_000, 180_000, 180_001},
		{"OpenClaw raises its count by 1.2", step{"step": "tokens", "above_tokens": 120_000, "count_factor": 1.2}, 0,
			100_000, 100_001},
		{"of a window that is unknown, no share is due", step{"step": "fraction", "window_share": 0.3}, 0, 1 << 30, 0},
	} {
		p, settings := pressureOf(t, c.step), plan.Defaults()
		for tokens, want := range map[int]bool{c.not: false, c.due: true} {
			if tokens == 0 {
				continue
			}
			v := newTalk(c.window, 0).put(recall.User, tokens, recall.Part{Type: recall.Text, Text: "Go on."}).View
			due, _ := p.Check(v, policy.Moment{Settings: settings}, plan.TriggerState{})
			if due.Compact != want {
				t.Errorf("%s: at %d tokens it is due: %v", c.what, tokens, due.Compact)
			}
		}
	}
}

// A lower trigger in the settings holds for a policy that reserves less of the window, too.
func TestALowerTriggerBoundsAReserve(t *testing.T) {
	t.Parallel()
	p, settings := pressureOf(t, step{"step": "reserve"}), plan.Defaults()
	settings.Trigger, settings.Goal = 0.8, 0.6
	for tokens, want := range map[int]bool{160_000: false, 160_001: true} {
		v := newTalk(200_000, 0).put(recall.User, tokens, recall.Part{Type: recall.Text, Text: "Go on."}).View
		if due, _ := p.Check(v, policy.Moment{Settings: settings}, plan.TriggerState{}); due.Compact != want {
			t.Errorf("at %d tokens it is due: %t", tokens, due.Compact)
		}
	}
}

// A session that reads much is compacted when 33,000 of 200,000 tokens are free, and nothing is cleared before.
func TestClaudeCodeCompactsBeforeItClears(t *testing.T) {
	t.Parallel()
	p, err := policy.Preset("claude-code")
	if err != nil {
		t.Fatal(err)
	}
	v := window(200_000)
	for turn := range 60 {
		v.user(40).call("Read", 10, fmt.Sprint(turn)+strings.Repeat(" the", 4_000)).says(100)
		now := policy.Moment{Now: v.Messages[len(v.Messages)-1].CreatedAt.Add(time.Minute)}
		if _, edits := p.Prune(v.View, now); len(edits) > 0 {
			t.Fatalf("turn %d: %d results are cleared", turn, len(edits))
		}
		if due, _ := p.Check(v.View, now, plan.TriggerState{}); due.Compact {
			if used := clip.Estimate(v.View); used < 165_000 || used > 168_000 && turn < 40 {
				t.Errorf("turn %d: compacted at %d tokens", turn, used)
			}
			return
		}
	}
	t.Error("60 turns were not compacted")
}

// The provider's compaction begins at 150,000 tokens.
func TestAnthropicCompactsAt150000(t *testing.T) {
	t.Parallel()
	p, err := policy.Preset("anthropic")
	if err != nil {
		t.Fatal(err)
	}
	for tokens, want := range map[int]bool{149_999: false, 150_000: true} {
		v := newTalk(200_000, tokens-50).say(recall.User, 50).View
		if due, _ := p.Check(v, policy.Moment{}, plan.TriggerState{}); due.Compact != want {
			t.Errorf("at %d tokens it is due: %v", tokens, due.Compact)
		}
	}
}

// A provider's report counts the beginning of a prompt, and four characters a token count the rest. A report from
// before a compaction is no longer used.
func TestUsageIsReportedAndEstimated(t *testing.T) {
	t.Parallel()
	talk := newTalk(400_000, 1_000).say(recall.User, 100).look(100)
	talk.Usage = &clip.Usage{PromptTokens: 150_000, Position: talk.Messages[1].Position}
	talk.Messages[2].Content[0].Text = strings.Repeat("x", 40_000)
	for above, want := range map[int]bool{159_999: true, 160_000: false} {
		p := pressureOf(t, step{"step": "tokens", "above_tokens": above, "count": "chars"})
		if due, _ := p.Check(talk.View, policy.Moment{}, plan.TriggerState{}); due.Compact != want {
			t.Errorf("above %d it is due: %v", above, due.Compact)
		}
	}
}

// Every tenth turn the older seven leave, whatever their size.
func TestTurnCountFiresAtTurns10And20(t *testing.T) {
	t.Parallel()
	p := pressureOf(t, step{"step": "turn_count", "every_turns": 10, "keep_turns": 3},
		step{"step": "older_turns", "keep_turns": 3})
	talk, state := newTalk(200_000, 1_000), plan.TriggerState{}
	var fired []int
	for turn := 1; turn <= 30; turn++ {
		talk.say(recall.User, 30).say(recall.Assistant, 400)
		var due plan.Decision
		if due, state = p.Check(talk.View, policy.Moment{}, state); !due.Compact {
			continue
		}
		fired = append(fired, turn)
		planned, err := p.Plan(talk.View, policy.Moment{})
		if err != nil {
			t.Fatal(err)
		}
		if turn == 10 && planned.Evicted != 14 {
			t.Errorf("%d messages leave at turn 10, want those of 7 turns", planned.Evicted)
		}
		evicted := planned.Evict(talk.View)
		talk.View = planned.View(talk.View, summaryOf(evicted))
		state = plan.TriggerState{Disarmed: true, Base: planned.After}
	}
	if fmt.Sprint(fired) != "[10 20 30]" {
		t.Errorf("it fires at turns %v", fired)
	}
}

// summaryOf returns a made-up summary.
func summaryOf(evicted clip.Evicted) *clip.Summary {
	first, last := evicted.Messages[0], evicted.Messages[len(evicted.Messages)-1]
	s := &clip.Summary{Text: "What was.", From: first.Position, To: last.Position, FromSeq: first.Seq,
		ToSeq: last.Seq}
	if previous := evicted.Previous; previous != nil {
		s.From, s.FromSeq = min(s.From, previous.From), min(s.FromSeq, previous.FromSeq)
		s.To, s.ToSeq = max(s.To, previous.To), max(s.ToSeq, previous.ToSeq)
	}
	s.Tokens = clip.SummaryTokens(*s)
	return s
}

// Counts of messages and bytes, and pauses, are due at their numbers.
func TestCountsAndPausesFireAtTheirNumbers(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	ten := newTalk(0, 0)
	for range 10 {
		ten.put(recall.User, 0, recall.Part{Type: recall.Text, Text: strings.Repeat("x", 1_000)})
	}
	large := newTalk(200_000, 100_000).say(recall.User, 50)
	for _, c := range []struct {
		step step
		v    clip.View
		idle time.Duration
		want bool
	}{
		{step{"step": "message_count", "max_messages": 10}, ten.View, 0, true},
		{step{"step": "message_count", "max_messages": 11}, ten.View, 0, false},
		{step{"step": "byte_count", "max_bytes": 10_000}, ten.View, 0, true},
		{step{"step": "byte_count", "max_bytes": 10_001}, ten.View, 0, false},
		{step{"step": "idle", "after": "75m", "above_tokens": 100_000}, large.View, 75 * time.Minute, true},
		{step{"step": "idle", "after": "75m", "above_tokens": 100_000}, large.View, 74 * time.Minute, false},
		{step{"step": "idle", "after": "75m", "above_tokens": 100_050}, large.View, 75 * time.Minute, false},
		{step{"step": "idle", "after": "0s", "above_tokens": 0}, large.View, -1, false},
		{step{"step": "when", "all": []step{{"step": "tokens", "above_tokens": 1_000}, {"step": "idle", "after": "1m"}}},
			large.View, time.Minute, true},
		{step{"step": "when", "all": []step{{"step": "tokens", "above_tokens": 1_000}, {"step": "idle", "after": "1m"}}},
			large.View, time.Second, false},
		{step{"step": "when", "all": []step{{"step": "tokens", "above_tokens": 150_000}, {"step": "idle", "after": "1m"}}},
			large.View, time.Hour, false},
	} {
		at := policy.Moment{Now: now, Touched: now.Add(-c.idle)}
		if c.idle < 0 {
			at.Touched = time.Time{}
		}
		if due, _ := pressureOf(t, c.step).Check(c.v, at, plan.TriggerState{}); due.Compact != c.want {
			t.Errorf("%v, idle for %v: due %v", c.step, c.idle, due.Compact)
		}
	}
}

// A list of triggers is due if one of them is. A step when accepts only triggers.
func TestTriggersAreCombined(t *testing.T) {
	t.Parallel()
	v := newTalk(200_000, 60_000).say(recall.User, 50).View
	either := pressureOf(t, step{"step": "reserve"}, step{"step": "tokens", "above_tokens": 50_000})
	if due, _ := either.Check(v, policy.Moment{}, plan.TriggerState{}); !due.Compact {
		t.Error("one of two triggers is due, and nothing happens")
	}
	for raw, want := range map[string]string{
		`{"steps":[{"step":"when","all":[]}]}`:                              "has no trigger",
		`{"steps":[{"step":"when","all":[{"step":"snip"}]}]}`:               "snip is no trigger",
		`{"steps":[{"step":"when","all":[{"step":"idle","after":"5"}]}]}`:   "no time span",
		`{"steps":[{"step":"when","all":[{"step":"tokens","above":5}]}]}`:   "unknown field",
		`{"steps":[{"step":"idle","after":75}]}`:                            "no time span",
		`{"steps":[{"step":"full","summary":"haiku"}]}`:                     "must be one of",
		`{"preset":"pi","steps":{"compact":{"keep_recent_tokens":"8000"}}}`: "keep_recent_tokens",
	} {
		if _, err := policy.Parse([]byte(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
	p, err := policy.Parse([]byte(`{"preset":"pi","steps":{"compact":{"keep_recent_tokens":8000}}}`))
	if err != nil || policy.Settings(p.Steps[len(p.Steps)-1])[0].Value != 8000 {
		t.Error("a stage with one step does not name it", p, err)
	}
}

// After a compaction a trigger that counts tokens rests until 5 % of the window have been added, unless the window is
// nearly full.
func TestTriggersRestAfterACompaction(t *testing.T) {
	t.Parallel()
	p := pressureOf(t, step{"step": "fraction", "window_share": 0.3})
	state := plan.TriggerState{Disarmed: true, Base: 70_000}
	for _, c := range []struct {
		tokens int
		want   bool
	}{{70_000, false}, {79_999, false}, {80_000, true}} {
		v := newTalk(200_000, c.tokens-50).say(recall.User, 50).View
		if due, _ := p.Check(v, policy.Moment{}, state); due.Compact != c.want {
			t.Errorf("at %d tokens after a compaction to 70,000 it is due: %v", c.tokens, due.Compact)
		}
	}
	full := newTalk(200_000, 189_950).say(recall.User, 50).View
	if due, _ := pressureOf(t, step{"step": "turn_count"}).Check(full, policy.Moment{}, state); !due.Compact {
		t.Error("a window that is 95 % full is left alone")
	}
}

// A compaction waits for the end of a planned action, but only until the window is nearly full, or for some turns.
func TestQuietPointWaits(t *testing.T) {
	t.Parallel()
	p := pressureOf(t, step{"step": "fraction", "window_share": 0.3}, step{"step": "quiet_point", "max_defer_turns": 5})
	for _, c := range []struct {
		what           string
		turn, until    int // turns at which the plan begins and ends
		hard, compacts int
	}{
		{"it waits for the end of the plan", 10, 13, 0, 13},
		{"it does not wait for a plan beyond some turns", 10, 40, 0, 15},
		{"it does not wait in a full window", 10, 13, 12, 12},
		{"it does not wait without a plan", 10, 0, 0, 10},
	} {
		talk := newTalk(100_000, 500)
		compactedAt, state := 0, plan.TriggerState{}
		for turn := 1; turn < 30 && compactedAt == 0; turn++ {
			size := 100
			switch turn {
			case c.turn:
				size = 30_000
			case c.hard:
				size = 65_000
			}
			talk.say(recall.User, 50).say(recall.Assistant, size)
			var due plan.Decision
			due, state = p.Check(talk.View, policy.Moment{Busy: turn < c.until}, state)
			if due.Compact {
				compactedAt = turn
			}
		}
		if compactedAt != c.compacts {
			t.Errorf("%s: it compacts at turn %d, want %d", c.what, compactedAt, c.compacts)
		}
	}
}

// An open tool call delays a compaction, but not in a full window.
func TestOpenCallsDefer(t *testing.T) {
	t.Parallel()
	p := pressureOf(t, step{"step": "tokens", "above_tokens": 10_000})
	v := newTalk(100_000, 20_000).say(recall.User, 50).open(2, 1, 50).View
	if due, _ := p.Check(v, policy.Moment{}, plan.TriggerState{}); due.Compact || !due.Deferred {
		t.Errorf("with an open call: %+v", due)
	}
	v.Fixed = 95_000
	if due, _ := p.Check(v, policy.Moment{}, plan.TriggerState{}); !due.Compact {
		t.Errorf("with an open call in a full window: %+v", due)
	}
}

// A policy's pause is the shortest of its steps', including steps that must be due together.
func TestPauseOfAPolicy(t *testing.T) {
	t.Parallel()
	idle := func(after string) step { return step{"step": "idle", "after": after} }
	for want, p := range map[time.Duration]policy.Policy{
		0:                pressureOf(t, step{"step": "snip"}),
		time.Hour:        pressureOf(t, idle("1h")),
		30 * time.Minute: pressureOf(t, idle("1h"), step{"step": "when", "all": []any{idle("30m"), step{"step": "tokens"}}}),
	} {
		if got, ok := p.Pause(); got != want || ok != (want > 0) {
			t.Errorf("got %s, %v, want %s", got, ok, want)
		}
	}
}

// Whatever a policy waits for and whatever its cutter would keep, a view above the trigger in the settings is
// compacted, and is below it afterwards.
func TestLateTriggersDoNotOverfillTheWindow(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"a full window":       `{"steps":[{"step":"fraction","window_share":1}]}`,
		"a trigger that high": `{"steps":[{"step":"tokens","above_tokens":10000000}]}`,
		"turns that stay":     `{"steps":[{"step":"turn_count","every_turns":100000,"keep_turns":10000}]}`,
		"a cutter that waits": `{"steps":[{"step":"auto_compact","threshold_share":0.98}]}`,
		"anthropic":           `"anthropic"`, "alyx": `"alyx"`, "four-layers": `"four-layers"`,
	} {
		p, err := policy.Parse([]byte(raw))
		if err != nil {
			t.Fatal(name, err)
		}
		h := newHistory(4)
		h.Window = 8000
		for clip.Estimate(h.View) <= 7200 {
			h.add(recall.User, text(strings.Repeat("word ", 60)))
			h.add(recall.Assistant, text(strings.Repeat("said ", 60)))
		}
		due, _ := p.Check(h.View, policy.Moment{Now: h.now}, plan.TriggerState{Disarmed: true, Base: 6500})
		if !due.Compact {
			t.Errorf("%s: at %d tokens nothing is due", name, clip.Estimate(h.View))
		}
		plan, err := p.PlanAndRestore(h.View, policy.Moment{Now: h.now})
		if err != nil || plan.After > 7200 {
			t.Errorf("%s: %d tokens after it, %v", name, plan.After, err)
		}
	}
}

// JSON is clipped if no preview of it fits. The smallest budget never shows more than a larger one.
func TestJSONWithoutAPreviewThatFitsIsClipped(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"nested":     strings.Repeat(`{"a":`, 3000) + "1" + strings.Repeat("}", 3000),
		"a long key": `{"` + strings.Repeat("k", 5000) + `":1}`,
	} {
		for _, budget := range []int{50, 100, 1000} {
			h := newHistory(1)
			h.add(recall.Assistant, called("c", "bash", "{}"))
			h.add(recall.Tool, result("c", raw))
			p := pressureOf(t, step{"step": "json_preview", "of": "all", "budget_tokens": budget})
			after, edits := p.Prune(h.View, policy.Moment{Now: h.now})
			shown := after.AsShown()[1].Content[0].Text
			if got := after.CountText(shown); len(edits) != 1 || got > budget {
				t.Errorf("%s: with a budget of %d, %d tokens are shown by %d edits", name, budget, got, len(edits))
			}
		}
	}
}
