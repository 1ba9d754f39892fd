package file_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/embed/endpoint"
	memoryfile "github.com/loci-memory/loci/memory/file"
)

type denseFixture struct {
	*fixture
	server *embedtest.Endpoint
	space  endpoint.Space
}

// connect gives the fixture a store with an endpoint.
func (f *denseFixture) connect(e *embedtest.Endpoint) {
	f.Helper()
	endpoint := e.Endpoint(f)
	endpoint.FirstPause, endpoint.MaxPause = time.Millisecond, 20*time.Millisecond
	f.server, f.space = e, e.Use(f, f.pool, endpoint)
	f.store = memoryfile.New(f.pool, memoryfile.Options{Endpoint: endpoint})
	f.store.SetSettle(0)
}

func newDenseFixture(t *testing.T, e *embedtest.Endpoint) *denseFixture {
	t.Helper()
	pool, org := dbtest.Org(t)
	f := &denseFixture{fixture: &fixture{T: t, pool: pool, org: org}}
	f.connect(e)
	f.makeTree() // in the endpoint's space
	return f
}

// embedded computes the vectors that the tree lacks.
func (f *denseFixture) embedded() {
	f.Helper()
	if err := memoryfile.EmbedOnce(f.store, f.Context(), f.org, f.at.Tree); err != nil {
		f.Fatal(err)
	}
}

// count runs a query that returns one number; $1 is the organization.
func (f *fixture) count(sql string, args ...any) int {
	f.Helper()
	n, err := db.One[int](f.Context(), f.pool, sql, append([]any{f.org}, args...)...)
	if err != nil {
		f.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (f *fixture) search(q memoryfile.Query) memoryfile.Results {
	f.Helper()
	q.Limit = 10
	got, err := f.store.Search(f.Context(), f.org, f.at.Tree, q)
	if err != nil {
		f.Fatal(err)
	}
	return got
}

func (f *fixture) status() *endpoint.Status {
	f.Helper()
	t, err := f.store.Tree(f.Context(), f.org, f.at.Tree)
	if err != nil {
		f.Fatal(err)
	}
	return t.Vectors
}

func TestQueueOfMemoryFiles(t *testing.T) {
	t.Parallel()
	embedtest.TestQueue(t, func(t *testing.T) *embedtest.Memory {
		pool := dbtest.New(t) // the queue works on jobs of every organization
		f, n := &denseFixture{fixture: fixtureOf(t, pool, dbtest.NewOrg(t, pool))}, 0
		return &embedtest.Memory{
			Pool: f.pool, Vectors: "memory_file_vectors",
			Connect: func(e *embedtest.Endpoint, settle time.Duration) {
				f.connect(e)
				if _, err := f.store.Queue().Backfill(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
				f.store.SetSettle(settle)
			},
			Queue: func() embedtest.Queue { return f.store.Queue() },
			Write: func(calls int) {
				for range 2 * calls {
					f.write(fmt.Sprintf("/memories/notes/%d.md", n), fmt.Sprintf("note%d\n", n))
					n++
				}
			},
			Found: func() bool {
				got := f.search(memoryfile.Query{Text: fmt.Sprintf("note%d", n-1), WordsOnly: true}).Hits
				return len(got) > 0 && got[0].Text == fmt.Sprintf("note%d\n", n-1)
			},
			Status: f.status,
			Settled: func() {
				f.Helper()
				embedtest.Eventually(f, "no file waits", func() bool {
					return f.count(`SELECT count(*) FROM memory_files WHERE org = $1 AND unembedded`) == 0 && f.count(`
						SELECT count(*) FROM memory_trees
						WHERE org = $1 AND embedded_space IS DISTINCT FROM $2`, f.space.ID) == 0
				})
				if got := f.count(`
					SELECT count(*) FROM memory_file_vectors WHERE org = $1 AND space_id = $2`, f.space.ID); got != n {
					f.Errorf("%d vectors in space %d, want %d", got, f.space.ID, n)
				}
			},
		}
	})
}

// A file that shares no word with the question is found by the meaning of one of its parts, and that part is shown.
func TestAFileIsFoundByItsMeaning(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 1024)
	e.Same = map[string]string{"bicycle": "velo", "whereabouts": "locked"}
	f := newDenseFixture(t, e)
	for i := range 25 {
		f.write(fmt.Sprintf("/memories/%d.md", i), fmt.Sprintf("Topic number %d is another one.\n", i))
	}
	filler := ""
	for day := range 40 {
		filler += fmt.Sprintf("The weather of day %d was as grey as the one of the day before it.\n", day)
	}
	f.write("/memories/town.md", filler+"\n# Things\n\nVelo locked: library.\n")
	f.embedded()
	if n := f.count(`SELECT count(*) FROM memory_file_vectors WHERE org = $1`); n < 28 {
		t.Fatalf("%d vectors of 26 files, of which one is long", n)
	}
	got := f.search(memoryfile.Query{Text: "bicycle whereabouts"})
	if !got.ByMeaning || got.Note != "" || len(got.Hits) != 10 || got.Hits[0].Path != "/memories/town.md" ||
		got.Hits[0].WordsRank != 0 || got.Hits[0].MeaningRank != 1 {
		t.Fatalf("got %+v", got)
	}
	want := memoryfile.HitLine{Line: 44, Text: "Velo locked: library."}
	if lines := got.Hits[0].Lines; !slices.Contains(lines, want) {
		t.Errorf("got the lines %v, want %v", lines, want)
	}
	part, first, last, ok := got.Hits[0].Nearest()
	if !ok || first > 44 || last != 44 || !strings.Contains(part, want.Text) {
		t.Errorf("got the part %q of the lines %d to %d, %t", part, first, last, ok)
	}
	if got := f.search(memoryfile.Query{Text: "bicycle whereabouts", WordsOnly: true}); len(got.Hits) != 0 {
		t.Errorf("by words alone: got %+v", got)
	}
	e.Down.Store(true)
	if got := f.search(memoryfile.Query{Text: "velo"}); got.ByMeaning || got.Note == "" || len(got.Hits) != 1 {
		t.Errorf("while the endpoint is down: got %+v", got)
	}
}

// A removed part of a file is not found by its meaning any more, at once. Unchanged parts keep their vectors.
func TestVectorsAreThoseOfThePresentTexts(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 1024)
	f := newDenseFixture(t, e)
	section := func(name, word string) string {
		return "# " + name + "\n\n" + strings.Repeat("The "+word+" is here.\n", 60) + "\n"
	}
	file := f.write("/memories/a.md", section("One", "heron")+section("Two", "otter"))
	f.write("/memories/b.md", "A stork.\n")
	f.embedded()
	asked := len(e.Asked())
	f.write("/memories/a.md", "\n"+section("Later", "newt")+section("Two", "otter"))
	if n := f.count(`SELECT count(*) FROM memory_file_vectors WHERE org = $1 AND first_line = 65`); n != 1 {
		t.Errorf("%d vectors stand in line 65, where the second section is now", n)
	}
	for _, h := range f.search(memoryfile.Query{Text: "heron"}).Hits {
		if part, _, _, _ := h.Nearest(); strings.Contains(part, "heron") || h.WordsRank != 0 {
			t.Errorf("an old text is found: %+v", h)
		}
	}
	f.embedded()
	var texts []string
	for _, request := range e.Asked()[asked:] {
		texts = append(texts, request...)
	}
	texts = slices.DeleteFunc(texts, func(text string) bool { return text == "heron" }) // the query
	if len(texts) != 1 || !strings.Contains(texts[0], "newt") || strings.Contains(texts[0], "otter") {
		t.Errorf("embedded again: %q, want the new section alone", texts)
	}
	if _, _, err := f.store.Rename(t.Context(), f.at, "/memories/b.md", "/memories/c.md"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.store.Delete(t.Context(), f.at, "/memories/a.md", ""); err != nil {
		t.Fatal(err)
	}
	if n := f.count(`SELECT count(*) FROM memory_file_vectors WHERE org = $1`); n != 0 {
		t.Errorf("after a deletion and a renaming, which changes what is embedded, %d vectors are left", n)
	}
	f.embedded()
	if got := f.search(memoryfile.Query{Text: "otter"}).Hits; len(got) != 1 || got[0].Path != "/memories/c.md" {
		t.Errorf("after the deletion: got %+v", got)
	}
	if _, err := f.store.Restore(t.Context(), f.at, memoryfile.Of{ID: file.ID}, 2, ""); err != nil {
		t.Fatal(err)
	}
	f.embedded()
	if got := f.search(memoryfile.Query{Text: "otter"}).Hits; len(got) != 2 || got[0].Path != "/memories/a.md" {
		t.Errorf("after the restoration: got %+v", got)
	}
}

// A part that the endpoint refuses is counted. It is asked for again only after the file changes.
func TestRefusedPartsOfFilesAreCounted(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 8)
	e.Refuse = "forbidden"
	f := newDenseFixture(t, e)
	f.write("/memories/a.md", "A forbidden word.\n")
	f.write("/memories/b.md", "Another word.\n")
	f.embedded()
	got := f.status()
	if got == nil || got.Pending != 0 || got.Refused != 1 || got.Error == nil ||
		!strings.Contains(*got.Error, "get no vector") {
		t.Fatalf("the status is %+v", got)
	}
	asked := e.Requests.Load()
	f.embedded()
	if n := e.Requests.Load() - asked; n != 0 {
		t.Errorf("%d requests more", n)
	}
	f.write("/memories/a.md", "An allowed word.\n")
	if got := f.status(); got.Pending != 1 {
		t.Errorf("after a change the status is %+v", got)
	}
	f.embedded()
	if got := f.status(); *got != (endpoint.Status{}) {
		t.Errorf("the status is %+v, want an empty one", got)
	}
}

// Erased text has no vector left. The rest of the file is embedded again.
func TestErasedTextsHaveNoVectors(t *testing.T) {
	t.Parallel()
	f := newDenseFixture(t, embedtest.New(t, 64))
	file := f.write("/memories/a.md", "The code is swordfish.\n")
	f.embedded()
	if _, err := f.pool.Exec(t.Context(), `
		UPDATE memory_files SET content = 'The code is gone.' WHERE org = $1 AND key = $2`, f.org, file.Key); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Reindex(t.Context(), f.org, fmt.Sprint(file.Key)); err != nil {
		t.Fatal(err)
	}
	if n := f.count(`SELECT count(*) FROM memory_file_vectors WHERE org = $1`); n != 0 || f.status().Pending != 1 {
		t.Errorf("%d vectors are left, and the status is %+v", n, f.status())
	}
	f.embedded()
	if n := f.count(`SELECT count(*) FROM memory_file_vectors WHERE org = $1`); n != 1 {
		t.Errorf("%d vectors of the text that stays", n)
	}
}

// Two words may share a term id in the lexicon. A search for one does not find files that have only the other.
func TestAWordFindsNoFileWithAnotherOfItsPlace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, b := embedtest.Colliding(t)
	f.write("/memories/notes/a.md", "the word "+a+"\n")
	f.write("/memories/notes/b.md", "the word "+b+"\n")
	for word, path := range map[string]string{a: "/memories/notes/a.md", b: "/memories/notes/b.md"} {
		if got := f.search(memoryfile.Query{Text: word}).Hits; len(got) != 1 || got[0].Path != path {
			t.Errorf("%q finds %v, want %s alone", word, got, path)
		}
	}
}

// A reranker orders the best files.
func TestARerankerOrdersMemoryFiles(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store = memoryfile.New(f.pool, memoryfile.Options{Reranker: embedtest.Preferring("river")})
	f.write("/memories/a.md", "The walnut tree.")
	f.write("/memories/b.md", "A tree, far away, by the mill of the river behind all hills, and one walnut.")
	got := f.search(memoryfile.Query{Text: "walnut tree", Explain: true})
	if len(got.Hits) != 2 || got.Hits[0].Path != "/memories/b.md" || got.Hits[0].Score < got.Hits[1].Score {
		t.Fatalf("got %+v, want b.md first", got.Hits)
	}
	embedtest.AddsUp(t, got.Hits[0].Explanation, got.Hits[0].Score, "term")
	embedtest.AddsUp(t, got.Hits[1].Explanation, got.Hits[1].Score)
	if e := got.Explanation.Rerank; e == nil || e.Rows != 2 || *got.Hits[0].Explanation.Rerank != 1 {
		t.Errorf("the reranking is explained as %+v and %+v", e, got.Hits[0].Explanation)
	}
}
