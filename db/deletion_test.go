package db_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db"
)

// No statement of the product deletes rows past db.Delete and db.Deleting, which count them and keep their places. The
// code of the benchmarks may.
func TestRowsAreDeletedWithWhatTheyLeave(t *testing.T) {
	t.Parallel()
	past := regexp.MustCompile(`DELETE FROM (` + strings.Join(db.DeletedTables(), "|") + `)\b`)
	read := 0
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.HasPrefix(path, "bench/") {
			return err
		}
		text, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		read++
		if found := past.Find(text); found != nil {
			t.Errorf("%s has %q: use db.Delete", path, found)
		}
		return nil
	})
	if err != nil || read < 100 {
		t.Errorf("%d files were read, %v", read, err)
	}
}
