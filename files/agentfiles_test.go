package files_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/files"
)

// A page of a large folder is read through an index: the statements that list never sort or read the folder.
func TestListsReadThePageAlone(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, files.Options{})
	folder := fx.folder("f")
	fx.crowd(folder, 5000)
	agent := fx.agentWith(folder)
	if _, err := fx.owner().Exec(t.Context(), `ANALYZE`); err != nil {
		t.Fatal(err)
	}
	plans := dbtest.NewPlans(t, fx.pool)
	store, err := files.New(plans, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := store.AgentFiles(t.Context(), org, agent, files.AgentFilesQuery{Limits: wide, Page: db.Page{Limit: 1}})
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
		if _, _, err := store.AgentFiles(t.Context(), org, agent, files.AgentFilesQuery{Limits: wide, Page: p}); err != nil {
			t.Fatal(err)
		}
		plan := plans.Take("CROSS JOIN LATERAL")
		if !strings.Contains(plan, "using files_folder") || strings.Contains(plan, "Seq Scan on files") {
			t.Errorf("%s:\n%s", name, plan)
		}
	}
}
