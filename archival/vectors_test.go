package archival_test

import (
	"testing"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/embedtest"
)

// Vectors returns the vectors in the current space. A passage that the endpoint refused has none.
func TestVectorsOfPassages(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 8)
	e.Refuse = "forbidden"
	f := newDenseFixture(t, e)
	f.embedded(f.insert("the ferry leaves at noon", "this is forbidden")[0].ArchiveID)
	f.settled(1)
	list, err := f.store.Passages(t.Context(), f.org, archival.Of(f.agent), archival.PassageList{},
		db.Page{Ascending: true})
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := f.store.Vectors(t.Context(), f.org, list...)
	if err != nil || len(list) != 2 || len(vectors) != 1 {
		t.Fatalf("%d vectors of %d passages: %v", len(vectors), len(list), err)
	}
	for _, p := range list {
		if v, has := vectors[p.Key]; has && (len(v) != 8 || p.Text != "the ferry leaves at noon") {
			t.Errorf("%q has the vector %v", p.Text, v)
		}
	}
	if none, err := f.store.Vectors(t.Context(), f.org+1, list...); err != nil || len(none) != 0 {
		t.Errorf("another organization reads %v, %v", none, err)
	}
	words := archival.New(f.pool, archival.Options{})
	if none, err := words.Vectors(t.Context(), f.org, list...); err != nil || len(none) != 0 {
		t.Errorf("without an endpoint: %v, %v", none, err)
	}
}
