package files_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/files"
)

func (fx *fixture) names(folder files.Folder) []string {
	fx.t.Helper()
	list, err := fx.Files(fx.t.Context(), fx.org, files.Filter{FolderID: folder.ID}, false, db.Page{Ascending: true})
	if err != nil {
		fx.t.Fatal(err)
	}
	names := []string{}
	for _, f := range list {
		names = append(names, f.Name)
	}
	return names
}

func TestANameThatExists(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("f")
	first := fx.upload(folder, "test.txt", "one")
	fx.upload(folder, "test.txt", "two")
	third := fx.upload(folder, "test.txt", "three")
	if diff := cmp.Diff([]string{"test.txt", "test_(1).txt", "test_(2).txt"}, fx.names(folder)); diff != "" {
		t.Fatalf("suffixes (-want +got):\n%s", diff)
	}
	if third.OriginalName != "test.txt" {
		t.Errorf("original name: got %s", third.OriginalName)
	}
	skipped, isSkipped, err := fx.Upload(t.Context(), fx.org, folder.ID,
		files.Upload{Name: "test.txt", Body: strings.NewReader("four"), Duplicates: files.Skip})
	if err != nil || !isSkipped || skipped.ID != first.ID {
		t.Errorf("skip: got %v %v %v, want the first file", skipped.ID, isSkipped, err)
	}
	_, _, err = fx.Upload(t.Context(), fx.org, folder.ID,
		files.Upload{Name: "test.txt", Body: strings.NewReader("five"), Duplicates: files.Reject})
	if !errors.Is(err, db.ErrInvalid) || err.Error() != "File 'test.txt' already exists in folder 'f'" {
		t.Errorf("error: got %v", err)
	}
	if err := fx.DeleteFile(t.Context(), fx.org, folder.ID, first.ID); err != nil {
		t.Fatal(err)
	}
	fx.upload(folder, "test.txt", "six")
	fx.upload(folder, "test.txt", "seven")
	want := []string{"test_(1).txt", "test_(2).txt", "test.txt", "test_(3).txt"}
	if diff := cmp.Diff(want, fx.names(folder)); diff != "" {
		t.Errorf("after a deletion (-want +got):\n%s", diff)
	}
}

func TestParallelUploadsOfOneNameNeverCollide(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("f")
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() {
			_, _, err := fx.Upload(context.Background(), fx.org, folder.ID,
				files.Upload{Name: "same.txt", Body: strings.NewReader(fmt.Sprint("text ", i))})
			if err != nil {
				t.Errorf("upload %d: %v", i, err)
			}
		})
	}
	group.Wait()
	names := fx.names(folder)
	slices.Sort(names)
	if unique := slices.Compact(slices.Clone(names)); len(unique) != 12 {
		t.Errorf("12 uploads have the names %v", names)
	}
}

func TestAReplacementTakesItsPlaceWhenItsTextIsReady(t *testing.T) {
	t.Parallel()
	fx := newOwnFixture(t, files.Options{}, files.Queues())
	folder := fx.folder("f")
	old := fx.upload(folder, "plan.md", "the old plan\n")
	agent := fx.agentWith(folder)
	if _, err := fx.Open(t.Context(), fx.org, files.Of(agent),
		files.OpenArgs{Limits: wide, Requests: requests("f/plan.md")}); err != nil {
		t.Fatal(err)
	}
	resume := fx.pause()
	next := fx.send(folder, "plan.md", "the new plan\n", files.Replace)
	if next.ID == old.ID || next.Name != "plan.md" {
		t.Errorf("got file %s named %s, want a new one of the same name", next.ID, next.Name)
	}
	superseding := fx.send(folder, "plan.md", "the newest plan\n", files.Replace)
	if _, err := fx.File(t.Context(), fx.org, folder.ID, next.ID, false); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("the superseded replacement: got %v, want ErrNotFound", err)
	}
	if got := fx.content(folder, old); got != "the old plan\n" {
		t.Errorf("before the new text is ready the old file reads %q", got)
	}
	resume()
	fx.await(folder, superseding)
	if diff := cmp.Diff([]string{"plan.md"}, fx.names(folder)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	views, err := fx.Views(t.Context(), fx.org, files.Of(agent), wide)
	if err != nil || len(views) != 1 || views[0].FileID != superseding.ID ||
		!strings.Contains(views[0].Text, "the newest plan") {
		t.Errorf("the agent sees %+v (%v), want the newest plan", views, err)
	}
	if n := fx.rows("chunks"); n != 1 {
		t.Errorf("%d chunks are left, want 1", n)
	}
}

func TestAReplacementThatCannotBeReadLeavesTheOldFile(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("f")
	old := fx.upload(folder, "page.txt", "fine\n")
	next := fx.send(folder, "page.txt", strings.Repeat("text, then ", 3000)+strings.Repeat("\x00\x01\x02\xff\xfe", 2000),
		files.Replace)
	got := fx.await(folder, next)
	if got.Status != files.Failed || got.ErrorMessage == nil || !strings.Contains(*got.ErrorMessage, "still in place") ||
		fx.content(folder, old) != "fine\n" {
		t.Errorf("got %+v, want an error that says the old file is still in place", got)
	}
}

func TestUploadsThatAreRefusedLeaveNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fx := newOwnFixture(t, files.Options{MaxUploadBytes: 1000, TempDir: dir}, files.Queues())
	folder := fx.folder("f")
	broken := errors.New("the client went away")
	for name, c := range map[string]struct {
		upload files.Upload
		want   func(error) bool
	}{
		"one byte too large": {files.Upload{Name: "a.txt", Body: endless(1001)}, func(err error) bool {
			var large *files.TooLargeError
			return errors.As(err, &large) && large.LimitBytes == 1000
		}},
		"without end": {files.Upload{Name: "a.txt", Body: zeros{}}, func(err error) bool {
			var large *files.TooLargeError
			return errors.As(err, &large)
		}},
		"a picture": {files.Upload{Name: "a.txt", Body: strings.NewReader("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")},
			func(err error) bool {
				var unsupported *files.UnsupportedError
				return errors.As(err, &unsupported)
			}},
		"cut off": {files.Upload{Name: "a.txt", Body: io.MultiReader(strings.NewReader("text"), failing{broken})},
			func(err error) bool {
				return errors.Is(err, broken)
			}},
		"a name that climbs": {files.Upload{Override: "../../x", Body: strings.NewReader("text")}, func(err error) bool {
			return errors.Is(err, db.ErrInvalid)
		}},
		"an unknown handling": {files.Upload{Name: "a", Duplicates: "merge", Body: strings.NewReader("text")},
			func(err error) bool {
				return errors.Is(err, db.ErrInvalid)
			}},
	} {
		if _, _, err := fx.Upload(t.Context(), fx.org, folder.ID, c.upload); !c.want(err) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	if _, _, err := fx.Upload(t.Context(), dbtest.NewOrg(t, fx.pool), folder.ID,
		files.Upload{Name: "a", Body: strings.NewReader("b")}); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("another organization's folder: got %v, want ErrNotFound", err)
	}
	if n := fx.rows("files") + fx.rows("file_originals") + fx.jobsWhere("true"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if f, _, err := fx.Upload(t.Context(), fx.org, folder.ID,
		files.Upload{Name: "a.txt", Body: endless(1000)}); err != nil {
		t.Errorf("exactly the limit: %v", err)
	} else {
		fx.await(folder, f)
	}
	remaining, err := os.ReadDir(dir)
	if err != nil || len(remaining) > 0 {
		t.Errorf("temporary files are left: %v (%v)", remaining, err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestEmptyAndBlankFiles(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("f")
	for name, text := range map[string]string{"empty.txt": "", "blank.txt": "\n\n\n"} {
		f := fx.upload(folder, name, text)
		if f.Status != files.Completed || fx.content(folder, f) != text || f.Lines != strings.Count(text, "\n") {
			t.Errorf("%s: got %+v", name, f)
		}
	}
	agent := fx.agentWith(folder)
	if _, err := fx.Open(t.Context(), fx.org, files.Of(agent),
		files.OpenArgs{Limits: wide, Requests: requests("f/empty.txt", "f/blank.txt")}); err != nil {
		t.Errorf("open: %v", err)
	}
	views, err := fx.Views(t.Context(), fx.org, files.Of(agent), wide)
	if err != nil || len(views) != 2 || views[0].Text != "[Viewing file start (out of 0 lines)]" {
		t.Errorf("views: got %+v (%v)", views, err)
	}
}

// A file of several pieces and segments is returned byte for byte.
func TestALargeFileIsKeptWhole(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.coarselyCut("f")
	text := manyLines(115_000) + strings.Repeat("a line without end ", 10_000)
	f := fx.upload(folder, "large.log", text)
	if f.Status != files.Completed || f.Lines != 115_001 {
		t.Fatalf("got %+v", f)
	}
	if fx.content(folder, f) != text {
		t.Error("the content is not what was uploaded")
	}
	var original []byte
	if err := fx.pool.QueryRow(t.Context(), `
		SELECT string_agg(bytes, ''::bytea ORDER BY ordinal) FROM file_originals
		WHERE org = $1`, fx.org).Scan(&original); err != nil {
		t.Fatal(err)
	}
	if string(original) != text {
		t.Error("the original is not what was uploaded")
	}
	if n := fx.rows("file_originals"); n < 3 {
		t.Errorf("the original is in %d pieces", n)
	}
}

// A server may be killed after it has made a file for an upload and before it has removed the file's name.
func TestWhatAKilledServerSpooledIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spooled, other := filepath.Join(dir, "loci-spool-123"), filepath.Join(dir, "other")
	for _, path := range []string{spooled, other} {
		if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := files.New(nil, files.Options{TempDir: dir}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(spooled); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the upload is still there (%v)", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

// However many files have a name, the next one gets a free name: the first free one, if its number is low.
func TestManyFilesOfOneName(t *testing.T) {
	t.Parallel()
	fx := newIdleFixture(t, files.Options{})
	folder := fx.folder("f")
	fx.row(folder, "plan.md")
	taken := 0
	for _, upTo := range []int{1, 16, 17, 31, 32, 33, 100, 1000} {
		var names []string
		for ; taken < upTo; taken++ {
			names = append(names, files.Suffixed("plan.md", taken+1))
		}
		fx.row(folder, names...)
		f := fx.send(folder, "plan.md", "text", files.Suffix)
		if want := files.Suffixed("plan.md", upTo+1); f.Name != want {
			t.Errorf("beside %d others: got %s, want %s", upTo, f.Name, want)
		}
		if err := fx.DeleteFile(t.Context(), fx.org, folder.ID, f.ID); err != nil {
			t.Fatal(err)
		}
	}
	fx.exec(`DELETE FROM files WHERE org = $1 AND name = 'plan_(7).md'`, fx.org)
	if f := fx.send(folder, "plan.md", "text", files.Suffix); f.Name != "plan_(7).md" {
		t.Errorf("got %s, want plan_(7).md", f.Name)
	}
}

// The file of an agent has a document without text if it was exported before the document was read. It is imported.
func TestAnEmptyDocumentOfAnAgentsFileIsStored(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("f")
	for id, want := range map[string]bool{"": false, "file-" + uuid.NewString(): true} {
		_, _, err := fx.Upload(t.Context(), fx.org, folder.ID, files.Upload{ID: id, Name: "a.pdf",
			Body: strings.NewReader("")})
		if (err == nil) != want {
			t.Errorf("with the id %q: %v", id, err)
		}
	}
}
