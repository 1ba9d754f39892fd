package file_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest/scale"
)

// The index keeps a lasting pointer to each file that Point was called for, even after its recent activity dropped the
// file.
func TestWhatIsPointedToStaysReachable(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	f := newFixture(t)
	f.write(index, "# Memory\n\n## Projects\n\n| Name | Status | File |\n| --- | --- | --- |\n")
	point := func(path string) {
		t.Helper()
		f.write(path, "# "+strings.TrimPrefix(path, "/memories/")+"\n\n- A line.\n")
		if err := f.store.Point(t.Context(), f.at, path, "2026-01-01"); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 12 {
		point(fmt.Sprintf("/memories/projects/p%d.md", i))
		point(fmt.Sprintf("/memories/people/person %d.md", i))
	}
	point("/memories/lessons.md")
	check := func() string {
		t.Helper()
		l, err := f.store.Lint(t.Context(), f.org, f.at.Tree)
		if err != nil || len(l.Unreachable)+len(l.Violations) > 0 {
			t.Fatalf("unreachable %q, %+v, %v; the index is\n%s", l.Unreachable, l.Violations, err, f.files()[index])
		}
		return f.files()[index]
	}
	if got := check(); !strings.Contains(got, "| projects/p0.md |  | /memories/projects/p0.md |") &&
		!strings.Contains(got, "/memories/projects/p0.md |\n| ") {
		t.Errorf("the index is\n%s", got)
	}
	before, recent, ok := strings.Cut(f.files()[index], "## Recent")
	if !ok || strings.Count(recent, "\n- ") != 5 || !strings.Contains(before, "/memories/lessons.md") {
		t.Errorf("the index is\n%s", f.files()[index])
	}
	for i := range 60 {
		point(fmt.Sprintf("/memories/topics/a long name of a topic %d.md", i))
	}
	if got := check(); len(got) > 5_000 || !strings.Contains(got, "/memories/topics/ |") {
		t.Errorf("the index is\n%s", got)
	}
}
