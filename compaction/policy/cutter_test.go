package policy_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/recall"
)

// mustPlan returns a step's plan, what it gives to the summarizer, and the view after it with a short summary.
func mustPlan(t *testing.T, s step, v clip.View, at policy.Moment) (plan.Plan, clip.Evicted,
	clip.View) {
	t.Helper()
	p, err := planOf(t, s, v, at)
	if err != nil {
		t.Fatalf("%v: %v", s, err)
	}
	evicted := p.Evict(v)
	var summary *clip.Summary
	if p.Evicted > 0 {
		summary = summaryOf(evicted)
	}
	after := p.View(v, summary)
	if err := plan.CheckNothingLost(v, evicted, after); err != nil {
		t.Fatalf("%v: %v", s, err)
	}
	return p, evicted, after
}

func planOf(t *testing.T, s step, v clip.View, at policy.Moment) (plan.Plan, error) {
	t.Helper()
	of := pressureOf(t, s)
	p, err := of.Plan(v, at)
	if strings.HasPrefix(fmt.Sprint(s["step"]), "hard") {
		p, err = of.Truncate(v, at)
	}
	return p, err
}

func isNothing(err error) bool {
	_, ok := errors.AsType[*plan.Nothing](err)
	return ok
}

// The preset letta makes the same plans as Loci without a policy, whatever the settings.
func TestLettaPlansAsWithoutAPolicy(t *testing.T) {
	t.Parallel()
	letta, err := policy.Preset("letta")
	if err != nil {
		t.Fatal(err)
	}
	planned := 0
	for seed := range uint64(400) {
		talk := randomTalk(seed, int(seed%40))
		s := plan.Defaults()
		s.Mode = plan.Modes[talk.IntN(4)]
		s.Trigger = 0.5 + 0.4*talk.Float64()
		s.Goal = 0.2 + 0.2*talk.Float64()
		s.Percentage = 0.1 + 0.8*talk.Float64()
		at := policy.Moment{Settings: s}
		got, gotErr := letta.Plan(talk.View, at)
		want, wantErr := plan.MakePlan(talk.View, s)
		if !reflect.DeepEqual(got, want) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
			t.Fatalf("seed %d: got %+v %v, want %+v %v", seed, got, gotErr, want, wantErr)
		}
		for _, state := range []plan.TriggerState{{}, {Warned: true, Disarmed: true, Base: talk.Window / 2}} {
			used := clip.Estimate(talk.View)
			due, nextState := letta.Check(talk.View, at, state)
			wantDue, wantNow := plan.Check(used, talk.Window, talk.Open(), s, state)
			if due != wantDue || talk.Window > 0 && nextState != wantNow {
				t.Fatalf("seed %d: due %+v %+v, want %+v %+v", seed, due, nextState, wantDue, wantNow)
			}
		}
		if wantErr == nil {
			planned++
		}
	}
	if planned < 100 {
		t.Errorf("only %d of the conversations are compacted", planned)
	}
}

// Pi keeps the newest 20,000 tokens. With twenty turns of 3,000 tokens it cuts at entry 27, within a turn.
func TestPiKeepsTheNewest20000Tokens(t *testing.T) {
	t.Parallel()
	talk := newTalk(200_000, 1_000)
	for range 20 {
		talk.say(recall.User, 1_000).say(recall.Assistant, 2_000)
	}
	p, _, after := mustPlan(t, step{"step": "keep_recent"}, talk.View, policy.Moment{})
	if p.Evicted != 27 || len(after.Messages) != 13 || after.Messages[0].Role != recall.Assistant {
		t.Errorf("%d messages leave, %d stay", p.Evicted, len(after.Messages))
	}
	if p.Split != talk.Messages[26].Position {
		t.Errorf("the divided turn begins at %d, want that of entry 26", p.Split)
	}
}

// Pi's second compaction summarizes what the first one kept. After five compactions each message is with a summarizer
// or in view, and none is there twice.
func TestPiLosesNothingOverFiveCompactions(t *testing.T) {
	t.Parallel()
	talk, seen := newTalk(200_000, 1_000), map[int]int{}
	for range 5 {
		for range 20 {
			talk.say(recall.User, 1_000).say(recall.Assistant, 2_000)
		}
		p, evicted, after := mustPlan(t, step{"step": "keep_recent"}, talk.View, policy.Moment{})
		if evicted.Previous != talk.Summary || p.Evicted == 0 {
			t.Fatal("the summary before is not carried along")
		}
		for _, m := range evicted.Messages {
			seen[m.Position]++
		}
		talk.View = after
	}
	for _, m := range talk.Messages {
		seen[m.Position]++
	}
	for position := 1; position <= talk.at; position++ {
		if n, found := seen[position]; found && n != 1 {
			t.Errorf("message %d is %d times in a summary or in view", position, n)
		}
	}
	if len(seen) != 200 {
		t.Errorf("%d messages are accounted for, want 200", len(seen))
	}
}

// With one request and forty rounds of 1,000 tokens, the first rounds become the beginning of a divided turn, and the
// request stays.
func TestPiSplitsALongTurn(t *testing.T) {
	t.Parallel()
	talk := newTalk(200_000, 1_000).say(recall.User, 100)
	for range 40 {
		talk.look(980)
	}
	p, evicted, after := mustPlan(t, step{"step": "keep_recent"}, talk.View, policy.Moment{})
	if p.Evicted != 40 || after.Messages[0].Role != recall.User || p.Split != talk.Messages[0].Position {
		t.Errorf("%d messages leave, the turn begins at %d", p.Evicted, p.Split)
	}
	if evicted.Messages[0].Role != recall.Assistant || after.Messages[1].Role != recall.Assistant {
		t.Error("a call is separated from its result")
	}
}

// Plans come to an end even if the results at the end, or a single message, are larger than what is kept: nothing
// leaves, or the rest is clipped.
func TestPisTrailingResultsEnd(t *testing.T) {
	t.Parallel()
	for name, talk := range map[string]*talk{
		"two results of 15,000 tokens": newTalk(200_000, 1_000).say(recall.User, 100).open(2, 2, 15_000),
		"the same in a small window":   newTalk(32_000, 1_000).say(recall.User, 100).open(2, 2, 15_000),
		"a message of 90,000 tokens":   newTalk(200_000, 1_000).say(recall.User, 90_000),
	} {
		v, plans := talk.View, 0
		for ; plans < 10; plans++ {
			p, err := planOf(t, step{"step": "keep_recent"}, v, policy.Moment{})
			if isNothing(err) {
				break
			}
			if err != nil {
				t.Fatal(name, err)
			}
			if p.After >= p.Before {
				t.Errorf("%s: no progress: %+v", name, p)
			}
			v = p.View(v, nil)
		}
		if plans > 2 {
			t.Errorf("%s: %d plans", name, plans)
		}
		if got, most := clip.Estimate(v), 180_000*v.Window/200_000; got > most {
			t.Errorf("%s: %d tokens stay, of which %d fit", name, got, most)
		}
	}
}

// OpenClaw's safeguard keeps 120,000 of 200,000 tokens. With one token more it keeps only what a half holds.
func TestSafeguardDropsAbove120000(t *testing.T) {
	t.Parallel()
	for large, want := range map[int]int{110_000: 120_000, 110_001: 10_000} {
		talk := newTalk(200_000, 1_000).say(recall.User, 500).say(recall.Assistant, 500).say(recall.User, 500).
			say(recall.Assistant, large).say(recall.User, 5_000).say(recall.Assistant, 5_000)
		_, _, after := mustPlan(t, step{"step": "safeguard"}, talk.View, policy.Moment{})
		got := 0
		for _, m := range after.Messages {
			got += m.Tokens
		}
		if got != want {
			t.Errorf("with a message of %d tokens %d stay, want %d", large, got, want)
		}
	}
}

// Claude Code's compaction hides everything except the user's newest message and what the model has not answered.
func TestFullHidesAll(t *testing.T) {
	t.Parallel()
	talk := newTalk(200_000, 1_000).say(recall.User, 100).look(1_000).say(recall.Assistant, 300).say(recall.User, 200).
		look(500).say(recall.Assistant, 300)
	p, evicted, after := mustPlan(t, step{"step": "full"}, talk.View, policy.Moment{})
	if len(after.Messages) != 1 || after.Messages[0].Role != recall.User || len(evicted.Messages) != 7 ||
		p.Mode != plan.All {
		t.Errorf("%d messages stay: %+v", len(after.Messages), p)
	}
	waiting := newTalk(200_000, 1_000).say(recall.User, 100).say(recall.Assistant, 3_000).say(recall.User, 200).
		open(2, 1, 300)
	_, evicted, after = mustPlan(t, step{"step": "provider"}, waiting.View, policy.Moment{})
	if len(after.Messages) != 3 || len(evicted.Messages) != 2 {
		t.Errorf("an open call: %d stay, %d leave", len(after.Messages), len(evicted.Messages))
	}
	_, evicted, _ = mustPlan(t, step{"step": "provider", "keep_turns": 1}, talk.View, policy.Moment{})
	if last := evicted.Messages[len(evicted.Messages)-1]; last.Position >= talk.Messages[4].Position {
		t.Error("a turn that is kept leaves")
	}
}

// The deck summarizes the oldest 70 % of the turns.
func TestDeckSummarizesTheOldest70PercentOfTurns(t *testing.T) {
	t.Parallel()
	talk := newTalk(100_000, 1_000)
	for range 10 {
		talk.say(recall.User, 500).look(2_000).say(recall.Assistant, 500)
	}
	p, _, after := mustPlan(t, step{"step": "oldest_share"}, talk.View, policy.Moment{})
	if p.Evicted != 28 || after.Messages[0].Role != recall.User || p.Budget > 200 {
		t.Errorf("%d messages leave, for a summary of %d tokens", p.Evicted, p.Budget)
	}
}

// fourLayers returns a conversation of total tokens, with messages of 1,000 tokens of the assistant between the user's.
func fourLayers(total int) *talk {
	talk := newTalk(200_000, 4_000)
	for range 3 {
		talk.say(recall.User, 1_000)
	}
	for rest := total - 4_000 - 3_000 - 4_000; rest > 0; rest -= 1_000 {
		talk.say(recall.Assistant, min(rest, 1_000))
	}
	for range 4 {
		talk.say(recall.User, 1_000)
	}
	return talk
}

// The third layer does nothing below 160,000 tokens. At 175,000 the oldest 95,000 leave, so that 80,000 and a summary
// stay: 1,000 of a model, or at most 4,000 by rules.
func TestAutoCompactReducesToHalfOfItsThreshold(t *testing.T) {
	t.Parallel()
	if _, err := planOf(t, step{"step": "auto_compact"}, fourLayers(159_999).View, policy.Moment{}); !isNothing(err) {
		t.Error("at 159,999 tokens:", err)
	}
	for total, reduction := range map[int]int{175_000: 95_000, 198_000: 118_000} {
		p, evicted, after := mustPlan(t, step{"step": "auto_compact"}, fourLayers(total).View, policy.Moment{})
		gone := 0
		for _, m := range evicted.Messages {
			gone += m.Tokens
		}
		if gone < reduction || gone >= reduction+1_000 || p.Budget > 4_000 {
			t.Errorf("of %d tokens %d leave, want %d; the summary takes %d", total, gone, reduction, p.Budget)
		}
		if got := clip.Estimate(after); got > 84_200 {
			t.Errorf("of %d tokens %d stay", total, got)
		}
	}
}

// The priorities hold: the user's newest three messages, the assistant's newest, the newest five results and the newest
// failed ones stay, and no pair is separated.
func TestAutoCompactKeepsWhatMatters(t *testing.T) {
	t.Parallel()
	talk := newTalk(20_000, 500)
	var errorsAt []int
	for i := range 12 {
		talk.say(recall.User, 100).called("run", 1_200, i == 3)
		if i == 3 {
			errorsAt = append(errorsAt, talk.Messages[len(talk.Messages)-1].Position)
		}
	}
	talk.say(recall.Assistant, 200)
	before := talk.Messages
	_, _, after := mustPlan(t, step{"step": "auto_compact", "threshold_share": 0.7}, talk.View, policy.Moment{})
	stays := map[int]bool{}
	for _, m := range after.Messages {
		stays[m.Position] = true
	}
	users, results, answered := 0, 0, false
	for _, m := range slices.Backward(before) {
		keep := slices.Contains(errorsAt, m.Position)
		switch m.Role {
		case recall.User:
			users++
			keep = keep || users <= 3
		case recall.Tool:
			results++
			keep = keep || results <= 5
		case recall.Assistant:
			keep = keep || !answered
			answered = true
		}
		if keep && !stays[m.Position] {
			t.Errorf("the %s message %d leaves", m.Role, m.Position)
		}
	}
	if len(stays) == len(before) {
		t.Error("nothing leaves")
	}
}

// The fourth layer hides the oldest messages up to the first that does not fit, keeps the newest, and says what is
// hidden, without a model.
func TestHardTruncateStopsAtTheFirstMisfit(t *testing.T) {
	t.Parallel()
	talk := newTalk(200_000, 4_000).say(recall.User, 1_000).say(recall.Assistant, 150_000).say(recall.User, 1_000).
		look(30_000).say(recall.Assistant, 20_000)
	p, evicted, after := mustPlan(t, step{"step": "hard_truncate"}, talk.View, policy.Moment{})
	if len(evicted.Messages) != 2 || len(after.Messages) != 4 || p.NeedsModel || !p.Hidden {
		t.Errorf("%d leave, %d stay: %+v", len(evicted.Messages), len(after.Messages), p)
	}
	s, err := summary.Summarize(t.Context(), evicted, plan.Defaults(), nil)
	if err != nil || s.Text != "Not shown and not summarized: 2 messages, seq 101–102." {
		t.Error(s.Text, err)
	}
	single := newTalk(200_000, 4_000).say(recall.User, 500).look(300_000)
	p, _, after = mustPlan(t, step{"step": "hard_truncate"}, single.View, policy.Moment{})
	if len(after.Messages) == 0 || len(p.Edits) == 0 || clip.Estimate(after) > 180_000 {
		t.Errorf("of a result of 300,000 tokens: %+v", p)
	}
	small := newTalk(200_000, 4_000).say(recall.User, 500)
	if _, err := planOf(t, step{"step": "hard_truncate"}, small.View, policy.Moment{}); !isNothing(err) {
		t.Error("a small view is truncated:", err)
	}
}

// Hidden ranges add up, behind the previous summary.
func TestHardTruncateKeepsTheSummaryBefore(t *testing.T) {
	t.Parallel()
	talk := newTalk(8_000, 100)
	talk.Summary = &clip.Summary{Text: "We chose plan B.", From: 1, To: 1, FromSeq: 1, ToSeq: 1, Tokens: 60}
	talk.at = 2
	for range 2 {
		for range 12 {
			talk.say(recall.User, 300).say(recall.Assistant, 500)
		}
		p, err := planOf(t, step{"step": "hard_truncate"}, talk.View, policy.Moment{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := summary.Summarize(t.Context(), p.Evict(talk.View), plan.Defaults(), nil)
		if err != nil {
			t.Fatal(err)
		}
		talk.View = p.View(talk.View, &s)
	}
	text := talk.Summary.Text
	if !strings.HasPrefix(text, "We chose plan B.\n\nNot shown and not summarized: ") ||
		strings.Count(text, "Not shown") != 1 {
		t.Error(text)
	}
}

// Working memory becomes the summary without a model, and recent messages stay. Without working memory everything is
// summarized.
func TestNotesAreTheSummary(t *testing.T) {
	t.Parallel()
	talk := newTalk(200_000, 1_000)
	for range 30 {
		talk.say(recall.User, 1_000).say(recall.Assistant, 2_000)
	}
	at := policy.Moment{Notes: "Task: build the parser.\nNext: run go test ./parser."}
	p, evicted, after := mustPlan(t, step{"step": "notes"}, talk.View, at)
	keptTokens := 0
	for _, m := range after.Messages {
		keptTokens += m.Tokens
	}
	if p.NeedsModel || keptTokens < 10_000 || keptTokens > 40_000 || len(after.Messages) < 5 {
		t.Errorf("%d tokens in %d messages stay: %+v", keptTokens, len(after.Messages), p)
	}
	s, err := summary.Summarize(t.Context(), evicted, plan.Defaults(), nil)
	if err != nil || s.How != summary.Noted || !strings.HasPrefix(s.Text, at.Notes) {
		t.Error(s, err)
	}
	if p, _, after = mustPlan(t, step{"step": "notes"}, talk.View, policy.Moment{}); !p.NeedsModel ||
		len(after.Messages) != 1 {
		t.Errorf("without notes: %+v", p)
	}
}

// Messages from before a checkpoint leave once the checkpoint is stored, and not before.
func TestCheckpointPrunesWhatItCovers(t *testing.T) {
	t.Parallel()
	talk := newTalk(200_000, 1_000)
	for range 20 {
		talk.say(recall.User, 1_000).say(recall.Assistant, 2_000)
	}
	at := policy.Moment{Notes: "Task: build the parser.", Noted: talk.Messages[29].Position}
	p, evicted, _ := mustPlan(t, step{"step": "checkpoint"}, talk.View, at)
	if p.Evicted != 30 || p.NeedsModel || evicted.Notes != at.Notes {
		t.Errorf("%+v", p)
	}
	p, _, _ = mustPlan(t, step{"step": "checkpoint"}, talk.View, policy.Moment{})
	if p.Evicted != 27 || !p.NeedsModel {
		t.Errorf("without a checkpoint: %+v", p)
	}
}

// A plan that finds nothing to compact still says how its policy compacts.
func TestAPlanOfNothingHasItsMode(t *testing.T) {
	t.Parallel()
	small := newTalk(200_000, 4_000).say(recall.User, 500)
	for name, want := range map[string]plan.Mode{"full": plan.All, "keep_recent": plan.SlidingWindow} {
		p, err := planOf(t, step{"step": name}, small.View, policy.Moment{Forced: true})
		if !isNothing(err) || p.Mode != want {
			t.Errorf("%s: mode %q, %v; want %q", name, p.Mode, err, want)
		}
	}
}
