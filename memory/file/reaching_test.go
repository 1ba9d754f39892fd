package file_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest/scale"
	memoryfile "github.com/loci-memory/loci/memory/file"
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
		if err := f.store.Point(t.Context(), f.at, path, memoryfile.Recent{Day: "2026-01-01"}); err != nil {
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

// An entry of recent activity says what happened, although the file has it too. It takes the place of the entry of the
// same day and file, and has at most as many characters as the rules allow.
func TestRecentActivitySaysWhatHappened(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("/memories/topics/sessions.md", "# sessions\n\n- The port of the server is fixed in server.yaml.\n")
	for _, says := range []string{"The port of the server is fixed in server.yaml.", strings.Repeat("long ", 60)} {
		for _, day := range []string{"2026-01-01", "2026-01-02"} {
			err := f.store.Point(t.Context(), f.at, "/memories/topics/sessions.md", memoryfile.Recent{Day: day, Says: says})
			if err != nil {
				t.Fatal(err)
			}
		}
		_, recent, _ := strings.Cut(f.files()[index], "## Recent\n\n")
		lines := strings.Split(strings.TrimSpace(recent), "\n")
		if len(lines) != 2 || !strings.HasPrefix(lines[0], "- 2026-01-02: "+says[:20]) ||
			!strings.HasSuffix(lines[1], " (topics/sessions.md)") || len(lines[0]) > 130 {
			t.Errorf("recent activity is %q", lines)
		}
	}
	l, err := f.store.Lint(t.Context(), f.org, f.at.Tree)
	if err != nil || len(l.Violations) > 0 {
		t.Errorf("got %+v, %v", l.Violations, err)
	}
}

// A line takes out those that it supersedes, but not in a file that is only added to.
func TestALineSupersedesOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	of := func(name string) func(string) bool {
		return func(line string) bool { return strings.HasPrefix(line, "- "+name) }
	}
	for path, want := range map[string]string{
		"/memories/people/user.md": "# user\n\n- job: baker\n- home: Oslo\n",
		"/memories/lessons.md":     "# lessons\n\n- home: Lund\n- job: baker\n- home: Oslo\n",
	} {
		for _, line := range []string{"- home: Lund", "- job: baker", "- home: Oslo"} {
			if err := f.store.AddLine(t.Context(), f.at, path, line, of(line[2:6])); err != nil {
				t.Fatal(err)
			}
		}
		if got := f.files()[path]; got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}
