package files_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

// interrupted is a pool that fails its first COPY as Postgres does to resolve a deadlock.
type interrupted struct {
	*pgxpool.Pool
	once sync.Once
}

func (p *interrupted) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := p.Pool.Begin(ctx)
	return &interruptedTx{tx, p}, err
}

type interruptedTx struct {
	pgx.Tx
	pool *interrupted
}

func (tx *interruptedTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string,
	rows pgx.CopyFromSource) (n int64, err error) {
	if n, err = tx.Tx.CopyFrom(ctx, table, columns, rows); err == nil {
		tx.pool.once.Do(func() { err = &pgconn.PgError{Code: "40P01", Message: "deadlock detected"} })
	}
	return n, err
}

func TestAnUploadThatIsTriedAgainIsWhole(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("f")
	store := fx.newStore(&interrupted{Pool: fx.pool}, files.Options{})
	f, _, err := store.Upload(t.Context(), fx.org, folder.ID,
		files.Upload{Name: "a.txt", Body: strings.NewReader("all of it\n")})
	if err != nil {
		t.Fatal(err)
	}
	if f = fx.await(folder, f); fx.content(folder, f) != "all of it\n" {
		t.Errorf("after a second try the file reads %q (%+v)", fx.content(folder, f), f)
	}
}

func TestALongNameManyTimes(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("f")
	name := strings.Repeat("n", 251) + ".txt"
	for range 12 {
		fx.send(folder, name, "text", files.Suffix)
	}
	if n := fx.count(`SELECT count(DISTINCT name) FROM files WHERE org = $1`, fx.org); n != 12 {
		t.Errorf("12 uploads have %d names", n)
	}
}

func TestParallelReplacementsAreAllAnswered(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("f")
	fx.upload(folder, "a.txt", "the first\n")
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() {
			_, _, err := fx.Upload(t.Context(), fx.org, folder.ID, files.Upload{Name: "a.txt", Duplicates: files.Replace,
				Body: strings.NewReader(fmt.Sprintf("number %d\n", i))})
			if err != nil {
				t.Errorf("replacement %d: %v", i, err)
			}
		})
	}
	group.Wait()
	fx.eventually("one file is left", func() bool {
		return fx.rows("files") == 1 && fx.rows("files", "generation = 0") == 0
	})
	if n := fx.rows("chunks"); n != 1 {
		t.Errorf("%d chunks are left, want 1", n)
	}
}

// Files are opened, detached, deleted and uploaded at once. Every call does its work or says why not, and no file is
// open that is not attached.
func TestOpeningWhileFilesGo(t *testing.T) {
	t.Parallel()
	limits := func(_ context.Context, _ db.DB, _ db.Org, ids []string) (map[string]files.Limits, error) {
		m := map[string]files.Limits{}
		for _, id := range ids {
			m[id] = files.Limits{MaxOpen: 3, ViewChars: 500}
		}
		return m, nil
	}
	fx := newOwnFixture(t, files.Options{Limits: limits}, files.Queues())
	folder := fx.folder("set")
	agents := []string{fx.agentWith(folder), fx.agentWith(folder), fx.agentWith(folder)}
	l := files.Limits{MaxOpen: 3, ViewChars: 500}
	ctx := context.Background()
	allowed := func(what string, err error) {
		t.Helper()
		if err != nil && !errors.Is(err, db.ErrInvalid) && !errors.Is(err, db.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	var group errgroup.Group
	group.SetLimit(12)
	do := func(what func()) { group.Go(func() error { what(); return nil }) }
	for i := range 24 {
		agent := agents[i%len(agents)]
		do(func() {
			f, _, err := fx.Upload(ctx, fx.org, folder.ID, files.Upload{Name: fmt.Sprintf("%d.txt", i%7),
				Duplicates: files.Replace, Body: strings.NewReader(strings.Repeat("words to be chunked\n", 50))})
			allowed("upload", err)
			if i%5 == 0 && err == nil {
				allowed("delete", fx.DeleteFile(ctx, fx.org, folder.ID, f.ID))
			}
		})
		do(func() {
			_, err := fx.Open(ctx, fx.org, files.Of(agent),
				files.OpenArgs{Limits: l, Requests: requests(fmt.Sprintf("set/%d.txt", i%7)), CloseOthers: i%9 == 0})
			allowed("open", err)
		})
		if i%4 == 0 {
			do(func() {
				allowed("detach", fx.Detach(ctx, fx.org, agent, folder.ID))
				allowed("attach", fx.Attach(ctx, fx.org,
					files.Attachment{AgentID: agent, FolderID: folder.ID, Limits: l}))
			})
		}
	}
	_ = group.Wait() // no call returns an error
	fx.idle()
	if n := fx.count(`SELECT count(*) FROM agent_files a JOIN files f ON f.org = a.org AND f.key = a.file_key
		WHERE a.org = $1 AND a.is_open AND NOT EXISTS (
			SELECT FROM agent_folders d
			WHERE d.org = a.org AND d.agent_id = a.agent_id AND d.folder_key = f.folder_key)`, fx.org); n != 0 {
		t.Errorf("%d files are open in agents that do not have them", n)
	}
	for _, agent := range agents {
		if open := fx.open(agent); len(open) > l.MaxOpen {
			t.Errorf("%d files are open, %d are allowed", len(open), l.MaxOpen)
		}
	}
	if err := fx.DeleteFolder(ctx, fx.org, folder.ID); err != nil {
		t.Errorf("delete the folder: %v", err)
	}
}

func TestAFolderIsDeletedWhileItsFilesAreParsed(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	for round := range 3 {
		folder := fx.folder(fmt.Sprint("f", round))
		fx.agentWith(folder)
		for i := range 8 {
			fx.send(folder, fmt.Sprintf("%d.txt", i), strings.Repeat("words to be chunked\n", 800), files.Suffix)
		}
		if err := fx.DeleteFolder(t.Context(), fx.org, folder.ID); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
	}
	fx.idle()
	if n := fx.rows("files") + fx.rows("chunks") + fx.rows("file_segments"); n != 0 {
		t.Errorf("%d rows outlive their folders", n)
	}
}
