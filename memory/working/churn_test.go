package working_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
)

// A report names the fields that are rewritten in more than half of the turns. It leaves out next, and fields that only
// grow.
func TestChurnNamesTheFieldsThatFlap(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 8 {
		f.say(said(recall.User, recall.Part{Type: recall.Text, Text: "Go on."}))
		f.change(add(working.Task, []string{"pytest", "unittest"}[i%2]), add(working.Decisions, fmt.Sprint("Decision ", i)),
			add(working.Next, fmt.Sprint("Step ", i)))
	}
	got, err := f.store.Churn(t.Context(), f.org, f.conversation(), 6)
	if err != nil || len(got.Turns) != 6 {
		t.Fatalf("got %d turns, %v, want 6", len(got.Turns), err)
	}
	last := got.Turns[5]
	if last.Version != 8 || !strings.Contains(last.Diff, "unittest") || len(last.Changed) != 3 {
		t.Errorf("the last turn: %+v", last)
	}
	for _, field := range got.Fields {
		want := map[working.Field][4]any{working.Task: {6, 6, 5, true}, working.Decisions: {6, 0, 0, false},
			working.Next: {6, 6, 0, false}}[field.Field]
		if got := [4]any{field.Changed, field.Rewritten, field.Returned, field.Flaps}; want != [4]any{} && got != want {
			t.Errorf("%s: got %v, want %v", field.Field, got, want)
		}
	}
	if empty, err := newFixture(t).emptyChurn(); err != nil || len(empty.Turns) != 0 || len(empty.Fields) != 7 {
		t.Errorf("without turns: got %+v, %v", empty, err)
	}
}

func (f *fixture) emptyChurn() (working.Churn, error) {
	return f.store.Churn(f.Context(), f.org, f.conversation(), 10)
}
