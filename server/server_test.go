package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/handover"
	"github.com/loci-memory/loci/agent/subagent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/agent/tool/jq"
	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/compaction/replay"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/db/queue"
	"github.com/loci-memory/loci/db/queue/queuetest"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/files/document/documenttest"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server"
	"github.com/loci-memory/loci/server/metrics"
	"github.com/loci-memory/loci/server/servertest"
	"github.com/loci-memory/loci/tenant/apikey"
	"github.com/loci-memory/loci/tenant/erase"
	"github.com/loci-memory/loci/tenant/quota"
	"github.com/loci-memory/loci/tenant/retention"
)

const (
	maxUpload = 1 << 20
	patience  = 3 * time.Minute // bounds the waits of tests; reaching it is a failure
)

func newServer(t testing.TB, pool *pgxpool.Pool) *server.Server {
	t.Helper()
	return newServerWith(t, pool, nil)
}

// newServerWith does the same as newServer, with a client that queues the jobs of files; see files.Options.
func newServerWith(t testing.TB, pool *pgxpool.Pool, jobs *river.Client[pgx.Tx]) *server.Server {
	t.Helper()
	store, err := files.New(pool, files.Options{MaxUploadBytes: maxUpload, TempDir: t.TempDir(), Limits: agent.LimitsOf,
		Read: documenttest.Readers().Read, Jobs: jobs})
	if err != nil {
		t.Fatal(err)
	}
	messages := recall.New(pool, recall.Options{})
	blocks, passages := &block.Store{DB: pool}, archival.New(pool, archival.Options{})
	states := &working.Store{DB: pool, Recall: messages, Files: store}
	trees := memoryfile.New(pool, memoryfile.Options{Redactor: messages.Redactor})
	compactions := compaction.New(pool, messages)
	erasures := &erase.Store{DB: pool, Recall: messages, Files: store, Archival: passages, Compaction: compactions,
		MemoryFiles: trees}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	agents := &agent.Store{DB: pool, Files: store, Recall: messages, Blocks: blocks, Archival: passages,
		Working: states, MemoryFiles: trees, Compaction: compactions}
	tools := tool.New(tool.Memories{Files: store, Recall: messages, Blocks: blocks, Archival: passages, Agents: agents,
		JQ: jq.New(program, "run-jq"), Working: states, MemoryFiles: trees, Erasures: erasures, Child: subagent.LogOf(pool)})
	tools.RecallWithin = time.Minute // the outcome must not depend on how busy the machine is
	agents.Tools, agents.Recalled = tools.Definitions, tools.Recalled
	agents.Begun = handover.Begun(agents)
	s := &server.Server{Metrics: metrics.New("test"), Handovers: &handover.Store{DB: pool, Agents: agents}, Tools: tools,
		Reembed: &endpoint.Reembed{DB: pool},
		Files:   store, Recall: messages, Blocks: blocks, Archival: passages,
		Working: states, MemoryFiles: trees, Erasures: erasures, Agents: agents,
		Retention: &retention.Store{DB: pool}, Quotas: &quota.Store{DB: pool}, Requests: &quota.Requests{DB: pool},
		Examine:           func(context.Context) []db.Finding { return []db.Finding{} },
		ExamineEmbeddings: neverAsked, ExamineModel: neverAsked,
		Replays: &replay.Store{DB: pool, Recall: messages,
			Models: func(ctx context.Context, handle string) *summary.Model {
				if compactions.Models == nil {
					return nil
				}
				return compactions.Models(ctx, handle)
			}, Jobs: func() *river.Client[pgx.Tx] { return agents.Jobs }},
		Progress: store.NewProgressPoller(50 * time.Millisecond), DB: pool, Followers: event.NewFollowers(pool,
			50*time.Millisecond),
		Keys: &apikey.Store{DB: pool}, Log: slog.New(serverLog), Version: "test", MaxUploadBytes: maxUpload,
		ReadyEvery: time.Nanosecond, PageWait: patience,
		Probe: func(ctx context.Context) (time.Duration, error) {
			return db.Probe(ctx, pool, "ready", nil)
		}}
	s.OpenOrg = s.Keys.OpenOrg
	s.Loop = newLoop(t, s, "")
	s.Children = &subagent.Store{DB: pool, Agents: agents, Loop: s.Loop}
	tools.Subagents = s.Children.ForTool()
	return s
}

// neverAsked returns the finding for an endpoint that is not configured.
func neverAsked(context.Context) db.Finding {
	return db.Finding{Of: "endpoint", State: db.Well, Text: "none is configured"}
}

// serverLog is the log of all servers.
var serverLog = servertest.NewLog()

// client calls a server for an organization.
type client struct {
	http.Handler
	t      *testing.T
	server *server.Server
	pool   *pgxpool.Pool
	jobs   *river.Client[pgx.Tx] // nil if nobody works on jobs
	done   <-chan *river.Event   // events of finished jobs
	org    db.Org
	home   db.Org // the test's organization; it makes other organizations' names unique
	key    string // empty for none
	open   db.Org // organization for requests without a key; 0 refuses such requests
	shared bool   // whether other tests use the server, too

	stopWatching func() // stops what watch runs, as a stopping server does
}

// newClient returns a client of the server that the tests of this package share, in an organization of its own. The
// test must not change the server; if it has to, it uses newServerClient.
func newClient(t *testing.T) *client {
	t.Helper()
	return joined(t, sharedServer())
}

// joined returns a client of a shared server, in an organization of its own.
func joined(t *testing.T, shared *client) *client {
	t.Helper()
	c := *shared
	c.t, c.shared = t, true
	c.stopWatching = func() { t.Fatal("this test would stop the server of all tests") }
	c.org = dbtest.NewOrg(t, c.pool)
	c.home, c.open = c.org, c.org
	serverLog.Follow(t, c.org)
	c.subscribe()
	return &c
}

// newElsewhereClient does the same as newClient, on another shared database. That database is for tests that work on
// all organizations, lock tables, or create triggers. Tests there must not wait for other statements while they hold a
// transaction open, because these would wait for such a lock.
func newElsewhereClient(t *testing.T) *client {
	t.Helper()
	return joined(t, elsewhereServer())
}

// newServerClient returns a client of the test's own server, in an organization of its own in the shared database. The
// test may change the server before it calls Handler again. Nobody works on jobs until work is called.
func newServerClient(t *testing.T) *client {
	t.Helper()
	pool, org := dbtest.Org(t)
	return serverClientOn(t, pool, org)
}

// serverClientOn does the same as newServerClient, with an existing pool and organization.
func serverClientOn(t *testing.T, pool *pgxpool.Pool, org db.Org) *client {
	t.Helper()
	s := newServerWith(t, pool, queuetest.Jobs(t, pool, org, river.Config{}))
	s.OpenOrg = openOrg
	serverLog.Follow(t, org)
	return &client{Handler: s.Handler(), t: t, server: s, pool: pool, org: org, home: org, open: org,
		stopWatching: watch(t, s)}
}

// newElsewhereServerClient does the same as newServerClient, on the database of newElsewhereClient.
func newElsewhereServerClient(t *testing.T) *client {
	t.Helper()
	pool := elsewhereServer().pool
	return serverClientOn(t, pool, dbtest.NewOrg(t, pool))
}

// newDatabaseClient returns a client without a key, of a server on the test's own database. Nobody works on jobs until
// work is called.
func newDatabaseClient(t *testing.T) *client {
	t.Helper()
	pool := dbtest.New(t)
	s := newServer(t, pool)
	serverLog.Follow(t, defaultOrg)
	return &client{Handler: s.Handler(), t: t, server: s, pool: pool, org: defaultOrg, home: defaultOrg,
		stopWatching: watch(t, s)}
}

// newOpenClient returns a client without a key, of a server that some tests share. The server's database has no key, so
// the server works for the default organization and the operator. The test must not create a key.
func newOpenClient(t *testing.T) *client {
	t.Helper()
	c := *openServer()
	c.t, c.shared = t, true
	return &c
}

var openServer = sync.OnceValue(func() *client {
	t := dbtest.Program()
	pool := dbtest.New(t)
	s := newServer(t, pool)
	return &client{Handler: s.Handler(), server: s, pool: pool, org: defaultOrg, home: defaultOrg}
})

// watch runs the server's watchers until the test ends or stop is called.
func watch(t testing.TB, s *server.Server) (stop func()) {
	var watching sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	progress, followers := s.Progress, s.Followers // a test may set others
	watching.Go(func() { progress.Run(ctx, func(err error) { t.Errorf("read the progress of files: %v", err) }) })
	watching.Go(func() { followers.Run(ctx, func(err error) { t.Errorf("read the heads of agents: %v", err) }) })
	t.Cleanup(func() {
		cancel()
		watching.Wait()
	})
	return cancel
}

// openTo is the context key for the organization that a test's server serves without a key.
type openTo struct{}

// openOrg is the Server.OpenOrg of servers that take the organization from the request.
func openOrg(ctx context.Context) (db.Org, error) {
	if org, _ := ctx.Value(openTo{}).(db.Org); org != 0 {
		return org, nil
	}
	return 0, db.ErrNotFound
}

// sharedServer returns the server that the tests of this package share.
var sharedServer = sync.OnceValue(func() *client {
	pool, _ := dbtest.Org(dbtest.Program())
	return sharedOn(pool)
})

// elsewhereServer returns the server of newElsewhereClient.
var elsewhereServer = sync.OnceValue(func() *client { return sharedOn(dbtest.New(dbtest.Program())) })

// sharedOn returns a server on a database. The server works on jobs until all tests have run.
func sharedOn(pool *pgxpool.Pool) *client {
	t := dbtest.Program()
	s := newServer(t, pool)
	s.OpenOrg = openOrg
	c := &client{Handler: s.Handler(), server: s, pool: pool, stopWatching: watch(t, s)}
	c.jobs = work(t, s, func(config river.Config) *river.Client[pgx.Tx] { return embedtest.Jobs(t, pool, config) })
	return c
}

// own returns the server, which the test may change. The test must have its own server; see newServerClient.
func (c *client) own() *server.Server {
	c.t.Helper()
	if c.shared {
		c.t.Fatal("this test would change the server of all tests")
	}
	return c.server
}

// work works on the jobs of the client's server until the test ends.
func (c *client) work() {
	c.t.Helper()
	c.jobs = work(c.t, c.own(), func(config river.Config) *river.Client[pgx.Tx] {
		if c.home == defaultOrg {
			return embedtest.Jobs(c.t, c.pool, config)
		}
		return queuetest.Jobs(c.t, c.pool, c.home, config)
	})
	c.subscribe()
}

// subscribe lets the client see finished jobs.
func (c *client) subscribe() {
	var unsubscribe func()
	c.done, unsubscribe = c.jobs.Subscribe(river.EventKindJobCompleted, river.EventKindJobCancelled,
		river.EventKindJobFailed)
	c.t.Cleanup(unsubscribe)
}

// work works on the jobs of a server until the test ends. open opens the client for jobs.
func work(
	t testing.TB, s *server.Server, open func(river.Config) *river.Client[pgx.Tx],
) *river.Client[pgx.Tx] {
	t.Helper()
	workers := river.NewWorkers()
	s.Handovers.Work(workers)
	s.Replays.Work(workers)
	s.Files.Work(workers)
	s.Children.Work(workers)
	queues := files.Queues()
	maps.Copy(queues, subagent.Queues())
	maps.Copy(queues, handover.Queues())
	maps.Copy(queues, replay.Queues())
	jobs := open(river.Config{Workers: workers, FetchCooldown: 5 * time.Millisecond,
		FetchPollInterval: 500 * time.Millisecond, Queues: queues, Middleware: []rivertype.Middleware{&queue.Provenance{}}})
	s.Agents.Jobs = jobs
	if err := jobs.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := jobs.StopAndCancel(ctx); err != nil {
			t.Errorf("stop the workers: %v", err)
		}
	})
	return jobs
}

// ServeHTTP serves a request. If the request has no key, it is for the client's organization.
func (c *client) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	open := c.open
	for _, header := range []string{"Authorization", "X-BARE-PASSWORD", "Cookie"} {
		if keyed.MatchString(r.Header.Get(header)) {
			open = 0 // as on a server that needs keys
		}
	}
	c.Handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), openTo{}, open)))
}

// operator returns the same client with an operator's key.
func (c *client) operator() *client {
	c.t.Helper()
	secret, key, err := c.server.Keys.Create(context.Background(), apikey.NewKey{Org: apikey.DefaultOrg, Name: "operator",
		Scopes: []string{apikey.Admin}, Operator: true})
	if err != nil {
		c.t.Fatal(err)
	}
	operator := *c
	operator.key, operator.org, operator.open = secret, key.Org, 0
	return &operator
}

// unique returns an organization's name that no other test uses.
func (c *client) unique(name string) string {
	if c.home == defaultOrg {
		return name
	}
	return fmt.Sprintf("%s beside %d", name, c.home)
}

// orgID returns the id of the client's organization.
func (c *client) orgID() string {
	c.t.Helper()
	id, err := db.One[string](context.Background(), c.pool, `SELECT id FROM organizations WHERE org = $1`, c.org)
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

// keyed matches headers that carry a key.
var keyed = regexp.MustCompile(`(?i)^(bearer|password) +\S|loci_session=[^;]`)

// of returns the same client in another test, for example in a subtest.
func (c *client) of(t *testing.T) *client {
	other := *c
	other.t = t
	return &other
}

// again returns the same client with a new handler of its server, which includes the test's changes to the server.
func (c *client) again() *client {
	other := *c
	other.Handler = c.server.Handler()
	return &other
}

// keyed returns the same client with a key of its organization.
func (c *client) keyed() *client {
	c.t.Helper()
	return c.withKey(keyIn(c.t, c.server.Keys, c.org))
}

// as returns the same client with a key of another organization, which has the name that unique returns.
func (c *client) as(org string) *client {
	other := *c
	other.key = newKey(c.t, c.server.Keys, c.unique(org))
	key, err := c.server.Keys.Lookup(context.Background(), other.key)
	if err != nil {
		c.t.Fatal(err)
	}
	other.org, other.open = key.Org, 0
	serverLog.Follow(c.t, key.Org)
	return &other
}

func (c *client) headers() []string {
	if c.key == "" {
		return nil
	}
	return []string{"Authorization", "Bearer " + c.key}
}

func (c *client) call(method, target, body string) servertest.Reply {
	return servertest.Send(c, method, target, body, c.headers()...)
}

// must sends a request, and returns the answer's body. The status must be 200 or 204.
func (c *client) must(method, target, body string) string {
	c.t.Helper()
	got := c.call(method, target, body)
	if got.Code != 200 && got.Code != 204 {
		c.t.Fatalf("%s %s %s: got %d %s", method, target, body, got.Code, got.Text)
	}
	return got.Text
}

// fields decodes an object.
func fields(t *testing.T, body string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(body), &object); err != nil {
		t.Fatalf("read %s: %v", body, err)
	}
	return object
}

// made sends a request that creates something, and returns the new id. An agent has every tool, unless the request says
// something about its tools.
func (c *client) made(target, body string) string {
	c.t.Helper()
	if target == "/v1/agents" && !aboutTools.MatchString(body) {
		body = strings.TrimSuffix(strings.Replace(body, "{", `{"tool_set":"all",`, 1), ",}")
		if strings.HasSuffix(body, `"all"`) {
			body += "}"
		}
	}
	return c.madeAs(target, body)
}

// aboutTools matches what a request says about an agent's tools.
var aboutTools = regexp.MustCompile(`"(tool_set|tools|tool_ids|include_base_tools|made_for|agent_type)"`)

// madeAs sends a request as it is that creates something, and returns the new id.
func (c *client) madeAs(target, body string) string {
	c.t.Helper()
	return fields(c.t, c.must("POST", target, body))["id"].(string)
}

// form returns a multipart body with one part.
func form(part, filename, contentType, text string) (body, mediaType string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	disposition := fmt.Sprintf("form-data; name=%q", part)
	if filename != "" {
		disposition += fmt.Sprintf("; filename=%q", filename)
	}
	p, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {disposition}, "Content-Type": {contentType}})
	if err != nil {
		panic(err)
	}
	if _, err := p.Write([]byte(text)); err != nil {
		panic(err)
	}
	w.Close()
	return b.String(), w.FormDataContentType()
}

func (c *client) upload(folder, query, filename, text string) servertest.Reply {
	body, mediaType := form("file", filename, "application/octet-stream", text)
	return servertest.Send(c, "POST", "/v1/folders/"+folder+"/upload"+query, body,
		append(c.headers(), "Content-Type", mediaType)...)
}

// uploaded uploads a file, and waits until its text is stored.
func (c *client) uploaded(folder, filename, text string) string {
	c.t.Helper()
	got := c.upload(folder, "", filename, text)
	if got.Code != 200 {
		c.t.Fatalf("upload %s: got %d %s", filename, got.Code, got.Text)
	}
	id := fields(c.t, got.Text)["id"].(string)
	c.awaitFile(folder, id)
	return id
}

// awaitJobs waits until a condition holds that only jobs can fulfil. It checks the condition whenever a job ends.
func (c *client) awaitJobs(what string, holds func() bool) {
	c.t.Helper()
	for deadline := time.After(patience); !holds(); {
		select {
		case <-c.done:
		case <-deadline:
			c.t.Fatalf("not in time: %s", what)
		}
	}
}

// awaitFile waits until a file's text is stored.
func (c *client) awaitFile(folder, id string) {
	c.t.Helper()
	deadline := time.After(patience)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		switch f := fields(c.t, c.must("GET", "/v1/folders/"+folder+"/files/"+id, "")); f["processing_status"] {
		case "completed":
			return
		case "error":
			c.t.Fatalf("%v: %v", f["file_name"], f["error_message"])
		}
		select {
		case <-c.done:
		case <-look.C:
		case <-deadline:
			c.t.Fatalf("%s is not parsed", id)
		}
	}
}

func sendTo(h http.Handler, host, target, origin string) servertest.Reply {
	r := httptest.NewRequestWithContext(context.Background(), "GET", "http://"+host+target, nil)
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	return servertest.Do(h, r)
}
