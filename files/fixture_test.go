package files_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/files"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// fixture is a store on a database of its own, with workers that work on its jobs.
type fixture struct {
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

func newFixture(t testing.TB, o files.Options) *fixture {
	t.Helper()
	return newFixtureWith(t, o, files.Queues())
}

// newFixtureWith returns a fixture whose workers work on the given queues.
func newFixtureWith(t testing.TB, o files.Options, queues map[string]river.QueueConfig) *fixture {
	t.Helper()
	fx := &fixture{t: t, pool: dbtest.New(t), limits: map[string]files.Limits{}}
	store, err := files.New(fx.pool, o)
	if err != nil {
		t.Fatal(err)
	}
	fx.Store = store
	fx.workers(store, queues)
	return fx
}

// newDenseFixture returns a fixture whose files an endpoint embeds, with the endpoint and its space.
func newDenseFixture(t testing.TB, dimension int) (*fixture, *embedtest.Endpoint, embed.Space) {
	t.Helper()
	e := embedtest.New(t, dimension)
	fx, space := newDenseFixtureWith(t, e, e.Endpoint(t), files.Queues())
	return fx, e, space
}

// newDenseFixtureWith returns a fixture whose files the given endpoint embeds and whose workers work on the queues.
func newDenseFixtureWith(t testing.TB, e *embedtest.Endpoint, endpoint *embed.Endpoint,
	queues map[string]river.QueueConfig) (*fixture, embed.Space) {
	t.Helper()
	fx := newFixtureWith(t, files.Options{Endpoint: endpoint}, queues)
	return fx, e.Use(t, fx.pool, endpoint)
}

// workers work on a store's jobs until the test ends, or stop is called.
func (fx *fixture) workers(store *files.Store, queues map[string]river.QueueConfig) (stop func()) {
	t := fx.t
	t.Helper()
	workers := river.NewWorkers()
	store.Work(workers)
	jobs := embedtest.Jobs(t, fx.pool, river.Config{Workers: workers, Queues: queues,
		FetchCooldown: 5 * time.Millisecond, FetchPollInterval: 50 * time.Millisecond})
	done, unsubscribe := jobs.Subscribe(river.EventKindJobCompleted, river.EventKindJobCancelled, river.EventKindJobFailed)
	if err := jobs.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	if fx.jobs == nil {
		fx.jobs, fx.done = jobs, done
	}
	stop = sync.OnceFunc(func() {
		unsubscribe()
		ctx, cancel := context.WithTimeout(context.Background(), embedtest.Patience)
		defer cancel()
		if err := jobs.StopAndCancel(ctx); err != nil {
			t.Errorf("stop the workers: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func (fx *fixture) folder(name string) files.Folder {
	fx.t.Helper()
	f, err := fx.CreateFolder(fx.t.Context(), org, files.NewFolder{Name: name})
	if err != nil {
		fx.t.Fatalf("create folder %s: %v", name, err)
	}
	return f
}

// agent makes an agent, as its own package would.
func (fx *fixture) agent() string {
	fx.t.Helper()
	var id string
	err := pgx.BeginFunc(fx.t.Context(), fx.pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(fx.t.Context(), `
			INSERT INTO agents (org, name, agent_type, system) VALUES (1, 'a', 'letta_v1_agent', '')
			RETURNING id`).Scan(&id); err != nil {
			return err
		}
		_, err := event.Append(fx.t.Context(), tx, org, event.Event{AgentID: id, Type: event.AgentCreated, RefID: id})
		return err
	})
	if err != nil {
		fx.t.Fatalf("create an agent: %v", err)
	}
	return id
}

// attach attaches a folder to an agent.
func (fx *fixture) attach(agent, folder string, l files.Limits) error {
	return fx.Attach(context.Background(), org, files.Attachment{AgentID: agent, FolderID: folder, Limits: l})
}

// agentWith makes an agent that has the folders, and nothing open.
func (fx *fixture) agentWith(folders ...files.Folder) string {
	fx.t.Helper()
	id := fx.agent()
	for _, f := range folders {
		if err := fx.attach(id, f.ID, files.Limits{}); err != nil {
			fx.t.Fatalf("attach %s: %v", f.Name, err)
		}
	}
	return id
}

// upload stores a document and waits until its text is searchable.
func (fx *fixture) upload(folder files.Folder, name, text string) files.File {
	fx.t.Helper()
	return fx.await(folder, fx.send(folder, name, text, files.Suffix))
}

// send stores a document and does not wait.
func (fx *fixture) send(folder files.Folder, name, text string, d files.Duplicates) files.File {
	fx.t.Helper()
	f, _, err := fx.Upload(fx.t.Context(), org, folder.ID,
		files.Upload{Name: name, Body: strings.NewReader(text), Duplicates: d})
	if err != nil {
		fx.t.Fatalf("upload %s: %v", name, err)
	}
	return f
}

// await waits for a file's work to end.
func (fx *fixture) await(folder files.Folder, f files.File) files.File {
	fx.t.Helper()
	return fx.awaitWhere(folder, f, func(f files.File) bool {
		return f.Status == files.Completed ||
			f.Status == files.Failed
	})
}

// awaitWhere looks at a file whenever a job ends, until it is as wanted.
func (fx *fixture) awaitWhere(folder files.Folder, f files.File, wanted func(files.File) bool) files.File {
	fx.t.Helper()
	deadline := time.After(embedtest.Patience)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		got, err := fx.File(fx.t.Context(), org, folder.ID, f.ID, false)
		if err != nil {
			fx.t.Fatalf("read file %s: %v", f.Name, err)
		}
		if wanted(got) {
			return got
		}
		select {
		case <-fx.done:
		case <-look.C: // the job may have ended before its file was read
		case <-deadline:
			fx.t.Fatalf("file %s is %+v", f.Name, got)
		}
	}
}

// pause holds back the parsing of files until resume is called. It returns when the workers know.
func (fx *fixture) pause() (resume func()) {
	fx.t.Helper()
	return fx.pauseQueue(files.QueueParse)
}

func (fx *fixture) pauseQueue(queue string) (resume func()) {
	fx.t.Helper()
	ctx := fx.t.Context()
	change := func(what func(context.Context, string, *river.QueuePauseOpts) error, kind river.EventKind) {
		fx.t.Helper()
		known, unsubscribe := fx.jobs.Subscribe(kind)
		defer unsubscribe()
		if err := what(ctx, queue, nil); err != nil {
			fx.t.Fatal(err)
		}
		select {
		case <-known:
		case <-time.After(embedtest.Patience):
			fx.t.Fatalf("the workers do not know of %s", kind)
		}
	}
	change(fx.jobs.QueuePause, river.EventKindQueuePaused)
	return func() { change(fx.jobs.QueueResume, river.EventKindQueueResumed) }
}

func (fx *fixture) content(folder files.Folder, f files.File) string {
	fx.t.Helper()
	got, err := fx.File(fx.t.Context(), org, folder.ID, f.ID, true)
	if err != nil {
		fx.t.Fatalf("read file %s: %v", f.Name, err)
	}
	return *got.Content
}

// count runs a query that counts.
func (fx *fixture) count(sql string, args ...any) int {
	fx.t.Helper()
	var n int
	if err := fx.pool.QueryRow(fx.t.Context(), sql, args...).Scan(&n); err != nil {
		fx.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// names of what an agent has open, least recently used first.
func (fx *fixture) open(agentID string) []string {
	fx.t.Helper()
	views, err := fx.Views(fx.t.Context(), org, agentID, wide)
	if err != nil {
		fx.t.Fatalf("views: %v", err)
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
