package files_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/files"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// patience bounds the waits of tests; reaching it is a failure.
const patience = time.Minute

// world is a store on a database of its own, with workers that work on its jobs.
type world struct {
	*files.Store
	t      testing.TB
	pool   *pgxpool.Pool
	jobs   *river.Client[pgx.Tx]
	done   <-chan *river.Event
	limits map[string]files.Limits
}

const org = db.Org(1)

// wide limits never close a file.
var wide = files.Limits{MaxOpen: 1000, ViewChars: 100_000}

func newWorld(t testing.TB, o files.Options) *world {
	t.Helper()
	return newWorldOf(t, o, files.Queues())
}

// newWorldOf is a world whose workers are as the queues say.
func newWorldOf(t testing.TB, o files.Options, queues map[string]river.QueueConfig) *world {
	t.Helper()
	w := &world{t: t, pool: dbtest.New(t), limits: map[string]files.Limits{}}
	store, err := files.New(w.pool, o)
	if err != nil {
		t.Fatal(err)
	}
	w.Store = store
	w.workers(store, queues)
	return w
}

// workers work on a store's jobs until the test ends, or stop is called.
func (w *world) workers(store *files.Store, queues map[string]river.QueueConfig) (stop func()) {
	t := w.t
	t.Helper()
	workers := river.NewWorkers()
	store.Work(workers)
	jobs, err := river.NewClient(riverpgxv5.New(w.pool), &river.Config{Workers: workers, Logger: slog.New(slog.DiscardHandler),
		FetchCooldown: 5 * time.Millisecond, FetchPollInterval: 50 * time.Millisecond,
		Queues: queues})
	if err != nil {
		t.Fatal(err)
	}
	done, unsubscribe := jobs.Subscribe(river.EventKindJobCompleted, river.EventKindJobCancelled, river.EventKindJobFailed)
	if err := jobs.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	if w.jobs == nil {
		w.jobs, w.done = jobs, done
	}
	stop = sync.OnceFunc(func() {
		unsubscribe()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := jobs.StopAndCancel(ctx); err != nil {
			t.Errorf("stop the workers: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func (w *world) folder(name string) files.Folder {
	w.t.Helper()
	f, err := w.CreateFolder(w.t.Context(), org, files.NewFolder{Name: name})
	if err != nil {
		w.t.Fatalf("create folder %s: %v", name, err)
	}
	return f
}

// agent makes an agent, as its own package would.
func (w *world) agent() string {
	w.t.Helper()
	var id string
	err := pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(w.t.Context(), `
			INSERT INTO agents (org, name, agent_type, system) VALUES (1, 'a', 'letta_v1_agent', '') RETURNING id`).Scan(&id); err != nil {
			return err
		}
		_, err := event.Append(w.t.Context(), tx, org, event.Event{AgentID: id, Type: event.AgentCreated, RefID: id})
		return err
	})
	if err != nil {
		w.t.Fatalf("create an agent: %v", err)
	}
	return id
}

// agentWith makes an agent that has the folders, and nothing open.
func (w *world) agentWith(folders ...files.Folder) string {
	w.t.Helper()
	id := w.agent()
	for _, f := range folders {
		if err := w.Attach(w.t.Context(), org, id, f.ID, files.Limits{}); err != nil {
			w.t.Fatalf("attach %s: %v", f.Name, err)
		}
	}
	return id
}

// upload stores a document and waits until its text is searchable.
func (w *world) upload(folder files.Folder, name, text string) files.File {
	w.t.Helper()
	return w.await(folder, w.send(folder, name, text, files.Suffix))
}

// send stores a document and does not wait.
func (w *world) send(folder files.Folder, name, text string, d files.Duplicates) files.File {
	w.t.Helper()
	f, _, err := w.Upload(w.t.Context(), org, folder.ID, files.Upload{Name: name, Body: strings.NewReader(text), Duplicates: d})
	if err != nil {
		w.t.Fatalf("upload %s: %v", name, err)
	}
	return f
}

// await waits for a file's work to end.
func (w *world) await(folder files.Folder, f files.File) files.File {
	w.t.Helper()
	return w.awaitWhere(folder, f, func(f files.File) bool { return f.Status == files.Completed || f.Status == files.Failed })
}

// awaitWhere looks at a file whenever a job ends, until it is as wanted.
func (w *world) awaitWhere(folder files.Folder, f files.File, wanted func(files.File) bool) files.File {
	w.t.Helper()
	deadline := time.After(patience)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		got, err := w.File(w.t.Context(), org, folder.ID, f.ID, false)
		if err != nil {
			w.t.Fatalf("read file %s: %v", f.Name, err)
		}
		if wanted(got) {
			return got
		}
		select {
		case <-w.done:
		case <-look.C: // the job may have ended before its file was read
		case <-deadline:
			w.t.Fatalf("file %s is %+v", f.Name, got)
		}
	}
}

// eventually looks until something is so.
func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	deadline := time.After(patience)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !is() {
		select {
		case <-look.C:
		case <-deadline:
			w.t.Fatalf("not in time: %s", what)
		}
	}
}

// pause holds back the parsing of files until resume is called. It returns when the workers know.
func (w *world) pause() (resume func()) {
	w.t.Helper()
	return w.pauseQueue(files.QueueParse)
}

func (w *world) pauseQueue(queue string) (resume func()) {
	w.t.Helper()
	ctx := w.t.Context()
	change := func(what func(context.Context, string, *river.QueuePauseOpts) error, kind river.EventKind) {
		w.t.Helper()
		known, unsubscribe := w.jobs.Subscribe(kind)
		defer unsubscribe()
		if err := what(ctx, queue, nil); err != nil {
			w.t.Fatal(err)
		}
		select {
		case <-known:
		case <-time.After(patience):
			w.t.Fatalf("the workers do not know of %s", kind)
		}
	}
	change(w.jobs.QueuePause, river.EventKindQueuePaused)
	return func() { change(w.jobs.QueueResume, river.EventKindQueueResumed) }
}

func (w *world) content(folder files.Folder, f files.File) string {
	w.t.Helper()
	got, err := w.File(w.t.Context(), org, folder.ID, f.ID, true)
	if err != nil {
		w.t.Fatalf("read file %s: %v", f.Name, err)
	}
	return *got.Content
}

// count runs a query that counts.
func (w *world) count(sql string, args ...any) int {
	w.t.Helper()
	var n int
	if err := w.pool.QueryRow(w.t.Context(), sql, args...).Scan(&n); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// names of what an agent has open, least recently used first.
func (w *world) open(agentID string) []string {
	w.t.Helper()
	views, err := w.Views(w.t.Context(), org, agentID, wide)
	if err != nil {
		w.t.Fatalf("views: %v", err)
	}
	names := []string{}
	for _, v := range views {
		names = append(names, v.FileName)
	}
	return names
}

func requests(names ...string) []files.OpenRequest {
	reqs := make([]files.OpenRequest, len(names))
	for i, name := range names {
		reqs[i] = files.OpenRequest{FileName: name}
	}
	return reqs
}

// manyLines is a text of n lines.
func manyLines(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "this is line %d\n", i)
	}
	return b.String()
}

// endless is a body of n bytes that were never in memory together.
func endless(n int64) io.Reader { return io.LimitReader(zeros{}, n) }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}
