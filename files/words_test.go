package files_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/files"
)

// A folder is ranked through the index of words as from its chunks, with new chunks and without, and chunks that are
// gone are not found.
func TestAFolderIsRankedThroughTheIndexOfWords(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, files.Options{})
	folder := fx.stock("f", 3000, nil, func(i int) string { return fmt.Sprintf("entry %d about topic %d", i, i%50) })
	agent := fx.agentWith(folder, fx.stock("g", 20, nil, func(i int) string { return fmt.Sprintf("topic 7 again %d", i) }))
	plans := dbtest.NewPlans(t, fx.pool)
	indexed, err := files.New(plans, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fx.SetWordRows(1<<40, 1<<40)
	compare := func(when string) {
		t.Helper()
		for _, q := range []files.Query{{Text: "entry 77"}, {Text: "topic 7"}, {Text: "topic again", Include: "g/*"},
			{Text: "about", Offset: 30}, {Text: "nothing of the kind"}} {
			q.Limit = 20
			want, err := fx.Search(t.Context(), org, agent, q)
			if err != nil {
				t.Fatal(err)
			}
			got, err := indexed.Search(t.Context(), org, agent, q)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
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
	if _, err := fx.pool.Exec(t.Context(), `DELETE FROM chunks WHERE org = 1 AND key % 4 = 0`); err != nil {
		t.Fatal(err)
	}
	compare("with deleted chunks")
	if n, err := indexed.PruneWords(t.Context()); err != nil || n != 1 {
		t.Errorf("%d segments are made anew (%v), want 1", n, err)
	}
	compare("with a segment made anew")
}

// Soon after a load, of which Postgres' statistics do not know, a search reads the chunks that it found by their keys.
func TestFreshChunksAreReadByTheirKeys(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, files.Options{})
	if _, err := dbtest.Owner(t, fx.pool).Exec(t.Context(), `
		ALTER TABLE chunks SET (autovacuum_enabled = false);
		ALTER TABLE files SET (autovacuum_enabled = false)`); err != nil {
		t.Fatal(err)
	}
	agent := fx.agentWith(fx.stock("f", 600, nil, func(i int) string { return fmt.Sprintf("entry %d about topic", i) }))
	plans := dbtest.NewPlans(t, fx.pool)
	store, err := files.New(plans, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := store.Search(t.Context(), org, agent, files.Query{Text: "topic", Limit: 20}); err != nil ||
		len(got.Hits) == 0 {
		t.Fatalf("%d hits, %v", len(got.Hits), err)
	}
	plans.ReadByKeys("AS hit (key", "chunks_pkey", "(key = t.file_key)")
	if got, err := store.Search(t.Context(), org, agent, files.Query{Text: "topicc", Limit: 20}); err != nil ||
		got.SearchedFor != "topic" {
		t.Fatalf("searched for %q, %v; want the other spelling", got.SearchedFor, err)
	}
	if plan := plans.Take("WITH sharing"); !strings.Contains(plan, "hashed SubPlan") ||
		strings.Contains(plan, "chunks_terms") || strings.Contains(plan, "Nested Loop") {
		t.Errorf("spellings are compared with each term of each chunk:\n%s", plan)
	}
}
