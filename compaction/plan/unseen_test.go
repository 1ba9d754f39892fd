package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall"
)

// input returns arguments of a call that writes a text of this many characters.
func input(chars int) string { return fmt.Sprintf(`{"path":"a.txt","text":%q}`, lines[:chars]) }

// In every mode the newest calls and their results stay until the model answers them, clipped as far as needed.
func TestUnseenResultsStay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		view *viewBuilder
		stay []int // positions
	}{
		"thirty results at once": {window(8192, 1500).say(recall.User, 50).storm(30, 40, 1200), []int{1, 2, 3}},
		"ninety results at once": {window(8192, 1500).say(recall.User, 50).storm(90, 40, 1200), []int{1, 2, 3}},
		"arguments of 6,000 words": {window(8192, 1500).say(recall.User, 50).say(recall.Assistant, 50).
			storm(1, 36_000, 2), []int{1, 3, 4}},
		"of an open call": {window(8192, 1500).say(recall.User, 50).
			put(recall.Assistant, "", called("c", input(36_000))), []int{1, 2}},
		"the same again and again": {window(8192, 1500).say(recall.User, 50).storm(1, 36_000, 2).storm(1, 36_000, 2).
			storm(1, 36_000, 2), []int{1, 6, 7}},
		"arguments that are no JSON": {window(8192, 1500).say(recall.User, 50).
			put(recall.Assistant, "", called("c", lines[:36_000])).put(recall.Tool, "", result("c", "OK")), []int{1, 2, 3}},
		"a long text before the call": {window(8192, 1500).say(recall.User, 50).
			put(recall.Assistant, "", text(lines[:36_000]), called("c", "{}")).put(recall.Tool, "", result("c", "OK")),
			[]int{1, 2, 3}},
		"images": {window(8192, 1500).say(recall.User, 50).put(recall.Assistant, "", called("c", "{}")).
			put(recall.Tool, "", recall.Part{Type: recall.ToolReturn, CallID: "c", Text: "ok", Images: images(12)}),
			[]int{1, 2, 3}},
		"the user did not wait for an answer": {window(8192, 1500).say(recall.User, 50).storm(20, 40, 1200).
			say(recall.User, 3000), []int{2, 3, 4}},
		"many speak after the results": {window(8192, 1500).storm(3, 40, 1200).say(recall.User, 4000).
			say(recall.User, 4000).say(recall.User, 4000), []int{1, 2, 5}},
	} {
		for _, m := range []plan.Mode{plan.SlidingWindow, plan.All, plan.SelfCompactAll} {
			p, after := mustPlan(t, c.view.View, mode(m))
			got := positions(after.Messages)
			for _, position := range c.stay {
				if !slices.Contains(got, position) {
					t.Errorf("%s, %s: message %d left; there are %v", name, m, position, got)
				}
			}
			if tokens := clip.Estimate(after); tokens > 7372 || p.After > 7372 {
				t.Errorf("%s, %s: %d tokens, %d planned", name, m, tokens, p.After)
			}
			if err := readable(after); err != nil {
				t.Errorf("%s, %s: %v", name, m, err)
			}
		}
	}
}

// lateJob adds a call, then 200 steps with results that the model has answered, and at last the result of the call.
func (v *viewBuilder) lateJob() *viewBuilder {
	v.put(recall.Assistant, "", called("job", "{}"))
	for i := range 200 {
		id := fmt.Sprintf("step %d", i)
		v.put(recall.Assistant, "", called(id, "{}")).put(recall.Tool, "", result(id, lines[:400]))
	}
	return v.put(recall.Tool, "", result("job", "done"))
}

// A late result does not keep messages since its call in the view. It stays until the model has answered it; its call
// may leave before.
func TestLateResultsHoldNothingBack(t *testing.T) {
	t.Parallel()
	for _, m := range []plan.Mode{plan.SlidingWindow, plan.All, plan.SelfCompactAll} {
		v := window(8192, 1500).say(recall.User, 50).lateJob()
		_, after := mustPlan(t, v.View, mode(m))
		got := positions(after.Messages)
		if !slices.Contains(got, 403) || !slices.Contains(got, 402) || slices.Contains(got, 2) {
			t.Errorf("%s: the late result, the newest step, or the call: there are %v", m, got)
		}
		if tokens := clip.Estimate(after); tokens > 7372 {
			t.Errorf("%s: %d tokens", m, tokens)
		}
		answered := window(8192, 1500).put(recall.Tool, "", result("job", "done")).say(recall.Assistant, 3000).
			say(recall.User, 4000)
		if _, after := mustPlan(t, answered.View, mode(m)); slices.Contains(positions(after.Messages), 1) {
			t.Errorf("%s: the answered result stays: %v", m, positions(after.Messages))
		}
	}
}

// images returns n images for a result.
func images(n int) []json.RawMessage {
	return slices.Repeat([]json.RawMessage{json.RawMessage(`{}`)}, n)
}

// Results that the model has answered leave like other messages.
func TestAnsweredResultsLeave(t *testing.T) {
	t.Parallel()
	v := window(8192, 1500).say(recall.User, 50).storm(30, 40, 1200).say(recall.Assistant, 50).say(recall.User, 50)
	if _, after := mustPlan(t, v.View, mode(plan.All)); !slices.Equal(positions(after.Messages), []int{5}) {
		t.Errorf("of all, %v stay", positions(after.Messages))
	}
}

// Clipped arguments show every short field whole, and the beginning and end of the long one.
func TestClippedArgumentsKeepTheirFields(t *testing.T) {
	t.Parallel()
	v := window(0, 0).put(recall.Assistant, "", called("c", `{"path":"src/main.go","line":12,"text":"`+
		strings.Repeat(`one \"line\"\n`, 500)+`end"}`)).View
	v.Edits = []clip.Edit{{Position: 1, Chars: 60}}
	want := `{"path":"src/main.go","line":12,"text":"one \"line\"\none \"line\"\n\n` +
		`[5456 of 5503 characters left out: call expand(id=\"1\", ` +
		`offset=66, limit=100)]\none \"line\"\none \"line\"\nend"}`
	if got := clip.Shown(v.Messages, v.Edits)[0].Content[0].Input; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The model is told that a request shown behind a summary of the work on it is not new.
func TestASummarySaysThatTheRequestAfterItIsOld(t *testing.T) {
	t.Parallel()
	const old = "The user's message after this summary is not new"
	v := window(20_000, 1000).say(recall.User, 100).say(recall.Assistant, 50).say(recall.User, 300)
	for range 30 {
		v.look(800)
	}
	p, after := mustPlan(t, v.View, plan.Defaults())
	if got := after.SummaryText(); !slices.Equal(p.Kept, []int{3}) || !strings.Contains(got, old) {
		t.Errorf("kept %v; the summary is %q", p.Kept, got)
	}
	if got := after.AsShown()[0].Content[0].Text; got != after.SummaryText() {
		t.Errorf("the model is shown %q", got)
	}
	v = window(20_000, 1000)
	for range 30 {
		v.say(recall.User, 300).say(recall.Assistant, 500)
	}
	if _, after := mustPlan(t, v.View, plan.Defaults()); strings.Contains(after.SummaryText(), old) {
		t.Errorf("of a request that is new: %q", after.SummaryText())
	}
}

// A message that fits alone also fits with any history, because a new or old summary is shortened.
func TestAMessageThatFitsAloneFitsWithAHistory(t *testing.T) {
	t.Parallel()
	long := &clip.Summary{Text: strings.Repeat("a line of a summary that says much\n", 200), From: 1, To: 9,
		Tokens: 1750}
	dense := &clip.Summary{Text: strings.Repeat("茶馆开在河边。", 200), From: 1, To: 9, Tokens: 1500}
	for tokens := 10_000; tokens <= 11_300; tokens += 100 {
		for name, v := range map[string]*viewBuilder{
			"messages":               window(16_000, 3100).say(recall.User, 6000).say(recall.Assistant, 3000),
			"a summary":              {View: clip.View{Window: 16_000, Fixed: 3100, Summary: long}},
			"a summary and messages": {View: clip.View{Window: 16_000, Fixed: 3100, Summary: long}},
			"a Chinese summary":      {View: clip.View{Window: 16_000, Fixed: 3100, Summary: dense}},
		} {
			if name == "a summary and messages" {
				v.say(recall.User, 500).say(recall.Assistant, 500)
			}
			v.say(recall.User, tokens)
			for i := range v.Messages {
				v.Messages[i].Position += 9
			}
			for _, m := range []plan.Mode{plan.SlidingWindow, plan.All} {
				p, after := mustPlan(t, v.View, mode(m))
				if got := clip.Estimate(after); got > 14_400+plan.LeastSummary || got > p.After ||
					len(after.Messages) != 1 || after.Summary == nil {
					t.Errorf("%d tokens after %s, %s: %v, %d counted", tokens, name, m, p, got)
				}
				if shown := after.SummaryText(); after.Summary == long && len(shown) < 700 {
					t.Errorf("%d tokens: of the summary this is shown: %s", tokens, shown)
				}
			}
		}
	}
	v := window(16_000, 3100).say(recall.User, 500).say(recall.User, 11_400)
	if _, err := plan.MakePlan(v.View, plan.Defaults()); err == nil || !strings.Contains(err.Error(),
		"the user message at position 2 (11400 tokens)") {
		t.Errorf("what does not fit alone: %v", err)
	}
}

// A clipped summary stays clipped until the next summary, which is made from the whole of it.
func TestAClippedSummaryIsCarriedAlongWhole(t *testing.T) {
	t.Parallel()
	v := viewBuilder{View: clip.View{Window: 16_000, Fixed: 3100, Summary: &clip.Summary{From: 1, To: 9,
		Text: strings.Repeat("a line of a summary that says much\n", 200), Tokens: 1750}}}
	v.say(recall.User, 11_000)
	v.Messages[0].Position = 10
	p, after := mustPlan(t, v.View, plan.Defaults())
	if len(p.Edits) != 1 || p.Edits[0].Position != 0 || after.Summary != v.Summary || p.FirstChanged != 1 {
		t.Fatalf("%+v", p)
	}
	unclipped := after
	unclipped.Edits = nil
	if err := plan.CheckNothingLost(after, clip.Evicted{}, unclipped); err == nil {
		t.Error("the clip is undone")
	}
	after.Messages = append(after.Messages, window(0, 0).say(recall.Assistant, 2500).say(recall.User, 100).Messages...)
	after.Messages[1].Position, after.Messages[2].Position = 11, 12
	p, last := mustPlan(t, after, plan.Defaults())
	if evicted := p.Evict(after); evicted.Previous.Text != v.Summary.Text || len(last.Edits) > 0 || p.Evicted == 0 {
		t.Errorf("given %d bytes of the summary; %+v", len(evicted.Previous.Text), p)
	}
}

// A view with too many messages for a model is shortened to the goal's share of that number, whatever its tokens.
func TestAViewOfTooManyMessagesIsShortened(t *testing.T) {
	t.Parallel()
	v := window(1_000_000, 3000)
	for len(v.Messages) < 15_000 {
		v.say(recall.User, 12).say(recall.Assistant, 12)
	}
	for _, m := range []plan.Mode{plan.SlidingWindow, plan.All} {
		p, after := mustPlan(t, v.View, mode(m))
		if !plan.TooLong(v.View) || p.Stay > 7000 || m == plan.SlidingWindow && p.Stay < 4000 {
			t.Errorf("%s: %d messages stay", m, p.Stay)
		}
		if again, err := plan.MakePlan(after, mode(m)); !isNothing(err) {
			t.Errorf("%s: it is planned again: %v, %v", m, again, err)
		}
	}
	v.Summary = &clip.Summary{Text: "x", Tokens: 100} // compacted before, and full again
	if p, _ := mustPlan(t, v.View, plan.Defaults()); p.Stay > 7000 {
		t.Errorf("the second time %d messages stay", p.Stay)
	}
}

// Hundreds of parallel calls fit a small window. If they do not, the oldest are not shown, and all leave once the user
// goes on.
func TestManyParallelCallsNeverEndAConversation(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	for _, m := range []plan.Mode{plan.SlidingWindow, plan.All}[:scale.Of(1, 2)] {
		v := window(8192, 1150).say(recall.User, 5).storm(150, 40, 180)
		if _, after := mustPlan(t, v.View, mode(m)); clip.Estimate(after) > 7372 || len(after.Messages) < 3 {
			t.Errorf("%s: %d tokens of %d messages", m, clip.Estimate(after), len(after.Messages))
		}
		v = window(8192, 1150).say(recall.User, 5).storm(300, 40, 180)
		if p, after := mustPlan(t, v.View, mode(m)); clip.Estimate(after) > 7372 || p.Evicted > 0 ||
			!strings.Contains(fmt.Sprint(p.Edits), " calls made here before the next") {
			t.Errorf("%s: 300 calls: %d tokens, %d messages left", m, clip.Estimate(after), p.Evicted)
		}
		v.say(recall.User, 5)
		p, after := mustPlan(t, v.View, mode(m))
		if got := positions(after.Messages); len(got) != 1 || clip.Estimate(after) > 7372 {
			t.Errorf("%s: of abandoned calls %v stay", m, got)
		}
		if err := plan.CheckNothingLost(v.View, p.Evict(v.View), after); err != nil {
			t.Error(err)
		}
	}
}

// Results are not clipped further than the room below the trigger requires.
func TestClippedResultsUseTheRoom(t *testing.T) {
	t.Parallel()
	dense := strings.Repeat("记忆", 20_000)
	v := window(4096, 2100).say(recall.User, 5).put(recall.Assistant, "", called("a", "{}"), called("b", "{}")).
		put(recall.Tool, "", result("a", dense)).put(recall.Tool, "", result("b", dense))
	if _, after := mustPlan(t, v.View, plan.Defaults()); clip.Estimate(after) < 2900 {
		t.Errorf("%d tokens are shown, of 3686", clip.Estimate(after))
	}
}

// A *TooBig counts its items and the whole as the provider counts, whether that is less than our count or more.
func TestWhatIsTooBigIsCountedAsTheWhole(t *testing.T) {
	t.Parallel()
	for _, share := range []float64{0.5, 1, 1.05, 1.5} {
		v := window(8192, 1500).say(recall.Assistant, 500).say(recall.User, 14_000)
		counts := int(share * float64(clip.Estimate(v.View)))
		v.Usage = &clip.Usage{PromptTokens: counts, Position: 2}
		_, err := plan.MakePlan(v.View, plan.Defaults())
		big, ok := errors.AsType[*plan.TooBig](err)
		if !ok {
			t.Fatalf("%v: got %v", share, err)
		}
		sum := 0
		for _, item := range big.Items {
			sum += item.Tokens
		}
		// What may leave is not named: an assistant's message of 500 tokens.
		if most := big.Least + len(big.Items); sum > most || sum < counts-int(share*550) || big.Least > counts {
			t.Errorf("%v: parts of %d tokens, of %d that the provider counts: %v", share, sum, counts, err)
		}
	}
}
