package agent_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

const snipsAll = `{"steps":[{"step":"snip","max_chars":200}]}`

// After any number of prunings and reversals it is still known what the model saw at each position, even if the rows
// lack some edits of the view, as the rows of an older version did.
func TestViewsOfTheLogAreKnownAfterManyPrunings(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	a := under(t, s, snipsAll)
	conversation := func() recall.Conversation {
		t.Helper()
		c, err := s.Recall.Conversation(t.Context(), s.org, a.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	type seen struct {
		position int // of the next message
		view     recall.ContextView
	}
	var all []seen
	look := func() {
		t.Helper()
		read(t, s, a, 1)
		handOut(t, s, a, agent.OpenAI)
		c := conversation()
		all = append(all, seen{c.Messages + 1, c.ContextView})
	}
	check := func(when string) {
		t.Helper()
		c := conversation()
		for _, want := range all {
			got, err := s.Compaction.ViewAt(t.Context(), s.org, c, want.position)
			if err != nil {
				t.Fatal(err)
			}
			want.view.Version, got.Version = 0, 0
			diff := cmp.Diff(editsOf(t, want.view), editsOf(t, got))
			if diff != "" || got.FirstVisible != want.view.FirstVisible || got.HiddenTokens != want.view.HiddenTokens {
				t.Fatalf("%s, at position %d (-want +got):\n%s", when, want.position, diff)
			}
		}
	}
	for range 40 {
		look()
	}
	check("after prunings")
	long, err := db.One[int](t.Context(), pool, `
		SELECT count(*) FROM compactions WHERE org = $1 AND before ->> 'clipped' <> '[]'`, s.org)
	if err != nil || long > 2 {
		t.Errorf("%d rows have all edits of the view, %v", long, err)
	}
	list, err := s.Compaction.Compactions(t.Context(), s.org, a.ID, "", db.Page{Limit: 100})
	if err != nil || len(list) < 40 {
		t.Fatalf("%d prunings, %v", len(list), err)
	}
	all = nil // a reversal changes what the model saw before it
	if _, err := s.Revert(t.Context(), s.org, list[len(list)/2]); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		look()
	}
	check("after a reversal")
	c := conversation()
	old, err := json.Marshal(all[2].view)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `
		UPDATE compactions SET before = $1 WHERE key = (
			SELECT key FROM compactions WHERE after_position >= $2 AND conversation_key = $3 ORDER BY frame LIMIT 1
		)`, old, all[2].position, c.Key); err != nil {
		t.Fatal(err)
	}
	check("with a row of an older version")
}

// editsOf returns the edits of a view.
func editsOf(t *testing.T, v recall.ContextView) (all []map[string]any) {
	t.Helper()
	if err := json.Unmarshal(v.Clipped, &all); err != nil {
		t.Fatalf("%s: %v", v.Clipped, err)
	}
	return all
}
