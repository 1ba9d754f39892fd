package files_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/files"
)

// worked are the names of files in the order in which they were parsed.
func (fx *fixture) worked() []string {
	fx.t.Helper()
	names, err := db.All[string](fx.t.Context(), fx.pool, `
		SELECT f.name FROM river_job j JOIN files f ON f.key = (j.args ->> 'file_key')::bigint
		WHERE j.kind = 'parse_file'
		ORDER BY j.attempted_at, j.id`)
	if err != nil {
		fx.t.Fatal(err)
	}
	return names
}

var oneEach = map[string]river.QueueConfig{files.QueueParse: {MaxWorkers: 1}, files.QueueLarge: {MaxWorkers: 1},
	files.QueueEmbed: {MaxWorkers: 1}}

// A folder with many files waiting holds back another folder's one by one file, and others' few by as many.
func TestFoldersTakeTurns(t *testing.T) {
	t.Parallel()
	fx := newFixtureWith(t, files.Options{}, oneEach)
	resume := fx.pause()
	many, one, few := fx.folder("many"), fx.folder("one"), fx.folder("few")
	for i := range 30 {
		fx.send(many, fmt.Sprintf("many %d.txt", i), "text\n", files.Suffix)
	}
	b := fx.send(one, "one.txt", "text\n", files.Suffix)
	for i := range 3 {
		// the second costs 4
		fx.send(few, fmt.Sprintf("few %d.txt", i), strings.Repeat("a long file's line\n", 12000*(i%2)+1), files.Suffix)
	}
	resume()
	fx.await(one, b)
	embedtest.Eventually(t, "all are parsed", func() bool {
		return fx.count(`SELECT count(*) FROM files WHERE generation = 0`) == 0
	})
	want := []string{"many 0.txt", "one.txt", "many 1.txt", "few 0.txt", "many 2.txt", "many 3.txt", "many 4.txt",
		"few 1.txt", "many 5.txt", "many 6.txt"}
	if diff := cmp.Diff(want, fx.worked()[:len(want)]); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}
}

// An organization with many folders has no more of the workers than one with a single folder.
func TestOrganizationsTakeTurns(t *testing.T) {
	t.Parallel()
	fx := newFixtureWith(t, files.Options{}, oneEach)
	resume := fx.pause()
	other, err := db.One[db.Org](t.Context(), fx.pool, `INSERT INTO organizations (name) VALUES ('other') RETURNING org`)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		fx.send(fx.folder(fmt.Sprintf("folder %d", i)), fmt.Sprintf("many %d.txt", i), "text\n", files.Suffix)
	}
	single, err := fx.CreateFolder(t.Context(), other, files.NewFolder{Name: "single"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if _, _, err := fx.Upload(t.Context(), other, single.ID, files.Upload{Name: fmt.Sprintf("single %d.txt", i),
			Body: strings.NewReader("text\n"), Duplicates: files.Suffix}); err != nil {
			t.Fatal(err)
		}
	}
	resume()
	embedtest.Eventually(t, "all are parsed", func() bool {
		return fx.count(`SELECT count(*) FROM files WHERE generation = 0`) == 0
	})
	worked := fx.worked()
	for i := range 10 {
		name := fmt.Sprintf("single %d.txt", i)
		if at := slices.Index(worked, name); at > 2*i+2 {
			t.Errorf("%s is number %d of %v; want the organizations to take turns", name, at, worked)
		}
	}
}

// While nobody works on large files, small ones go on.
func TestALargeFileHoldsNobodyBack(t *testing.T) {
	t.Parallel()
	fx := newFixtureWith(t, files.Options{}, map[string]river.QueueConfig{files.QueueParse: {MaxWorkers: 1}})
	folder := fx.folder("f")
	large := fx.send(folder, "large.txt", strings.Repeat("a line of a large file\n", 60_000), files.Suffix)
	if f := fx.upload(folder, "small.txt", "text\n"); f.Status != files.Completed {
		t.Errorf("the small file: got %+v", f)
	}
	if f, err := fx.File(t.Context(), org, folder.ID, large.ID, false); err != nil || f.Status != files.Pending {
		t.Errorf("the large file: got %+v (%v)", f, err)
	}
}

// The batches of a long file take turns with those of other files, in its folder and in others.
func TestBatchesTakeTurns(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 8)
	fx, _ := newDenseFixtureWith(t, e, e.Endpoint(t), oneEach)
	resume := fx.pauseQueue(files.QueueEmbed)
	folder, beside := fx.folder("f"), fx.folder("beside")
	parsed := func(folder files.Folder, name, text string) files.File {
		f := fx.send(folder, name, text, files.Suffix)
		return fx.awaitWhere(folder, f, func(f files.File) bool { return f.Status == files.Embedding })
	}
	long := parsed(folder, "long.txt", manyLines(80_000))
	parsed(folder, "short.txt", "the short one\n")
	parsed(beside, "other.txt", "the other one\n")
	resume()
	fx.await(folder, long)
	asked := e.Asked()
	at := func(text string) int {
		return slices.IndexFunc(asked, func(texts []string) bool { return strings.Contains(texts[0], text) })
	}
	// A job of the long file takes several requests: the other comes after its first batch, the short one after the four
	// that were called.
	if other, short := at("the other"), at("the short"); other < 1 || short <= 3*other || short > 6*other ||
		2*short > len(asked) {
		t.Errorf("of %d requests, the other file's was number %d and the short one's number %d", len(asked), other, short)
	}
}
