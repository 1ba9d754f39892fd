package archival_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/embed/embedtest"
)

// embedded embeds the passages of the archives.
func (f *denseFixture) embedded(archives ...string) {
	f.Helper()
	for _, id := range archives {
		if err := archival.EmbedOnce(f.store, f.Context(), f.org, id); err != nil {
			f.Fatal(err)
		}
	}
}

func (f *fixture) search(q archival.Query) archival.Results {
	f.Helper()
	got, err := f.store.Search(f.Context(), f.org, q)
	if err != nil {
		f.Fatalf("search %+v: %v", q, err)
	}
	return got
}

// A passage that shares no word with the question is found by its meaning. The hit's ranks tell which arm found it.
func TestMeaningFindsWhatWordsDoNot(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 1024)
	e.Same = map[string]string{"bicycle": "velo", "whereabouts": "locked"}
	f := newDenseFixture(t, e)
	archive := f.notes(30)
	f.insert("velo locked behind the library", "bicycle of another town")
	f.embedded(archive)
	q := archival.Query{Text: "bicycle whereabouts", AgentID: f.agent, Limit: 3}
	got := f.search(q)
	if !got.ByMeaning || got.Note != "" || len(got.Hits) != 3 ||
		got.Hits[1].Text != "velo locked behind the library" && got.Hits[0].Text != "velo locked behind the library" {
		t.Fatalf("got %+v", got)
	}
	for _, h := range got.Hits[:2] {
		if want := strings.HasPrefix(h.Text, "bicycle"); (h.WordsRank == 1) != want || (h.MeaningRank == 1) == want ||
			h.Score <= 0 {
			t.Errorf("got %+v", h)
		}
	}
	f.store = archival.New(f.pool, archival.Options{})
	if got := f.search(q); got.ByMeaning || len(got.Hits) != 1 || got.Hits[0].MeaningRank != 0 {
		t.Errorf("without an endpoint: got %+v", got)
	}
}

// A passage without a vector comes first if it alone has the searched word. Passages with other meanings score low.
func TestAPassageWithoutAVectorIsFoundByItsWords(t *testing.T) {
	t.Parallel()
	f := newDenseFixture(t, embedtest.New(t, 1024))
	archive := f.notes(30)
	f.embedded(archive)
	f.insert("Invoice for velvet.")
	got := f.search(archival.Query{Text: "velvet", AgentID: f.agent, Limit: 3})
	if !got.ByMeaning || got.Hits[0].Text != "Invoice for velvet." || got.Hits[0].Score < 0.9 {
		t.Fatalf("got %+v", got)
	}
	for _, h := range got.Hits[1:] {
		if h.Score > 0.4 {
			t.Errorf("a passage of something else scores %.2f: %+v", h.Score, h)
		}
	}
}

// A search by meaning filters before it applies the limit, in small and in large scopes.
func TestMeaningObeysTheFilters(t *testing.T) {
	t.Parallel()
	f := newDenseFixture(t, embedtest.New(t, 64))
	happened := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	team, deleted := f.archive("team"), f.archive("gone")
	for _, c := range []archival.Archive{team, deleted} {
		if err := f.store.Attach(t.Context(), f.org, f.agent, c.ID); err != nil {
			t.Fatal(err)
		}
		// These are nearer to the question than the searched passages.
		for i := range 30 {
			if _, err := f.store.Insert(t.Context(), f.org, c.ID,
				[]archival.Draft{{Text: strings.Repeat("velo locked library ", i+1)}}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := f.store.Insert(t.Context(), f.org, c.ID, []archival.Draft{
			{Text: c.Name + " velo one", Tags: []string{"a", "b"}, HappenedAt: &happened}, {Text: c.Name + " velo two",
				Tags: []string{"b"}}}); err != nil {
			t.Fatal(err)
		}
	}
	alone := f.newAgent("Bob")
	stored, err := f.store.InsertFor(t.Context(), f.org, archival.Of(alone), []archival.Draft{{Text: "own velo",
		Tags: []string{"b"}}})
	if err != nil {
		t.Fatal(err)
	}
	f.embedded(team.ID, deleted.ID, stored[0].ArchiveID)
	if err := f.store.DeleteArchive(t.Context(), f.org, deleted.ID); err != nil {
		t.Fatal(err)
	}
	before, after := happened.Add(-time.Hour), happened.Add(time.Hour)
	for _, c := range []struct {
		name  string
		query archival.Query
		want  []string
	}{
		{"of an agent", archival.Query{AgentID: f.agent, Tags: []string{"b"}}, []string{"team velo one", "team velo two"}},
		{"of an archive", archival.Query{ArchiveID: team.ID, Tags: []string{"b"}},
			[]string{"team velo one", "team velo two"}},
		{"of the organization", archival.Query{Tags: []string{"b"}}, []string{"own velo", "team velo one", "team velo two"}},
		{"any tag", archival.Query{AgentID: f.agent, Tags: []string{"a", "c"}}, []string{"team velo one"}},
		{"all tags", archival.Query{AgentID: f.agent, Tags: []string{"a", "b"}, Match: archival.All},
			[]string{"team velo one"}},
		{"all tags, one of which nothing has", archival.Query{AgentID: f.agent, Tags: []string{"a", "c"},
			Match: archival.All}, nil},
		{"a time", archival.Query{AgentID: f.agent, Start: &before, End: &after}, []string{"team velo one"}},
		{"another agent", archival.Query{AgentID: alone}, []string{"own velo"}},
	} {
		for _, rows := range []int{50_000, 1} {
			f.store.SetIndexRows(rows)
			c.query.Text, c.query.Limit = "velo locked library", 5
			var got []string
			for _, h := range f.search(c.query).Hits {
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

// A search without meaning says why. So does the next search, which does not ask the endpoint again.
func TestSearchesSayWhyTheyAreNotRankedByMeaning(t *testing.T) {
	t.Parallel()
	const secret = "sk-hidden at gpu-7.internal"
	for name, c := range map[string]struct {
		fault embedtest.Fault
		says  string
	}{
		"a failure": {embedtest.Answer(503, secret), "The embedding provider fails (status 503)"},
		"a key": {embedtest.Answer(401, secret),
			"The embedding provider does not accept the server's key (status 401)"},
		"a page": {embedtest.Answer(200, "<html>"+secret),
			"The embedding provider answers with something else than embeddings"},
		"numbers of none": {embedtest.Answer(200, `{"data":[{"index":0,"embedding":[NaN]}]}`),
			"The embedding provider answers with something else than embeddings"},
		"no direction": {embedtest.Zeros(8),
			"The embedding provider answers with a vector of zeros or of numbers that are not finite"},
		"another dimension":  {embedtest.Vectors(4, 0), "The embeddings endpoint answers with another model's vectors"},
		"a missing vector":   {embedtest.Vectors(8, 1), "The embedding provider answers with 0 vectors to 1 texts"},
		"every text refused": {embedtest.Answer(400, secret), "The embedding provider refuses every text (status 400)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := embedtest.New(t, 8)
			f := newDenseFixture(t, e)
			f.insert("words that can be found")
			e.Fault.Store(&c.fault)
			for range 2 {
				got := f.search(archival.Query{Text: "words", AgentID: f.agent, Limit: 3})
				if len(got.Hits) != 1 || got.ByMeaning || got.Note != c.says+", so this was ranked by words alone." {
					t.Errorf("got %d hits and %q, want one and %q", len(got.Hits), got.Note, c.says)
				}
			}
		})
	}
}
