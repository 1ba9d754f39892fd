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
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/db/queue"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/files/document/documenttest"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server"
	"github.com/loci-memory/loci/server/agent"
	"github.com/loci-memory/loci/server/apikey"
	"github.com/loci-memory/loci/server/block"
	"github.com/loci-memory/loci/server/block/working"
	"github.com/loci-memory/loci/server/erase"
	"github.com/loci-memory/loci/server/handover"
	"github.com/loci-memory/loci/server/memoryfile"
	"github.com/loci-memory/loci/server/metrics"
	"github.com/loci-memory/loci/server/quota"
	"github.com/loci-memory/loci/server/replay"
	"github.com/loci-memory/loci/server/retention"
	"github.com/loci-memory/loci/server/servertest"
	"github.com/loci-memory/loci/server/subagent"
	"github.com/loci-memory/loci/server/tool"
	"github.com/loci-memory/loci/server/tool/jq"
)

const (
	maxUpload = 1 << 20
	patience  = 3 * time.Minute // bounds the waits of tests; reaching it is a failure
)

func newServer(t testing.TB, pool *pgxpool.Pool) *server.Server {
	t.Helper()
	store, err := files.New(pool, files.Options{MaxUploadBytes: maxUpload, TempDir: t.TempDir(), Limits: agent.LimitsOf,
		Read: documenttest.Readers().Read})
	if err != nil {
		t.Fatal(err)
	}
	messages := recall.New(pool, recall.Options{})
	blocks, passages := &block.Store{DB: pool}, archival.New(pool, archival.Options{})
	states := &working.Store{DB: pool, Recall: messages, Files: store}
	trees := memoryfile.New(pool, memoryfile.Options{Redactor: messages.Redactor})
	compactions := &compaction.Store{DB: pool, Recall: messages}
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
	agents.Tools = tools.Definitions
	agents.Begun = handover.Begun(agents)
	s := &server.Server{Metrics: metrics.New("test"), Handovers: &handover.Store{DB: pool, Agents: agents}, Tools: tools,
		Reembed:  &embed.Reembed{DB: pool},
		Loopback: true, Files: store, Recall: messages, Blocks: blocks, Archival: passages,
		Working: states, MemoryFiles: trees, Erasures: erasures, Agents: agents,
		Retention: &retention.Store{DB: pool}, Quotas: &quota.Store{DB: pool}, Requests: &quota.Requests{DB: pool},
		ExamineEmbeddings: neverAsked, ExamineModel: neverAsked,
		Replays: &replay.Store{DB: pool, Recall: messages,
			Models: func(ctx context.Context, handle string) *compaction.Model {
				if compactions.Models == nil {
					return nil
				}
				return compactions.Models(ctx, handle)
			}, Jobs: func() *river.Client[pgx.Tx] { return agents.Jobs }},
		Progress: store.NewProgressPoller(20 * time.Millisecond), DB: pool, Followers: event.NewFollowers(pool,
			5*time.Millisecond),
		Keys: &apikey.Store{DB: pool}, Log: slog.New(
			slog.DiscardHandler), Version: "test", MaxUploadBytes: maxUpload, Ping: pool.Ping}
	s.Loop = newLoop(t, s, "")
	s.Children = &subagent.Store{DB: pool, Agents: agents, Loop: s.Loop}
	return s
}

// neverAsked is the finding of an endpoint that is not configured.
func neverAsked(context.Context) db.Finding {
	return db.Finding{Of: "endpoint", State: db.Well, Text: "none is configured"}
}

// client calls a server that works on a database of its own, jobs included.
type client struct {
	http.Handler
	t      *testing.T
	server *server.Server
	pool   *pgxpool.Pool
	done   <-chan *river.Event
	key    string // empty without

	stopWatching func() // as a server that stops does
}

func newClient(t *testing.T) *client {
	t.Helper()
	c := newIdleClient(t)
	c.work()
	return c
}

// newIdleClient is a client of a server on which nobody works on jobs until work is called.
func newIdleClient(t *testing.T) *client {
	t.Helper()
	pool := dbtest.New(t)
	s := newServer(t, pool)
	var watching sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	progress, followers := s.Progress, s.Followers // a test may set others
	watching.Go(func() { progress.Run(ctx, func(err error) { t.Errorf("read the progress of files: %v", err) }) })
	watching.Go(func() { followers.Run(ctx, func(err error) { t.Errorf("read the heads of agents: %v", err) }) })
	t.Cleanup(func() {
		stop()
		watching.Wait()
	})
	return &client{Handler: s.Handler(), t: t, server: s, pool: pool, stopWatching: stop}
}

// work works on the server's jobs until the test ends.
func (c *client) work() {
	t, pool := c.t, c.pool
	t.Helper()
	workers := river.NewWorkers()
	c.server.Handovers.Work(workers)
	c.server.Replays.Work(workers)
	c.server.Files.Work(workers)
	c.server.Children.Work(workers)
	queues := files.Queues()
	maps.Copy(queues, subagent.Queues())
	maps.Copy(queues, handover.Queues())
	maps.Copy(queues, replay.Queues())
	jobs, err := river.NewClient(riverpgxv5.New(pool),
		&river.Config{Workers: workers, Logger: slog.New(slog.DiscardHandler),
			FetchCooldown: 5 * time.Millisecond, FetchPollInterval: 50 * time.Millisecond,
			Queues: queues, Middleware: []rivertype.Middleware{&queue.Provenance{}}})
	if err != nil {
		t.Fatal(err)
	}
	c.server.Agents.Jobs = jobs
	done, unsubscribe := jobs.Subscribe(river.EventKindJobCompleted, river.EventKindJobCancelled, river.EventKindJobFailed)
	if err := jobs.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unsubscribe()
		<-jobs.Stopped() // the test's context has ended
	})
	c.done = done
}

// as is the same client with the key of another organization.
func (c *client) as(org string) *client {
	other := *c
	other.key = newKey(c.t, c.server.Keys, org)
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

// must calls and returns the answer's body, which must be a 200's or 204's.
func (c *client) must(method, target, body string) string {
	c.t.Helper()
	got := c.call(method, target, body)
	if got.Code != 200 && got.Code != 204 {
		c.t.Fatalf("%s %s %s: got %d %s", method, target, body, got.Code, got.Text)
	}
	return got.Text
}

// fields reads an object.
func fields(t *testing.T, body string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(body), &object); err != nil {
		t.Fatalf("read %s: %v", body, err)
	}
	return object
}

// made is the id of what a call created.
func (c *client) made(target, body string) string {
	c.t.Helper()
	return fields(c.t, c.must("POST", target, body))["id"].(string)
}

// form is a multipart body with one part.
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

// uploaded uploads a file and waits until its text is there.
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

// awaitFile waits until a file's text is there.
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
