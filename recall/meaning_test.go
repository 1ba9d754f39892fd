package recall_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/recall"
)

// A message that shares no word with the question is found by its meaning, and so is the message next to it.
func TestMeaningFindsWhatWordsDoNot(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 1024)
	e.Same = map[string]string{"bicycle": "velo", "whereabouts": "locked"}
	f := newDenseFixture(t, e)
	f.chat("", 30)
	sent := f.append(say(recall.Assistant, "velo locked behind the library"), say(recall.User, "Danke!"))
	f.chat("", 30)
	if err := recall.EmbedOnce(f.store, t.Context(), f.org, f.agent); err != nil {
		t.Fatal(err)
	}
	q := recall.Query{Text: "bicycle whereabouts", AgentID: f.agent, Limit: 3}
	for _, c := range []struct {
		mode, ranked recall.Mode
		first        bool
	}{{"", recall.ByBoth, true}, {recall.ByBoth, recall.ByBoth, true}, {recall.ByMeaning, recall.ByMeaning, true},
		{recall.ByWords, recall.ByWords, false}} {
		q.Mode = c.mode
		got := f.search(q)
		if got.Ranked != c.ranked || got.Note != "" || (len(got.Hits) > 0 && got.Hits[0].ID == sent[0].ID) != c.first {
			t.Errorf("mode %q: got %+v", c.mode, got)
		}
		if c.first && (got.Hits[0].MeaningRank != 1 || got.Hits[0].WordsRank != 0 || !slices.Contains(ids(got), sent[1].ID)) {
			t.Errorf("mode %q: got %+v, want the message, and the one after it", c.mode, got.Hits)
		}
	}
}

// The filters of a search hold for its vectors too.
func TestMeaningObeysTheFilters(t *testing.T) {
	t.Parallel()
	f := newDenseFixture(t, embedtest.New(t, 64))
	other, deleted := f.newConversation("You remember."), f.newConversation("You remember.")
	createdAt := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	idOf := map[string]string{}
	for where, conversation := range map[string]string{"default": "", "other": other, "gone": deleted} {
		m := say(recall.User, "the velo is locked behind the library")
		m.CreatedAt = &createdAt
		appended, err := f.store.Append(
			t.Context(),
			f.org,
			f.agent,
			conversation,
			[]recall.Draft{m, say(recall.Assistant, "the velo is fine")},
		)
		if err != nil {
			t.Fatal(err)
		}
		idOf[where], idOf[where+" answer"] = appended[0].ID, appended[1].ID
	}
	if err := recall.EmbedOnce(f.store, t.Context(), f.org, f.agent); err != nil {
		t.Fatal(err)
	}
	if err := f.store.DeleteConversation(t.Context(), f.org, deleted); err != nil {
		t.Fatal(err)
	}
	foreign := f.newAgent()
	before, after := createdAt.Add(-time.Hour), createdAt.Add(time.Hour)
	for _, c := range []struct {
		name  string
		query recall.Query
		want  []string
	}{
		{"all of the agent", recall.Query{AgentID: f.agent}, []string{"default", "default answer", "other", "other answer"}},
		{"all of the organization", recall.Query{}, []string{"default", "default answer", "other", "other answer"}},
		{"a conversation", recall.Query{AgentID: f.agent, Conversation: other}, []string{"other", "other answer"}},
		{"a role", recall.Query{AgentID: f.agent, Roles: []recall.Role{recall.Assistant}}, []string{"default answer",
			"other answer"}},
		{"a time", recall.Query{AgentID: f.agent, Start: &before, End: &after}, []string{"default", "other"}},
		{"another agent", recall.Query{AgentID: foreign}, nil},
	} {
		for _, rows := range []int{50_000, 1} {
			f.store.SetIndexRows(rows)
			c.query.Text, c.query.Limit, c.query.Mode = "velo locked library", 10, recall.ByMeaning
			got := ids(f.search(c.query))
			var want []string
			for _, name := range c.want {
				want = append(want, idOf[name])
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s, above %d rows through the index: got %v, want %v", c.name, rows, got, want)
			}
		}
	}
}

// Results say what the search lacked. A search that is not possible returns an error.
func TestSearchWithoutMeaning(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 8)
	f := newDenseFixture(t, e)
	f.append(say(recall.User, "words that can be found"))
	e.Down.Store(true)
	for _, mode := range []recall.Mode{recall.ByBoth, recall.ByMeaning} {
		got := f.search(recall.Query{Text: "words", AgentID: f.agent, Limit: 3, Mode: mode})
		if len(got.Hits) != 1 || got.Ranked != recall.ByWords ||
			got.Note != "The embedding provider fails (status 503), so this was ranked by words alone." {
			t.Errorf("mode %q, while the endpoint is down: got %+v", mode, got)
		}
	}
	if n := e.Requests.Load(); n != 1 {
		t.Errorf("two searches made %d requests to an endpoint that is down, want 1", n)
	}
	f.store = recall.New(f.pool, recall.Options{})
	if got := f.search(recall.Query{Text: "words", AgentID: f.agent}); len(got.Hits) != 1 ||
		got.Ranked != recall.ByWords ||
		got.Note != "" {
		t.Errorf("without an endpoint: got %+v", got)
	}
	_, err := f.store.Search(t.Context(), f.org, recall.Query{Text: "words", AgentID: f.agent, Mode: recall.ByMeaning})
	if !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "LOCI_EMBEDDING") {
		t.Errorf("by meaning without an endpoint: got %v", err)
	}
}

// Above a threshold of rows, a space has an index. A large scope is then read through the index; a small one is read
// directly.
func largeScopeIsReadThroughItsVectors(base *fixture) {
	base.Helper()
	scale.Long(base)
	f := &denseFixture{fixture: base}
	f.connect(embedtest.New(f, 32))
	small := f.newConversation("You remember.")
	f.chat(small, 5)
	if built, err := f.store.Queue().Index(f.Context(), dbtest.Owner(f, f.pool), nil, nil); built || err != nil {
		f.Fatalf("an index was built of nothing: %v (%v)", built, err)
	}
	f.store.SetIndexRows(1000)
	if err := recall.EmbedOnce(f.store, f.Context(), f.org, f.agent); err != nil {
		f.Fatal(err)
	}
	if built, err := f.store.Queue().Index(f.Context(), dbtest.Owner(f, f.pool), nil, nil); !built || err != nil {
		f.Fatalf("an index was built: %v (%v)", built, err)
	}
	plans, day := dbtest.NewPlans(f, f.pool), time.Date(2025, 1, 2, 0, 0, 0, 0, time.UTC)
	f.store = recall.New(plans, recall.Options{Endpoint: f.endpoint})
	index := fmt.Sprintf("Index Scan using message_vectors_space_%d", f.space.ID)
	for _, c := range []struct {
		name      string
		query     recall.Query
		indexRows int
		want      string
	}{
		{"an agent", recall.Query{AgentID: f.agent}, 1000, index},
		{"an agent's of some roles and days", recall.Query{AgentID: f.agent, Roles: []recall.Role{recall.User},
			Start: &day}, 1000, index},
		{"the organization", recall.Query{}, 1000, index},
		{"an agent, exactly", recall.Query{AgentID: f.agent}, 50_000, "message_vectors"},
		{"a conversation, exactly", recall.Query{AgentID: f.agent, Conversation: small}, 1000, "message_vectors_scope"},
	} {
		c.query.Text, c.query.Limit = "talk number77 about subject377", 1
		f.store.SetIndexRows(c.indexRows)
		f.search(c.query)
		plan := plans.Take("message_vectors")
		if !strings.Contains(plan, c.want) || c.want != index && strings.Contains(plan, index) ||
			strings.Contains(plan, "on messages") {
			f.Errorf("%s: the plan is not by %q:\n%s", c.name, c.want, plan)
		}
	}
	f.store = recall.New(f.pool, recall.Options{Endpoint: f.endpoint})
	f.store.SetIndexRows(1000)
	q := recall.Query{Text: "talk number77 about subject377", AgentID: f.agent, Limit: 10, Mode: recall.ByMeaning}
	near := ids(f.search(q))
	f.store.SetIndexRows(1 << 40)
	exact := ids(f.search(q))
	found := 0
	for _, id := range exact {
		if slices.Contains(near, id) {
			found++
		}
	}
	if len(near) != 10 || found < 8 {
		f.Errorf("through the index %d were found, %d of them among the %d nearest", len(near), found, len(exact))
	}
	f.store.SetIndexRows(1)
	q.Conversation = small
	if got := f.search(q); len(got.Hits) != 10 ||
		slices.ContainsFunc(got.Hits, func(h recall.Hit) bool { return h.MeaningRank == 0 }) {
		f.Errorf("of a conversation of 10 among 3,000 %d were found", len(got.Hits))
	}
}
