package files_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

// A file that is renamed keeps its id and its text, and is found by its new name.
func TestARenamedFileKeepsItsID(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("docs")
	f, other := fx.upload(folder, "harbour.md", "Ships moor here.\n"), fx.upload(folder, "other.md", "x\n")
	agent := fx.agentWith(folder)
	name := "ports/lighthouse.md"
	got, err := fx.UpdateFile(t.Context(), fx.org, folder.ID, f.ID, files.FileUpdate{Name: &name,
		Metadata: json.RawMessage(`{"url": "https://example.org/"}`)})
	if err != nil || got.ID != f.ID || got.Name != name || string(got.Metadata) != `{"url": "https://example.org/"}` ||
		got.SHA256 != f.SHA256 || len(got.SHA256) != 64 {
		t.Fatalf("got %+v, %v", got, err)
	}
	for query, want := range map[string]int{"lighthouse": 1, "harbour": 0} {
		found, err := fx.Search(t.Context(), fx.org, files.Of(agent), files.Query{Text: query, Limit: 10, WordsOnly: true})
		if err != nil || len(found.Hits) != want {
			t.Errorf("%s: found %+v, %v, want %d", query, found.Hits, err, want)
		}
	}
	if got, err = fx.UpdateFile(t.Context(), fx.org, folder.ID, f.ID, files.FileUpdate{}); err != nil || got.Name != name {
		t.Errorf("a change of nothing: %+v, %v", got, err)
	}
	for claim, tt := range map[string]struct {
		name string
		want error
	}{"a taken name": {other.Name, db.ErrConflict}, "no name": {"..", db.ErrInvalid}, "blanks": {" / ", db.ErrInvalid}} {
		if _, err := fx.UpdateFile(t.Context(), fx.org, folder.ID, f.ID, files.FileUpdate{Name: &tt.name}); !errors.Is(err,
			tt.want) {
			t.Errorf("%s: %v, want %v", claim, err, tt.want)
		}
	}
}
