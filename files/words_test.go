package files_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/files"
)

// Words are pruned and weighed again for all organizations, and how they are read depends on Postgres' statistics. So
// these tests have their own database and run one after the other.
func TestIndexOfWords(t *testing.T) {
	t.Parallel()
	database := newOwned(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, owned)
	}{
		{"a folder is ranked through the index of words", aFolderIsRankedThroughTheIndexOfWords},
		{"chunks of an older version are weighed anew", chunksOfAnOlderVersionAreWeighedAnew},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, database) })
	}
}

// A folder ranks the same through the index of words as from its chunks, with and without new chunks. Deleted chunks
// are not found.
func aFolderIsRankedThroughTheIndexOfWords(t *testing.T, database owned) {
	fx := newFixtureIn(t, database.pool, files.Options{})
	folder := fx.stock("f", 2200, nil, func(i int) string { return fmt.Sprintf("entry %d about topic %d", i, i%50) })
	agent := fx.agentWith(folder, fx.stock("g", 20, nil, func(i int) string { return fmt.Sprintf("topic 7 again %d", i) }))
	plans := dbtest.NewPlans(t, fx.pool)
	indexed := fx.newStore(plans, files.Options{})
	fx.SetWordRows(1<<40, 1<<40)
	compare := func(when string) {
		t.Helper()
		for _, q := range []files.Query{{Text: "entry 77"}, {Text: "topic 7"}, {Text: "topic again", Include: "g/*"},
			{Text: "about", Offset: 30}, {Text: "nothing of the kind"}} {
			q.Limit = 20
			want, err := fx.Search(t.Context(), fx.org, files.Of(agent), q)
			if err != nil {
				t.Fatal(err)
			}
			got, err := indexed.Search(t.Context(), fx.org, files.Of(agent), q)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(files.Hit{})); err != nil || diff != "" {
				t.Errorf("%s: %q (-chunks +index): %v\n%s", when, q.Text, err, diff)
			}
		}
	}
	compare("before the index is made")
	if n, err := indexed.IndexWords(t.Context()); err != nil || n != 1 {
		t.Fatalf("got %d segments (%v), want 1: the search found that the folder lacks one", n, err)
	}
	if _, err := db.AnalyzeGrown(t.Context(), fx.pool); err != nil { // as the server does
		t.Fatal(err)
	}
	plans.Take("")
	compare("with a segment")
	if plan := plans.Take("word_postings"); !strings.Contains(plan, "AND (bucket = ") ||
		strings.Contains(plan, "Seq Scan") {
		t.Errorf("postings are not read by their terms:\n%s", plan)
	}
	compare("with a segment in memory")
	if plan := plans.Take("@matched"); !strings.Contains(plan, "chunks_pkey") || strings.Contains(plan, "Seq Scan") {
		t.Errorf("matched chunks are not read by their keys:\n%s", plan)
	}
	fx.exec(`DELETE FROM chunks WHERE org = $1 AND key % 4 = 0`, fx.org)
	compare("with deleted chunks")
	if n, err := indexed.PruneWords(t.Context()); err != nil || n != 1 {
		t.Errorf("%d segments are made anew (%v), want 1", n, err)
	}
	compare("with a segment made anew")
}

// Chunks that an older version of Loci weighed are weighed again, including their file's name, with and without an
// index of words.
func chunksOfAnOlderVersionAreWeighedAnew(t *testing.T, database owned) {
	const chunks = 250
	fx := newFixtureIn(t, database.pool, files.Options{})
	folder := fx.stock("f", chunks, nil, func(i int) string { return fmt.Sprintf("entry e%de", i) })
	fx.SetWordRows(150, 100)
	agent := fx.agentWith(folder)
	found := func(text string) int {
		t.Helper()
		got, err := fx.Search(t.Context(), fx.org, files.Of(agent), files.Query{Text: text, Limit: 5})
		if err != nil {
			t.Fatal(err)
		}
		return len(got.Hits)
	}
	fx.exec(`
		UPDATE chunks SET lex_version = 1, lex = '{}/16777216', terms = '{}'
		WHERE org = $1 AND key > (SELECT min(key) FROM chunks WHERE org = $1)`, fx.org)
	if n := found("e77e"); n != 0 {
		t.Fatalf("%d chunks without words are found", n)
	}
	if n, err := fx.IndexWords(t.Context()); err != nil || n != 1 {
		t.Fatalf("got %d segments (%v), want 1", n, err)
	}
	if n, err := fx.ReweighWords(t.Context()); err != nil || n != chunks-1 {
		t.Fatalf("%d chunks are weighed anew (%v), want %d", n, err, chunks-1)
	}
	for _, text := range []string{"e77e", "stock"} {
		if n := found(text); n == 0 {
			t.Errorf("%q is not found", text)
		}
	}
	if n, err := fx.PruneWords(t.Context()); err != nil || n != 1 {
		t.Errorf("%d segments are made anew (%v), want 1", n, err)
	}
	if n := found("e77e"); n != 1 {
		t.Errorf("e77e is found in %d chunks through the index, want 1", n)
	}
	if n, err := fx.ReweighWords(t.Context()); err != nil || n != 0 {
		t.Errorf("then %d chunks are weighed anew (%v), want none", n, err)
	}
}
