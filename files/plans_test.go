package files_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/files"
)

// Plans depend on Postgres' statistics about all organizations' rows. So these tests have their own database and run
// one after the other.
func TestPlans(t *testing.T) {
	t.Parallel()
	database := newOwned(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, owned)
	}{
		{"fresh chunks are read by their keys", freshChunksAreReadByTheirKeys},
		{"an include is read by its keys", plansOfAnInclude},
		{"lists read the page alone", listsReadThePageAlone},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, database) })
	}
}

// Soon after a load that Postgres' statistics do not yet show, a search reads the chunks that it found by their keys.
func freshChunksAreReadByTheirKeys(t *testing.T, database owned) {
	fx := newFixtureIn(t, database.pool, files.Options{})
	agent := fx.agentWith(fx.stock("f", 600, nil, func(i int) string { return fmt.Sprintf("entry %d about topic", i) }))
	plans := dbtest.NewPlans(t, fx.pool)
	store := fx.newStore(plans, files.Options{})
	if got, err := store.Search(t.Context(), fx.org, files.Of(agent), files.Query{Text: "topic", Limit: 20}); err != nil ||
		len(got.Hits) == 0 {
		t.Fatalf("%d hits, %v", len(got.Hits), err)
	}
	plans.ReadByKeys("AS hit (key", "chunks_pkey", "(key = t.file_key)")
	if got, err := store.Search(t.Context(), fx.org, files.Of(agent),
		files.Query{Text: "topicc", Limit: 20}); err != nil ||
		got.SearchedFor != "topic" {
		t.Fatalf("searched for %q, %v; want the other spelling", got.SearchedFor, err)
	}
	if plan := plans.Take("WITH sharing"); !strings.Contains(plan, "hashed SubPlan") ||
		strings.Contains(plan, "chunks_terms") || strings.Contains(plan, "Nested Loop") {
		t.Errorf("spellings are compared with each term of each chunk:\n%s", plan)
	}
}

// The files that pass an include are read by their keys, even if no table was analyzed since they came and however
// large the rest is.
func plansOfAnInclude(t *testing.T, database owned) {
	fx, endpoint, space := database.dense(t, 16)
	text := func(i int) string { return fmt.Sprintf("entry %d about topic %d", i, i%50) }
	large, small := fx.stock("large", 3000, &space, text), fx.stock("small", 100, &space, text)
	agent := fx.agentWith(large, small)
	plans := dbtest.NewPlans(t, fx.pool)
	store := fx.newStore(plans, files.Options{Endpoint: endpoint})
	for table, indexes := range map[string][]string{
		"few": {"chunks_place_key", "chunk_vectors_pkey"}, "r.lex": {"chunks_place_key"},
	} {
		got, err := store.Search(t.Context(), fx.org, files.Of(agent),
			files.Query{Text: "entry 77", Limit: 20, Include: "small/*"})
		if err != nil || len(got.Hits) != 20 || got.Ranking != files.ByWordsAndMeaning {
			t.Fatalf("got %d hits by %s (%v), want 20", len(got.Hits), got.Ranking, err)
		}
		if h := got.Hits[0]; h.FirstLine != 78 {
			t.Errorf("the best is line %d, want 78", h.FirstLine)
		}
		for _, h := range got.Hits {
			if h.FileName != "small/stock.txt" {
				t.Errorf("found %s", h.FileName)
			}
		}
		plan := plans.Take(table)
		for _, index := range indexes {
			if !strings.Contains(plan, index) {
				t.Errorf("the plan lacks %s:\n%s", index, plan)
			}
		}
	}
}

// A page of a large folder is read through an index: listing never sorts or reads the whole folder.
func listsReadThePageAlone(t *testing.T, database owned) {
	fx := newFixtureIn(t, database.pool, files.Options{})
	folder := fx.folder("f")
	fx.crowd(folder, 3000)
	agent := fx.agentWith(folder)
	if _, err := database.owner.Exec(t.Context(), `ANALYZE`); err != nil {
		t.Fatal(err)
	}
	plans := dbtest.NewPlans(t, fx.pool)
	store := fx.newStore(plans, files.Options{})
	list, _, err := store.AgentFiles(t.Context(), fx.org, agent,
		files.AgentFilesQuery{Limits: wide, Page: db.Page{Limit: 1}})
	if err != nil || len(list) != 1 {
		t.Fatalf("got %v (%v)", list, err)
	}
	for name, p := range map[string]db.Page{
		"the first":         {Limit: 50},
		"the oldest":        {Limit: 50, Ascending: true},
		"after a file":      {Limit: 50, After: list[0].FileID},
		"before a file":     {Limit: 50, Before: list[0].FileID},
		"between two files": {Limit: 50, After: list[0].FileID, Before: list[0].FileID},
	} {
		plans.Take("")
		if _, _, err := store.AgentFiles(t.Context(), fx.org, agent,
			files.AgentFilesQuery{Limits: wide, Page: p}); err != nil {
			t.Fatal(err)
		}
		plan := plans.Take("CROSS JOIN LATERAL")
		if !strings.Contains(plan, "using files_folder") || strings.Contains(plan, "Seq Scan on files") {
			t.Errorf("%s:\n%s", name, plan)
		}
	}
}
