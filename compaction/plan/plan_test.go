package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest/golden"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// viewBuilder builds a view message by message. Each message has a given number of tokens.
type viewBuilder struct {
	clip.View
	calls int
}

func (v *viewBuilder) say(role recall.Role, tokens int) *viewBuilder {
	return v.put(role, "", text(strings.Repeat("the ", max(tokens-4, 0))))
}

func (v *viewBuilder) put(role recall.Role, step string, parts ...recall.Part) *viewBuilder {
	position := len(v.Messages) + 1
	m := recall.Message{ID: fmt.Sprintf("message-%08d-0000-4000-8000-000000000000", position), Seq: int64(position),
		Position: position, Role: role, Content: parts,
		Tokens: tokensOf(parts)}
	if step != "" {
		m.StepID = &step
	}
	v.Messages = append(v.Messages, m)
	return v
}

// look adds a tool call, and its result with this many tokens.
func (v *viewBuilder) look(tokens int) *viewBuilder {
	v.calls++
	id := fmt.Sprint("c", v.calls)
	v.put(recall.Assistant, "", called(id, "{}"))
	return v.put(recall.Tool, "", result(id, strings.Repeat("the ", max(tokens-4, 0))))
}

// storm adds a step of calls with arguments of this many characters, and their results.
func (v *viewBuilder) storm(calls, input, answer int) *viewBuilder {
	var calling, answered []recall.Part
	for range calls {
		v.calls++
		id := fmt.Sprint("c", v.calls)
		calling = append(calling, called(id, fmt.Sprintf(`{"path":"a.txt","text":%q}`, lines[:input])))
		answered = append(answered, result(id, lines[:answer]))
	}
	return v.put(recall.Assistant, "", calling...).put(recall.Tool, "", answered...)
}

func window(tokens, fixed int) *viewBuilder {
	return &viewBuilder{View: clip.View{Window: tokens, Fixed: fixed, Tools: fixed / 2}}
}

func mode(m plan.Mode) plan.Settings {
	s := plan.Defaults()
	s.Mode = m
	return s
}

// mustPlan returns a plan, and the view after it with a summary as long as allowed.
func mustPlan(t *testing.T, v clip.View, s plan.Settings) (plan.Plan, clip.View) {
	t.Helper()
	p, err := plan.MakePlan(v, s)
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	evicted := p.Evict(v)
	var sum *clip.Summary
	if p.Evicted > 0 {
		sum = &clip.Summary{Text: "what was", From: p.From, To: p.To, FromSeq: p.FromSeq, ToSeq: p.ToSeq,
			Tokens: p.Budget + 120}
		if previous := evicted.Previous; previous != nil {
			sum.From, sum.FromSeq = previous.From, previous.FromSeq
		}
	}
	after := p.View(v, sum)
	if err := plan.CheckNothingLost(v, evicted, after); err != nil {
		t.Fatal(err)
	}
	return p, after
}

func positions(messages []recall.Message) []int {
	all := []int{}
	for _, m := range messages {
		all = append(all, m.Position)
	}
	return all
}

// checkGolden compares a text with a golden file.
func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	golden.Check(t, "testdata/"+name, got)
}

// These are the texts about plans that an operator, a caller and a model read.
func TestPlansAsTheyAreRead(t *testing.T) {
	t.Parallel()
	storm := window(20_000, 3000).say(recall.User, 100).say(recall.Assistant, 50).say(recall.User, 300)
	for range 5 {
		storm.look(500)
	}
	storm.look(9000).look(11_000)
	storm.Summary = &clip.Summary{Text: "Earlier.", From: 1, To: 1, FromSeq: 1, ToSeq: 1, Tokens: 90}
	storm.Messages = storm.Messages[1:]
	storm.Edits = []clip.Edit{{Position: 15, Part: 0, Chars: 1000}}
	var b strings.Builder
	for _, m := range []plan.Mode{plan.SlidingWindow, plan.SelfCompactAll} {
		p, after := mustPlan(t, storm.View, mode(m))
		raw, err := json.MarshalIndent(p, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n\n%s\n", raw, after.SummaryText())
		for _, m := range clip.Shown(after.Messages, after.Edits) {
			if len(after.Edits) > 0 && m.Position == after.Edits[0].Position {
				shown := strings.Split(m.Content[0].Text, "\n")
				head := slices.IndexFunc(shown, func(line string) bool { return strings.HasPrefix(line, "[") })
				fmt.Fprintf(&b, "\nposition %d is shown: %d lines, and\n%s\nand %d lines\n", m.Position, head, shown[head],
					len(shown)-head-2)
			}
		}
		b.WriteString("\n---\n")
	}
	tall := window(8000, 7000).say(recall.User, 1200).put(recall.Assistant, "",
		called("open", strings.Repeat("the ", 500)))
	for _, v := range []clip.View{tall.View, {Window: 9000}, window(9000, 0).say(recall.User, 10).View,
		{Window: 900, Summary: &clip.Summary{}}} {
		_, err := plan.MakePlan(v, plan.Defaults())
		fmt.Fprintf(&b, "%v.\n", err)
	}
	small := window(9000, 0).say(recall.User, 100).say(recall.User, 100)
	small.Summary = &clip.Summary{Tokens: 10}
	_, err := plan.MakePlan(small.View, plan.Defaults())
	fmt.Fprintf(&b, "%v.\n\n%s\n", err, prose.WarningLine(76_543, 100_000))
	checkGolden(t, "plans.golden", b.String())
}

// A summary's message is never longer than plans assume for the words around its text.
func TestASummaryHasOneFormOfAKnownSize(t *testing.T) {
	t.Parallel()
	s := clip.Summary{FromSeq: 999_999_999, ToSeq: 999_999_999}
	if n := clip.SummaryTokens(s); n > 120 {
		t.Errorf("around its text, a summary's message takes %d tokens", n)
	}
	s.FromSeq, s.ToSeq, s.Text = 120, 188, "He likes tea."
	if got := clip.SummaryMessage(s, false, nil); !strings.Contains(got, `expand(id="[seq 120–188]")`) ||
		!strings.HasSuffix(got, "\nHe likes tea.") {
		t.Errorf("it does not name what it hides: %s", got)
	}
}

// The first attempt evicts the share in the settings. Each further attempt evicts ten percent more.
func TestTheFirstAttemptEvictsTheShareOfTheSettings(t *testing.T) {
	t.Parallel()
	talk := window(100_000, 1000)
	for range 50 {
		talk.say(recall.User, 20).say(recall.Assistant, 20)
	}
	for _, c := range []struct {
		percentage float64
		evicted    int
	}{{0.30, 30}, {0.05, 5}, {0.37, 37}, {0.95, 95}, {0.07, 7}, {0.29, 29}} {
		s := plan.Defaults()
		s.Percentage = c.percentage
		if p, _ := mustPlan(t, talk.View, s); p.Evicted != c.evicted {
			t.Errorf("of 100 messages, %v are %d", c.percentage, p.Evicted)
		}
	}
	heavy := window(10_000, 500)
	for range 50 {
		heavy.say(recall.User, 100).say(recall.Assistant, 100)
	}
	// Of 10,500 tokens 7,000 may stay, including a summary of 2,120. That leaves the last 43 messages, so the first
	// attempt with 60 percent suffices.
	p, after := mustPlan(t, heavy.View, plan.Defaults())
	if p.Evicted != 60 || p.After > 7000 || clip.Estimate(after) != p.After {
		t.Errorf("evicted %d, %d tokens after, %d counted", p.Evicted, p.After, clip.Estimate(after))
	}
}

// A share of the messages may have only a small share of the tokens. What counts in the end is the size of the rest.
func TestALargeTailDoesNotRefillTheWindow(t *testing.T) {
	t.Parallel()
	v := window(100_000, 5000)
	for range 60 {
		v.say(recall.User, 50).say(recall.Assistant, 50)
	}
	for range 8 {
		v.look(10_000)
	}
	p, after := mustPlan(t, v.View, plan.Defaults())
	if got := clip.Estimate(after); p.After > 70_000 || got > 70_000 || p.Evicted <= 36 {
		t.Errorf("%d messages leave, %d tokens stay", p.Evicted, got)
	}
}

// A second plan for what the first one kept must not be needed, and must not replace the first summary.
func TestTheFirstSummaryIsNotThrownAway(t *testing.T) {
	t.Parallel()
	v := window(20_000, 1000)
	v.Summary = &clip.Summary{Text: "his name is Ann's brother's", From: 1, To: 40, FromSeq: 1, ToSeq: 40,
		Tokens: 2000}
	for range 20 {
		v.say(recall.User, 100).look(900)
	}
	for i := range v.Messages {
		v.Messages[i].Position += 40
	}
	for _, m := range []plan.Mode{plan.SlidingWindow, plan.All, plan.SelfCompactAll,
		plan.SelfCompactSlidingWindow} {
		p, after := mustPlan(t, v.View, mode(m))
		evicted := p.Evict(v.View)
		if evicted.Previous != v.Summary || after.Summary.From != 1 || p.After > 14_000 {
			t.Errorf("%s: given %+v, after it %d tokens", m, evicted.Previous, p.After)
		}
		evicted.Previous = nil
		if err := plan.CheckNothingLost(v.View, evicted, after); err == nil {
			t.Errorf("%s: a summary that is not carried along is committed", m)
		}
	}
}

// If our counts are too high, the first attempts still succeed, because the provider's report says how many tokens the
// messages really have.
func TestOwnCountsThatAreTooHighDoNotWipeTheWindow(t *testing.T) {
	t.Parallel()
	v := window(10_000, 1000)
	for range 100 {
		v.say(recall.Assistant, 130)
	}
	v.say(recall.User, 130)
	v.Usage = &clip.Usage{PromptTokens: 9100, Position: 101} // of 14,130
	p, _ := mustPlan(t, v.View, plan.Defaults())
	if p.Before != 9100 || p.Evicted != 60 || p.After > 7000 {
		t.Errorf("evicted %d of 101, %d tokens before and %d after", p.Evicted, p.Before, p.After)
	}
	v.Usage = nil
	if p, _ := mustPlan(t, v.View, plan.Defaults()); p.Evicted != 80 {
		t.Errorf("by its own count it evicted %d of 101", p.Evicted)
	}
}

// A report far from our count is likely about another prompt. It may cause a compaction, but no more leaves than
// necessary.
func TestAnUnlikelyReportIsBelievedToTheDouble(t *testing.T) {
	t.Parallel()
	v := window(100_000, 1000)
	for range 20 {
		v.say(recall.User, 500)
	}
	v.Usage = &clip.Usage{PromptTokens: 99_000, Position: 20}
	if p, _ := mustPlan(t, v.View, plan.Defaults()); p.Before != 99_000 || p.Evicted != 6 || p.After > 22_000 {
		t.Errorf("too high: %v", p)
	}
	for range 160 {
		v.say(recall.User, 500)
	}
	v.Usage = &clip.Usage{PromptTokens: 300, Position: 180}
	v.say(recall.User, 55_000)
	if p, _ := mustPlan(t, v.View, plan.Defaults()); p.Evicted < 144 {
		t.Errorf("too low: of 90,000 tokens, which are 45,000 at least, and 55,000 this is to fit: %v", p)
	}
}

// The report covers the prompt only. Later tool results are counted on top, and a report from before a compaction is
// ignored.
func TestTheEstimateIsTheReportAndWhatCameAfter(t *testing.T) {
	t.Parallel()
	v := window(200_000, 10_000).say(recall.User, 100).look(50)
	v.Usage = &clip.Usage{PromptTokens: 150_000, Position: 3}
	v.look(9994)
	if got := clip.Estimate(v.View); got != 160_000 {
		t.Errorf("150,000 tokens and a result of 10,000 are %d", got)
	}
	v.Usage.PromptTokens = 0
	if got := clip.Estimate(v.View); got != clip.Counted(v.View) {
		t.Errorf("a report of nothing is believed: %d", got)
	}
	v.Usage.PromptTokens = 199_000
	if _, after := mustPlan(t, v.View, mode(plan.All)); after.Usage != nil || clip.Estimate(after) > 30_000 {
		t.Errorf("after a compaction the old report is believed: %d", clip.Estimate(after))
	}
}

// A call whose result never comes delays a compaction until the user has spoken twice, and then leaves with the rest.
func TestACallWithoutAResultDoesNotHoldACompactionForEver(t *testing.T) {
	t.Parallel()
	v := window(20_000, 1_000)
	for range 10 {
		v.say(recall.User, 800).say(recall.Assistant, 800)
	}
	v.put(recall.Assistant, "", called("x", "{}"))
	for turn := 1; turn <= 3; turn++ {
		v.say(recall.User, 800)
		due, _ := plan.Check(18_001, 20_000, v.Open(), plan.Defaults(), plan.TriggerState{})
		if due.Compact != (turn >= 2) {
			t.Errorf("after %d messages of the user, a compaction is due: %t", turn, due.Compact)
		}
	}
	p, after := mustPlan(t, v.View, plan.Defaults())
	if clip.Estimate(after) > 14_000 || p.Evicted < 10 {
		t.Errorf("%d messages leave, %d tokens stay", p.Evicted, clip.Estimate(after))
	}
}

// A call that waits for approval and the calls made with it stay together, wherever the cut falls and whichever of them
// is open.
func TestAnApprovalIsNotPartedFromItsSibling(t *testing.T) {
	t.Parallel()
	for _, answered := range [][]string{{}, {"x"}, {"y"}, {"x", "y"}, {"y", "x"}} {
		for before := 1; before < 30; before++ {
			v := window(1_000_000, 0)
			for range before {
				v.say(recall.User, 10)
			}
			v.put(recall.Assistant, "s", called("x", "{}"))
			first := len(v.Messages)
			v.put(recall.Assistant, "s", called("y", "{}"))
			for _, id := range answered {
				v.put(recall.Tool, "", result(id, "done"))
			}
			last := len(v.Messages)
			pending, after := len(answered) < 2, 1 // more messages of the user would end the wait
			if !pending {
				v.say(recall.Assistant, 10)
				after = 30 - before
			}
			for range after {
				v.say(recall.User, 10)
			}
			if v.Open() != pending {
				t.Fatalf("%v are answered, and a call is open: %v", answered, v.Open())
			}
			for _, m := range []plan.Mode{plan.SlidingWindow, plan.All} {
				p, err := plan.MakePlan(v.View, mode(m))
				if err != nil && !isNothing(err) {
					t.Fatal(err)
				}
				if p.First > first && (pending || p.First <= last) {
					t.Errorf("%s, %d before, %v answered: cut at %d, of calls from %d to %d", m, before, answered, p.First, first,
						last)
				}
			}
		}
	}
}

// If an id occurs several times, a result belongs to the latest open call with the id, as in the log, and is not
// separated from it. A result of the earlier call is late.
func TestResultsOfOneIDBelongToTheLatestCall(t *testing.T) {
	t.Parallel()
	for before := range 20 {
		v := window(1_000_000, 0)
		for range before {
			v.say(recall.User, 10)
		}
		v.put(recall.Assistant, "", called("again", "{}"))
		first := len(v.Messages)
		v.say(recall.User, 10).put(recall.Assistant, "", called("again", "{}"))
		v.put(recall.Tool, "", result("again", "second")).put(recall.Tool, "", result("again", "first"))
		v.put(recall.Tool, "", result("again", "of no call"))
		for range 20 - before {
			v.say(recall.User, 10)
		}
		for percent := 5; percent <= 95; percent += 5 {
			s := plan.Defaults()
			s.Percentage = float64(percent) / 100
			if p, _ := mustPlan(t, v.View, s); p.First == first+3 {
				t.Errorf("%d before, %d percent: cut at %d, between a call and its result", before, percent, p.First)
			}
		}
	}
}

// Parallel calls are one group wherever the cut falls, even if a search of five messages around the cut would miss
// that.
func TestTwelveParallelCallsAreNeverSplit(t *testing.T) {
	t.Parallel()
	for before := range 40 {
		v := window(1_000_000, 0)
		for range before {
			v.say(recall.User, 10)
		}
		var calls []recall.Part
		for i := range 12 {
			calls = append(calls, called(fmt.Sprint("c", i), "{}"))
		}
		v.put(recall.Assistant, "", calls...)
		first := len(v.Messages)
		for i := range 12 {
			v.put(recall.Tool, "", result(fmt.Sprint("c", 11-i), "done"))
		}
		for range 40 - before {
			v.say(recall.Assistant, 10)
		}
		for _, percentage := range []float64{0.1, 0.3, 0.5, 0.7, 0.9} {
			s := plan.Defaults()
			s.Percentage = percentage
			if p, _ := mustPlan(t, v.View, s); p.First > first && p.First <= first+12 {
				t.Errorf("%d before, %v: cut at %d, within the calls at %d", before, percentage, p.First, first)
			}
		}
	}
}

// A system prompt of nearly the whole window must not cause a call of a model at every step.
func TestALargeSystemPromptIsNotCompactedAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, fixed := range []int{60_000, 75_000, 85_000, 88_000, 91_000, 99_000, 110_000} {
		v := window(100_000, fixed)
		s := plan.Defaults()
		var memory plan.TriggerState
		compactions, refused := 0, 0
		for step := range 400 {
			v.say([]recall.Role{recall.User, recall.Assistant}[step%2], 200)
			v.Messages[len(v.Messages)-1].Position = step + 1
			due, state := plan.Check(clip.Estimate(v.View), v.Window, false, s, memory)
			memory = state
			if !due.Compact {
				continue
			}
			p, err := plan.MakePlan(v.View, s)
			if _, tooBig := errors.AsType[*plan.TooBig](err); tooBig {
				refused++
				continue
			}
			if err != nil {
				t.Fatalf("fixed %d, step %d: %v", fixed, step, err)
			}
			_, after := mustPlan(t, v.View, s)
			v.View = after
			memory.Disarmed, memory.Base = true, p.After
			compactions++
		}
		// 80,000 tokens are said, and every compaction frees room for 5,000.
		if compactions > 80_000/4_500 || fixed > 90_000 && (compactions > 0 || refused == 0) || fixed < 88_000 &&
			refused > 0 {
			t.Errorf("fixed %d: %d compactions, refused %d times", fixed, compactions, refused)
		}
	}
}

// The summary's own tokens count in the new window.
func TestTheSummaryCountsInTheNewWindow(t *testing.T) {
	t.Parallel()
	v := window(100_000, 10_000)
	for range 100 {
		v.say(recall.User, 500).say(recall.Assistant, 450)
	}
	s := plan.Defaults()
	p, after := mustPlan(t, v.View, s)
	bare := after
	bare.Summary = nil
	if p.Budget != 10_000 || p.After != clip.Estimate(bare)+p.Budget+120 || p.After > 70_000 {
		t.Errorf("with a summary of %d the view takes %d, without %d", p.Budget, p.After, clip.Estimate(bare))
	}
	s.ClipChars = new(1000)
	if p, _ := mustPlan(t, v.View, s); p.Budget != 250 {
		t.Errorf("1,000 characters are %d tokens", p.Budget)
	}
}

// No model is asked about a transcript without content.
func TestNoModelIsAskedAboutNothing(t *testing.T) {
	t.Parallel()
	sum := &clip.Summary{Text: "x", To: 9, Tokens: 50_000}
	for name, v := range map[string]*viewBuilder{
		"an empty view": window(10_000, 1000), "only a summary": {View: clip.View{Window: 100_000, Summary: sum}},
		"one message": window(10_000, 1000).say(recall.User, 10), "one answer": window(10_000, 0).say(recall.Assistant, 10),
		"an open call":      window(10_000, 0).put(recall.Assistant, "", called("c", "{}")),
		"an unknown window": {View: clip.View{Summary: sum}},
	} {
		for _, m := range []plan.Mode{plan.SlidingWindow, plan.All, plan.SelfCompactAll,
			plan.SelfCompactSlidingWindow} {
			if p, err := plan.MakePlan(v.View, mode(m)); !isNothing(err) || !errors.Is(err, db.ErrInvalid) {
				t.Errorf("%s, %s: %+v, %v", name, m, p, err)
			}
		}
	}
}

// The user's newest message stays word for word, even if a long turn of tools has pushed it far before the cut.
func TestTheUsersNewestMessageStaysWhenTheCutPassesIt(t *testing.T) {
	t.Parallel()
	v := window(60_000, 2000).say(recall.User, 50).say(recall.Assistant, 50).say(recall.User, 600)
	for range 40 {
		v.look(1400)
	}
	p, after := mustPlan(t, v.View, plan.Defaults())
	want := append([]int{3}, positions(v.Messages[p.First-1:])...)
	if diff := cmp.Diff(want, positions(after.Messages)); diff != "" || !slices.Equal(p.Kept, []int{3}) || p.First < 20 ||
		p.After > 42_000 {
		t.Errorf("%+v, after it (-want +got):\n%s", p, diff)
	}
	// It stays through later compactions, and leaves once the user says something newer.
	for range 30 {
		after.Messages = append(after.Messages, window(0, 0).say(recall.Assistant, 1000).Messages...)
		after.Messages[len(after.Messages)-1].Position = 100 + len(after.Messages)
	}
	p, again := mustPlan(t, after, plan.Defaults())
	if !slices.Equal(p.Kept, []int{3}) || again.Messages[0].Position != 3 {
		t.Errorf("the second time: %+v", p)
	}
	again.Messages = append(again.Messages, window(0, 0).say(recall.User, 30_000).Messages...)
	again.Messages[len(again.Messages)-1].Position = 300
	if p, last := mustPlan(t, again, plan.Defaults()); len(p.Kept) > 0 || p.From != 3 || last.Summary.From != 1 {
		t.Errorf("with a newer one: %+v", p)
	}
}

// Large results at the end, with no cut point behind them, are clipped. The plan must not report that there is nothing
// to do. They get at least 85 % of the room, because the model has not read them.
func TestTrailingResultsAreClippedAndNotKeptForever(t *testing.T) {
	t.Parallel()
	v := window(32_000, 1000).say(recall.User, 100)
	v.put(recall.Assistant, "", called("a", "{}"), called("b", "{}"))
	v.put(recall.Tool, "", result("a", lines[:60_000])).put(recall.Tool, "", result("b", lines[:60_000]))
	for _, m := range []plan.Mode{plan.SlidingWindow, plan.SelfCompactSlidingWindow} {
		p, after := mustPlan(t, v.View, mode(m))
		used := clip.Estimate(after)
		if len(p.Edits) == 0 || p.NeedsModel || p.Evicted > 0 || used > 28_800 || used < 24_500 ||
			len(after.Messages) != 4 || p.FirstChanged != 3 {
			t.Errorf("%+v", p)
		}
		if err := readable(after); err != nil {
			t.Error(err)
		}
		if p, err := plan.MakePlan(after, mode(m)); !isNothing(err) {
			t.Errorf("it is clipped again: %+v, %v", p, err)
		}
	}
}

// The oldest results are clipped first, the last of them as little as suffices, and the newest stays whole if it can. A
// clipped result is clipped further, and keeps one marker.
func TestTheOldestAndLongestResultsAreClippedFirst(t *testing.T) {
	t.Parallel()
	v := window(40_000, 1000).say(recall.User, 100)
	var calls, results []recall.Part
	for i, n := range []int{11_500, 900, 11_500, 11_500} {
		calls = append(calls, called(fmt.Sprint("c", i), "{}"))
		results = append(results, result(fmt.Sprint("c", i), tokens.Prefix(lines, n)))
	}
	v.put(recall.Assistant, "", calls...).put(recall.Tool, "", results...)
	p, after := mustPlan(t, v.View, plan.Defaults())
	if used := clip.Estimate(after); len(p.Edits) != 1 || p.Edits[0].Part != 0 || used > 36_000 || used < 30_600 {
		t.Errorf("%d tokens with %+v", used, p.Edits)
	}
	after.Fixed = 22_000
	p, after = mustPlan(t, after, plan.Defaults())
	used := clip.Estimate(after)
	if n := len(p.Edits); n != 3 || used > 36_000 || used < 33_900 || p.Edits[0].Chars > p.Edits[n-1].Chars {
		t.Errorf("with less room: %d tokens with %+v", used, p.Edits)
	}
	if err := readable(after); err != nil {
		t.Error(err)
	}
}

// An error names what does not fit, its size and the limits. Nothing is emptied, and nothing is tried again.
func TestWhatIsTooBigIsNamed(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	for name, c := range map[string]struct {
		view *viewBuilder
		says []string
	}{
		"a message of the user larger than the window": {window(50_000, 2000).say(recall.User, 10).say(recall.Assistant,
			10).say(recall.User, 90_000),
			[]string{"the user message at position 3 (90000 tokens)", "at most 45000 fit"}},
		"only that message": {window(50_000, 2000).say(recall.User, 90_000),
			[]string{"the user message at position 1 (90000 tokens)"}},
		"the system prompt": {window(50_000, 60_000).say(recall.User, 10).say(recall.Assistant, 10),
			[]string{"the system prompt (30000 tokens)", "the definitions of the tools (30000 tokens)", "context_window_limit"}},
		"a message of the user before many calls": {window(12_500, 2000).say(recall.User, 15_000).storm(500, 60, 60),
			[]string{"the user message at position 1 (15000 tokens)",
				"the newest 500 calls with their results, from position 2 on ("}},
	} {
		for _, m := range []plan.Mode{plan.SlidingWindow, plan.All}[:scale.Of(1, 2)] {
			_, err := plan.MakePlan(c.view.View, mode(m))
			big, ok := errors.AsType[*plan.TooBig](err)
			if !ok || !errors.Is(err, db.ErrInvalid) {
				t.Errorf("%s, %s: %v", name, m, err)
				continue
			}
			for _, says := range c.says {
				if !strings.Contains(big.Error(), says) {
					t.Errorf("%s, %s: it does not say %q: %v", name, m, says, big)
				}
			}
		}
	}
}

// Any other message larger than the window leaves, even the newest, if it cannot be clipped: a summary is better than
// no prompt.
func TestAMessageLargerThanTheWindowLeaves(t *testing.T) {
	t.Parallel()
	for large := range 5 {
		v := window(50_000, 2000)
		for i := range 5 {
			role, tokens := recall.User, 20
			if i == large {
				role, tokens = recall.Assistant, 90_000
			}
			v.say(role, tokens)
		}
		p, after := mustPlan(t, v.View, plan.Defaults())
		if p.After > 45_000 || len(after.Messages) == 0 || slices.Contains(positions(after.Messages), large+1) {
			t.Errorf("the large one at %d: %v", large+1, p)
		}
	}
}

// Over five compactions each message is visible, or was given to a summarizer exactly once. The second compaction does
// not lose what the first one kept.
func TestWhatOneCompactionKeptTheNextDoesNotLose(t *testing.T) {
	t.Parallel()
	for _, m := range []plan.Mode{plan.SlidingWindow, plan.All} {
		v := window(40_000, 2000)
		read := map[int]int{}
		position := 0
		for range 5 {
			for range 20 {
				v.say(recall.User, 1000).say(recall.Assistant, 2000)
				for i := range 2 {
					position++
					v.Messages[len(v.Messages)-2+i].Position = position
				}
			}
			p, after := mustPlan(t, v.View, mode(m))
			for _, evicted := range p.Evict(v.View).Messages {
				read[evicted.Position]++
			}
			v.View = after
		}
		for _, visible := range v.Messages {
			read[visible.Position]++
		}
		for at := 1; at <= position; at++ {
			if read[at] != 1 {
				t.Errorf("%s: message %d was read %d times", m, at, read[at])
			}
		}
	}
}

// Everything that leaves is given to the summarizer whole, including results that were shown clipped. The agent's own
// model gets what it saw.
func TestAllThatLeavesIsGivenToTheSummariser(t *testing.T) {
	t.Parallel()
	v := window(30_000, 1000).say(recall.User, 100).say(recall.Assistant, 10).say(recall.User,
		100).look(20_000).look(2000).look(12_000)
	v.Edits = []clip.Edit{{Position: 5, Part: 0, Chars: 1000}}
	v.Fixed = 12_000
	for _, m := range []plan.Mode{plan.SlidingWindow, plan.SelfCompactSlidingWindow} {
		s := mode(m)
		s.Percentage = 0.7
		p, _ := mustPlan(t, v.View, s)
		evicted := p.Evict(v.View)
		if diff := cmp.Diff([]int{1, 2, 4, 5}, positions(evicted.Messages)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", m, diff)
		}
		shown := evicted.Messages[3].Content[0].Text
		if whole := len(shown) > 50_000; whole == p.Self {
			t.Errorf("%s is given %d bytes of the clipped result", m, len(shown))
		}
		if p.Self && !slices.Equal(positions(evicted.Self.View), []int{1, 2, 3, 4, 5}) {
			t.Errorf("the agent's own model is given messages %v", positions(evicted.Self.View))
		}
	}
}

// Messages that arrive while a model is thinking stay, and the plan remains valid.
func TestAPlanHoldsWhileTheConversationGoesOn(t *testing.T) {
	t.Parallel()
	v := window(20_000, 1000)
	for range 30 {
		v.say(recall.User, 200).look(400)
	}
	p, err := plan.MakePlan(v.View, plan.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	evicted := p.Evict(v.View)
	v.say(recall.Assistant, 10).look(10)
	after := p.View(v.View, &clip.Summary{From: p.From, To: p.To})
	if err := plan.CheckNothingLost(v.View, evicted, after); err != nil {
		t.Error(err)
	}
	if got := after.Messages[len(after.Messages)-1].Position; got != len(v.Messages) {
		t.Errorf("the newest message in the view is %d of %d", got, len(v.Messages))
	}
}

// The plan says by how much the fixed parts are too large, so that the caller can first shorten the views of files.
func TestFixedPartsThatLeaveTooLittleAreToldByHowMuch(t *testing.T) {
	t.Parallel()
	v := window(100_000, 80_000)
	for range 100 {
		v.say(recall.User, 500)
	}
	if p, _ := mustPlan(t, v.View, plan.Defaults()); p.Crowded != 5000 || p.After > 90_000 {
		t.Errorf("80,000 of 100,000 are %d too many; %d after", p.Crowded, p.After)
	}
	for _, c := range [][3]int{{75_000, 100_000, 0}, {75_001, 100_000, 1}, {1, 0, 0}, {-1, 100, 0}, {7, 7, 1}} {
		if got := clip.Crowding(c[0], c[1]); got != c[2] {
			t.Errorf("%d of %d are %d too many, want %d", c[0], c[1], got, c[2])
		}
	}
}

// Absurd numbers do not overflow.
func TestAbsurdNumbersAreBorne(t *testing.T) {
	t.Parallel()
	const most = int(^uint(0) >> 1)
	for _, n := range []int{most, most / 2, most - 1, -most, -1, 0} {
		for _, w := range []int{most, most / 3, 1, 0, -5} {
			v := window(w, n).say(recall.User, 10).say(recall.Assistant, 10).say(recall.User, 10)
			v.Messages[1].Tokens = n
			v.Summary = &clip.Summary{Tokens: n}
			for _, u := range []*clip.Usage{nil, {PromptTokens: n, Position: 2}, {PromptTokens: 1, Position: most}} {
				v.Usage = u
				p, err := plan.MakePlan(v.View, plan.Defaults())
				if clip.Estimate(v.View) < 0 || clip.Counted(v.View) < 0 || p.After < 0 || p.Budget < 0 {
					t.Errorf("%d of %d with %+v: %+v, %v", n, w, u, p, err)
				}
			}
		}
	}
}

// A long turn right after a compaction gets shorter although it has no cut point. It must not be only the summary that
// is summarized again.
func TestOneLongTurnAfterACompactionShrinks(t *testing.T) {
	t.Parallel()
	v := window(40_000, 2000).say(recall.User, 200)
	v.Summary = &clip.Summary{Text: "earlier", From: 1, To: 10, Tokens: 1500}
	var calls, results []recall.Part
	for i := range 6 {
		calls, results = append(calls, called(fmt.Sprint("c", i), "{}")),
			append(results, result(fmt.Sprint("c", i), lines[:24_000]))
	}
	v.put(recall.Assistant, "", calls...).put(recall.Tool, "", results...)
	for i := range v.Messages {
		v.Messages[i].Position += 10
	}
	p, after := mustPlan(t, v.View, plan.Defaults())
	if p.NeedsModel || after.Summary != v.Summary || len(after.Messages) != 3 || clip.Estimate(after) > 36_000 ||
		p.First != 11 {
		t.Errorf("%v", p)
	}
}

// The trigger, the plan and a *TooBig use the same sum of fixed parts and messages.
func TestFixedPartsAndMessagesAreOneSum(t *testing.T) {
	t.Parallel()
	s := plan.Defaults()
	s.Trigger, s.Goal = 0.8, 0.7
	v := window(200_000, 4000)
	for range 157 {
		v.say(recall.User, 1000)
	}
	due, _ := plan.Check(clip.Estimate(v.View), v.Window, false, s, plan.TriggerState{})
	if p, _ := mustPlan(t, v.View, s); !due.Compact || p.Before != 161_000 || p.After > 140_000 {
		t.Errorf("due: %+v, %v", due, p)
	}
}

// An unknown mode is refused, not replaced by another.
func TestAnUnknownModeIsNotAnotherMode(t *testing.T) {
	t.Parallel()
	if p, err := plan.MakePlan(window(1000, 10).View, mode("partial_evict")); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("got %v, %v, want ErrInvalid", p, err)
	}
}

// An answer of several messages that began with reasoning is only cut before or behind all of it.
func TestMessagesOfOneStepStayTogether(t *testing.T) {
	t.Parallel()
	v := window(1_000_000, 0)
	for i := range 30 {
		step := fmt.Sprint("step-", i)
		v.say(recall.User, 10)
		v.put(recall.Assistant, step, recall.Part{Type: recall.Reasoning, Text: "Hm."}).put(recall.Assistant, step,
			text("Yes."))
	}
	for percent := 5; percent <= 95; percent++ {
		s := plan.Defaults()
		s.Percentage = float64(percent) / 100
		if p, _ := mustPlan(t, v.View, s); p.First%3 == 0 {
			t.Errorf("%d percent cut an answer at %d", percent, p.First)
		}
	}
}
