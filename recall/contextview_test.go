package recall_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

func (f *fixture) reframe(next recall.ContextView, summary string) (recall.ContextView, error) {
	var stand *recall.Draft
	if summary != "" {
		stand = &recall.Draft{Role: recall.Summary, Content: []recall.Part{{Type: recall.Text, Text: summary,
			Stats: json.RawMessage(`{"n":1}`)}}}
	}
	c := f.conversation()
	var view recall.ContextView
	err := db.Tx(f.Context(), f.pool, func(tx pgx.Tx) error {
		var err error
		view, err = f.store.With(tx).ChangeView(f.Context(), f.org, c, next, stand)
		return err
	})
	return view, err
}

// A summary stands right behind the system prompt, kept messages follow it, and new messages join the view. The log
// keeps everything unchanged.
func TestASummaryStandsForWhatItHides(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append(say(recall.User, "one"), say(recall.Assistant, "two"), say(recall.User, "three"), called("c1", "look", "{}"),
		returned("c1", "sky"),
		say(recall.Assistant, "four"))
	before := f.conversation().ContextView
	view, err := f.reframe(recall.ContextView{FirstVisible: 7, Kept: []int{4}, HiddenTokens: 20}, "They counted to two.")
	if err != nil {
		t.Fatal(err)
	}
	f.append(say(recall.User, "five"))
	want := []string{"You remember.", "They counted to two.", "three", "four", "five"}
	if diff := cmp.Diff([][]string{want, want, want}, [][]string{f.view(), f.visible(),
		texts(f.window().Messages)}); diff != "" {
		t.Errorf("the view, its ids and the window (-want +got):\n%s", diff)
	}
	count := 0
	for _, text := range want[1:] {
		count += tokens.Estimate(text) + 4
	}
	if got := f.window(); got.Count != len(want) || got.Tokens != count {
		t.Errorf("the window has %d messages of %d tokens, want %d of %d", got.Count, got.Tokens, len(want), count)
	}
	c := f.conversation()
	if view.Version != 1 || c.Version != 1 || *c.SummaryAt != 8 || c.Estimate() != int(c.Tokens)-20 {
		t.Errorf("the frame is %+v, %+v", view, c.ContextView)
	}
	all, err := f.store.Messages(t.Context(), f.org, recall.MessageFilter{AgentID: f.agent, Conversation: "default"},
		db.Page{Limit: 50, Ascending: true})
	if err != nil || len(all) != 9 || all[7].Role != recall.Summary || string(all[7].Content[0].Stats) != `{"n":1}` {
		t.Errorf("the log has %d messages, %v; the eighth is %+v", len(all), err, all[7])
	}
	// The view can be changed back.
	before.Version = 1
	if _, err := f.reframe(before, ""); err != nil {
		t.Fatal(err)
	}
	want = []string{"You remember.", "one", "two", "three", "{}", "sky", "four", "five"}
	if diff := cmp.Diff([][]string{want, want}, [][]string{f.view(), f.visible()}); diff != "" {
		t.Errorf("reverted (-want +got):\n%s", diff)
	}
}

// If several requests change the same version of a view, only one succeeds.
func TestAViewChangesOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append(say(recall.User, "one"), say(recall.User, "two"))
	var wait sync.WaitGroup
	results := make([]error, 16)
	for i := range results {
		wait.Go(func() { _, results[i] = f.reframe(recall.ContextView{FirstVisible: 3}, fmt.Sprint("summary ", i)) })
	}
	wait.Wait()
	changed := 0
	for _, err := range results {
		if err == nil {
			changed++
		} else if !errors.Is(err, db.ErrConflict) {
			t.Error(err)
		}
	}
	if c := f.conversation(); changed != 1 || c.Version != 1 || c.Messages != 4 {
		t.Errorf("%d changed the frame, it is at version %d, and there are %d messages; want 1, 1 and 4", changed, c.Version,
			c.Messages)
	}
}

// A search finds summaries only if its roles ask for them.
func TestSummariesAreFoundByTheirRole(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append(say(recall.User, "the parrot is green"), say(recall.User, "bye"))
	if _, err := f.reframe(recall.ContextView{FirstVisible: 3}, "The parrot was described."); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		roles []recall.Role
		want  []string
	}{
		"any role":  {nil, []string{"the parrot is green", "bye"}}, // "bye" stands next to it
		"summaries": {[]recall.Role{recall.Summary}, []string{"The parrot was described."}},
	} {
		var texts []string
		for _, h := range f.search(recall.Query{AgentID: f.agent, Text: "parrot", Roles: c.roles, Limit: 5}).Hits {
			texts = append(texts, h.Content[0].Text)
		}
		if diff := cmp.Diff(c.want, texts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Only the latest report of a provider counts, and only for the version of the view that it was made with.
func TestReportsOfUsage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append(say(recall.User, "one"), say(recall.User, "two"))
	key := f.conversation().Key
	report := func(position, tokens int) recall.Usage {
		t.Helper()
		if err := f.store.RecordReport(context.Background(), f.org, key, position, tokens); err != nil {
			t.Fatal(err)
		}
		return f.conversation().Usage
	}
	if got := report(2, 100); got.Reported != 100 || got.ReportedPosition != 2 {
		t.Errorf("reported: %+v", got)
	}
	if got := report(1, 50); got.Reported != 100 {
		t.Errorf("an earlier report took the place of a later: %+v", got)
	}
	if got := report(9, 50); got.Reported != 100 {
		t.Errorf("a report of messages that are not there: %+v", got)
	}
	if err := f.store.RecordUsage(t.Context(), f.org, key, 0,
		recall.Usage{Fixed: 10, Settled: 20, Warned: true}); err != nil {
		t.Fatal(err)
	}
	if got := f.conversation().Usage; got.Fixed != 10 || got.Settled != 20 || !got.Warned || got.Reported != 100 {
		t.Errorf("gauged: %+v", got)
	}
	if _, err := f.reframe(recall.ContextView{FirstVisible: 3}, "s"); err != nil {
		t.Fatal(err)
	}
	if got := f.conversation().Usage; got.Reported != 0 || got.Warned {
		t.Errorf("in another frame: %+v", got)
	}
	if err := f.store.RecordUsage(t.Context(), f.org, key, 0, recall.Usage{Warned: true}); err != nil ||
		f.conversation().Warned {
		t.Errorf("a gauge of the frame before took hold, or failed: %v", err)
	}
}
