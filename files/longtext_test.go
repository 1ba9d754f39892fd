package files_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

// A text that is too long for an answer is not read with its file. A list of texts ends before it.
func TestATextThatIsTooLongIsNotReadWithItsFile(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("f")
	first, second := fx.upload(folder, "first.txt", "one"), fx.upload(folder, "second.txt", "two")
	grow := func(f files.File, bytes int) {
		fx.exec(`UPDATE file_segments SET text = repeat('x', $3)
			WHERE org = $1 AND file_key = (SELECT key FROM files WHERE org = $1 AND id = $2)`, fx.org, f.ID, bytes)
	}
	list := func() ([]files.File, error) {
		return fx.Files(t.Context(), fx.org, files.Filter{FolderID: folder.ID}, true, db.Page{Ascending: true})
	}
	grow(second, 16<<20)
	if got := fx.content(folder, second); len(got) != 16<<20 {
		t.Errorf("the longest text has %d bytes", len(got))
	}
	if got, err := list(); err != nil || len(got) != 1 || *got[0].Content != "one" {
		t.Errorf("a list with more than the longest text: got %d files, %v, want the first", len(got), err)
	}
	grow(first, 16<<20+1)
	for what, read := range map[string]func() error{
		"a file": func() error { _, err := fx.File(t.Context(), fx.org, folder.ID, first.ID, true); return err },
		"a list": func() error { _, err := list(); return err },
	} {
		err := read()
		if !errors.Is(err, db.ErrInvalid) || !strings.HasPrefix(err.Error(), "The text of first.txt has 16777217 bytes") {
			t.Errorf("%s whose text is longer: got %v", what, err)
		}
	}
}
