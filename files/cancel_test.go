package files_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/files"
)

// stall lets no original be read until release is called.
func (fx *fixture) stall() (release func()) {
	fx.t.Helper()
	tx, err := fx.pool.Begin(fx.t.Context())
	if err != nil {
		fx.t.Fatal(err)
	}
	if _, err := tx.Exec(fx.t.Context(), `LOCK TABLE file_originals IN ACCESS EXCLUSIVE MODE`); err != nil {
		fx.t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(fx.t.Context()); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
			fx.t.Error(err)
		}
	}
}

// liveJobs counts the jobs that have not ended.
const liveJobs = `
	SELECT count(*) FROM river_job WHERE state IN ('available', 'pending', 'running', 'retryable', 'scheduled')`

func (fx *fixture) idle() {
	fx.t.Helper()
	embedtest.Eventually(fx.t, "all jobs end", func() bool { return fx.count(liveJobs) == 0 })
}

func TestCancelStopsAFileThatIsBeingParsed(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, files.Options{})
	folder := fx.folder("f")
	begun := fx.stallNext(folder, "a.txt")
	stalled := fx.awaitWhere(folder, begun.file, func(f files.File) bool { return f.Status == files.Parsing })
	got, err := fx.Cancel(t.Context(), org, folder.ID, stalled.ID)
	if err != nil || got.Status != files.Failed || !strings.HasPrefix(*got.ErrorMessage, "cancelled") {
		t.Errorf("got %+v (%v)", got, err)
	}
	fx.idle()
	begun.release()
	if n := fx.count(`SELECT count(*) FROM chunks c JOIN files f ON f.key = c.file_key WHERE f.id = $1`,
		stalled.ID); n != 0 {
		t.Errorf("a cancelled file got %d chunks", n)
	}
	if got, err = fx.Retry(t.Context(), org, folder.ID, stalled.ID); err != nil || got.Status == files.Failed {
		t.Errorf("tried again: got %+v (%v)", got, err)
	}
	if got = fx.await(folder, got); got.Status != files.Completed || got.ErrorMessage != nil {
		t.Errorf("tried again: got %+v", got)
	}
}

// stalled is a file whose parsing has begun and does not go on until release.
type stalled struct {
	file    files.File
	release func()
}

func (fx *fixture) stallNext(folder files.Folder, name string) stalled {
	fx.t.Helper()
	resume := fx.pause()
	f := fx.send(folder, name, "text\n", files.Suffix)
	release := fx.stall()
	resume()
	return stalled{f, release}
}

// A server that lost its lock on the database, and lives, works on jobs that another takes too: the text is stored
// once.
func TestAJobThatTwoServersWorkOnIsDoneOnce(t *testing.T) {
	t.Parallel()
	one := map[string]river.QueueConfig{files.QueueParse: {MaxWorkers: 1}} // so that the other server takes the job
	fx := newFixtureWith(t, files.Options{}, one)
	folder := fx.folder("f")
	s := fx.stallNext(folder, "a.txt")
	readers := func(n int) func() bool {
		return func() bool {
			return fx.count(`
				SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
				WHERE d.datname = current_database() AND l.relation = 'file_originals'::regclass AND NOT l.granted`) == n
		}
	}
	embedtest.Eventually(t, "the first reads", readers(1))
	other, err := files.New(fx.pool, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	again := fx.workers(other, one)
	if _, err := fx.pool.Exec(t.Context(),
		`UPDATE river_job SET state = 'available' WHERE state = 'running'`); err != nil {
		t.Fatal(err)
	}
	embedtest.Eventually(t, "both read", readers(2))
	s.release()
	if f := fx.await(folder, s.file); f.Status != files.Completed {
		t.Errorf("got %+v", f)
	}
	fx.idle()
	again()
	if n := fx.count(`SELECT count(*) FROM chunks`) + fx.count(`SELECT count(*) FROM file_segments`); n != 2 {
		t.Errorf("%d rows are stored, want a chunk and a segment", n)
	}
}

func TestACancelledReplacementLeavesTheOldFile(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, files.Options{})
	folder := fx.folder("f")
	old := fx.upload(folder, "a.txt", "old\n")
	resume := fx.pause()
	f := fx.send(folder, "a.txt", "new\n", files.Replace)
	f, err := fx.Cancel(t.Context(), org, folder.ID, f.ID)
	if err != nil || f.ErrorMessage == nil || !strings.Contains(*f.ErrorMessage, "is still in place") {
		t.Errorf("got %+v (%v)", f, err)
	}
	resume()
	fx.idle()
	if got := fx.content(folder, old); got != "old\n" {
		t.Errorf("the old file reads %q", got)
	}
	if _, err := fx.Retry(t.Context(), org, folder.ID, f.ID); err != nil {
		t.Error(err)
	}
	if f = fx.await(folder, f); f.Status != files.Completed || fx.content(folder, f) != "new\n" {
		t.Errorf("tried again: got %+v", f)
	}
	if _, err := fx.File(t.Context(), org, folder.ID, old.ID, false); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("the old file is still there (%v)", err)
	}
}

func TestCancelStopsEmbeddingWhichGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	fx, e, _ := newDenseFixture(t, 8)
	folder := fx.folder("f")
	e.Down.Store(true)
	f := fx.send(folder, "a.txt", manyLines(8000), files.Suffix)
	fx.awaitWhere(folder, f, func(f files.File) bool { return f.ErrorMessage != nil })
	f, err := fx.Cancel(t.Context(), org, folder.ID, f.ID)
	if err != nil || f.Status != files.Failed || !strings.HasPrefix(*f.ErrorMessage, "cancelled") {
		t.Errorf("got %+v (%v)", f, err)
	}
	e.Down.Store(false)
	fx.idle()
	asked := e.Requests.Load()
	if n, err := fx.Backfill(t.Context()); n != 0 || err != nil {
		t.Errorf("backfill queued %d batches of a cancelled file (%v)", n, err)
	}
	fx.idle()
	if n := fx.count(`SELECT count(*) FROM chunk_vectors`); n != 0 || e.Requests.Load() != asked {
		t.Errorf("a cancelled file got %d vectors", n)
	}
	if _, err := fx.Retry(t.Context(), org, folder.ID, f.ID); err != nil {
		t.Error(err)
	}
	f = fx.await(folder, f)
	if n := fx.count(`SELECT count(*) FROM chunk_vectors`); f.Status != files.Completed || n != f.TotalChunks {
		t.Errorf("tried again: got %+v with %d vectors", f, n)
	}
}

func TestReparsingKeepsTheTextUntilTheNewIsReady(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, files.Options{})
	folder := fx.folder("f")
	f, other := fx.upload(folder, "a.txt", "old\n"), fx.upload(folder, "b.txt", "old too\n")
	parser := func(makes string) {
		t.Helper()
		if _, err := fx.pool.Exec(t.Context(), `
			WITH original AS (UPDATE file_originals SET bytes = $1) UPDATE files SET size_bytes = $2`,
			[]byte(makes), len(makes)); err != nil {
			t.Fatal(err)
		}
	}
	parser("new\n")
	resume := fx.pause()
	if got, err := fx.Reparse(t.Context(), org, folder.ID, f.ID); err != nil || got.Status != files.Pending ||
		fx.content(folder, f) != "old\n" {
		t.Errorf("meanwhile: got %+v (%v), %q", got, err, fx.content(folder, f))
	}
	if _, err := fx.Reparse(t.Context(), org, folder.ID, f.ID); !errors.Is(err, db.ErrConflict) {
		t.Errorf("twice: got %v, want a conflict", err)
	}
	resume()
	if f = fx.await(folder, f); f.Status != files.Completed || fx.content(folder, f) != "new\n" {
		t.Errorf("got %+v, %q", f, fx.content(folder, f))
	}
	fx.idle()
	if n, err := fx.ReparseFolder(t.Context(), org, folder.ID); n != 2 || err != nil {
		t.Errorf("got %d files (%v)", n, err)
	}
	embedtest.Eventually(t, "both are new", func() bool { return fx.content(folder, other) == "new\n" })
	fx.idle()
	if n := fx.count(`SELECT count(*) FROM file_segments`); n != 2 {
		t.Errorf("%d segments are left of 2 files", n)
	}
	parser(strings.Repeat("\x00\x01\x02\xff", 100))
	if _, err := fx.Reparse(t.Context(), org, folder.ID, f.ID); err != nil {
		t.Fatal(err)
	}
	if f = fx.await(folder, f); f.Status != files.Failed || fx.content(folder, f) != "new\n" ||
		!strings.Contains(*f.ErrorMessage, "the earlier text is still in place") {
		t.Errorf("what cannot be read: got %+v, %q", f, fx.content(folder, f))
	}
}

func TestAFileIsDeletedWhileItIsInWork(t *testing.T) {
	t.Parallel()
	fx, e, _ := newDenseFixture(t, 8)
	folder := fx.folder("f")
	reached := make(chan struct{}, 16)
	hangs := embedtest.Fault(func(_ http.ResponseWriter, r *http.Request, _ []string) bool {
		reached <- struct{}{}
		<-r.Context().Done()
		return true
	})
	e.Fault.Store(&hangs)
	f := fx.send(folder, "a.txt", manyLines(500), files.Suffix)
	<-reached
	if err := fx.DeleteFile(t.Context(), org, folder.ID, f.ID); err != nil {
		t.Fatal(err)
	}
	fx.idle()
	for _, table := range []string{"files", "file_originals", "file_segments", "chunks", "chunk_vectors", "embed_batches",
		"embed_refusals"} {
		if n := fx.count(`SELECT count(*) FROM ` + table); n != 0 {
			t.Errorf("%d rows are left in %s", n, table)
		}
	}
}
