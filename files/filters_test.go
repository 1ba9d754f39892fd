package files_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

func TestFiltersNarrowASearchOfFiles(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	one, two := fx.folder("one"), fx.folder("two")
	for _, f := range []struct {
		folder         files.Folder
		name, metadata string
	}{{one, "a.md", `{"year": 2024, "by": "Ann"}`}, {one, "b.md", `{"year": 2025}`}, {one, "c.md", ``},
		{two, "a.md", `{"year": 2025, "by": "Bob"}`}} {
		file := fx.upload(f.folder, f.name, "the walnut tree\n")
		if f.metadata == "" {
			continue
		}
		if _, err := fx.UpdateFile(t.Context(), fx.org, f.folder.ID, file.ID,
			files.FileUpdate{Metadata: json.RawMessage(f.metadata)}); err != nil {
			t.Fatal(err)
		}
	}
	agent := fx.agentWith(one, two)
	names := func(hits []files.Hit) string {
		var all []string
		for _, h := range hits {
			all = append(all, h.FileName)
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	for _, row := range []struct{ filter, include, want, inOne string }{
		{`{"metadata.year": 2025}`, "", "one/b.md two/a.md", "one/b.md"},
		{`{"metadata.year": {"lt": 2025}}`, "", "one/a.md", "one/a.md"},
		{`{"metadata.by": {"exists": false}}`, "", "one/b.md one/c.md", "one/b.md one/c.md"},
		{`{"folder": "two"}`, "", "two/a.md", ""}, {`{"file": ["one/c.md", "b.md"]}`, "", "one/b.md one/c.md",
			"one/b.md one/c.md"},
		{`{"not": {"folder": ["` + two.ID + `"]}, "size_bytes": {"gt": 1}}`, "a.md", "one/a.md",
			"one/a.md one/b.md one/c.md"},
		{`{"created_at": {"lt": "2001-01-01"}}`, "", "", ""}, {`{"media_type": {"prefix": "text/"}}`, "*b.md", "one/b.md",
			"one/a.md one/b.md one/c.md"},
	} {
		q := files.Query{Text: "walnut", Limit: 10, Include: row.include,
			Narrowing: files.Narrowing{Filter: json.RawMessage(row.filter)}}
		got, err := fx.Search(t.Context(), fx.org, files.Of(agent), q)
		if diff := cmp.Diff(row.want, names(got.Hits)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", row.filter, err, diff)
		}
		got, err = fx.SearchFolder(t.Context(), fx.org, one.ID, q)
		if diff := cmp.Diff(row.inOne, names(got.Hits)); diff != "" || err != nil {
			t.Errorf("%s in one folder: %v (-want +got):\n%s", row.filter, err, diff)
		}
		list, err := fx.List(t.Context(), fx.org, files.Of(agent),
			files.ListQuery{Include: row.include, Limit: 10, Narrowing: q.Narrowing})
		if want := len(strings.Fields(row.want)); len(list.Files) != want || list.Total != want || err != nil {
			t.Errorf("%s: got a list of %d of %d files, %v, want %d", row.filter, len(list.Files), list.Total, err, want)
		}
	}
	for _, filter := range []string{`{"metdata.year": 1}`, `{"tags": "x"}`} {
		q := files.Query{Text: "walnut", Narrowing: files.Narrowing{Filter: json.RawMessage(filter)}}
		if _, err := fx.Search(t.Context(), fx.org, files.Of(agent), q); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", filter, err)
		}
		if _, err := fx.SearchFolder(t.Context(), fx.org, one.ID, q); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%s in a folder: got %v, want ErrInvalid", filter, err)
		}
	}
}
