package files_test

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

// crowd fills a folder with n files of one chunk each, without uploads.
func (fx *fixture) crowd(folder files.Folder, n int) {
	fx.t.Helper()
	for _, sql := range []string{`
		INSERT INTO files (org, folder_key, name, original_name, media_type, size_bytes, sha256, generation, lines,
		                   chunks, chars)
		SELECT $1, $2, 'file ' || i || '.txt', 'file ' || i || '.txt', 'text/plain', 9, '', 1, 1, 1, 9
		FROM generate_series(1, $3) AS i`, `
		INSERT INTO chunks (file_key, generation, ordinal, org, folder_key, first_line, last_line, start_byte,
		                    overlap_bytes, heading, text, lex, terms)
		SELECT key, 1, 0, $1, folder_key, 1, 1, 0, 0, '', name, '{5:1}/16777216', '{4}'
		FROM files WHERE org = $1 AND folder_key = $2 LIMIT $3`, `
		INSERT INTO file_segments (file_key, generation, ordinal, org, first_line, lines, continues, text)
		SELECT key, 1, 0, $1, 1, 1, false, name FROM files WHERE org = $1 AND folder_key = $2 LIMIT $3`} {
		fx.exec(sql, fx.org, folder.Key, n)
	}
}

// deletes is the body of an upload that deletes the folder while it is read.
type deletes struct {
	io.Reader
	folder func() error
}

func (d deletes) Read(p []byte) (int, error) {
	if err := d.folder(); err != nil && !errors.Is(err, db.ErrNotFound) {
		return 0, err
	}
	return d.Reader.Read(p)
}

func TestAFolderIsDeletedDuringAnUpload(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	for name, purged := range map[string]bool{"its rows are there": false, "its rows are gone": true} {
		folder := fx.folder(name)
		body := deletes{strings.NewReader("text"), func() error {
			err := fx.DeleteFolder(t.Context(), fx.org, folder.ID)
			if purged && err == nil {
				_, err = fx.pool.Exec(t.Context(), `DELETE FROM folders WHERE org = $1 AND key = $2`, fx.org, folder.Key)
			}
			return err
		}}
		_, _, err := fx.Upload(t.Context(), fx.org, folder.ID, files.Upload{Name: "a.txt", Body: body})
		if !errors.Is(err, db.ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", name, err)
		}
	}
}

// A deleted folder is gone at once, though its rows are cleared away later: nobody finds it, its files or their jobs.
func TestADeletedFolderIsGoneBeforeItsRows(t *testing.T) {
	t.Parallel()
	fx := newOwnFixture(t, files.Options{}, files.Queues())
	ctx := t.Context()
	folder := fx.folder("f")
	kept := fx.upload(folder, "a.txt", "some walnut words\n")
	resume := fx.pause()
	waiting := fx.send(folder, "b.txt", "more walnut words\n", files.Suffix)
	agent := fx.agentWith(folder)
	fx.mustOpen(agent, wide, false, "f/a.txt")
	purge := fx.pauseQueue(files.QueueUpkeep)
	if err := fx.DeleteFolder(ctx, fx.org, folder.ID); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"the folder":     second(fx.Folder(ctx, fx.org, folder.ID)),
		"its list":       second(fx.Files(ctx, fx.org, files.Filter{FolderID: folder.ID}, false, db.Page{})),
		"a file":         second(fx.File(ctx, fx.org, folder.ID, kept.ID, true)),
		"a file to open": second(fx.OpenWhole(ctx, fx.org, agent, kept.ID, wide)),
		"an upload":      second(fx.uploadTo(folder, "c.txt", files.Suffix)),
		"a replacement":  second(fx.uploadTo(folder, "a.txt", files.Replace)),
		"attaching":      fx.attach(agent, folder.ID, wide),
		"deleting":       fx.DeleteFolder(ctx, fx.org, folder.ID),
		"passages":       second(fx.Passages(ctx, fx.org, folder.ID, "", db.Page{})),
	} {
		if !errors.Is(err, db.ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", what, err)
		}
	}
	if got, err := fx.Search(ctx, fx.org, files.Of(agent),
		files.Query{Text: "walnut", Limit: 5}); err != nil || len(got.Hits) > 0 {
		t.Errorf("a search found %v (%v)", got.Hits, err)
	}
	if list, _, err := fx.AgentFiles(ctx, fx.org, agent, files.AgentFilesQuery{Limits: wide}); err != nil ||
		len(list) > 0 {
		t.Errorf("the agent has %v (%v)", list, err)
	}
	again := fx.folder("f")
	resume()
	fx.eventually("the work on the deleted file has ended", func() bool {
		return fx.jobsWhere("kind = 'parse_file' AND finalized_at IS NULL") == 0
	})
	if n := fx.count(`SELECT count(*) FROM chunks c JOIN files f ON f.org = c.org AND f.key = c.file_key WHERE f.id = $1`,
		waiting.ID); n != 0 {
		t.Errorf("the deleted file was still parsed: %d chunks", n)
	}
	purge()
	fx.eventually("the rows are cleared away", func() bool { return fx.rows("files") == 0 && fx.rows("folders") == 1 })
	if _, err := fx.Folder(ctx, fx.org, again.ID); err != nil {
		t.Errorf("the new folder of that name is gone: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func (fx *fixture) uploadTo(folder files.Folder, name string, d files.Duplicates) (files.File, error) {
	f, _, err := fx.Upload(fx.t.Context(), fx.org, folder.ID,
		files.Upload{Name: name, Body: strings.NewReader("text"), Duplicates: d})
	return f, err
}

// Two servers clear one folder away together, whatever one had done when it was killed. Other folders keep their files.
func TestPurgesAreRestartedAndShared(t *testing.T) {
	t.Parallel()
	fx := newIdleFixture(t, files.Options{})
	folder, other := fx.folder("f"), fx.folder("other")
	fx.crowd(folder, 1600) // more than three transactions delete
	fx.crowd(other, 10)
	if err := fx.DeleteFolder(t.Context(), fx.org, folder.ID); err != nil {
		t.Fatal(err)
	}
	job := files.PurgeArgs{Org: fx.org, FolderKey: folder.Key}
	killed := errors.New("killed")
	err := pgx.BeginFunc(t.Context(), fx.pool, func(tx pgx.Tx) error {
		if _, err := files.PurgeOnce(fx.With(tx), t.Context(), job); err != nil {
			return err
		}
		return killed
	})
	if !errors.Is(err, killed) {
		t.Fatal(err)
	}
	var servers sync.WaitGroup
	for range 2 {
		servers.Go(func() {
			for done := false; !done; {
				var err error
				if done, err = files.PurgeOnce(fx.Store, t.Context(), job); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	servers.Wait()
	for _, table := range []string{"files", "chunks", "file_segments"} {
		if n := fx.rows(table); n != 10 {
			t.Errorf("%s has %d rows, want the 10 of the other folder", table, n)
		}
	}
	if _, err := files.PurgeOnce(fx.Store, t.Context(), files.PurgeArgs{Org: fx.org, FolderKey: other.Key}); err != nil ||
		fx.rows("folders") != 1 || fx.rows("files") != 10 {
		t.Errorf("a folder that is not deleted was cleared away (%v)", err)
	}
}

// Deleting a folder costs one or two statements per agent, not per file.
func TestDeletingAFolderDoesNotTouchItsFiles(t *testing.T) {
	t.Parallel()
	fx := newIdleFixture(t, files.Options{})
	folder := fx.folder("f")
	fx.crowd(folder, 600)
	written := func() string {
		var versions string
		err := fx.pool.QueryRow(t.Context(), `
			SELECT string_agg(DISTINCT xmin::text || xmax::text, ',') FROM files WHERE org = $1`, fx.org).Scan(&versions)
		if err != nil {
			t.Fatal(err)
		}
		return versions
	}
	before := written()
	if err := fx.DeleteFolder(t.Context(), fx.org, folder.ID); err != nil {
		t.Fatal(err)
	}
	if after := written(); after != before {
		t.Errorf("the files' rows were written or locked: %s, before %s", after, before)
	}
}

// While a folder is being cleared away, its files get no vectors and no new text.
func TestADeletedFolderGetsNoWork(t *testing.T) {
	t.Parallel()
	fx, e, _ := newDenseFixture(t, 8)
	folder := fx.folder("f")
	e.Down.Store(true)
	f := fx.send(folder, "a.txt", "text\n", files.Suffix)
	fx.awaitWhere(folder, f, func(f files.File) bool { return f.ErrorMessage != nil })
	resume := fx.pauseQueue(files.QueueUpkeep)
	if n, err := fx.ReparseFolder(t.Context(), fx.org, folder.ID); n != 1 || err != nil {
		t.Fatalf("%d files are parsed again (%v)", n, err)
	}
	if err := fx.DeleteFolder(t.Context(), fx.org, folder.ID); err != nil {
		t.Fatal(err)
	}
	fx.exec(`
		UPDATE river_job SET state = 'cancelled', finalized_at = now()
		WHERE kind IN ('embed_chunks', 'purge_folder') AND args @> jsonb_build_object('org', $1::integer)`, fx.org)
	fx.backfill()
	resume()
	fx.eventually("the folder is looked through", func() bool {
		return fx.jobsWhere("kind = 'reparse_folder' AND state = 'completed'") > 0
	})
	if n := fx.jobsWhere("finalized_at IS NULL"); n != 0 {
		t.Errorf("%d jobs are queued", n)
	}
	if n := fx.rows("files", "generation < wanted_generation"); n != 0 {
		t.Errorf("%d texts are wanted", n)
	}
}
