package server_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/servertest"
)

// sent uploads a file, and does not wait for its text.
func (c *client) sent(folder, filename, text string) string {
	c.t.Helper()
	got := c.upload(folder, "", filename, text)
	if got.Code != 200 {
		c.t.Fatalf("upload %s: got %d %s", filename, got.Code, got.Text)
	}
	return fields(c.t, got.Text)["id"].(string)
}

func TestCancelRetryAndReparse(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	folder := c.made("/v1/folders", `{"name":"f"}`)
	id := c.sent(folder, "a.txt", "some text\n")
	target := "/v1/folders/" + folder + "/files/" + id
	status := func(method, target string) string {
		t.Helper()
		f := fields(t, c.must(method, target, ""))
		return fmt.Sprint(f["processing_status"], " ", f["error_message"])
	}
	servertest.CheckProblem(t, c.call("POST", target+"/retry", ""), 409, map[string]any{
		"detail": "'a.txt' has not failed: its status is 'pending'; only a failed or cancelled file is tried again"})
	servertest.CheckProblem(t, c.call("POST", target+"/reparse", ""), 409, map[string]any{"detail": "'a.txt' is not " +
		"parsed yet: its status is 'pending'"})
	for range 2 {
		if got := status("POST", target+"/cancel"); got != "error cancelled by request; retry the file to go on" {
			t.Errorf("cancelled: got %s", got)
		}
	}
	if got := status("POST", "/v1/sources/"+folder+"/files/"+id+"/retry"); got != "pending <nil>" {
		t.Errorf("tried again: got %s", got)
	}
	c.work()
	c.awaitFile(folder, id)
	servertest.CheckProblem(t, c.call("POST", target+"/cancel", ""), 409, map[string]any{
		"detail": "there is no work on 'a.txt' to cancel: its status is 'completed'"})
	if got := status("POST", target+"/reparse"); !strings.HasSuffix(got, "<nil>") {
		t.Errorf("parsed again: got %s", got)
	}
	c.awaitFile(folder, id)
	if got := c.must("POST", "/v1/folders/"+folder+"/reparse", ""); got != `{"file_count":1}` {
		t.Errorf("the folder parsed again: got %s", got)
	}
}

func TestOriginalsAreDownloadedAsTheyCame(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	folder := c.made("/v1/folders", `{"name":"f"}`)
	content := strings.Repeat("0123456789abcdef", maxUpload/16-1) + "é\r\n"
	id := c.sent(folder, "für \"dich\"; x.html", content)
	target := "/v1/folders/" + folder + "/files/" + id + "/original"
	sum := sha256.Sum256([]byte(content))
	etag := `"` + hex.EncodeToString(sum[:]) + `"`
	got := c.call("GET", target, "")
	if got.Code != 200 || got.Body.String() != content {
		t.Errorf("got %d and %d bytes, want the %d that were sent", got.Code, got.Body.Len(), len(content))
	}
	for name, want := range map[string]string{"Content-Length": fmt.Sprint(len(content)), "Content-Type": "text/html",
		"X-Content-Type-Options": "nosniff",
		"ETag":                   etag,
		"Content-Disposition":    "attachment; filename*=utf-8''f%C3%BCr%20%22dich%22%3B%20x.html"} {
		if value := got.Header().Get(name); !strings.HasPrefix(value, want) {
			t.Errorf("%s: got %q, want %q", name, value, want)
		}
	}
	if got := c.call("HEAD", target, ""); got.Code != 200 || got.Text != "" ||
		got.Header().Get("Content-Length") != fmt.Sprint(len(content)) {
		t.Errorf("HEAD: got %d, %v", got.Code, got.Header())
	}
	if got := servertest.Send(c, "GET", "/v1/sources/"+folder+"/files/"+id+"/original", "", "If-None-Match",
		etag); got.Code != 304 {
		t.Errorf("what the client has: got %d, want 304", got.Code)
	}
	if got := servertest.Send(c, "GET", target, "", "Range", "bytes=5-8"); got.Code != 206 || got.Text != "5678" {
		t.Errorf("a range: got %d %q", got.Code, got.Text)
	}
	beyond := servertest.Send(c, "GET", target, "", "Range", "bytes=9999999-")
	servertest.CheckProblem(t, beyond, 416, map[string]any{"detail": "invalid range: failed to overlap",
		"code": "range_not_satisfiable"})
	if size := beyond.Header().Get("Content-Range"); size != fmt.Sprintf("bytes */%d", len(content)) {
		t.Errorf("a range beyond the end: got the range %q", size)
	}
	servertest.CheckProblem(t, servertest.Send(c, "GET", target, "", "If-Match", `"other"`), 412, map[string]any{
		"detail": "a condition of the request's headers does not hold: the file is another one than the client has",
		"code":   "precondition_failed"})
	other := c.made("/v1/folders", `{"name":"other"}`)
	servertest.CheckProblem(t, c.call("GET", "/v1/folders/"+other+"/files/"+id+"/original", ""), 404,
		map[string]any{"detail": "there is no such file in this folder"})
	if got := c.call("GET", "/v1/folders/"+folder+"/files/x/original", ""); got.Code != 422 {
		t.Errorf("an id of another form: got %d %s", got.Code, got.Text)
	}
}

// stream is a stream of a file's events as a client reads it.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
	close func()
}

// newWebClient returns a client without jobs, and its server on a port, which can stream answers.
func newWebClient(t *testing.T) (*client, *httptest.Server) {
	t.Helper()
	c := newServerClient(t)
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	return c, web
}

func (c *client) follow(web *httptest.Server, folder, file string) *stream {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r, err := http.NewRequestWithContext(ctx, "GET", web.URL+"/v1/folders/"+folder+"/files/"+file+"/events", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	closing := func() { cancel(); answer.Body.Close() }
	c.t.Cleanup(closing)
	if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "text/event-stream" {
		c.t.Fatalf("got %d, %v", answer.StatusCode, answer.Header)
	}
	return &stream{t: c.t, lines: bufio.NewScanner(answer.Body), close: closing}
}

// next returns the next event; false at the end of the stream.
func (s *stream) next() (files.Progress, bool) {
	s.t.Helper()
	for s.lines.Scan() {
		if text, ok := strings.CutPrefix(s.lines.Text(), "data: "); ok {
			var p files.Progress
			if err := json.Unmarshal([]byte(text), &p); err != nil {
				s.t.Fatalf("read %q: %v", text, err)
			}
			return p, true
		}
	}
	if err := s.lines.Err(); err != nil {
		s.t.Fatalf("the stream broke off: %v", err)
	}
	return files.Progress{}, false
}

// rest returns the statuses of all remaining events.
func (s *stream) rest() (all []files.Status) {
	s.t.Helper()
	for {
		p, ok := s.next()
		if !ok {
			return all
		}
		all = append(all, p.Status)
	}
}

func TestEventsFollowAFileToItsEnd(t *testing.T) {
	t.Parallel()
	c, web := newWebClient(t)
	folder := c.made("/v1/folders", `{"name":"f"}`)
	read, deleted, cancelled := c.sent(folder, "a.txt", "text\n"), c.sent(folder, "b.txt", "text\n"), c.sent(folder,
		"c.txt", "text\n")
	streams := map[string]*stream{}
	for _, id := range []string{read, deleted, cancelled} {
		streams[id] = c.follow(web, folder, id)
		if p, _ := streams[id].next(); p.Status != files.Pending {
			t.Errorf("at first: got %+v", p)
		}
	}
	c.must("DELETE", "/v1/folders/"+folder+"/"+deleted, "")
	if got := streams[deleted].rest(); len(got) != 1 || got[0] != files.Deleted {
		t.Errorf("a file that is deleted: got %v", got)
	}
	c.must("POST", "/v1/folders/"+folder+"/files/"+cancelled+"/cancel", "")
	if p, _ := streams[cancelled].next(); p.Status != files.Failed || p.Error == nil ||
		!strings.HasPrefix(*p.Error, "cancelled") {
		t.Errorf("a file that is cancelled: got %+v", p)
	}
	c.work()
	got := streams[read].rest()
	if len(got) == 0 || got[len(got)-1] != files.Completed {
		t.Errorf("a file that is read: got %v", got)
	}
	if got := c.follow(web, folder, read).rest(); len(got) != 1 || got[0] != files.Completed {
		t.Errorf("a file that was read: got %v", got)
	}
	servertest.CheckProblem(t, c.call("GET", "/v1/folders/"+folder+"/files/"+deleted+"/events", ""), 404,
		map[string]any{"detail": "there is no such file in this folder"})
}

func TestEventsEndWithTheServerAndTheClient(t *testing.T) {
	t.Parallel()
	c, web := newWebClient(t)
	folder := c.made("/v1/folders", `{"name":"f"}`)
	id := c.sent(folder, "a.txt", "text\n")
	leaving, staying := c.follow(web, folder, id), c.follow(web, folder, id)
	leaving.next()
	staying.next()
	leaving.close()
	embedtest.Eventually(t, "a stream ends with its client", func() bool { return c.server.Progress.Count() <= 1 })
	c.stopWatching()
	if got := staying.rest(); len(got) != 0 {
		t.Errorf("when the server stops: got %v, want the end", got)
	}
}

// If the database hangs, requests do not. They are answered with a 503 when their time is over.
func TestRequestsDoNotWaitForeverForTheDatabase(t *testing.T) {
	t.Parallel()
	c := newElsewhereServerClient(t) // this test locks a table
	identity := "/v1/identities/" + c.made("/v1/identities", `{"identifier_key":"a","name":"Ada","identity_type":"user"}`)
	conn, err := c.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE identities IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	c.own().RequestTimeout = 100 * time.Millisecond
	c.Handler = c.server.Handler()
	for _, target := range []string{identity, "/v1/identities"} {
		got := c.call("GET", target, "")
		servertest.CheckProblem(t, got, 503, map[string]any{"detail": "The database does not answer, or another session of " +
			"it holds a lock that this needs; try again in a moment"})
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.own().RequestTimeout = 0
	c.Handler = c.server.Handler()
	c.must("GET", identity, "")
}

// Some requests have no deadline, because their body, their answer or a model may take long. They do not hang either.
func TestNoRequestWaitsForALockForEver(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	tx, err := c.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background()) //nolint:errcheck // it ends with the test
	for _, table := range []string{"agents", "agent_heads"} {
		if _, err := tx.Exec(t.Context(), `SELECT FROM `+table+` WHERE org = $1 FOR UPDATE`, c.org); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tx.Exec(t.Context(), `SELECT FROM organizations WHERE org = $1 FOR UPDATE`, c.org); err != nil {
		t.Fatal(err)
	}
	c.own().RequestTimeout = time.Second
	c.Handler = c.server.Handler()
	const turn = `{"messages":[{"role":"user","content":"Hello"}]}`
	var requests sync.WaitGroup
	for path, body := range map[string]string{"/messages/capture": turn, "/step": turn} {
		requests.Go(func() {
			got := c.call("POST", "/v1/agents/"+agent+path, body)
			if got.Code != 503 || got.Header().Get("Retry-After") == "" {
				t.Errorf("%s: got %d %s", path, got.Code, got.Text)
			}
		})
	}
	requests.Wait()
}

// Readiness is queried often. Only from time to time a row is stored; otherwise the result is repeated.
func TestReadinessIsRepeated(t *testing.T) {
	t.Parallel()
	s, tried := newServer(t, openServer().pool), 0
	s.Probe = func(context.Context) (time.Duration, error) { tried++; return time.Millisecond, nil }
	s.ReadyEvery = time.Hour
	h := s.Handler()
	first := servertest.Send(h, "GET", "/v1/ready", "")
	if again := servertest.Send(h, "GET", "/v1/ready", ""); again.Code != 200 || again.Text != first.Text || tried != 1 ||
		!strings.Contains(first.Text, `"write_ms":`) {
		t.Errorf("got %d %s after %s, and %d rows", again.Code, again.Text, first.Text, tried)
	}
}
