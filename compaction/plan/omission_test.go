package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// manyCalls is a view with an answer that calls tools so often that no clip makes it fit.
func manyCalls(calls int) clip.View {
	message := func(position int, role recall.Role, parts ...recall.Part) recall.Message {
		m := recall.Message{ID: fmt.Sprint("message-", position), Seq: int64(position), Position: position, Role: role,
			Content: parts, Tokens: tokens.PerMessage}
		for _, p := range parts {
			m.Tokens += clip.View{}.WholePartTokens(p)
		}
		return m
	}
	v := clip.View{Window: 4_096, Fixed: 2_000}
	var parts []recall.Part
	for i := range calls {
		parts = append(parts, recall.Part{Type: recall.ToolCall, CallID: fmt.Sprint("c", i), Name: "look", Input: "{}"})
	}
	v.Messages = []recall.Message{message(2, recall.User, recall.Part{Type: recall.Text, Text: "Look."}),
		message(3, recall.Assistant, parts...)}
	for i := range calls {
		v.Messages = append(v.Messages, message(4+i, recall.Tool, recall.Part{Type: recall.ToolReturn,
			CallID: fmt.Sprint("c", i), Text: strings.Repeat("zebra ", 100)}))
	}
	return v
}

// Of more calls than a window holds the newest are shown, with their results, and a line says how many are not. The
// others stay in the log, and a later plan shows no more of them.
func TestCallsThatDoNotFitAreOmitted(t *testing.T) {
	t.Parallel()
	v := manyCalls(500)
	p, err := plan.MakePlan(v, plan.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	after := p.View(v, nil)
	if err := plan.CheckNothingLost(v, p.Evict(v), after); err != nil {
		t.Error(err)
	}
	if n := clip.Estimate(after); n > plan.Defaults().Limit(v.Window) || p.Evicted > 0 {
		t.Errorf("the view has %d tokens, and %d messages left", n, p.Evicted)
	}
	shown := after.AsShown()
	var answer recall.Message
	results := 0
	for _, m := range shown {
		switch {
		case m.Role == recall.Assistant:
			answer = m
		case m.Role == recall.Tool && len(m.Content) > 0:
			results++
		}
	}
	calls := len(answer.Content) - 1
	want := fmt.Sprintf("[the window has no room for %d calls made here before the next, and for the results at "+
		"seq 4-%d: expand(id=3)]", 500-calls, 3+500-calls)
	if got := answer.Content[0]; got.Type != recall.Text || got.Text != want {
		t.Errorf("the answer begins with %+v, want %q", got, want)
	}
	if calls != results || calls < 10 || answer.Content[calls].CallID != "c499" {
		t.Errorf("%d calls are shown with %d results; the last is %+v", calls, results, answer.Content[calls])
	}
	waiting := manyCalls(160)
	waiting.Messages = waiting.Messages[:2]
	for i := range waiting.Messages[1].Content {
		waiting.Messages[1].Content[i].Input = `{"at":"` + strings.Repeat("y ", 20) + `"}`
		waiting.Messages[1].Tokens += 30
	}
	if p, err = plan.MakePlan(waiting, plan.Defaults()); err != nil || clip.Estimate(p.View(waiting, nil)) > 3_686 ||
		!strings.Contains(fmt.Sprint(p.View(waiting, nil).AsShown()), "{}") {
		t.Errorf("many calls that wait: %+v, %v", p, err)
	}
	thought := clip.View{Window: 4_096, Fixed: 2_000, Messages: slices.Clone(manyCalls(1).Messages[:2])}
	thought.Messages[1].Content = append([]recall.Part{{Type: recall.Reasoning, Text: strings.Repeat("the ", 9_000)}},
		thought.Messages[1].Content...)
	thought.Messages[1].Tokens += 9_000
	if p, err = plan.MakePlan(thought, plan.Defaults()); err != nil || clip.Estimate(p.View(thought, nil)) > 3_686 {
		t.Errorf("a long thought before an open call: %+v, %v", p, err)
	}
	for what, wrong := range map[string]clip.View{"a result without its call": {Messages: v.Messages,
		Edits: []clip.Edit{{Position: 3, Part: 7, Kind: clip.Removed}}}, "a call without its result": {Messages: v.Messages,
		Edits: []clip.Edit{{Position: 11, Kind: clip.Removed}}}} {
		if err := plan.CheckNothingLost(v, clip.Evicted{}, wrong); err == nil {
			t.Errorf("%s may be shown", what)
		}
	}
}
