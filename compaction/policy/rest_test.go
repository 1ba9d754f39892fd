package policy_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// mustStay returns the tokens of a view that no compaction can remove: the fixed parts, the newest group of messages,
// and the user's newest message.
func mustStay(v clip.View) int {
	points, n := clip.CutPointsOf(v.Messages), v.Fixed
	for i, size := range clip.ShownTokens(v) {
		if i >= points.Last() || points.Stays(i) {
			n += size
		}
	}
	return n
}

// restLife is a conversation, under a preset, of an agent with many tools.
type restLife struct {
	*talk
	policy policy.Policy
	state  plan.TriggerState
	at     policy.Moment
}

// prompt compacts the view if that is due, with a summary of a usual length. trigger is the tokens above which the
// policy compacts; must is the tokens that must stay, plus the largest summary allowed; compacted says whether it
// compacted.
func (l *restLife) prompt() (trigger, must int, compacted bool, err error) {
	l.View, _ = l.policy.Prune(l.View, l.at)
	due, state := l.policy.Check(l.View, l.at, l.state)
	l.state = state
	if !due.Compact {
		return 0, 0, false, nil
	}
	planned, err := l.policy.PlanAndRestore(l.View, l.at)
	if _, nothing := errors.AsType[*plan.Nothing](err); nothing || isTooBig(err) {
		return 0, 0, false, nil
	}
	if err != nil {
		return 0, 0, false, err
	}
	summary := l.Summary
	if planned.Evicted > 0 {
		summary = &clip.Summary{Text: sized("We went on. ", min(planned.Budget, 600)), From: planned.From, To: planned.To}
		summary.Tokens = clip.SummaryTokens(*summary)
	}
	l.View = planned.View(l.View, summary)
	l.state.Disarmed, l.state.Base = true, clip.Estimate(l.View)
	return l.trigger(), mustStay(l.View) + max(planned.Budget, plan.MinBudget) + 120, true, nil
}

// trigger finds the tokens above which the policy compacts the view, only by calling Check.
func (l *restLife) trigger() int {
	low, high := 0, l.Window
	for low < high {
		middle := (low + high) / 2
		at := l.at
		at.Tokens = middle + 1
		if due, _ := l.policy.Check(l.View, at, plan.TriggerState{}); due.Compact || due.Deferred {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// After a compaction under any preset, at least a fifth of the room between the fixed parts and the trigger is free,
// even in small windows, unless what must stay takes more. So the next turn does not compact again.
func TestCompactionsEndBelowTheTrigger(t *testing.T) {
	t.Parallel()
	for _, preset := range policy.Presets() {
		t.Run(preset.Name, func(t *testing.T) {
			t.Parallel()
			compactions := 0
			for _, window := range []int{8_000, 12_000, 16_000, 20_000, 32_000, 48_000, 64_000} {
				for seed := range uint64(scale.Pure(1, 40)) {
					rng := rand.New(rand.NewPCG(seed, uint64(window)))
					l := &restLife{talk: newTalk(window, rng.IntN(window/4)), policy: preset.Policy()}
					l.Rand, l.at.Settings = rng, plan.Defaults()
					turn := window / (10 + rng.IntN(60))
					for range 120 {
						l.say(recall.User, 10+rng.IntN(turn/2+1)).look(20+rng.IntN(turn)).say(recall.Assistant, 10+rng.IntN(turn))
						trigger, must, compacted, err := l.prompt()
						if err != nil {
							t.Fatal(err)
						}
						if !compacted {
							continue
						}
						compactions++
						used, rest := clip.Estimate(l.View), trigger-max(trigger-l.Fixed, 0)/5
						if used > rest && must <= plan.Rest(trigger, l.Fixed) {
							t.Fatalf("window %d, fixed %d, seed %d: %d tokens after a compaction, trigger at %d, what must stay %d",
								window, l.Fixed, seed, used, trigger, must)
						}
					}
				}
			}
			if compactions == 0 {
				t.Error("nothing was compacted")
			}
		})
	}
}

// In a small window Pi compacts every few turns, not each turn.
func TestSmallWindowsDoNotThrash(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"pi", "openclaw"} {
		for _, window := range []int{16_000, 20_000, 32_000} {
			p, err := policy.Preset(name)
			if err != nil {
				t.Fatal(err)
			}
			l := &restLife{talk: newTalk(window, 8_500), policy: p}
			l.at.Settings = plan.Defaults()
			compactions := 0
			for range 40 {
				l.say(recall.User, 450).say(recall.Assistant, 250)
				if _, _, compacted, err := l.prompt(); err != nil {
					t.Fatal(err)
				} else if compacted {
					compactions++
				}
			}
			if compactions > 14 {
				t.Errorf("%s, window %d: %d compactions in 40 turns", name, window, compactions)
			}
		}
	}
}

// Claude Code's summary contains everything that the user said, as long as that takes less than half of the room below
// the trigger, through all compactions and whatever a model writes. Then the oldest messages are left out, and the
// summary says which.
func TestClaudeCodeKeepsWhatTheUserSaidWhileThereIsRoom(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("I looked at all the files and they are fine so far, as ABC-1 says. ", 60)
	for _, c := range []struct {
		window, turns int
		answer        string // empty: there is no model
		all           bool
	}{
		{8_000, 13, "", true}, {8_000, 13, long, true}, {16_000, 60, long, true}, {32_000, 200, "", true},
		{32_000, 200, long, true}, {64_000, 200, long, true}, {8_000, 300, long, false}, {8_000, 300, "", false},
	} {
		t.Run(fmt.Sprintf("%d turns in %d, model %t", c.turns, c.window, c.answer != ""), func(t *testing.T) {
			t.Parallel()
			p, err := policy.Preset("claude-code")
			if err != nil {
				t.Fatal(err)
			}
			l := newTalk(c.window, 1_200)
			at := policy.Moment{Settings: plan.Defaults(), Forced: true}
			for i := range c.turns {
				l.put(recall.User, 0, recall.Part{Type: recall.Text, Text: fmt.Sprintf("please look at /src/file%d.py number %d",
					i, i)})
				l.look(90).say(recall.Assistant, 30)
				if i%(c.turns/3) == 0 || i == c.turns-1 {
					compactAs(t, l, p, at, c.answer)
				}
			}
			lost := []int{}
			for i := range c.turns {
				want := fmt.Sprintf("please look at /src/file%d.py number %d", i, i)
				isQuoted := slices.ContainsFunc(strings.Split(l.Summary.Text, "\n"), func(line string) bool {
					_, text, _ := strings.Cut(line, "] ")
					return text == want
				})
				if !isQuoted && !slices.ContainsFunc(l.Messages, func(m recall.Message) bool {
					return m.Text() == want
				}) {
					lost = append(lost, i)
				}
			}
			if c.all != (len(lost) == 0) {
				t.Errorf("%d tokens of %d; of what the user said %v is gone from\n%s", clip.Estimate(l.View), c.window, lost,
					l.Summary.Text)
			}
			counted := 0
			_, list, _ := strings.Cut(l.Summary.Text, "\n## All user messages, word for word\n- [seq 101–")
			_, list, _ = strings.Cut(list, "] ")
			if !c.all {
				_, err = fmt.Sscanf(list, "%d older, for which there is no room here: read them by this range.", &counted)
			}
			if err != nil || counted < len(lost) {
				t.Errorf("%d are gone, and the summary says %d: %v\n%s", len(lost), counted, err, l.Summary.Text)
			}
		})
	}
}

// compactAs compacts a view by a policy, with a model that gives this answer, or without a model if it is empty.
func compactAs(t *testing.T, l *talk, p policy.Policy, at policy.Moment, answer string) {
	t.Helper()
	planned, err := p.PlanAndRestore(l.View, at)
	if _, nothing := errors.AsType[*plan.Nothing](err); nothing {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	var model *summary.Model
	if answer != "" {
		answer = "<summary>" + answer + "</summary>"
		model = &summary.Model{Name: "fake", Window: 200_000, Summarizer: &asker{
			answer: func(int, summary.Request) (summary.Reply, error) {
				return summary.Reply{Text: answer, Finish: "stop"}, nil
			}}}
	}
	s, err := summary.Summarize(t.Context(), planned.Evict(l.View), at.Settings, model)
	if err != nil {
		t.Fatal(err)
	}
	if n := tokens.Estimate(s.Text); n > max(planned.Budget, plan.MinBudget) {
		t.Errorf("the summary takes %d tokens, and may take %d", n, planned.Budget)
	}
	l.View = planned.View(l.View, &s)
}
