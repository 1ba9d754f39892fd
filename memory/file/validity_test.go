package file_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/loci-memory/loci/db"
	memoryfile "github.com/loci-memory/loci/memory/file"
)

// may returns day n, counted from May 1, 2024.
func may(n int) *time.Time { return new(time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, n)) }

// shown returns the paths in a list, and the paths that a search finds.
func (f *fixture) shown(held db.Held) (listed, found []string) {
	f.Helper()
	entries, err := f.store.List(f.Context(), f.org, f.at.Tree, memoryfile.Root, held)
	if err != nil {
		f.Fatal(err)
	}
	hits, err := f.store.Search(f.Context(), f.org, f.at.Tree, memoryfile.Query{Text: "ferry", Held: held,
		Limit: max(len(entries), 1)})
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range entries {
		listed = append(listed, e.Path)
	}
	for _, h := range hits.Hits {
		found = append(found, h.Path)
	}
	slices.Sort(found)
	return listed, found
}

// At every asOf, lists and searches show exactly the files that hold then.
func TestNoSearchShowsAFileThatDoesNotHold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	day := rapid.IntRange(0, 20)
	rapid.Check(t, func(r *rapid.T) {
		tree, err := f.store.CreateTree(t.Context(), f.org, "facts", memoryfile.TreeUpdate{})
		if err != nil {
			r.Fatal(err)
		}
		f.at.Tree = tree.ID
		holds := map[string]db.Validity{}
		for i := range rapid.IntRange(0, 8).Draw(r, "files") {
			var v db.Validity
			d := memoryfile.Dates{}
			if rapid.Bool().Draw(r, "begins") {
				v.ValidFrom = may(day.Draw(r, "from"))
				d.From = &db.Bound{At: v.ValidFrom}
			}
			if rapid.Bool().Draw(r, "ends") {
				v.ValidUntil = may(day.Draw(r, "until"))
				d.Until = &db.Bound{At: v.ValidUntil}
			}
			path := fmt.Sprintf("/memories/%d.md", i)
			_, err := f.store.Create(t.Context(), f.at, path, fmt.Sprintf("ferry %d\n", i), d)
			if bad := v.Check() != nil; bad != (err != nil) {
				r.Fatalf("%+v: %v", v, err)
			} else if !bad {
				holds[path] = v
			}
		}
		for _, held := range []db.Held{{}, {All: true}, {AsOf: may(day.Draw(r, "as of"))}, {AsOf: may(-1)}} {
			asOf := time.Now()
			if held.AsOf != nil {
				asOf = *held.AsOf
			}
			var want []string
			for path, v := range holds {
				begun := v.ValidFrom == nil || !v.ValidFrom.After(asOf)
				if held.All || begun && (v.ValidUntil == nil || v.ValidUntil.After(asOf)) {
					want = append(want, path)
				}
			}
			slices.Sort(want)
			if listed, found := f.shown(held); !slices.Equal(listed, want) || !slices.Equal(found, want) {
				r.Fatalf("%+v: listed %q, found %q, want %q", held, listed, found, want)
			}
		}
	})
}

// A superseded file disappears from lists, searches and the index in the prompt. It can still be read.
func TestASupersededFileIsNotShown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("/memories/old.md", "the ferry leaves at noon\n")
	c, err := f.store.Create(t.Context(), f.at, "/memories/new.md", "the ferry leaves at one\n",
		memoryfile.Dates{Supersedes: "/memories/old.md"})
	if err != nil {
		t.Fatal(err)
	}
	f.write("/memories/MEMORY.md", "# Memory\n\n- Ferries: old.md\n- News: new.md\n")
	listed, found := f.shown(db.Held{})
	if diff := cmp.Diff([]string{"/memories/MEMORY.md", "/memories/new.md"}, listed); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	if slices.Contains(found, "/memories/old.md") {
		t.Errorf("found %q", found)
	}
	index, err := f.store.Index(t.Context(), f.org, f.at.Author.AgentID)
	if err != nil || strings.Contains(index.Content, "old.md") || !strings.Contains(index.Content, "new.md") {
		t.Errorf("the prompt's index: %q, %v", index.Content, err)
	}
	was, err := f.store.File(t.Context(), f.org, f.at.Tree, "/memories/old.md")
	if err != nil || !was.Ended || was.SupersededBy == nil || *was.SupersededBy != "/memories/new.md" ||
		!was.ValidUntil.Equal(*c.File.ValidFrom) {
		t.Errorf("the old file: %+v, %v", was, err)
	}
	versions, err := f.store.Versions(t.Context(), f.at, memoryfile.Of{Path: "/memories/old.md"}, 0, 10)
	if err != nil || len(versions) != 2 || versions[0].Change != "validity" || versions[0].ValidUntil == nil ||
		versions[0].Author.AgentID != f.at.Author.AgentID {
		t.Errorf("its versions: %+v, %v", versions, err)
	}
	if l, err := f.store.Lint(t.Context(), f.org, f.at.Tree); err != nil || !slices.Equal(l.Ended,
		[]string{"/memories/old.md"}) {
		t.Errorf("lint: %+v, %v", l, err)
	}
}

// The prompt's index lacks a line only if none of the files that it points to holds.
func TestTheIndexShowsLinesThatPointToAFileThatHolds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, name := range []string{"holds", "ended", "past"} {
		f.write("/memories/"+name+".md", "text\n")
	}
	f.write("/memories/MEMORY.md", "# Memory\n\n- one: ended.md\n- two: ended.md, past.md\n"+
		"- first: holds.md, ended.md\n- last: past.md, ended.md, holds.md\n- only: holds.md\n")
	for _, name := range []string{"ended", "past"} {
		if _, err := f.store.Date(t.Context(), f.at, "/memories/"+name+".md",
			memoryfile.Dates{Until: &db.Bound{At: may(1)}}); err != nil {
			t.Fatal(err)
		}
	}
	const want = "# Memory\n\n- first: holds.md, ended.md\n- last: past.md, ended.md, holds.md\n- only: holds.md\n"
	index, err := f.store.Index(t.Context(), f.org, f.at.Author.AgentID)
	if err != nil || index.Content != want {
		t.Errorf("got %q, %v, want %q", index.Content, err, want)
	}
}

// A change that breaks a rule of validity changes nothing, and the error names the field.
func TestValidityOfFilesIsChecked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, name := range []string{"a", "b", "c"} {
		f.write("/memories/"+name+".md", name)
	}
	by := func(path string) memoryfile.Dates { return memoryfile.Dates{SupersededBy: &path} }
	for _, pair := range [][2]string{{"a", "b"}, {"b", "c"}} {
		if _, err := f.store.Date(t.Context(), f.at, "/memories/"+pair[0]+".md", by("/memories/"+pair[1]+".md")); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range []struct {
		name, path, field string
		dates             memoryfile.Dates
	}{
		{"a loop", "c", "superseded_by", by("/memories/a.md")},
		{"itself", "c", "superseded_by", by("/memories/c.md")},
		{"a file that is not there", "c", "superseded_by", by("/memories/x.md")},
		{"no path", "c", "superseded_by", by("/etc/passwd")},
		{"an end before the beginning", "c", "valid_until",
			memoryfile.Dates{From: &db.Bound{At: may(2)}, Until: &db.Bound{At: may(1)}}},
		{"no end of what is superseded", "a", "valid_until", memoryfile.Dates{Until: &db.Bound{}}},
		{"a new file that supersedes none", "x", "supersedes", memoryfile.Dates{Supersedes: "/memories/y.md"}},
		{"a new file that supersedes itself", "x", "supersedes", memoryfile.Dates{Supersedes: "/memories/x.md"}},
	} {
		path := "/memories/" + w.path + ".md"
		_, err := f.store.Date(t.Context(), f.at, path, w.dates)
		if w.path == "x" {
			_, err = f.store.Create(t.Context(), f.at, path, "x", w.dates)
		}
		if field, ok := errors.AsType[*db.FieldError](err); !ok || field.Field != w.field {
			t.Errorf("%s: got %v, want an error of %s", w.name, err, w.field)
		}
	}
	if listed, _ := f.shown(db.Held{}); !slices.Equal(listed, []string{"/memories/c.md"}) {
		t.Errorf("what holds: %q", listed)
	}
}

// Without its successor, a file holds on. An end of its own, before the successor begins, stays.
func TestAFileHoldsOnWithoutItsSuccessor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		until            *time.Time // before the successor, which begins on day 5
		superseded, want *time.Time // the end with the successor, and after it
	}{
		{"no end", nil, may(5), nil},
		{"an earlier end", may(3), may(3), may(3)},
		{"the same end", may(5), may(5), nil},
		{"a later end", may(7), may(5), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if _, err := f.store.Create(t.Context(), f.at, "/memories/old.md", "old\n",
				memoryfile.Dates{Until: &db.Bound{At: c.until}}); err != nil {
				t.Fatal(err)
			}
			if _, err := f.store.Create(t.Context(), f.at, "/memories/new.md", "new\n",
				memoryfile.Dates{From: &db.Bound{At: may(5)}, Supersedes: "/memories/old.md"}); err != nil {
				t.Fatal(err)
			}
			isUntil := func(want *time.Time, superseded bool) {
				t.Helper()
				old, err := f.store.File(t.Context(), f.org, f.at.Tree, "/memories/old.md")
				if err != nil || (old.SupersededBy != nil) != superseded || (old.ValidUntil == nil) != (want == nil) ||
					want != nil && !old.ValidUntil.Equal(*want) {
					t.Errorf("got %+v, %v, want the end %v", old, err, want)
				}
			}
			isUntil(c.superseded, true)
			if _, err := f.store.Date(t.Context(), f.at, "/memories/old.md",
				memoryfile.Dates{SupersededBy: new("")}); err != nil {
				t.Fatal(err)
			}
			isUntil(c.want, false)
		})
	}
}

// If many requests supersede a file at once, one wins. The others get the file as it is now, and store nothing.
func TestOneOfManySupersedesAFile(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("/memories/old.md", "noon")
	var group errgroup.Group
	won := make([]bool, 6)
	for i := range won {
		group.Go(func() error {
			_, err := f.store.Create(t.Context(), f.at, fmt.Sprintf("/memories/%d.md", i), "x",
				memoryfile.Dates{Supersedes: "/memories/old.md"})
			lost, ok := errors.AsType[*memoryfile.SupersededError](err)
			if won[i] = err == nil; won[i] || ok && lost.Current.SupersededBy != nil && errors.Is(err, db.ErrConflict) {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	listed, _ := f.shown(db.Held{})
	if i := slices.Index(won, true); !slices.Equal(listed, []string{fmt.Sprintf("/memories/%d.md", i)}) {
		t.Errorf("%v won, listed %q", won, listed)
	}
}
