package files_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/files"
)

func TestCancelStopsAFileThatIsBeingParsed(t *testing.T) {
	t.Parallel()
	gate := newGate()
	fx := newOwnFixture(t, gate.options(), files.Queues())
	folder := fx.folder("f")
	open := gate.close()
	f := fx.send(folder, "a.txt", "text\n", files.Suffix)
	gate.await(t, 1)
	if f, err := fx.File(t.Context(), fx.org, folder.ID, f.ID, false); err != nil || f.Status != files.Parsing {
		t.Errorf("while it is read: got %+v (%v)", f, err)
	}
	got, err := fx.Cancel(t.Context(), fx.org, folder.ID, f.ID)
	if err != nil || got.Status != files.Failed || !strings.HasPrefix(*got.ErrorMessage, "cancelled") {
		t.Errorf("got %+v (%v)", got, err)
	}
	fx.idle()
	open()
	if n := fx.rows("chunks"); n != 0 {
		t.Errorf("a cancelled file got %d chunks", n)
	}
	if got, err = fx.Retry(t.Context(), fx.org, folder.ID, f.ID); err != nil || got.Status == files.Failed {
		t.Errorf("tried again: got %+v (%v)", got, err)
	}
	if got = fx.await(folder, got); got.Status != files.Completed || got.ErrorMessage != nil {
		t.Errorf("tried again: got %+v", got)
	}
}

// A server that lost its lock on the database but still runs works on jobs that another server takes too. The text is
// stored once.
func TestAJobThatTwoServersWorkOnIsDoneOnce(t *testing.T) {
	t.Parallel()
	one := map[string]river.QueueConfig{files.QueueParse: {MaxWorkers: 1}} // the other server takes the job
	gate := newGate()
	fx := newOwnFixture(t, gate.options(), one)
	folder := fx.folder("f")
	open := gate.close()
	f := fx.send(folder, "a.txt", "text\n", files.Suffix)
	gate.await(t, 1)
	stop := fx.workWith(fx.newStore(fx.pool, gate.options()), one)
	fx.exec(`
		UPDATE river_job SET state = 'available'
		WHERE state = 'running' AND args @> jsonb_build_object('org', $1::integer)`, fx.org)
	gate.await(t, 2)
	open()
	if f = fx.await(folder, f); f.Status != files.Completed {
		t.Errorf("got %+v", f)
	}
	fx.idle()
	stop()
	if chunks, segments := fx.rows("chunks"), fx.rows("file_segments"); chunks != 1 || segments != 1 {
		t.Errorf("%d chunks and %d segments are stored, want one each", chunks, segments)
	}
}

func TestACancelledReplacementLeavesTheOldFile(t *testing.T) {
	t.Parallel()
	fx := newOwnFixture(t, files.Options{}, files.Queues())
	folder := fx.folder("f")
	old := fx.upload(folder, "a.txt", "old\n")
	resume := fx.pause()
	f := fx.send(folder, "a.txt", "new\n", files.Replace)
	f, err := fx.Cancel(t.Context(), fx.org, folder.ID, f.ID)
	if err != nil || f.ErrorMessage == nil || !strings.Contains(*f.ErrorMessage, "is still in place") {
		t.Errorf("got %+v (%v)", f, err)
	}
	resume()
	fx.idle()
	if got := fx.content(folder, old); got != "old\n" {
		t.Errorf("the old file reads %q", got)
	}
	if _, err := fx.Retry(t.Context(), fx.org, folder.ID, f.ID); err != nil {
		t.Error(err)
	}
	if f = fx.await(folder, f); f.Status != files.Completed || fx.content(folder, f) != "new\n" {
		t.Errorf("tried again: got %+v", f)
	}
	if _, err := fx.File(t.Context(), fx.org, folder.ID, old.ID, false); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("the old file is still there (%v)", err)
	}
}

func TestCancelStopsEmbeddingWhichGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	fx, e, _ := newDenseFixture(t, 8)
	folder := fx.finelyCut("f")
	e.Down.Store(true)
	f := fx.send(folder, "a.txt", manyLines(1500), files.Suffix)
	fx.awaitWhere(folder, f, func(f files.File) bool { return f.ErrorMessage != nil })
	f, err := fx.Cancel(t.Context(), fx.org, folder.ID, f.ID)
	if err != nil || f.Status != files.Failed || !strings.HasPrefix(*f.ErrorMessage, "cancelled") {
		t.Errorf("got %+v (%v)", f, err)
	}
	e.Down.Store(false)
	fx.idle()
	asked := e.Requests.Load()
	if n := fx.backfill(); n != 0 {
		t.Errorf("backfill queued %d batches of a cancelled file", n)
	}
	fx.idle()
	if n := fx.rows("chunk_vectors"); n != 0 || e.Requests.Load() != asked {
		t.Errorf("a cancelled file got %d vectors", n)
	}
	if _, err := fx.Retry(t.Context(), fx.org, folder.ID, f.ID); err != nil {
		t.Error(err)
	}
	f = fx.await(folder, f)
	if n := fx.rows("chunk_vectors"); f.Status != files.Completed || n != f.TotalChunks {
		t.Errorf("tried again: got %+v with %d vectors", f, n)
	}
}

func TestReparsingKeepsTheTextUntilTheNewIsReady(t *testing.T) {
	t.Parallel()
	fx := newOwnFixture(t, files.Options{}, files.Queues())
	folder := fx.folder("f")
	f, other := fx.upload(folder, "a.txt", "old\n"), fx.upload(folder, "b.txt", "old too\n")
	parser := func(makes string) {
		t.Helper()
		fx.exec(`
			WITH original AS (UPDATE file_originals SET bytes = $2 WHERE org = $1)
			UPDATE files SET size_bytes = $3 WHERE org = $1`, fx.org, []byte(makes), len(makes))
	}
	parser("new\n")
	resume := fx.pause()
	if got, err := fx.Reparse(t.Context(), fx.org, folder.ID, f.ID); err != nil || got.Status != files.Pending ||
		fx.content(folder, f) != "old\n" {
		t.Errorf("meanwhile: got %+v (%v), %q", got, err, fx.content(folder, f))
	}
	if _, err := fx.Reparse(t.Context(), fx.org, folder.ID, f.ID); !errors.Is(err, db.ErrConflict) {
		t.Errorf("twice: got %v, want a conflict", err)
	}
	resume()
	if f = fx.await(folder, f); f.Status != files.Completed || fx.content(folder, f) != "new\n" {
		t.Errorf("got %+v, %q", f, fx.content(folder, f))
	}
	fx.idle()
	if n, err := fx.ReparseFolder(t.Context(), fx.org, folder.ID); n != 2 || err != nil {
		t.Errorf("got %d files (%v)", n, err)
	}
	fx.eventually("both are new", func() bool { return fx.content(folder, other) == "new\n" })
	fx.idle()
	if n := fx.rows("file_segments"); n != 2 {
		t.Errorf("%d segments are left of 2 files", n)
	}
	parser(strings.Repeat("\x00\x01\x02\xff", 100))
	if _, err := fx.Reparse(t.Context(), fx.org, folder.ID, f.ID); err != nil {
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
	if err := fx.DeleteFile(t.Context(), fx.org, folder.ID, f.ID); err != nil {
		t.Fatal(err)
	}
	fx.idle()
	for _, table := range []string{"files", "file_originals", "file_segments", "chunks", "chunk_vectors", "embed_batches",
		"embed_refusals"} {
		if n := fx.rows(table); n != 0 {
			t.Errorf("%d rows are left in %s", n, table)
		}
	}
}
