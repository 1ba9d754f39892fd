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
func (w *world) stall() (release func()) {
	w.t.Helper()
	tx, err := w.pool.Begin(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := tx.Exec(w.t.Context(), `LOCK TABLE file_originals IN ACCESS EXCLUSIVE MODE`); err != nil {
		w.t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(w.t.Context()); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
			w.t.Error(err)
		}
	}
}

const liveJobs = `SELECT count(*) FROM river_job WHERE state IN ('available', 'pending', 'running', 'retryable', 'scheduled')`

func (w *world) idle() {
	w.t.Helper()
	w.eventually("all jobs end", func() bool { return w.count(liveJobs) == 0 })
}

func TestCancelStopsAFileThatIsBeingParsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, files.Options{})
	folder := w.folder("f")
	begun := w.stallNext(folder, "a.txt")
	stalled := w.awaitWhere(folder, begun.file, func(f files.File) bool { return f.Status == files.Parsing })
	got, err := w.Cancel(t.Context(), org, folder.ID, stalled.ID)
	if err != nil || got.Status != files.Failed || !strings.HasPrefix(*got.ErrorMessage, "cancelled") {
		t.Errorf("got %+v (%v)", got, err)
	}
	w.idle()
	begun.release()
	if n := w.count(`SELECT count(*) FROM chunks c JOIN files f ON f.key = c.file_key WHERE f.id = $1`, stalled.ID); n != 0 {
		t.Errorf("a cancelled file got %d chunks", n)
	}
	if got, err = w.Retry(t.Context(), org, folder.ID, stalled.ID); err != nil || got.Status == files.Failed {
		t.Errorf("tried again: got %+v (%v)", got, err)
	}
	if got = w.await(folder, got); got.Status != files.Completed || got.ErrorMessage != nil {
		t.Errorf("tried again: got %+v", got)
	}
}

// stalled is a file whose parsing has begun and does not go on until release.
type stalled struct {
	file    files.File
	release func()
}

func (w *world) stallNext(folder files.Folder, name string) stalled {
	w.t.Helper()
	resume := w.pause()
	f := w.send(folder, name, "text\n", files.Suffix)
	release := w.stall()
	resume()
	return stalled{f, release}
}

// A server that lost its lock on the database, and lives, works on jobs that another takes too: the text is stored
// once.
func TestAJobThatTwoServersWorkOnIsDoneOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, files.Options{})
	folder := w.folder("f")
	s := w.stallNext(folder, "a.txt")
	readers := func(n int) func() bool {
		return func() bool {
			return w.count(`SELECT count(*) FROM pg_locks WHERE relation = 'file_originals'::regclass AND NOT granted`) == n
		}
	}
	w.eventually("the first reads", readers(1))
	other, err := files.New(w.pool, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	again := w.workers(other, map[string]river.QueueConfig{files.QueueParse: {MaxWorkers: 1}})
	if _, err := w.pool.Exec(t.Context(), `UPDATE river_job SET state = 'available' WHERE state = 'running'`); err != nil {
		t.Fatal(err)
	}
	w.eventually("both read", readers(2))
	s.release()
	if f := w.await(folder, s.file); f.Status != files.Completed {
		t.Errorf("got %+v", f)
	}
	w.idle()
	again()
	if n := w.count(`SELECT count(*) FROM chunks`) + w.count(`SELECT count(*) FROM file_segments`); n != 2 {
		t.Errorf("%d rows are stored, want a chunk and a segment", n)
	}
}

func TestACancelledReplacementLeavesTheOldFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, files.Options{})
	folder := w.folder("f")
	old := w.upload(folder, "a.txt", "old\n")
	resume := w.pause()
	f := w.send(folder, "a.txt", "new\n", files.Replace)
	f, err := w.Cancel(t.Context(), org, folder.ID, f.ID)
	if err != nil || f.ErrorMessage == nil || !strings.Contains(*f.ErrorMessage, "is still in place") {
		t.Errorf("got %+v (%v)", f, err)
	}
	resume()
	w.idle()
	if got := w.content(folder, old); got != "old\n" {
		t.Errorf("the old file reads %q", got)
	}
	if _, err := w.Retry(t.Context(), org, folder.ID, f.ID); err != nil {
		t.Error(err)
	}
	if f = w.await(folder, f); f.Status != files.Completed || w.content(folder, f) != "new\n" {
		t.Errorf("tried again: got %+v", f)
	}
	if _, err := w.File(t.Context(), org, folder.ID, old.ID, false); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("the old file is still there (%v)", err)
	}
}

func TestCancelStopsEmbeddingWhichGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	w, e, _ := newDenseWorld(t, 8)
	folder := w.folder("f")
	e.Down.Store(true)
	f := w.send(folder, "a.txt", manyLines(8000), files.Suffix)
	w.awaitWhere(folder, f, func(f files.File) bool { return f.ErrorMessage != nil })
	f, err := w.Cancel(t.Context(), org, folder.ID, f.ID)
	if err != nil || f.Status != files.Failed || !strings.HasPrefix(*f.ErrorMessage, "cancelled") {
		t.Errorf("got %+v (%v)", f, err)
	}
	e.Down.Store(false)
	w.idle()
	asked := e.Requests.Load()
	if n, err := w.Backfill(t.Context()); n != 0 || err != nil {
		t.Errorf("backfill queued %d batches of a cancelled file (%v)", n, err)
	}
	w.idle()
	if n := w.count(`SELECT count(*) FROM chunk_vectors`); n != 0 || e.Requests.Load() != asked {
		t.Errorf("a cancelled file got %d vectors", n)
	}
	if _, err := w.Retry(t.Context(), org, folder.ID, f.ID); err != nil {
		t.Error(err)
	}
	f = w.await(folder, f)
	if n := w.count(`SELECT count(*) FROM chunk_vectors`); f.Status != files.Completed || n != f.TotalChunks {
		t.Errorf("tried again: got %+v with %d vectors", f, n)
	}
}

func TestReparsingKeepsTheTextUntilTheNewIsReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t, files.Options{})
	folder := w.folder("f")
	f, other := w.upload(folder, "a.txt", "old\n"), w.upload(folder, "b.txt", "old too\n")
	parser := func(makes string) {
		t.Helper()
		if _, err := w.pool.Exec(t.Context(), `
			WITH original AS (UPDATE file_originals SET bytes = $1) UPDATE files SET size_bytes = $2`,
			[]byte(makes), len(makes)); err != nil {
			t.Fatal(err)
		}
	}
	parser("new\n")
	resume := w.pause()
	if got, err := w.Reparse(t.Context(), org, folder.ID, f.ID); err != nil || got.Status != files.Pending || w.content(folder, f) != "old\n" {
		t.Errorf("meanwhile: got %+v (%v), %q", got, err, w.content(folder, f))
	}
	if _, err := w.Reparse(t.Context(), org, folder.ID, f.ID); !errors.Is(err, db.ErrConflict) {
		t.Errorf("twice: got %v, want a conflict", err)
	}
	resume()
	if f = w.await(folder, f); f.Status != files.Completed || w.content(folder, f) != "new\n" {
		t.Errorf("got %+v, %q", f, w.content(folder, f))
	}
	w.idle()
	if n, err := w.ReparseFolder(t.Context(), org, folder.ID); n != 2 || err != nil {
		t.Errorf("got %d files (%v)", n, err)
	}
	w.eventually("both are new", func() bool { return w.content(folder, other) == "new\n" })
	w.idle()
	if n := w.count(`SELECT count(*) FROM file_segments`); n != 2 {
		t.Errorf("%d segments are left of 2 files", n)
	}
	parser(strings.Repeat("\x00\x01\x02\xff", 100))
	if _, err := w.Reparse(t.Context(), org, folder.ID, f.ID); err != nil {
		t.Fatal(err)
	}
	if f = w.await(folder, f); f.Status == files.Failed && (w.content(folder, f) != "new\n" || !strings.Contains(*f.ErrorMessage, "text of before")) {
		t.Errorf("what cannot be read: got %+v, %q", f, w.content(folder, f))
	}
}

func TestAFileIsDeletedWhileItIsInWork(t *testing.T) {
	t.Parallel()
	w, e, _ := newDenseWorld(t, 8)
	folder := w.folder("f")
	reached := make(chan struct{}, 16)
	hangs := embedtest.Fault(func(_ http.ResponseWriter, r *http.Request, _ []string) bool {
		reached <- struct{}{}
		<-r.Context().Done()
		return true
	})
	e.Fault.Store(&hangs)
	f := w.send(folder, "a.txt", manyLines(500), files.Suffix)
	<-reached
	if err := w.DeleteFile(t.Context(), org, folder.ID, f.ID); err != nil {
		t.Fatal(err)
	}
	w.idle()
	for _, table := range []string{"files", "file_originals", "file_segments", "chunks", "chunk_vectors", "embed_batches", "embed_refusals"} {
		if n := w.count(`SELECT count(*) FROM ` + table); n != 0 {
			t.Errorf("%d rows are left in %s", n, table)
		}
	}
}
