package policy_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/llm"
	"github.com/loci-memory/loci/compaction/llm/llmtest"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/recall"
)

// In a window of 200,000, with 4,000 for the system prompt and 1,000 for safety, 195,000 tokens are left for messages.
// Truncation stops at the first message that does not fit.
func TestHardTruncateBudgetIs195000(t *testing.T) {
	t.Parallel()
	s := &policy.HardTruncate{SafetyTokens: 1_000}
	for _, c := range []struct {
		tokens []int
		want   int
	}{
		{[]int{5, 100_000, 95_000}, 1}, {[]int{5, 100_001, 95_000}, 2}, {[]int{5, 300_000, 10, 10}, 2}, {[]int{300_000}, 1},
		{[]int{10, 20}, 0}, {nil, 0},
	} {
		if got := s.Cut(c.tokens, 200_000-4_000); got != c.want {
			t.Errorf("%v: cut at %d, want %d", c.tokens, got, c.want)
		}
	}
}

// Four code units are a token, as in other harnesses: an emoji has two units, a Chinese character one.
func TestCharTokensCountCodeUnits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{strings.Repeat("x", 400): 100, strings.Repeat("茶", 100): 25,
		strings.Repeat("🙂", 4): 2, "": 0, "ab": 1} {
		v := newTalk(0, 0).put(recall.User, 0, recall.Part{Type: recall.Text, Text: text}).View
		if got := policy.CharTokens(v); got != want {
			t.Errorf("%q has %d tokens, want %d", text, got, want)
		}
	}
}

// fourLayersSession returns a session of 287,000 tokens: reads of 60 KB, and text about them.
func fourLayersSession() *talk {
	talk := newTalk(200_000, 4_000)
	talk.say(recall.User, 500)
	for talk.size() < 287_000 {
		talk.say(recall.User, 200).look(6_000).called("run", 2_000, talk.IntN(5) == 0).say(recall.Assistant, 800)
	}
	return talk
}

// size returns the tokens of the view.
func (t *talk) size() int { return clip.Estimate(t.View) }

// Each of the four layers makes the session smaller or leaves it alone, as its own trigger says. What is protected
// stays word for word.
func TestFourLayersEachRespectTheirTrigger(t *testing.T) {
	t.Parallel()
	p, err := policy.Preset("four-layers")
	if err != nil {
		t.Fatal(err)
	}
	talk := fourLayersSession()
	before := talk.View
	var edits []clip.Edit
	talk.View, edits = p.Prune(talk.View, policy.Moment{})
	pruned := talk.size()
	if len(edits) == 0 || pruned >= clip.Estimate(before) {
		t.Fatalf("%d edits, %d tokens", len(edits), pruned)
	}
	due, _ := p.Check(talk.View, policy.Moment{}, plan.TriggerState{})
	if due.Compact != (pruned > 160_000) {
		t.Errorf("at %d tokens the third layer runs: %v", pruned, due.Compact)
	}
	plan, err := p.Plan(talk.View, policy.Moment{})
	if pruned < 160_000 {
		if !isNothing(err) {
			t.Errorf("at %d tokens the third layer has a plan: %v", pruned, err)
		}
	} else if talk.View = plan.View(talk.View, summaryOf(plan.Evict(talk.View))); talk.size() > 82_000 {
		t.Errorf("after the third layer there are %d tokens", talk.size())
	}
	if _, err := p.Truncate(talk.View, policy.Moment{}); !isNothing(err) {
		t.Errorf("the fourth layer runs at %d tokens: %v", talk.size(), err)
	}
	users := turns(before.Messages)
	shown := clip.Shown(talk.Messages, talk.Edits)
	for _, i := range users[len(users)-3:] {
		want, found := before.Messages[i], false
		for _, m := range shown {
			found = found || m.Position == want.Position && reflect.DeepEqual(m.Content, want.Content)
		}
		if !found {
			t.Errorf("the user's message %d is not shown as it was said", want.Position)
		}
	}
}

// turns returns the indexes of the user's messages.
func turns(messages []recall.Message) (at []int) {
	for i, m := range messages {
		if m.Role == recall.User {
			at = append(at, i)
		}
	}
	return at
}

// No preset compacts again right after a compaction, unless the window is still nearly full.
func TestPresetsRestAfterACompaction(t *testing.T) {
	t.Parallel()
	compacted := 0
	for seed := range uint64(300) {
		all := policy.Presets()
		p := all[seed%uint64(len(all))]
		talk := randomTalk(seed, 10+int(seed%30))
		v, _ := p.Policy().Prune(talk.View, policy.Moment{})
		due, state := p.Policy().Check(v, policy.Moment{}, plan.TriggerState{})
		if !due.Compact {
			continue
		}
		plan, err := p.Policy().Plan(v, policy.Moment{})
		if err != nil {
			continue
		}
		var summary *clip.Summary
		if plan.Evicted > 0 {
			summary = summaryOf(plan.Evict(v))
		}
		v = plan.View(v, summary)
		compacted++
		state.Disarmed, state.Base = true, clip.Estimate(v)
		if due, _ = p.Policy().Check(v, policy.Moment{}, state); due.Compact && v.Window > 0 &&
			clip.Estimate(v) < v.Window*95/100 {
			t.Errorf("%s, seed %d: %d of %d tokens are compacted again", p.Name, seed, clip.Estimate(v), v.Window)
		}
	}
	if compacted < 50 {
		t.Errorf("only %d are compacted", compacted)
	}
}

// Each format gets a summary whatever fault the provider has.
func TestFormatsSurviveFailingProviders(t *testing.T) {
	t.Parallel()
	for fault, answer := range map[string]llmtest.Fault{"fails": llmtest.Fails(), "hangs up": llmtest.Hangup(),
		"garbage": llmtest.Garbage(), "malformed": llmtest.Malformed(), "no choices": llmtest.NoChoices(),
		"a page": llmtest.Page(502), "empty": llmtest.Empty(), "null": llmtest.Null(), "an error": llmtest.ErrorText(),
		"a refusal": llmtest.Refuses(), "out of length": llmtest.OutOfLength(), "an echo": llmtest.Echo(),
		"too long": llmtest.TooLong(50_000)} {
		provider := llmtest.New(t)
		provider.Always(answer)
		for name, f := range policy.Formats() {
			client, err := llm.New(llm.Config{BaseURL: provider.BaseURL(), Model: "fake", Attempts: 1, Timeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			s, err := summary.Summarize(t.Context(), evictedAs(f, session()), plan.Defaults(),
				&summary.Model{Summarizer: client, Name: "fake", Window: 20_000})
			if err != nil || s.How == clip.Extracted && s.Why == "" || !strings.Contains(s.Text, "PROJ-1742") {
				t.Errorf("%s, %s: %v %s", fault, name, err, fmt.Sprintf("%+v", s))
			}
		}
	}
}

// BenchmarkPolicies measures what a policy costs before each prompt of a conversation of 2,000 messages.
func BenchmarkPolicies(b *testing.B) {
	talk := newTalk(200_000, 4_000)
	for len(talk.Messages) < 2_000 {
		talk.say(recall.User, 40).look(200).say(recall.Assistant, 100)
	}
	for _, p := range policy.Presets() {
		b.Run(p.Name, func(b *testing.B) {
			for b.Loop() {
				p.Policy().Check(talk.View, policy.Moment{}, plan.TriggerState{})
				if _, err := p.Policy().Plan(talk.View, policy.Moment{}); err != nil && !isNothing(err) {
					b.Fatal(err)
				}
			}
		})
	}
}
