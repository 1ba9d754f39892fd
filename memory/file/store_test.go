package file_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	memoryfile "github.com/loci-memory/loci/memory/file"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// fixture is a store, and an organization with a tree of an agent.
type fixture struct {
	*testing.T
	pool  *pgxpool.Pool
	org   db.Org
	store *memoryfile.Store
	at    memoryfile.At // names the tree
}

// newFixture returns a fixture with an organization in the database that the package's tests share.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	pool, org := dbtest.Org(t)
	return fixtureOf(t, pool, org)
}

func fixtureOf(t *testing.T, pool *pgxpool.Pool, org db.Org) *fixture {
	t.Helper()
	f := &fixture{T: t, pool: pool, org: org, store: memoryfile.New(pool, memoryfile.Options{})}
	f.makeTree()
	return f
}

// makeTree gives the fixture the tree of a new agent.
func (f *fixture) makeTree() {
	f.Helper()
	agent := f.agent()
	tree, err := f.store.Writable(f.Context(), f.org, agent)
	if err != nil {
		f.Fatal(err)
	}
	f.at = memoryfile.At{Org: f.org, Tree: tree.ID, Author: db.Provenance{AgentID: agent, Tool: "memory_files"}}
}

func (f *fixture) agent() string {
	f.Helper()
	id, err := db.One[string](f.Context(), f.pool, `
		INSERT INTO agents (org, name, agent_type, system) VALUES ($1, 'Ada', 'letta_v1_agent', '') RETURNING id`, f.org)
	if err != nil {
		f.Fatal(err)
	}
	return id
}

func (f *fixture) write(path, content string) memoryfile.File {
	f.Helper()
	c, err := f.store.Write(f.Context(), f.at, path, content, "")
	if err != nil {
		f.Fatal(err)
	}
	return c.File
}

// files maps the path of each file to its text.
func (f *fixture) files() map[string]string {
	f.Helper()
	all, err := f.store.List(f.Context(), f.org, f.at.Tree, memoryfile.Root, db.Held{})
	if err != nil {
		f.Fatal(err)
	}
	texts := map[string]string{}
	for _, e := range all {
		file, err := f.store.File(f.Context(), f.org, f.at.Tree, e.Path)
		if err != nil {
			f.Fatal(err)
		}
		texts[e.Path] = file.Content
	}
	return texts
}

func (f *fixture) changes(of memoryfile.Of) (all []string) {
	f.Helper()
	versions, err := f.store.Versions(f.Context(), f.at, of, 0, 100)
	if err != nil {
		f.Fatal(err)
	}
	for _, v := range versions {
		all = append(all, fmt.Sprintf("%d %s %s", v.Version, v.Change, v.Path))
	}
	return all
}

func TestAFileKeepsItsIDAndItsVersions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	created := f.write("/memories/a.md", "one\n")
	f.write("/memories/a.md", "two\n")
	f.write("/memories/a.md", "two\n") // writing the same text again changes nothing
	if _, _, err := f.store.Rename(t.Context(), f.at, "/memories/a.md", "/memories/b/c.md"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.store.Delete(t.Context(), f.at, "/memories/b", ""); err != nil {
		t.Fatal(err)
	}
	of := memoryfile.Of{ID: created.ID}
	want := []string{"4 deleted /memories/b/c.md", "3 renamed /memories/b/c.md", "2 modified /memories/a.md",
		"1 created /memories/a.md"}
	if diff := cmp.Diff(want, f.changes(of)); diff != "" {
		t.Error(diff)
	}
	v, err := f.store.Version(t.Context(), f.at, of, 1)
	if err != nil || *v.Content != "one\n" || v.Author != f.at.Author {
		t.Errorf("version 1 is %+v, %v", v, err)
	}
	back, err := f.store.Restore(t.Context(), f.at, of, 1, "")
	if err != nil || back.File.ID != created.ID || back.File.Version != 5 || back.File.SHA256 != created.SHA256 {
		t.Errorf("restored: got %+v, %v", back, err)
	}
	if diff := cmp.Diff(map[string]string{"/memories/b/c.md": "one\n"}, f.files()); diff != "" {
		t.Error(diff)
	}
	text, err := f.store.Diff(t.Context(), f.at, memoryfile.Of{Path: "/memories/b/c.md"}, 2, 5)
	if err != nil || !strings.Contains(text, "-two\n+one\n") {
		t.Errorf("the difference is %q, %v", text, err)
	}
}

func TestAnExpectedTextThatChangedIsAConflict(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.write("/memories/a.md", "one")
	second := f.write("/memories/a.md", "two")
	_, err := f.store.Write(t.Context(), f.at, "/memories/a.md", "three", first.SHA256)
	mismatch, ok := errors.AsType[*memoryfile.MismatchError](err)
	if !ok || !errors.Is(err, db.ErrConflict) || mismatch.Current.Content != "two" {
		t.Errorf("a change of an older text: got %v", err)
	}
	if _, _, err := f.store.Delete(t.Context(), f.at, "/memories/a.md", first.SHA256); !errors.Is(err, db.ErrConflict) {
		t.Errorf("a deletion of an older text: got %v", err)
	}
	if c, err := f.store.Write(t.Context(), f.at, "/memories/a.md", "two", first.SHA256); err != nil ||
		c.File.Version != 2 {
		t.Errorf("the same change again: got %+v, %v", c, err)
	}
	if c, err := f.store.Write(t.Context(), f.at, "/memories/a.md", "three", second.SHA256); err != nil ||
		c.File.Version != 3 {
		t.Errorf("a change of the present text: got %+v, %v", c, err)
	}
}

func TestAnExpectedVersionThatChangedIsAConflict(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("/memories/a.md", "one")
	f.write("/memories/a.md", "two")
	write := func(path, content string, version int) (memoryfile.Changed, error) {
		return f.store.WriteDated(t.Context(), f.at, memoryfile.NewFile{Path: path, Content: content,
			ExpectedVersion: &version}, memoryfile.Dates{})
	}
	_, err := write("/memories/a.md", "three", 1)
	mismatch, ok := errors.AsType[*memoryfile.MismatchError](err)
	if !ok || mismatch.Current.Content != "two" || mismatch.Current.Version != 2 || mismatch.Version != 1 {
		t.Errorf("a change of an older version: got %v", err)
	}
	if c, err := write("/memories/a.md", "two", 1); err != nil || c.File.Version != 2 {
		t.Errorf("the same change again: got %+v, %v", c, err)
	}
	if c, err := write("/memories/a.md", "three", 2); err != nil || c.File.Version != 3 {
		t.Errorf("a change of the present version: got %+v, %v", c, err)
	}
	if _, err := write("/memories/none.md", "x", 1); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("a file that is not there: got %v", err)
	}
}

func TestPathsThatContradictEachOtherAreConflicts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("/memories/Notes/a.md", "a")
	for _, path := range []string{"/memories/notes/A.md", "/memories/notes", "/memories/Notes", "/memories/notes/a.md/b"} {
		if _, err := f.store.Create(t.Context(), f.at, path, "b", memoryfile.Dates{}); !errors.Is(err, db.ErrConflict) {
			t.Errorf("%s: got %v, want ErrConflict", path, err)
		}
	}
	if _, _, err := f.store.Delete(t.Context(), f.at, "/memories/", ""); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("the root: got %v, want ErrInvalid", err)
	}
	if _, _, err := f.store.Rename(t.Context(), f.at, "/memories/Notes", "/memories/Notes/b"); !errors.Is(err,
		db.ErrInvalid) {
		t.Errorf("a directory into itself: got %v, want ErrInvalid", err)
	}
	if renamed, _, err := f.store.Rename(t.Context(), f.at, "/memories/Notes/a.md", "/memories/notes/A.md"); err != nil ||
		renamed[0] != "/memories/notes/A.md" {
		t.Errorf("another case: got %v, %v", renamed, err)
	}
}

// A redacted text is in no table of the tree any more.
func TestARedactedTextIsGone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const secret = "hunter2-hunter2"
	f.write("/memories/a.md", "the password is "+secret+" and "+secret)
	f.write("/memories/a.md", "no password")
	f.write("/memories/b.md", "also "+secret)
	deleted := f.write("/memories/c.md", secret)
	if _, _, err := f.store.Delete(t.Context(), f.at, "/memories/c.md", ""); err != nil {
		t.Fatal(err)
	}
	got, err := f.store.Redact(t.Context(), f.at, secret)
	want := memoryfile.Redaction{Files: []string{"/memories/b.md"}, Versions: 3}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, table := range []string{"memory_files", "memory_file_versions", "memory_trees"} {
		n, err := db.One[int](t.Context(), f.pool, `
			SELECT count(*) FROM `+table+` t WHERE t.org = $1 AND strpos(to_jsonb(t)::text, 'hunter2') > 0`, f.org)
		if err != nil || n > 0 {
			t.Errorf("%d rows of %s have the text, %v", n, table, err)
		}
	}
	if diff := cmp.Diff(map[string]string{"/memories/a.md": "no password", "/memories/b.md": "also [REDACTED]"},
		f.files()); diff != "" {
		t.Error(diff)
	}
	v, err := f.store.Version(t.Context(), f.at, memoryfile.Of{ID: deleted.ID}, 1)
	if err != nil || *v.Content != "[REDACTED]" || !v.Redacted {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestATreeIsShared(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := f.agent()
	if err := f.store.Attach(t.Context(), f.org, other, f.at.Tree, true); err != nil {
		t.Fatal(err)
	}
	f.write("/memories/a.md", "a")
	if _, err := f.store.Writable(t.Context(), f.org, other); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("an agent that may only read: got %v, want ErrInvalid", err)
	}
	types, err := db.All[string](t.Context(), f.pool, `SELECT type FROM events WHERE agent_id = $1 ORDER BY seq`, other)
	if diff := cmp.Diff([]string{"memory_tree_attached", "memory_file_changed"}, types); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	second, err := f.store.CreateTree(t.Context(), f.org, "second", memoryfile.TreeUpdate{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.store.Attach(t.Context(), f.org, other, second.ID, false); !errors.Is(err, db.ErrConflict) {
		t.Errorf("a second tree: got %v, want ErrConflict", err)
	}
	if err := f.store.Detach(t.Context(), f.org, other, second.ID); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("a tree that is not attached: got %v, want ErrNotFound", err)
	}
	if err := f.store.DeleteTree(t.Context(), f.org, f.at.Tree); err != nil {
		t.Fatal(err)
	}
	if _, err := f.store.OfAgent(t.Context(), f.org, other); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("the deleted tree: got %v, want ErrNotFound", err)
	}
}

// Two servers lose no edit of a file that agents share, and create one tree for an agent. Here they are two stores with
// their own pools.
func TestWritersOfASharedTreeLoseNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	pool, err := db.Connect(t.Context(), f.pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	stores := []*memoryfile.Store{f.store, memoryfile.New(pool, memoryfile.Options{})}
	agents := []string{f.agent(), f.agent(), f.agent()}
	for _, agent := range agents {
		if err := f.store.Attach(t.Context(), f.org, agent, f.at.Tree, false); err != nil {
			t.Fatal(err)
		}
	}
	f.write("/memories/log.md", "")
	fresh := f.agent()
	var group errgroup.Group
	group.SetLimit(8) // each has a connection
	for writer := range 48 {
		group.Go(func() error {
			at := f.at
			at.Author.AgentID = agents[writer%3]
			_, err := stores[writer%2].Edit(t.Context(), at, "/memories/log.md", func(content string) (string, error) {
				return memoryfile.Insert("log", content, fmt.Sprintf("writer %d.", writer), len(memoryfile.Lines(content)))
			})
			if err != nil {
				return err
			}
			_, err = stores[writer%2].Create(t.Context(), at, fmt.Sprintf("/memories/%d/a.md", writer), "a",
				memoryfile.Dates{})
			if err == nil {
				_, err = stores[writer%2].Writable(context.Background(), f.org, fresh)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	files := f.files()
	for writer := range 48 {
		if !strings.Contains(files["/memories/log.md"], fmt.Sprintf("writer %d.", writer)) {
			t.Errorf("the edit of writer %d is lost", writer)
		}
	}
	trees, err := f.store.Trees(t.Context(), f.org, db.Page{})
	if len(files) != 49 || len(trees) != 2 || err != nil {
		t.Errorf("%d files in %d trees, %v", len(files), len(trees), err)
	}
}

func TestATreeHasLimits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if _, err := f.store.Write(t.Context(), f.at, "/memories/a", strings.Repeat("a", memoryfile.MaxFileBytes+1),
		""); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("a long file: got %v, want ErrInvalid", err)
	}
	long := strings.Repeat("a", memoryfile.MaxFileBytes)
	err := error(nil)
	for i := 0; err == nil && i < 200; i++ {
		_, err = f.store.Write(t.Context(), f.at, fmt.Sprintf("/memories/%d", i), long, "")
	}
	if !errors.Is(err, db.ErrInvalid) || len(f.files()) != memoryfile.MaxTreeBytes/memoryfile.MaxFileBytes {
		t.Errorf("%d long files: got %v, want ErrInvalid", len(f.files()), err)
	}
}

func TestFilesAreFoundByTheirWords(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("/memories/a.md", "# Animals\n\nA zebra has stripes.\nA lion has none.\n")
	f.write("/memories/b.md", "The lion sleeps.\n")
	deleted := f.write("/memories/c.md", "Zebras, zebras, zebras.")
	if _, _, err := f.store.Delete(t.Context(), f.at, deleted.Path, ""); err != nil {
		t.Fatal(err)
	}
	found, err := f.store.Search(t.Context(), f.org, f.at.Tree, memoryfile.Query{Text: "zebra stripes", Limit: 10})
	hits := found.Hits
	want := []memoryfile.HitLine{{Line: 3, Text: "A zebra has stripes."}}
	if err != nil || len(hits) != 1 || hits[0].Path != "/memories/a.md" || !cmp.Equal(hits[0].Lines, want) {
		t.Errorf("got %+v, %v", hits, err)
	}
	f.write("/memories/a.md", "nothing")
	found, err = f.store.Search(t.Context(), f.org, f.at.Tree, memoryfile.Query{Text: "zebra", Limit: 10})
	if err != nil || len(found.Hits) > 0 {
		t.Errorf("after the file was changed: got %+v, %v", found, err)
	}
}

// ReweighWords weighs files again that an older version of Loci weighed.
func TestFilesOfAnOlderVersionAreWeighedAnew(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("/memories/animals/zoo.md", "The zebra has stripes.\n")
	if _, err := f.pool.Exec(t.Context(), `
		UPDATE memory_files SET lex_version = 1, lex = '{}/16777216', terms = '{}' WHERE org = $1`, f.org); err != nil {
		t.Fatal(err)
	}
	found := func() int {
		got, err := f.store.Search(t.Context(), f.org, f.at.Tree, memoryfile.Query{Text: "zebra", Limit: 5})
		if err != nil {
			t.Fatal(err)
		}
		return len(got.Hits)
	}
	before := found()
	n, err := f.store.ReweighWords(t.Context())
	if err != nil || n == 0 || before != 0 || found() != 1 {
		t.Errorf("%d files are weighed anew (%v), %d found before, %d after, want some, 0 and 1", n, err, before, found())
	}
}
