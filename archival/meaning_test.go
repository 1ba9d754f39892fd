package archival_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed/embedtest"
)

// embedded embeds all of the archives.
func (w *denseWorld) embedded(archives ...string) {
	w.Helper()
	for _, id := range archives {
		if err := archival.EmbedOnce(w.store, w.Context(), org, id); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) search(q archival.Query) archival.Results {
	w.Helper()
	got, err := w.store.Search(w.Context(), org, q)
	if err != nil {
		w.Fatalf("search %+v: %v", q, err)
	}
	return got
}

// A passage that shares no word with the question is found by what it means; the ranks tell which arm found it.
func TestMeaningFindsWhatWordsDoNot(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 1024)
	e.Same = map[string]string{"bicycle": "velo", "whereabouts": "locked"}
	w := newDenseWorld(t, e)
	archive := w.notes(30)
	w.insert("velo locked behind the library", "bicycle of another town")
	w.embedded(archive)
	q := archival.Query{Text: "bicycle whereabouts", AgentID: w.agent, Limit: 3}
	got := w.search(q)
	if !got.ByMeaning || got.Note != "" || len(got.Hits) != 3 || got.Hits[1].Text != "velo locked behind the library" && got.Hits[0].Text != "velo locked behind the library" {
		t.Fatalf("got %+v", got)
	}
	for _, h := range got.Hits[:2] {
		if want := strings.HasPrefix(h.Text, "bicycle"); (h.WordsRank == 1) != want || (h.MeaningRank == 1) == want || h.Score <= 0 {
			t.Errorf("got %+v", h)
		}
	}
	w.store = archival.New(w.pool, archival.Options{})
	if got := w.search(q); got.ByMeaning || len(got.Hits) != 1 || got.Hits[0].MeaningRank != 0 {
		t.Errorf("without an endpoint: got %+v", got)
	}
}

// The filters of a search hold for its vectors too, and come before the limit, in a small scope and in a large one.
func TestMeaningObeysTheFilters(t *testing.T) {
	t.Parallel()
	w := newDenseWorld(t, embedtest.New(t, 64))
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	team, gone := w.archive("team"), w.archive("gone")
	for _, c := range []archival.Archive{team, gone} {
		if err := w.store.Attach(t.Context(), org, w.agent, c.ID); err != nil {
			t.Fatal(err)
		}
		for i := range 30 { // nearer to the question than what is sought
			if _, err := w.store.Insert(t.Context(), org, c.ID, []archival.Draft{{Text: strings.Repeat("velo locked library ", i+1)}}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.store.Insert(t.Context(), org, c.ID, []archival.Draft{
			{Text: c.Name + " velo one", Tags: []string{"a", "b"}, HappenedAt: &at}, {Text: c.Name + " velo two", Tags: []string{"b"}}}); err != nil {
			t.Fatal(err)
		}
	}
	alone := w.newAgent("Bob")
	own, err := w.store.InsertFor(t.Context(), org, alone, []archival.Draft{{Text: "own velo", Tags: []string{"b"}}})
	if err != nil {
		t.Fatal(err)
	}
	w.embedded(team.ID, gone.ID, own[0].ArchiveID)
	if err := w.store.DeleteArchive(t.Context(), org, gone.ID); err != nil {
		t.Fatal(err)
	}
	before, after := at.Add(-time.Hour), at.Add(time.Hour)
	for _, c := range []struct {
		name  string
		query archival.Query
		want  []string
	}{
		{"of an agent", archival.Query{AgentID: w.agent, Tags: []string{"b"}}, []string{"team velo one", "team velo two"}},
		{"of an archive", archival.Query{ArchiveID: team.ID, Tags: []string{"b"}}, []string{"team velo one", "team velo two"}},
		{"of the organization", archival.Query{Tags: []string{"b"}}, []string{"own velo", "team velo one", "team velo two"}},
		{"any tag", archival.Query{AgentID: w.agent, Tags: []string{"a", "c"}}, []string{"team velo one"}},
		{"all tags", archival.Query{AgentID: w.agent, Tags: []string{"a", "b"}, Match: archival.All}, []string{"team velo one"}},
		{"all tags, one of which nothing has", archival.Query{AgentID: w.agent, Tags: []string{"a", "c"}, Match: archival.All}, nil},
		{"a time", archival.Query{AgentID: w.agent, Start: &before, End: &after}, []string{"team velo one"}},
		{"another agent", archival.Query{AgentID: alone}, []string{"own velo"}},
	} {
		for _, rows := range []int{50_000, 1} {
			w.store.SetIndexRows(rows)
			c.query.Text, c.query.Limit = "velo locked library", 5
			var got []string
			for _, h := range w.search(c.query).Hits {
				if h.MeaningRank == 0 {
					t.Errorf("%s: %q was not ranked by meaning", c.name, h.Text)
				}
				got = append(got, h.Text)
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s, above %d rows through the index (-want +got):\n%s", c.name, rows, diff)
			}
		}
	}
}

// What a search lacks it says.
func TestSearchWithoutAnAnswerOfTheEndpoint(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 8)
	w := newDenseWorld(t, e)
	w.insert("words that can be found")
	e.Down.Store(true)
	got := w.search(archival.Query{Text: "words", AgentID: w.agent, Limit: 3})
	if len(got.Hits) != 1 || got.ByMeaning || got.Note != "The embeddings endpoint did not answer, so this was ranked by words alone." {
		t.Errorf("while the endpoint is down: got %+v", got)
	}
}

// Past its threshold a space is indexed, and a large scope read through the index, both by words and by meaning; a small one is read by itself.
// As many are found as there are.
func TestALargeScopeIsReadThroughItsIndexes(t *testing.T) {
	t.Parallel()
	w := newDenseWorld(t, embedtest.New(t, 32))
	small := w.archive("small")
	few := make([]archival.Draft, 10)
	for i := range few {
		few[i].Text = fmt.Sprintf("entry %d of a small series", i)
	}
	if _, err := w.store.Insert(t.Context(), org, small.ID, few); err != nil {
		t.Fatal(err)
	}
	drafts := make([]archival.Draft, 3000)
	for i := range drafts {
		drafts[i] = archival.Draft{Text: fmt.Sprintf("entry number%d of series%d", i, i%600), Tags: []string{fmt.Sprint("tag", i%1500), []string{"even", "odd"}[i%2]}}
	}
	large, err := w.store.InsertFor(t.Context(), org, w.agent, drafts)
	if err != nil {
		t.Fatal(err)
	}
	if built, err := w.store.Queue().Index(t.Context(), w.pool, nil); built || err != nil {
		t.Fatalf("an index was built of nothing: %v (%v)", built, err)
	}
	w.store.SetIndexRows(1000)
	w.embedded(small.ID, large[0].ArchiveID)
	if built, err := w.store.Queue().Index(t.Context(), w.pool, nil); !built || err != nil {
		t.Fatalf("an index was built: %v (%v)", built, err)
	}
	if _, err := w.pool.Exec(t.Context(), `VACUUM ANALYZE`); err != nil {
		t.Fatal(err)
	}
	const question = "entry number77 of series77"
	plans, day := dbtest.NewPlans(t, w.pool), time.Now().Add(-24*time.Hour)
	w.store = archival.New(plans, archival.Options{Dense: w.dense})
	index := fmt.Sprintf("Index Scan using passage_vectors_space_%d", w.space.ID)
	for _, c := range []struct {
		name        string
		query       archival.Query
		indexRows   int
		table, want string
	}{
		{"an agent", archival.Query{AgentID: w.agent}, 1000, "passage_vectors", index},
		{"an agent's of a tag and some days", archival.Query{AgentID: w.agent, Tags: []string{"odd", "none"}, Start: &day}, 1000, "passage_vectors", index},
		{"an agent's of all of its tags", archival.Query{AgentID: w.agent, Tags: []string{"odd"}, Match: archival.All}, 1000, "passage_vectors", index},
		{"the organization", archival.Query{}, 1000, "passage_vectors", index},
		{"an agent, exactly", archival.Query{AgentID: w.agent}, 50_000, "passage_vectors", "passage_vectors"},
		{"a small archive, exactly", archival.Query{ArchiveID: small.ID}, 1000, "passage_vectors", "passage_vectors_scope"},
		{"an agent, by words", archival.Query{AgentID: w.agent}, 1000, "@terms", "passages_terms"},
		{"an agent's of some tags, by words", archival.Query{AgentID: w.agent, Tags: []string{"tag77"}}, 1000, "@terms", "passages_terms"},
		{"a small archive, by words", archival.Query{ArchiveID: small.ID}, 1000, "r.lex", "passages_"},
	} {
		c.query.Text, c.query.Limit = question, 1
		w.store.SetIndexRows(c.indexRows)
		plans.Large = c.want == index
		w.search(c.query)
		plan := plans.Take(c.table)
		if !strings.Contains(plan, c.want) || c.want != index && strings.Contains(plan, index) ||
			c.table == "passage_vectors" && strings.Contains(plan, "on passages") || c.table == "r.lex" && strings.Contains(plan, "passages_terms") {
			t.Errorf("%s: the plan is not by %q:\n%s", c.name, c.want, plan)
		}
	}
	w.store = archival.New(w.pool, archival.Options{Dense: w.dense})
	w.store.SetIndexRows(1000)
	near := w.found(archival.Query{Text: question})
	w.store.SetIndexRows(1 << 40)
	found := 0
	for _, text := range w.found(archival.Query{Text: question}) {
		if slices.Contains(near, text) {
			found++
		}
	}
	if len(near) != 10 || found < 8 || near[0] != question {
		t.Errorf("through the indexes %d were found, %d of them among the best, first %q", len(near), found, near[0])
	}
	w.store.SetIndexRows(1)
	if got := w.search(archival.Query{Text: question, ArchiveID: small.ID, Limit: 10}); len(got.Hits) != 10 || slices.ContainsFunc(got.Hits, func(h archival.Hit) bool { return h.MeaningRank == 0 }) {
		t.Errorf("of an archive of 10 among 3,000 %d were found", len(got.Hits))
	}
	if got := w.found(archival.Query{Text: question, Tags: []string{"tag9"}}); len(got) != 2 {
		t.Errorf("of two with a tag among 3,000 were found %q", got)
	}
}
