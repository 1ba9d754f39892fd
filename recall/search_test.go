package recall_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/recall"
)

func TestFiltersApplyBeforeTheLimit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append(
		at(
			say(recall.User, "apple one"),
			"2024-01-01T10:00:00Z",
		),
		at(say(recall.Assistant, "apple two"), "2024-02-01T10:00:00Z"),
		at(
			called("c", "buy", `{"what":"apple three"}`),
			"2024-03-01T10:00:00Z",
		),
		at(returned("c", "apple four"), "2024-03-02T10:00:00Z"),
		at(say(recall.User, "apple five"), "2024-04-01T10:00:00Z"),
	)
	march, april := time.Date(2024, 3, 1, 10, 0, 0, 0, time.UTC), time.Date(2024, 4, 1, 10, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		q    recall.Query
		want []string
	}{
		{"users", recall.Query{Text: "apple", Roles: []recall.Role{recall.User}}, []string{"apple five", "apple one"}},
		{"tools", recall.Query{Text: "apple", Roles: []recall.Role{recall.Tool}, Limit: 1}, []string{"apple four"}},
		{"from a moment on, itself included", recall.Query{Text: "apple", Start: &april}, []string{"apple five"}},
		{"to a moment, itself included", recall.Query{Text: "apple", Start: &march, End: &march},
			[]string{`{"what":"apple three"}`}},
		{"the newest where nothing is asked", recall.Query{Limit: 2}, []string{"apple five", "apple four"}},
		{"nothing shares a word", recall.Query{Text: "zebra"}, []string{}},
		{"a query of stop words", recall.Query{Text: "what is the"}, []string{}},
	} {
		got := f.found(tt.q)
		if len(tt.want) > 1 && tt.q.Text != "" {
			slices.Sort(got)
			slices.Sort(tt.want)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestConversationsAreSearchedTogetherOrOneAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append(say(recall.User, "pears in the garden"))
	other, err := f.store.CreateConversation(t.Context(), f.org, f.agent, recall.NewConversation{Instructions: "pears"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.store.Append(t.Context(), f.org, f.agent, other.ID, []recall.Draft{say(recall.User,
		"pears in the kitchen")}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		q    recall.Query
		want []string
	}{
		{"all", recall.Query{Text: "pears"}, []string{"pears in the kitchen", "pears in the garden"}},
		{"the default one", recall.Query{Text: "pears", Conversation: "default"}, []string{"pears in the garden"}},
		{"another", recall.Query{Text: "pears", Conversation: other.ID}, []string{"pears in the kitchen"}},
	} {
		if diff := cmp.Diff(tt.want, f.found(tt.q)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if err := f.store.DeleteConversation(t.Context(), f.org, other.ID); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"pears in the garden"}, f.found(recall.Query{Text: "pears"})); diff != "" {
		t.Errorf("after the other was deleted (-want +got):\n%s", diff)
	}
}

// Messages that the model sees are not found, once others have left its window.
func TestWhatIsInViewIsNotFound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append(say(recall.User, "plums last year"), say(recall.User, "plums this year"))
	q := recall.Query{Text: "plums", Unseen: true}
	if got := f.found(q); len(got) != 2 {
		t.Errorf("before anything left the window: got %q, want both", got)
	}
	f.exec(`UPDATE conversations SET first_visible = 3 WHERE org = $1`)
	if diff := cmp.Diff([]string{"plums last year"}, f.found(q)); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
	failed := say(recall.Assistant, "plums cannot be had")
	failed.IsErr = true
	f.append(failed, returned("nobody's", "plums at the market"))
	if diff := cmp.Diff([]string{"plums at the market", "plums cannot be had", "plums last year"},
		slices.Sorted(slices.Values(f.found(q)))); diff != "" {
		t.Errorf("with messages that the model is not shown (-want +got):\n%s", diff)
	}
}

// Results of earlier searches of the log are not found, nor the words that they asked for.
func TestSearchesDoNotFindThemselves(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append(
		say(recall.User, "cherries are ripe"),
		called("s", "conversation_search", `{"query":"cherries"}`),
		returned("s", "cherries are ripe"),
	)
	if diff := cmp.Diff([]string{"cherries are ripe"}, f.found(recall.Query{Text: "cherries",
		Roles: []recall.Role{recall.User, recall.Assistant, recall.Tool}})[:1]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := f.count(`SELECT count(*) FROM messages WHERE org = $1 AND lex IS NOT NULL`); n != 1 {
		t.Errorf("%d messages are searched, want the one that was said", n)
	}
}

func TestATimeThatIsNamedComesFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for month := 1; month <= 9; month++ {
		f.append(
			at(say(recall.User, fmt.Sprintf("We went sailing, trip %d", month)), fmt.Sprintf("2024-%02d-10T10:00:00Z", month)),
		)
	}
	if got := f.found(recall.Query{Text: "Where did we go sailing in May 2024?",
		Limit: 1}); got[0] != "We went sailing, trip 5" {
		t.Errorf("got %q first", got)
	}
}

// A large scope is searched through the index of terms, a small one through the agent's messages, and both find the
// same.
func largeScopeIsReadThroughTerms(f *fixture) {
	f.Helper()
	q := recall.Query{Text: "talk about subject377", AgentID: f.agent, Limit: 4}
	plans := dbtest.NewPlans(f, f.pool)
	f.store = recall.New(plans, recall.Options{})
	small, err := f.store.WordsAlone(f.Context(), f.org, q)
	f.must(err)
	ofAgent := regexp.MustCompile(`Index Scan using messages_(seq_key|time)|Seq Scan on messages`)
	if plan := plans.Take("r.lex"); !ofAgent.MatchString(plan) {
		f.Errorf("a small scope is read by another plan:\n%s", plan)
	}
	f.store.SetIndexRows(1000)
	large, err := f.store.WordsAlone(f.Context(), f.org, q)
	f.must(err)
	if plan := plans.Take("@terms"); !strings.Contains(plan, "messages_terms") {
		f.Errorf("a large scope is not read through the index:\n%s", plan)
	}
	_, err = f.store.WordsAlone(f.Context(), f.org, recall.Query{Text: q.Text, Limit: 4})
	f.must(err)
	if plan := plans.Take("@terms"); !strings.Contains(plan, "messages_terms") {
		f.Errorf("an organization is not read through the index:\n%s", plan)
	}
	if diff := cmp.Diff(small, large); diff != "" || len(small) != 4 {
		f.Errorf("a small and a large scope (-small +large):\n%s", diff)
	}
}

// Names that are also stop words are found, written among other words and as the whole query.
func TestNamesThatAreStopWordsAreFound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	named := []string{"Yesterday I had lunch with Will.", "May called about the keys.", "Our office in the US is closed.",
		"Ask IT for a new screen."}
	for _, text := range named {
		for range 5 {
			f.append(say(recall.Assistant, "It will be done, as you may see. Let us go on with what we have."))
		}
		f.append(say(recall.User, text))
	}
	for query, want := range map[string]string{"What do you know about Will?": named[0], "will": named[0],
		"Who is May": named[1], "Is there anything about the US?": named[2], "it": named[3], "Is IT there?": named[3]} {
		if got := f.found(recall.Query{Text: query}); len(got) == 0 || got[0] != want {
			t.Errorf("%q: got %q, want %q first", query, got, want)
		}
	}
}

// Messages that a filter excludes still say what the messages next to them are about.
func TestFiltersApplyAfterTheScoring(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 10 {
		f.append(at(say(recall.User, fmt.Sprintf("Is the library %d open?", i)), "2025-03-01T10:00:00Z"),
			at(say(recall.Assistant, "It is not. The library opens at noon."), "2025-03-01T10:01:00Z"))
	}
	f.append(at(say(recall.User, "Where did I park the red bicycle?"), "2025-03-02T10:00:00Z"),
		at(say(recall.Assistant, "Behind the museum."), "2025-03-03T10:00:00Z"))
	day := time.Date(2025, 3, 3, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		q    recall.Query
	}{
		{"the question was asked in another role", recall.Query{Roles: []recall.Role{recall.Assistant}}},
		{"the question was asked on the day before", recall.Query{Start: &day}},
	} {
		tt.q.Text = "where is my bicycle"
		if got := f.found(tt.q); len(got) == 0 || got[0] != "Behind the museum." {
			t.Errorf("%s: got %q, want the answer first", tt.name, got)
		}
		tt.q.Limit = 1
		if got := f.found(tt.q); len(got) != 1 || got[0] != "Behind the museum." {
			t.Errorf("%s: got %q as the best, want the answer", tt.name, got)
		}
	}
}

func TestSearchFindsByWordsAndSurroundings(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 30 {
		f.append(say(recall.User, fmt.Sprintf("Let us talk about topic %d and the weather", i)),
			say(recall.Assistant, "Sure, go on."))
	}
	sent := f.append(say(recall.User, "Where did I park the red bicycle?"), say(recall.Assistant, "Behind the library."))
	got := ids(f.search(recall.Query{Text: "where is my bicycle", AgentID: f.agent, Limit: 3}))
	if len(got) < 2 || got[0] != sent[0].ID || got[1] != sent[1].ID {
		t.Errorf("got %v, want the question and its answer first", got)
	}
}

// Words next to each other score higher than the same words apart.
func TestMessagesWithThePhraseComeFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	phrase := f.append(say(recall.User, "The walnut tree, seen from the hills behind the mill of a valley, is far."))
	for i := range 12 {
		f.append(say(recall.User, fmt.Sprintf("Let us talk about topic %d and the weather.", i)))
	}
	f.append(say(recall.User, "A tree, far away, by the mill of the valley behind all the hills, and one walnut."))
	got := f.search(recall.Query{Text: "walnut tree", AgentID: f.agent, Limit: 2, Explain: true})
	if len(got.Hits) != 2 || got.Hits[0].ID != phrase[0].ID {
		t.Fatalf("got %+v, want the message with the phrase first", got.Hits)
	}
	if !slices.ContainsFunc(got.Hits[0].Explanation.Boosts, func(b rank.Boost) bool { return b.Name == "near" }) {
		t.Errorf("it gains %+v, want something for the phrase", got.Hits[0].Explanation.Boosts)
	}
}

// A message that was found only because of its neighbors is marked, and each hit says what it gained.
func TestNeighborsAreMarkedAsContext(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append(say(recall.User, "Where does the walnut tree stand?"), say(recall.Assistant, "By the river."),
		say(recall.User, "Thanks."))
	got := f.search(recall.Query{Text: "walnut tree", AgentID: f.agent, Limit: 5, Explain: true})
	if len(got.Hits) < 2 || got.Hits[0].Context || !got.Hits[1].Context || got.Hits[1].Snippet != "By the river." ||
		got.Hits[0].Score > 1 || got.Hits[1].Score >= got.Hits[0].Score {
		t.Fatalf("got %+v, want the question, and its answer as context", got.Hits)
	}
	embedtest.AddsUp(t, got.Hits[1].Explanation, got.Hits[1].Score, "neighbor")
	names := func(h recall.Hit) (all []string) {
		for _, b := range h.Explanation.Boosts {
			all = append(all, b.Name)
		}
		return all
	}
	if answer := names(got.Hits[1]); !slices.Contains(answer, "neighbors") || got.Hits[0].Explanation.Words != 1 ||
		got.Hits[0].Explanation.Search != got.Explanation || len(got.Explanation.Terms) < 2 {
		t.Errorf("the answer gains for %q, and the search is explained as %+v", answer, got.Explanation)
	}
}

// If the query's roles exclude a message, a message next to it does not score as high as that one would.
func TestTheNeighborsOfWhatIsLeftOutScoreLow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append(say(recall.User, "The xylophone is broken."), say(recall.Assistant, "Good morning to you."),
		say(recall.User, "Nice weather."), say(recall.Assistant, "Indeed so."))
	q := recall.Query{Text: "xylophone", AgentID: f.agent, Limit: 5}
	all := f.search(q).Hits
	q.Roles = []recall.Role{recall.Assistant}
	others := f.search(q).Hits
	if len(all) == 0 || all[0].Score < 0.9 || all[0].Context {
		t.Fatalf("got %+v, want the message with the word first", all)
	}
	if len(others) == 0 || others[0].Score > 0.4 || !others[0].Context {
		t.Errorf("got %+v, want the assistant's messages as context that scores low", others)
	}
}

// Messages with a word of the query are never marked as context, however many there are.
func TestMessagesThatHaveAWordAreNoContext(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var drafts []recall.Draft
	for i := range 400 {
		drafts = append(drafts, say(recall.User, fmt.Sprintf("Please send the report number %d.", i)))
		if i%100 == 0 {
			drafts = append(drafts, say(recall.User, "The xylophone is in the cellar."))
		}
	}
	f.append(drafts...)
	hits := f.search(recall.Query{Text: "report xylophone", AgentID: f.agent, Limit: 50}).Hits
	if len(hits) != 50 {
		t.Fatalf("got %d hits", len(hits))
	}
	for i, h := range hits {
		if h.Context {
			t.Errorf("hit %d is marked as context: %+v", i, h)
		}
	}
}

// A reranker orders the best messages.
func TestARerankerOrdersMessages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store = recall.New(f.pool, recall.Options{Reranker: embedtest.Preferring("river")})
	for i := range 12 {
		f.append(say(recall.User, fmt.Sprintf("Let us talk about topic %d and the weather.", i)))
	}
	f.append(say(recall.User, "The walnut tree."))
	preferred := f.append(say(recall.User, "A tree, far away, by the mill of the river behind all hills, and one walnut."))
	got := f.search(recall.Query{Text: "walnut tree", AgentID: f.agent, Limit: 2, Explain: true})
	if len(got.Hits) != 2 || got.Hits[0].ID != preferred[0].ID || got.Hits[0].Score < got.Hits[1].Score {
		t.Fatalf("got %+v, want the message about the river first", got.Hits)
	}
	embedtest.AddsUp(t, got.Hits[0].Explanation, got.Hits[0].Score, "term", "rerank")
	embedtest.AddsUp(t, got.Hits[1].Explanation, got.Hits[1].Score)
	if e := got.Explanation.Rerank; e == nil || e.Rows < 2 || *got.Hits[0].Explanation.Rerank != 1 {
		t.Errorf("the reranking is explained as %+v and %+v", e, got.Hits[0].Explanation)
	}
}

// What the words, the vector, the neighbors, the speaker, the day and the passage of a message added makes up its
// score.
func TestTheScoreOfAMessageIsExplainedInFull(t *testing.T) {
	t.Parallel()
	f := newLocalFixture(t)
	f.chat("", 30)
	ann, bob := "Ann", "Bob"
	said := func(name *string, role recall.Role, text string) recall.Draft {
		d := at(say(role, text), "2026-03-04T12:00:00Z")
		d.Name = name
		return d
	}
	long, _ := inventory(9_000, 1)
	f.append(said(&ann, recall.User, "Where is the spare key00 of the boiler room?"),
		said(&bob, recall.Assistant, "Ask in the office."), said(&ann, recall.User, long))
	f.must(recall.EmbedOnce(f.store, t.Context(), f.org, f.agent))
	got := f.search(recall.Query{Text: "What did Ann say on 4 March 2026 of the spare key00 behind the boiler?",
		AgentID: f.agent, Limit: 20, Explain: true})
	kinds := map[string]bool{}
	for _, h := range got.Hits {
		embedtest.AddsUp(t, h.Explanation, h.Score)
		for _, a := range h.Explanation.Added {
			kinds[a.Of] = true
			if (a.Of == "neighbor" || a.Of == "term") == (a.Name == "") {
				t.Errorf("%s has the name %q", a.Of, a.Name)
			}
		}
	}
	for _, kind := range []string{"term", "meaning", "near", "neighbor", "session", "participant", "date", "passage"} {
		if !kinds[kind] {
			t.Errorf("nothing is added for %s: %v", kind, kinds)
		}
	}
}
