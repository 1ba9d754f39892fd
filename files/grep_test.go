package files_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/files"
)

func (fx *fixture) grep(agentID string, q files.GrepQuery) files.GrepResult {
	fx.t.Helper()
	got, err := fx.Grep(fx.t.Context(), fx.org, files.Of(agentID), q)
	if err != nil {
		fx.t.Fatalf("grep %+v: %v", q, err)
	}
	return got
}

// places returns the matches of a page as file:line.
func places(r files.GrepResult) []string {
	list := []string{}
	for _, m := range r.Matches {
		list = append(list, fmt.Sprintf("%s:%d", m.FileName, m.Line))
	}
	return list
}

func TestGrepGoesByFileNameThenLine(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	second, first := fx.folder("b"), fx.folder("a")
	fx.upload(second, "x.md", "needle one\nhay\nNEEDLE two\n")
	fx.upload(first, "y.txt", "hay\nneedle three\n")
	fx.upload(first, "Z.txt", "no such thing\n")
	agent := fx.agentWith(second, first)
	got := fx.grep(agent, files.GrepQuery{Pattern: "needle", ContextLines: 1})
	if diff := cmp.Diff([]string{"a/y.txt:2", "b/x.md:1", "b/x.md:3"}, places(got)); diff != "" {
		t.Errorf("matches (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]files.FileCount{{FileName: "b/x.md", Matches: 2}, {FileName: "a/y.txt", Matches: 1}},
		got.Files); diff != "" {
		t.Errorf("files, most matches first (-want +got):\n%s", diff)
	}
	if m := got.Matches[2]; got.Total != 3 || got.Capped || got.Searched != 3 || m.Text != "NEEDLE two" ||
		len(m.Before) != 1 || len(m.After) != 0 {
		t.Errorf("got %+v", got)
	}
	for name, c := range map[string]struct {
		query files.GrepQuery
		want  []string
	}{
		"case counts when asked": {files.GrepQuery{Pattern: "needle", CaseSensitive: true},
			[]string{"a/y.txt:2", "b/x.md:1"}},
		"only the files that are wanted": {files.GrepQuery{Pattern: "needle", Include: "*.md"},
			[]string{"b/x.md:1", "b/x.md:3"}},
		"a page further":      {files.GrepQuery{Pattern: "needle", Offset: 2}, []string{"b/x.md:3"}},
		"past the end":        {files.GrepQuery{Pattern: "needle", Offset: 9}, []string{}},
		"text, not a pattern": {files.GrepQuery{Pattern: "needle.*", Literal: true}, []string{}},
	} {
		if diff := cmp.Diff(c.want, places(fx.grep(agent, c.query))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, q := range map[string]files.GrepQuery{
		"a look-ahead": {Pattern: "(?=x)"}, "nothing": {Pattern: ""}, "too much context": {Pattern: "x", ContextLines: 21},
		"an include that is no pattern": {Pattern: "x", Include: "[z-a]+"},
	} {
		if _, err := fx.Grep(t.Context(), fx.org, files.Of(agent), q); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	stranger := dbtest.NewOrg(t, fx.pool)
	if got, err := fx.Grep(t.Context(), stranger, files.Of(agent), files.GrepQuery{Pattern: "needle"}); err != nil ||
		got.Attached != 0 {
		t.Errorf("another organization sees %+v (%v)", got, err)
	}
}

// The pages of a search through many files, one larger than a batch, have every match in order, once, up to the cap.
func TestGrepPagesAddUp(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("f")
	var want []string
	for i := range 9 {
		var text strings.Builder
		for line := 1; line <= 30; line++ {
			if line%3 == 0 {
				fmt.Fprintf(&text, "a match on line %d\n", line)
				want = append(want, fmt.Sprintf("f/%d.txt:%d", i, line))
			} else {
				text.WriteString("something else\n")
			}
		}
		if i == 4 {
			text.WriteString(manyLines(300_000))
		}
		fx.store(folder, fmt.Sprintf("%d.txt", i), text.String())
	}
	agent := fx.agentWith(folder)
	got := []string{}
	for offset := 0; ; offset += files.GrepPage {
		page := fx.grep(agent, files.GrepQuery{Pattern: "a match", Offset: offset})
		if page.Total != len(want) {
			t.Fatalf("from %d on the total is %d, want %d", offset, page.Total, len(want))
		}
		if len(page.Matches) == 0 {
			break
		}
		got = append(got, places(page)...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("all pages (-want +got):\n%s", diff)
	}
	if many := fx.grep(agent, files.GrepQuery{Pattern: "line"}); !many.Capped || many.Total != files.GrepCap ||
		len(many.Matches) != files.GrepPage {
		t.Errorf("more than the cap: total %d, capped %v", many.Total, many.Capped)
	}
}

func TestGrepNamesWhatWaits(t *testing.T) {
	t.Parallel()
	fx := newOwnFixture(t, files.Options{}, files.Queues())
	folder := fx.folder("f")
	fx.upload(folder, "ready.txt", "needle\n")
	fx.pause()
	fx.send(folder, "waiting.txt", "needle\n", files.Suffix)
	agent := fx.agentWith(folder)
	if got := fx.grep(agent, files.GrepQuery{Pattern: "needle"}); got.Total != 1 || got.Waiting != 1 || got.Attached != 2 {
		t.Errorf("got %+v, want one match and one file that waits", got)
	}
	if _, err := fx.Open(t.Context(), fx.org, files.Of(agent),
		files.OpenArgs{Limits: wide, Requests: requests("f/waiting.txt")}); !errors.Is(err, db.ErrInvalid) ||
		!strings.Contains(err.Error(), "still being processed") {
		t.Errorf("opening a file that waits: got %v", err)
	}
}

func TestListingFiles(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	a, b := fx.folder("a"), fx.folder("b")
	for _, name := range []string{"one.md", "two.txt", "three.md"} {
		fx.upload(a, name, "text\n")
	}
	fx.upload(b, "four.md", "text\n")
	agent := fx.agentWith(a, b)
	fx.mustOpen(agent, wide, false, "a/two.txt")
	for name, c := range map[string]struct {
		pattern, folder string
		offset, limit   int
		want            []string
		total           int
	}{
		"everything":     {"", "", 0, 10, []string{"a/one.md", "a/three.md", "a/two.txt", "b/four.md"}, 4},
		"by a pattern":   {"*.md", "", 0, 10, []string{"a/one.md", "a/three.md", "b/four.md"}, 3},
		"of a folder":    {"", "b", 0, 10, []string{"b/four.md"}, 1},
		"a second page":  {"", "", 2, 1, []string{"a/two.txt"}, 4},
		"past the end":   {"", "", 9, 10, []string{}, 4},
		"of no folder":   {"", "c", 0, 10, []string{}, 0},
		"of no such one": {"*.pdf", "", 0, 10, []string{}, 0},
	} {
		got, err := fx.List(t.Context(), fx.org, files.Of(agent),
			files.ListQuery{Include: c.pattern, Folder: c.folder, Offset: c.offset, Limit: c.limit})
		if err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for _, f := range got.Files {
			names = append(names, f.FileName)
			if f.IsOpen != (f.FileName == "a/two.txt") || f.Status != files.Completed || f.Lines != 1 {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if diff := cmp.Diff(c.want, names); diff != "" || got.Total != c.total {
			t.Errorf("%s: total %d (-want +got):\n%s", name, got.Total, diff)
		}
	}
}
