package files_test

import (
	"cmp"
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
	"github.com/riverqueue/river/rivertype"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/db/queue/queuetest"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/files/document"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// fixture is a store and a test's organization in it.
type fixture struct {
	*files.Store
	t    testing.TB
	pool *pgxpool.Pool
	org  db.Org
	jobs *river.Client[pgx.Tx] // queues the store's jobs
	ends *jobEnds              // signals the ends of those jobs

	// client makes clients that work on the store's jobs. queue returns the name of one of their queues.
	client func(river.Config) *river.Client[pgx.Tx]
	queue  func(name string) string
	worker *river.Client[pgx.Tx] // the one that started last

	// poll is how often workers look for jobs that no notice announces: those to be retried.
	poll time.Duration
}

// wide limits never close a file.
var wide = files.Limits{MaxOpen: 1000, ViewChars: 100_000}

// newFixture returns a fixture in the shared database. Its store has default options, and workers that all such
// fixtures share do its jobs. A test that pauses workers or depends on their order uses newOwnFixture.
func newFixture(t testing.TB) *fixture {
	t.Helper()
	pool, org := dbtest.Org(t)
	all := sharedFixture(pool)
	fx := &fixture{t: t, pool: pool, org: org, jobs: all.jobs, ends: all.ends}
	fx.Store = fx.newStore(pool, files.Options{})
	return fx
}

var shared struct {
	sync.Once
	fixture *fixture
}

// sharedFixture returns the fixture that runs the workers of newFixture until all tests have run.
func sharedFixture(pool *pgxpool.Pool) *fixture {
	shared.Do(func() {
		shared.fixture = newFixtureIn(dbtest.Program(), pool, files.Options{})
		shared.fixture.work(files.Queues())
	})
	return shared.fixture
}

// newOwnFixture returns a fixture in the shared database with its own jobs, and workers on the given queues.
func newOwnFixture(t testing.TB, o files.Options, queues map[string]river.QueueConfig) *fixture {
	t.Helper()
	fx := newIdleFixture(t, o)
	fx.work(queues)
	return fx
}

// newIdleFixture returns a fixture in the shared database with its own jobs and no workers.
func newIdleFixture(t testing.TB, o files.Options) *fixture {
	t.Helper()
	pool, org := dbtest.Org(t)
	return newIdleFixtureOn(t, pool, org, o)
}

// newIdleFixtureOn is newIdleFixture on a pool of the test.
func newIdleFixtureOn(t testing.TB, pool *pgxpool.Pool, org db.Org, o files.Options) *fixture {
	t.Helper()
	fx := &fixture{t: t, pool: pool, org: org, ends: &jobEnds{}}
	fx.client = func(c river.Config) *river.Client[pgx.Tx] { return queuetest.Jobs(t, pool, org, c) }
	fx.queue = func(name string) string { return fmt.Sprintf("%s_%d", name, org) }
	fx.jobs = fx.client(queueing)
	fx.Store = fx.newStore(pool, o)
	return fx
}

// newFixtureIn returns a fixture without workers in any database.
func newFixtureIn(t testing.TB, pool *pgxpool.Pool, o files.Options) *fixture {
	t.Helper()
	fx := &fixture{t: t, pool: pool, org: dbtest.NewOrg(t, pool), ends: &jobEnds{}}
	fx.client = func(c river.Config) *river.Client[pgx.Tx] { return embedtest.Jobs(t, pool, c) }
	fx.queue = func(name string) string { return name }
	fx.jobs = fx.client(queueing)
	fx.Store = fx.newStore(pool, o)
	return fx
}

// newStore returns a store that queues its jobs with those of the fixture.
func (fx *fixture) newStore(d db.DB, o files.Options) *files.Store {
	fx.t.Helper()
	// In the system's directory it would remove the files of other programs' tests.
	o.Jobs, o.TempDir = fx.jobs, cmp.Or(o.TempDir, programDir())
	store, err := files.New(d, o)
	if err != nil {
		fx.t.Fatal(err)
	}
	return store
}

// programDir returns a directory for temporary files that exists until all tests have run.
var programDir = sync.OnceValue(func() string { return dbtest.Program().TempDir() })

// newDenseFixture returns a fixture with its own jobs and an endpoint that embeds its files.
func newDenseFixture(t testing.TB, dimension int) (*fixture, *embedtest.Endpoint, endpoint.Space) {
	t.Helper()
	e := embedtest.New(t, dimension)
	endpoint := e.Endpoint(t)
	endpoint.FirstPause, endpoint.MaxPause = 20*time.Millisecond, 100*time.Millisecond
	fx, space := newDenseFixtureWith(t, e, endpoint, files.Queues())
	return fx, e, space
}

// newDenseFixtureWith returns a fixture with its own jobs, the given endpoint that embeds its files, and workers on the
// given queues.
func newDenseFixtureWith(t testing.TB, e *embedtest.Endpoint, endpoint *endpoint.Endpoint,
	queues map[string]river.QueueConfig) (*fixture, endpoint.Space) {
	t.Helper()
	fx := newIdleFixture(t, files.Options{Endpoint: endpoint})
	space := fx.space(e, "fake")
	endpoint.Use(space)
	fx.poll = 50 * time.Millisecond
	fx.work(queues)
	return fx, space
}

// space returns a vector space that no other test uses: an earlier test's endpoint may have had the same URL.
func (fx *fixture) space(e *embedtest.Endpoint, model string) endpoint.Space {
	fx.t.Helper()
	space, err := endpoint.UseSpace(fx.t.Context(), fx.pool, fmt.Sprintf("%s of %d", e.URL, fx.org), model, e.Dimension)
	if err != nil {
		fx.t.Fatal(err)
	}
	return space
}

// queueing makes a client announce each job to the workers at once. With River's default, a job that follows another
// within a tenth of a second waits until the workers look again.
var queueing = river.Config{FetchCooldown: time.Millisecond}

// work runs workers on the fixture's jobs until the test ends.
func (fx *fixture) work(queues map[string]river.QueueConfig) {
	fx.t.Helper()
	fx.workWith(fx.Store, queues)
}

// workWith runs workers on the fixture's jobs as a store's server does, until the test ends or stop is called.
func (fx *fixture) workWith(store *files.Store, queues map[string]river.QueueConfig) (stop func()) {
	t := fx.t
	t.Helper()
	bundle := river.NewWorkers()
	store.Work(bundle)
	worker := fx.client(river.Config{Workers: bundle, Queues: queues, Middleware: []rivertype.Middleware{fx.ends},
		FetchCooldown: time.Millisecond, FetchPollInterval: cmp.Or(fx.poll, 500*time.Millisecond)})
	if err := worker.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	fx.worker = worker
	stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), embedtest.Patience)
		defer cancel()
		if err := worker.StopAndCancel(ctx); err != nil {
			t.Errorf("stop the workers: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// jobEnds is a worker middleware that signals when jobs end.
type jobEnds struct {
	river.MiddlewareDefaults

	mu   sync.Mutex
	next chan struct{} // closed when a job ends; nil if nobody waits
}

// Work implements rivertype.WorkerMiddleware.
func (e *jobEnds) Work(ctx context.Context, _ *rivertype.JobRow, work func(context.Context) error) error {
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.next != nil {
			close(e.next)
			e.next = nil
		}
	}()
	return work(ctx)
}

// wait returns a channel that closes when the next job ends.
func (e *jobEnds) wait() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.next == nil {
		e.next = make(chan struct{})
	}
	return e.next
}

// eventually waits until is returns true. It asks whenever a job ends, and every 50 ms for what is stored later.
func (fx *fixture) eventually(what string, is func() bool) {
	fx.t.Helper()
	deadline := time.After(embedtest.Patience)
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		ended := fx.ends.wait()
		if is() {
			return
		}
		select {
		case <-ended:
		case <-look.C:
		case <-deadline:
			fx.t.Fatalf("not in time: %s", what)
		}
	}
}

func (fx *fixture) folder(name string) files.Folder {
	fx.t.Helper()
	return fx.newFolder(files.NewFolder{Name: name})
}

// finelyCut returns a folder with short chunks: a short text has many.
func (fx *fixture) finelyCut(name string) files.Folder {
	fx.t.Helper()
	return fx.newFolder(files.NewFolder{Name: name, ChunkTokens: 50, OverlapTokens: 1})
}

// coarselyCut returns a folder with long chunks: a long text has few.
func (fx *fixture) coarselyCut(name string) files.Folder {
	fx.t.Helper()
	return fx.newFolder(files.NewFolder{Name: name, ChunkTokens: 8000})
}

func (fx *fixture) newFolder(n files.NewFolder) files.Folder {
	fx.t.Helper()
	f, err := fx.CreateFolder(fx.t.Context(), fx.org, n)
	if err != nil {
		fx.t.Fatalf("create folder %s: %v", n.Name, err)
	}
	return f
}

// agent adds an agent as the agents' package would.
func (fx *fixture) agent() string {
	fx.t.Helper()
	var id string
	err := pgx.BeginFunc(fx.t.Context(), fx.pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(fx.t.Context(), `
			INSERT INTO agents (org, name, agent_type, system) VALUES ($1, 'a', 'letta_v1_agent', '')
			RETURNING id`, fx.org).Scan(&id); err != nil {
			return err
		}
		_, err := event.Append(fx.t.Context(), tx, fx.org, event.Event{AgentID: id, Type: event.AgentCreated, RefID: id})
		return err
	})
	if err != nil {
		fx.t.Fatalf("create an agent: %v", err)
	}
	return id
}

// attach attaches a folder to an agent.
func (fx *fixture) attach(agent, folder string, l files.Limits) error {
	return fx.Attach(context.Background(), fx.org, files.Attachment{AgentID: agent, FolderID: folder, Limits: l})
}

// agentWith adds an agent with the folders attached and no file open.
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

// upload stores a document and waits until searches find its text.
func (fx *fixture) upload(folder files.Folder, name, text string) files.File {
	fx.t.Helper()
	return fx.await(folder, fx.send(folder, name, text, files.Suffix))
}

// send stores a document and does not wait.
func (fx *fixture) send(folder files.Folder, name, text string, d files.Duplicates) files.File {
	fx.t.Helper()
	f, _, err := fx.Upload(fx.t.Context(), fx.org, folder.ID,
		files.Upload{Name: name, Body: strings.NewReader(text), Duplicates: d})
	if err != nil {
		fx.t.Fatalf("upload %s: %v", name, err)
	}
	return f
}

// await waits until a file is completed or failed.
func (fx *fixture) await(folder files.Folder, f files.File) files.File {
	fx.t.Helper()
	return fx.awaitWhere(folder, f, func(f files.File) bool {
		return f.Status == files.Completed ||
			f.Status == files.Failed
	})
}

// awaitWhere waits until wanted returns true for a file.
func (fx *fixture) awaitWhere(folder files.Folder, f files.File, wanted func(files.File) bool) (got files.File) {
	fx.t.Helper()
	fx.eventually("the file "+f.Name+" is as wanted", func() bool {
		var err error
		if got, err = fx.File(fx.t.Context(), fx.org, folder.ID, f.ID, false); err != nil {
			fx.t.Fatalf("read file %s: %v", f.Name, err)
		}
		return wanted(got)
	})
	return got
}

// gate is a reader of documents. While it is closed, it reads none.
type gate struct {
	mu      sync.Mutex
	opened  chan struct{} // closed when the gate opens
	waiting int           // documents at the closed gate
}

// newGate returns an open gate.
func newGate() *gate {
	g := &gate{opened: make(chan struct{})}
	close(g.opened)
	return g
}

// close closes the gate until open is called.
func (g *gate) close() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	opened := make(chan struct{})
	g.opened = opened
	return func() { close(opened) }
}

// options returns the options of a store that reads through the gate.
func (g *gate) options() files.Options { return files.Options{Read: g.read} }

func (g *gate) read(ctx context.Context, in document.Input) (document.Text, error) {
	opened := g.enter(1)
	defer g.enter(-1)
	select {
	case <-opened:
		return document.Readers{}.Read(ctx, in)
	case <-ctx.Done():
		return document.Text{}, ctx.Err()
	}
}

func (g *gate) enter(n int) (opened <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting += n
	return g.opened
}

// await waits until n documents are at the closed gate.
func (g *gate) await(t testing.TB, n int) {
	t.Helper()
	embedtest.Eventually(t, fmt.Sprintf("%d documents are read", n), func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.waiting == n
	})
}

// backfill queues the missing vectors of the organization's files and returns the number of batches that it added.
func (fx *fixture) backfill() int {
	fx.t.Helper()
	n, err := files.BackfillOrg(fx.Store, fx.t.Context(), fx.org)
	if err != nil {
		fx.t.Fatalf("backfill: %v", err)
	}
	return n
}

// pause stops the parsing of files until resume is called. It returns when the workers have stopped.
func (fx *fixture) pause() (resume func()) {
	fx.t.Helper()
	return fx.pauseQueue(files.QueueParse)
}

func (fx *fixture) pauseQueue(name string) (resume func()) {
	fx.t.Helper()
	ctx := fx.t.Context()
	change := func(what func(context.Context, string, *river.QueuePauseOpts) error, kind river.EventKind) {
		fx.t.Helper()
		known, unsubscribe := fx.worker.Subscribe(kind)
		defer unsubscribe()
		if err := what(ctx, fx.queue(name), nil); err != nil {
			fx.t.Fatal(err)
		}
		select {
		case <-known:
		case <-time.After(embedtest.Patience):
			fx.t.Fatalf("the workers do not know of %s", kind)
		}
	}
	change(fx.worker.QueuePause, river.EventKindQueuePaused)
	return func() { change(fx.worker.QueueResume, river.EventKindQueueResumed) }
}

func (fx *fixture) content(folder files.Folder, f files.File) string {
	fx.t.Helper()
	got, err := fx.File(fx.t.Context(), fx.org, folder.ID, f.ID, true)
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

// rows counts the organization's rows in a table that meet all conditions.
func (fx *fixture) rows(table string, conditions ...string) int {
	fx.t.Helper()
	where := strings.Join(append([]string{"org = $1"}, conditions...), " AND ")
	return fx.count(`SELECT count(*) FROM `+table+` WHERE `+where, fx.org)
}

// jobsWhere counts the organization's jobs that meet a condition.
func (fx *fixture) jobsWhere(condition string) int {
	fx.t.Helper()
	return fx.count(`SELECT count(*) FROM river_job WHERE args @> jsonb_build_object('org', $1::integer) AND `+condition,
		fx.org)
}

// idle waits until all jobs of the organization have ended.
func (fx *fixture) idle() {
	fx.t.Helper()
	fx.eventually("all jobs end", func() bool { return fx.jobsWhere("finalized_at IS NULL") == 0 })
}

// exec runs a statement.
func (fx *fixture) exec(sql string, args ...any) {
	fx.t.Helper()
	if _, err := fx.pool.Exec(fx.t.Context(), sql, args...); err != nil {
		fx.t.Fatalf("%s: %v", sql, err)
	}
}

// open returns the names of an agent's open files, least recently used first.
func (fx *fixture) open(agentID string) []string {
	fx.t.Helper()
	views, err := fx.Views(fx.t.Context(), fx.org, files.Of(agentID), wide)
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

// manyLines returns a text of n lines.
func manyLines(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "this is line %d\n", i)
	}
	return b.String()
}

// endless returns a body of n bytes that is never in memory as a whole.
func endless(n int64) io.Reader { return io.LimitReader(zeros{}, n) }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}
