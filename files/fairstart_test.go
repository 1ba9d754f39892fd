package files_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/files"
)

// worked returns the names of some organizations' files in the order in which they were parsed.
func (fx *fixture) worked(orgs ...db.Org) []string {
	fx.t.Helper()
	names, err := db.All[string](fx.t.Context(), fx.pool, `
		SELECT f.name FROM river_job j JOIN files f ON f.key = (j.args ->> 'file_key')::bigint
		WHERE j.kind = 'parse_file' AND f.org = ANY ($1)
		ORDER BY j.attempted_at, j.id`, orgs)
	if err != nil {
		fx.t.Fatal(err)
	}
	return names
}

var oneEach = map[string]river.QueueConfig{files.QueueParse: {MaxWorkers: 1}, files.QueueLarge: {MaxWorkers: 1},
	files.QueueEmbed: {MaxWorkers: 1}}

// All jobs of a queue take turns with each other. So these tests have their own database and run one after the other.
func TestTurns(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *pgxpool.Pool)
	}{
		{"folders take turns", foldersTakeTurns},
		{"organizations take turns", organizationsTakeTurns},
		{"batches take turns", batchesTakeTurns},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, pool) })
	}
}

// A folder with many waiting files delays another folder's one file by one file, and a few files by as many.
func foldersTakeTurns(t *testing.T, pool *pgxpool.Pool) {
	fx := newFixtureIn(t, pool, files.Options{})
	many, one, few := fx.folder("many"), fx.folder("one"), fx.folder("few")
	for i := range 12 {
		fx.send(many, fmt.Sprintf("many %d.txt", i), "text\n", files.Suffix)
	}
	fx.send(one, "one.txt", "text\n", files.Suffix)
	for i := range 3 {
		// The second costs 4.
		fx.send(few, fmt.Sprintf("few %d.txt", i), strings.Repeat("a long file's line\n", 12000*(i%2)+1), files.Suffix)
	}
	fx.work(oneEach)
	fx.idle()
	want := []string{"many 0.txt", "one.txt", "many 1.txt", "few 0.txt", "many 2.txt", "many 3.txt", "many 4.txt",
		"few 1.txt", "many 5.txt", "many 6.txt"}
	if diff := cmp.Diff(want, fx.worked(fx.org)[:len(want)]); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}
}

// An organization with many folders gets no more of the workers than one with a single folder.
func organizationsTakeTurns(t *testing.T, pool *pgxpool.Pool) {
	fx := newFixtureIn(t, pool, files.Options{})
	for i := range 16 {
		fx.send(fx.folder(fmt.Sprintf("folder %d", i)), fmt.Sprintf("many %d.txt", i), "text\n", files.Suffix)
	}
	other := *fx
	other.org = dbtest.NewOrg(t, pool)
	single := other.folder("single")
	for i := range 6 {
		other.send(single, fmt.Sprintf("single %d.txt", i), "text\n", files.Suffix)
	}
	fx.work(oneEach)
	fx.idle()
	other.idle()
	worked := fx.worked(fx.org, other.org)
	for i := range 6 {
		name := fmt.Sprintf("single %d.txt", i)
		if place := slices.Index(worked, name); place < 0 || place > 2*i+2 {
			t.Errorf("%s is number %d of %v; want the organizations to take turns", name, place, worked)
		}
	}
}

// Small files are parsed while nobody works on large ones.
func TestALargeFileHoldsNobodyBack(t *testing.T) {
	t.Parallel()
	fx := newOwnFixture(t, files.Options{}, map[string]river.QueueConfig{files.QueueParse: {MaxWorkers: 1}})
	folder := fx.folder("f")
	large := fx.send(folder, "large.txt", strings.Repeat("a line of a large file\n", 60_000), files.Suffix)
	if f := fx.upload(folder, "small.txt", "text\n"); f.Status != files.Completed {
		t.Errorf("the small file: got %+v", f)
	}
	if f, err := fx.File(t.Context(), fx.org, folder.ID, large.ID, false); err != nil || f.Status != files.Pending {
		t.Errorf("the large file: got %+v (%v)", f, err)
	}
}

// The batches of a long file take turns with those of other files, in its folder and in others.
func batchesTakeTurns(t *testing.T, pool *pgxpool.Pool) {
	e := embedtest.New(t, 8)
	endpoint := e.Endpoint(t)
	fx := newFixtureIn(t, pool, files.Options{Endpoint: endpoint})
	endpoint.Use(fx.space(e, "fake"))
	fx.work(map[string]river.QueueConfig{files.QueueParse: {MaxWorkers: 1}, files.QueueLarge: {MaxWorkers: 1}})
	folder, beside := fx.finelyCut("f"), fx.finelyCut("beside")
	parsed := func(folder files.Folder, name, text string) files.File {
		f := fx.send(folder, name, text, files.Suffix)
		return fx.awaitWhere(folder, f, func(f files.File) bool { return f.Status == files.Embedding })
	}
	long := parsed(folder, "long.txt", manyLines(20_000))
	parsed(folder, "short.txt", "the short one\n")
	parsed(beside, "other.txt", "the other one\n")
	fx.work(map[string]river.QueueConfig{files.QueueEmbed: {MaxWorkers: 1}})
	fx.await(folder, long)
	asked := e.Asked()
	position := func(text string) int {
		return slices.IndexFunc(asked, func(texts []string) bool { return strings.Contains(texts[0], text) })
	}
	// A job of the long file makes several requests. The other file comes after its first batch, the short one after the
	// four that were called.
	if other, short := position("the other"), position("the short"); other < 1 || short <= 3*other || short > 6*other ||
		2*short > len(asked) {
		t.Errorf("of %d requests, the other file's was number %d and the short one's number %d", len(asked), other, short)
	}
}
