package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
)

// TestMain is also the program. The server runs it to read a document, and a few tests run it to kill it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"read-document", "migrate", "serve"}, os.Args[1]) {
		main()
	}
	dbtest.Main(m)
}

// patience bounds every wait of a test; reaching it is a failure.
const patience = 2 * time.Minute

// program is a server that run serves.
type program struct {
	t    testing.TB
	base string
	key  string
	log  *lines
	stop func() int // tells the server to end, and returns its exit code
}

// lines is a buffer that tells waiting readers of new text.
type lines struct {
	mu    sync.Mutex
	all   bytes.Buffer
	grown chan struct{} // closed by the next Write
}

func newLines() *lines { return &lines{grown: make(chan struct{})} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.Write(p)
	close(l.grown)
	l.grown = make(chan struct{})
	return len(p), nil
}

// more returns a channel that the next Write closes.
func (l *lines) more() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grown
}

// await waits until the written text fulfils a condition.
func (l *lines) await(t testing.TB, what string, holds func(text string) bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		grown := l.more()
		if holds(l.String()) {
			return
		}
		select {
		case <-grown:
		case <-deadline:
			t.Fatalf("not in time: %s:\n%s", what, l)
		}
	}
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// eventually waits until a condition holds that can only be polled. It polls seldom, because each poll is work for the
// server.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) || !db.Pause(t.Context(), 50*time.Millisecond) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

var serves = regexp.MustCompile(`serves (http://\S+)`)

// inRoles replaces the database URL in a server's arguments by two URLs: one with the role that owns the database, and
// one with a role that owns nothing.
func inRoles(args []string) (split []string) {
	for _, arg := range args {
		if url, ok := strings.CutPrefix(arg, "--database-url="); ok {
			split = append(split, "--database-owner-url="+url, "--database-url="+dbtest.Serving(url))
		} else {
			split = append(split, arg)
		}
	}
	return split
}

// serveArgs returns the arguments of a server on a free port. Unless the given arguments choose an embedding model, the
// server ranks by words.
func serveArgs(args []string) []string {
	all := []string{"serve", "--addr=127.0.0.1:0"}
	if !strings.Contains(strings.Join(args, " "), "--embedding") {
		all = append(all, "--embedding=off")
	}
	return append(all, args...)
}

// serve starts a server on a free port, and waits until it prints its address. The server owns nothing in its database;
// see inRoles.
func serve(t testing.TB, args ...string) *program {
	t.Helper()
	return serveAs(t, inRoles(args)...)
}

// serveAs does the same as serve, with the roles in args.
func serveAs(t testing.TB, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, errs, ended := newLines(), newLines(), make(chan int, 1)
	args = serveArgs(args)
	go func() { ended <- run(ctx, args, out, errs) }()
	p := &program{t: t, log: errs}
	p.stop = sync.OnceValue(func() int { cancel(); return <-ended })
	t.Cleanup(func() {
		if code := p.stop(); code != 0 {
			t.Errorf("the server ended with %d:\n%s", code, errs)
		} else if _, one := t.(*testing.T); one && t.Failed() { // not the whole program
			t.Logf("the server's log:\n%s", errs)
		}
	})
	p.base = awaitServing(t, out, errs, ended)
	return p
}

// send sends a request. A body that is not a reader is sent as JSON.
func (p *program) send(method, path string, body any) (status int, answer []byte) {
	p.t.Helper()
	var reader io.Reader
	contentType := "application/json"
	switch b := body.(type) {
	case nil:
	case form:
		reader, contentType = b.body, b.contentType
	default:
		text, err := json.Marshal(body)
		if err != nil {
			p.t.Fatal(err)
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, p.base+path, reader)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	if p.key != "" {
		req.Header.Set("Authorization", "Bearer "+p.key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	if answer, err = io.ReadAll(res.Body); err != nil {
		p.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res.StatusCode, answer
}

// call sends a request that must succeed, and decodes its answer.
func call[T any](p *program, method, path string, body any) T {
	p.t.Helper()
	status, answer := p.send(method, path, body)
	var out T
	if err := json.Unmarshal(answer, &out); err != nil || status != http.StatusOK {
		p.t.Fatalf("%s %s: status %d, %s (%v)", method, path, status, answer, err)
	}
	return out
}

// form is a multipart body.
type form struct {
	body        *bytes.Buffer
	contentType string
}

func fileForm(t testing.TB, name string, content []byte) form {
	t.Helper()
	f := form{body: &bytes.Buffer{}}
	w := multipart.NewWriter(f.body)
	part, err := w.CreateFormFile("file", name)
	if err == nil {
		_, err = part.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	f.contentType = w.FormDataContentType()
	return f
}

// identified has the fields that most answers have.
type identified struct{ ID, Name string }

// stored is a file in the API's form.
type stored struct {
	ID           string
	FileName     string `json:"file_name"`
	Status       string `json:"processing_status"`
	ErrorMessage string `json:"error_message"`
	Chunks       int    `json:"total_chunks"`
	Pages        int    `json:"total_pages"`
}

// await waits until no file of a folder is being processed. It returns the files by name.
func (p *program) await(folder string) map[string]stored {
	p.t.Helper()
	return p.awaitWith(
		folder,
		func(method, path string) ([]stored, bool) { return call[[]stored](p, method, path, nil), true },
	)
}

// awaitWith does the same as await, with a function that reads a page of files. The function returns false if the list
// must be read again.
func (p *program) awaitWith(folder string, read func(method, path string) (page []stored, ok bool)) map[string]stored {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		list, working := map[string]stored{}, 0
		for after := ""; ; {
			page, ok := read("GET", "/v1/folders/"+folder+"/files?limit=1000&after="+after)
			if !ok {
				working++
			}
			if len(page) == 0 {
				break
			}
			for _, f := range page {
				list[f.FileName] = f
				if f.Status != "completed" && f.Status != "error" {
					working++
				}
			}
			after = page[len(page)-1].ID
		}
		if working == 0 {
			return list
		}
		if time.Now().After(deadline) || !db.Pause(p.t.Context(), 20*time.Millisecond) {
			p.t.Fatalf("%d files are still being processed", working)
		}
	}
}

// result is a tool's answer.
type result struct {
	Status string
	Text   string `json:"func_return"`
}

func (p *program) tool(agent, name string, args map[string]any) result {
	p.t.Helper()
	return call[result](p, "POST", "/v1/agents/"+agent+"/tools/"+name+"/run", map[string]any{"args": args})
}

// A server on an empty database creates everything that it needs, loads the demonstration, and does its main job. The
// next start leaves everything unchanged.
func TestTheMainJob(t *testing.T) {
	t.Parallel()
	url := dbtest.EmptyURL(t)
	p := serve(t, "--database-url="+url, "--demo")
	p.hasTheDemonstration()
	p.stop()
	p = serve(t, "--database-url="+url, "--demo")
	p.hasTheDemonstration()
	folder := call[identified](p, "POST", "/v1/folders/", map[string]any{"name": "notes"})
	agent := call[identified](
		p,
		"POST",
		"/v1/agents/",
		map[string]any{"name": "reader", "tool_set": "all", "folder_ids": []string{folder.ID}},
	)
	call[stored](
		p,
		"POST",
		"/v1/folders/"+folder.ID+"/upload",
		fileForm(t, "tides.md", []byte("# Tides\n\nThe moon pulls the sea.\n")),
	)
	if f := p.await(folder.ID)["tides.md"]; f.Status != "completed" || f.Chunks == 0 {
		t.Fatalf("the file is %+v", f)
	}
	for _, c := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"semantic_search_files", map[string]any{"query": "what pulls the sea"}, "The moon pulls the sea."},
		{"grep_files", map[string]any{"pattern": "moon"}, "> 3: The moon pulls the sea."},
		{"open_files", map[string]any{"file_requests": []map[string]any{{"file_name": "notes/tides.md"}}},
			"* Opened notes/tides.md"},
		{"list_files", nil, "notes/tides.md"},
	} {
		if got := p.tool(agent.ID, c.tool, c.args); got.Status != "success" || !strings.Contains(got.Text, c.want) {
			t.Errorf("%s: got %+v, want %q", c.tool, got, c.want)
		}
	}
	out, errs := newLines(), newLines()
	args := []string{"search", "--addr=" + p.base, "--agent=" + agent.ID, "pulls sea"}
	if code := run(t.Context(), append(args, "--explain"), out, errs); code != 0 ||
		!strings.Contains(out.String(), "file notes/tides.md lines 1-3") ||
		!strings.Contains(out.String(), "has pull sea") || !strings.Contains(out.String(), "MILLISECONDS") {
		t.Errorf("search: got %d, %s%s", code, out, errs)
	}
	if code := run(t.Context(), append(args, "--json"), out, errs); code != 0 ||
		!strings.Contains(out.String(), `"path": "notes/tides.md"`) {
		t.Errorf("search --json: got %d, %s%s", code, out, errs)
	}
	window := call[struct{ Directories string }](p, "GET", "/v1/agents/"+agent.ID+"/context", nil)
	if !strings.Contains(window.Directories, "3: The moon pulls the sea.") {
		t.Errorf("the prompt does not show the open file:\n%s", window.Directories)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("told to stop, the server ended with %d", code)
	}
}

// hasTheDemonstration checks that the database has the demonstration and nothing else.
func (p *program) hasTheDemonstration() {
	p.t.Helper()
	agents := call[[]identified](p, "GET", "/v1/agents/", nil)
	folders := call[[]identified](p, "GET", "/v1/folders/", nil)
	if len(agents) != 1 || agents[0].Name != demoAgent || len(folders) != 1 {
		p.t.Fatalf("got the agents %+v and the folders %+v", agents, folders)
	}
	p.await(folders[0].ID)
	got := p.tool(agents[0].ID, "semantic_search_files", map[string]any{"query": "how to search files"})
	if !strings.Contains(got.Text, "guide/searching.md") {
		p.t.Errorf("search: got %+v", got)
	}
}

// The server reads documents in child processes, which run the same program.
func TestDocumentsAreReadInChildren(t *testing.T) {
	t.Parallel()
	p := tenant(t)
	folder := call[identified](p, "POST", "/v1/folders/", map[string]any{"name": "talks"})
	agent := call[identified](
		p,
		"POST",
		"/v1/agents/",
		map[string]any{"name": "reader", "tool_set": "all", "folder_ids": []string{folder.ID}},
	)
	raw, err := os.ReadFile("../../files/document/testdata/office/slides.pptx")
	if err != nil {
		t.Fatal(err)
	}
	call[stored](p, "POST", "/v1/folders/"+folder.ID+"/upload", fileForm(t, "talk.pptx", raw))
	call[stored](p, "POST", "/v1/folders/"+folder.ID+"/upload", fileForm(t, "cut.pptx", raw[:len(raw)/2]))
	list := p.await(folder.ID)
	if f := list["talk.pptx"]; f.Status != "completed" || f.Pages != 4 {
		t.Errorf("the slides are %+v", f)
	}
	if f := list["cut.pptx"]; f.Status != "error" || !strings.Contains(f.ErrorMessage, "damaged") {
		t.Errorf("a part of them is %+v", f)
	}
	if got := p.tool(agent.ID, "grep_files", map[string]any{"pattern": "Twice a day"}); !strings.Contains(
		got.Text,
		"talks/talk.pptx:9 (slide 2) ===",
	) {
		t.Errorf("got %+v", got)
	}
	zip := fileForm(t, "a.zip", []byte("PK\x05\x06"+strings.Repeat("\x00", 18)))
	status, answer := p.send("POST", "/v1/folders/"+folder.ID+"/upload", zip)
	if status != http.StatusUnsupportedMediaType ||
		!strings.Contains(string(answer), "Archives are not unpacked: upload the files in them.") {
		t.Errorf("an archive: %d %s", status, answer)
	}
}

func TestSettingsThatAreWrongStopTheStart(t *testing.T) {
	t.Parallel()
	url, home := sharedURL(t), newHome(t)
	for name, c := range map[string]struct{ args, want []string }{
		"an address without port":     {[]string{"--addr=127.0.0.1"}, []string{"LOCI_ADDR", "127.0.0.1"}},
		"a port that is none":         {[]string{"--addr=127.0.0.1:99999"}, []string{"LOCI_ADDR", "99999"}},
		"a key that is too short":     {[]string{"--api-key=short", "--database-url=" + url}, []string{"LOCI_API_KEY"}},
		"a database URL that is none": {[]string{"--database-url=db:5432"}, []string{"LOCI_DATABASE_URL"}},
		"a size that is no number":    {[]string{"--max-upload-bytes=many"}, []string{"max-upload-bytes"}},
		"a size of nothing":           {[]string{"--max-upload-bytes=0"}, []string{"LOCI_MAX_UPLOAD_BYTES"}},
		"a limit of keys that is negative": {[]string{"--key-requests-per-minute=-5"},
			[]string{"LOCI_KEY_REQUESTS_PER_MINUTE is -5"}},
		"a limit of keys that no key may have": {[]string{"--key-requests-at-once=1000001"},
			[]string{"LOCI_KEY_REQUESTS_AT_ONCE is 1000001"}},
		"a log level that is none": {[]string{"--log-level=loud"}, []string{"LOCI_LOG_LEVEL", "loud"}},
		"an endpoint that is no URL": {
			[]string{"--embedding-base-url=here", "--embedding-model=m"},
			[]string{"LOCI_EMBEDDING_BASE_URL"},
		},
		"an endpoint without model": {
			[]string{"--embedding-base-url=http://127.0.0.1:1/v1"},
			[]string{"LOCI_EMBEDDING_MODEL"},
		},
		"a model without endpoint": {[]string{"--embedding-model=m"}, []string{"LOCI_EMBEDDING_BASE_URL"}},
		"a dimension out of range": {
			[]string{"--embedding-base-url=http://127.0.0.1:1/v1", "--embedding-model=m", "--embedding-dimensions=5000"},
			[]string{"LOCI_EMBEDDING_DIMENSIONS"},
		},
		"a language model that is no URL": {
			[]string{"--llm-base-url=localhost:11434", "--llm-model=m"},
			[]string{"LOCI_LLM_BASE_URL", "http://localhost:11434/v1"},
		},
		"a language model by FTP": {
			[]string{"--llm-base-url=ftp://127.0.0.1/v1", "--llm-model=m"},
			[]string{"LOCI_LLM_BASE_URL"},
		},
		"a chat endpoint without model": {[]string{"--llm-base-url=http://127.0.0.1:1/v1"}, []string{"LOCI_LLM_MODEL"}},
		"a chat model without endpoint": {[]string{"--llm-model=m"}, []string{"LOCI_LLM_BASE_URL"}},
		"a chat key without endpoint":   {[]string{"--llm-api-key=k"}, []string{"LOCI_LLM_BASE_URL"}},
		"a window without endpoint":     {[]string{"--llm-context-window=8192"}, []string{"LOCI_LLM_BASE_URL"}},
		"a window of less than nothing": {
			[]string{"--llm-base-url=http://127.0.0.1:1/v1", "--llm-model=m", "--llm-context-window=-1"},
			[]string{"LOCI_LLM_CONTEXT_WINDOW", "-1"},
		},
		"a window that is no number": {
			[]string{"--llm-base-url=http://127.0.0.1:1/v1", "--llm-model=m", "--llm-context-window=8k"},
			[]string{"llm-context-window", "8k"},
		},
		"a chat key of two lines": {
			[]string{"--llm-base-url=http://127.0.0.1:1/v1", "--llm-model=m", "--llm-api-key=sk-1\n"},
			[]string{"LOCI_LLM_API_KEY"},
		},
		"an embeddings key of two lines": {
			[]string{"--embedding-base-url=http://127.0.0.1:1/v1", "--embedding-model=m", "--embedding-api-key=sk-1\n"},
			[]string{"LOCI_EMBEDDING_API_KEY"},
		},
		"a chat model that is blank": {
			[]string{"--llm-base-url=http://127.0.0.1:1/v1", "--llm-model= "},
			[]string{"LOCI_LLM_MODEL"},
		},
		"a directory without Postgres":    {[]string{"--home=" + home, "--postgres-bin=/nowhere"}, []string{"/nowhere"}},
		"a flag that is none":             {[]string{"--colour"}, []string{"colour"}},
		"a database that does not answer": {[]string{"--database-url=postgres://127.0.0.1:1/none"}, []string{"database"}},
	} {
		out, errs := newLines(), newLines()
		args := append([]string{"serve"}, c.args...)
		if !strings.Contains(strings.Join(c.args, " "), "--addr") {
			args = append(args, "--addr=127.0.0.1:0")
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		code := run(ctx, args, out, errs)
		cancel()
		wantCode := 2
		if strings.Contains(name, "database that does not") || strings.Contains(name, "directory without") {
			wantCode = 1
		}
		if code != wantCode {
			t.Errorf("%s: the server ended with %d, want %d", name, code, wantCode)
		}
		for _, want := range c.want {
			if !strings.Contains(errs.String(), want) {
				t.Errorf("%s: %q does not name %s", name, errs, want)
			}
		}
	}
}

// If an endpoint's vectors do not have the configured dimension, the server does not start, and the error names both
// dimensions.
func TestAnotherDimensionStopsTheStart(t *testing.T) {
	t.Parallel()
	fake := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"object": "list", "data": [{"index": 0, "embedding": [0.6, 0.8, 0]}]}`)
	})}
	base := listen(t, &fake)
	out, errs := newLines(), newLines()
	code := run(
		t.Context(),
		[]string{
			"serve",
			"--addr=127.0.0.1:0",
			"--database-url=" + sharedURL(t),
			"--embedding-base-url=" + base + "/v1",
			"--embedding-model=tiny",
			"--embedding-dimensions=4",
		},
		out,
		errs,
	)
	if text := errs.String(); code != 2 || !strings.Contains(text, "3") || !strings.Contains(text, "4") ||
		!strings.Contains(text, "LOCI_EMBEDDING_DIMENSIONS") {
		t.Errorf("got %d: %s", code, text)
	}
}

// commands returns a function that runs a command on a database, and returns its output.
func commands(t *testing.T, url string) func(args ...string) string {
	t.Helper()
	return func(args ...string) string {
		t.Helper()
		out, errs := newLines(), newLines()
		if code := run(t.Context(), append(args, "--database-url="+url), out, errs); code != 0 {
			t.Fatalf("%v ended with %d: %s", args, code, errs)
		}
		return strings.TrimSpace(out.String())
	}
}

// Only a server, or the same command again, deletes the data of an organization that was already deleted.
func aDeletionIsWaitedForLater(t *testing.T, url string) {
	command := commands(t, url)
	id := command("orgs", "create", "acme")
	for round := range 2 {
		named := []string{"acme", id}[round]
		command("orgs", "delete", "--yes", "acme")
		command("orgs", "delete", "--yes", named, "--wait")
		if list := command("orgs", "list"); strings.Contains(list, "acme") {
			t.Errorf("after it was deleted as %s:\n%s", named, list)
		}
		id = command("orgs", "create", "acme")
	}
	command("orgs", "delete", "--yes", id, "--wait")
	errs := newLines()
	args := []string{"orgs", "delete", "--yes", id, "--wait", "--database-url=" + url}
	if code := run(t.Context(), args, newLines(), errs); code != 1 {
		t.Errorf("the deletion of one that is gone ended with %d: %s", code, errs)
	}
}

// A server answers without a key until the first key exists. The commands for keys and organizations then have their
// effects.
func keysAreMadeAndRevoked(t *testing.T, url string) {
	command := commands(t, url)
	p := serveAs(t, "--database-url="+url)
	if status, _ := p.send("GET", "/v1/agents/", nil); status != http.StatusOK {
		t.Errorf("without any key: status %d", status)
	}
	first, second := command("keys", "create"), command("keys", "create", "--org=other", "--name=theirs")
	if status, body := p.send("GET", "/v1/agents/", nil); status != http.StatusUnauthorized {
		t.Errorf("no key once there is one: status %d, %s", status, body)
	}
	p.key = first
	folder := call[identified](p, "POST", "/v1/folders/", map[string]any{"name": "notes"})
	p.key = second
	if status, _ := p.send("GET", "/v1/folders/"+folder.ID, nil); status != http.StatusNotFound {
		t.Errorf("the folder of another organization: status %d", status)
	}
	list := command("keys", "list")
	if !strings.Contains(list, "other") || !strings.Contains(list, "theirs") || strings.Contains(list, second) {
		t.Errorf("list:\n%s", list)
	}
	command("keys", "revoke", strings.Fields(strings.Split(list, "\n")[2])[0])
	if status, _ := p.send("GET", "/v1/agents/", nil); status != http.StatusUnauthorized {
		t.Errorf("a revoked key: status %d", status)
	}
	for _, wrong := range []string{"--agent=agent-123e4567-e89b-42d3-8456-426614174000", "--scope=all", "--expires=soon",
		"--scope=tools", "--requests-at-once=0"} {
		if code := run(t.Context(), []string{"keys", "create", wrong, "--database-url=" + url}, newLines(),
			newLines()); code == 0 {
			t.Errorf("keys create %s made a key", wrong)
		}
	}
	p.key = command("keys", "create", "--scope=read,admin", "--expires=90d", "--requests-per-minute=5")
	if list := command("keys", "list"); !strings.Contains(list, "read,admin") || !strings.Contains(list, "5/minute") {
		t.Errorf("list:\n%s", list)
	}
	if status, _ := p.send("GET", "/v1/admin/keys", nil); status != http.StatusOK {
		t.Errorf("the keys over REST: status %d", status)
	}
	command("keys", "revoke", p.key)
	command("keys", "revoke", first)
	if list := command("keys", "list"); strings.Contains(list, "key-") {
		t.Errorf("after both are revoked:\n%s", list)
	}
	acme := command("orgs", "create", "acme")
	command("orgs", "rename", "acme", "umbrella")
	p.key = command("keys", "create", "--org=umbrella")
	call[identified](p, "POST", "/v1/folders/", map[string]any{"name": "notes"})
	if list := command("orgs", "list"); !strings.Contains(list, acme+"  umbrella") {
		t.Errorf("organizations:\n%s", list)
	}
	if out := command("orgs", "delete", "--yes", "umbrella", "--wait"); !strings.HasPrefix(out, "Deleted, with ") {
		t.Errorf("the deletion says %q", out)
	}
	if list := command("orgs", "list"); strings.Contains(list, acme) {
		t.Errorf("the deleted organization is listed:\n%s", list)
	}
	if status, _ := p.send("GET", "/v1/folders/", nil); status != http.StatusUnauthorized {
		t.Errorf("a key of a deleted organization: status %d", status)
	}
	p.stop()
	const closed = "every API key is revoked"
	p = serveAs(t, "--database-url="+url)
	if log := p.log.String(); !strings.Contains(log, closed) {
		t.Errorf("a server that nobody can use says %q", log)
	}
	p.stop()
	p = serveAs(t, "--database-url="+url, "--reopen")
	if log := p.log.String(); strings.Contains(log, closed) {
		t.Errorf("reopened, the server says %q", log)
	}
	if status, _ := p.send("GET", "/v1/agents/", nil); status != http.StatusOK {
		t.Errorf("reopened, without a key: status %d", status)
	}
}

// A build from a clone has the version in the source.
func TestVersion(t *testing.T) {
	t.Parallel()
	for built, want := range map[string]string{
		"": release, "(devel)": release, "v1.2.3": "v1.2.3", "v1.2.3-rc.1": "v1.2.3-rc.1",
		"v0.0.0-20261122075908-9f518cd01234": release, "v0.1.1-0.20261122075908-9f518cd01234+dirty": release,
	} {
		if got := versionOf(built); got != want {
			t.Errorf("built as %q: got %q, want %q", built, got, want)
		}
	}
}

// The container passes on every setting that has a meaning in it.
func TestComposePassesSettingsOn(t *testing.T) {
	t.Parallel()
	compose, err := os.ReadFile("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	settings, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	outside := map[string]bool{"LOCI_HOME": true, "LOCI_POSTGRES_BIN": true}
	for _, row := range regexp.MustCompile("(?m)^\\| `(LOCI_[A-Z_]+)`").FindAllStringSubmatch(string(settings), -1) {
		if !outside[row[1]] && !strings.Contains(string(compose), "\n      "+row[1]+":") {
			t.Errorf("docker-compose.yml does not pass %s on", row[1])
		}
	}
	if !strings.Contains(string(compose), "${LOCI_PORT:-8283}:8283") {
		t.Error("docker-compose.yml fixes the port")
	}
}

func TestUploadCommand(t *testing.T) {
	t.Parallel()
	p := tenant(t)
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.md"), filepath.Join(dir, "bad.png")
	for path, content := range map[string]string{good: "# Good\n\ntext\n", bad: "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		out, errs := newLines(), newLines()
		code := run(
			t.Context(),
			p.asking("upload", "--duplicates=replace", "--again", "notes", good, bad),
			out,
			errs,
		)
		if code != 1 || !strings.Contains(out.String(), "good.md: 3 lines, 1 chunks") ||
			!strings.Contains(errs.String(), "Unsupported file type") {
			t.Errorf("got %d:\n%s\n%s", code, out, errs)
		}
	}
	out, errs := newLines(), newLines()
	if code := run(t.Context(), []string{"health", "--addr=" + p.base}, out, errs); code != 0 ||
		!strings.HasPrefix(out.String(), "ok") {
		t.Errorf("health: got %d, %s%s", code, out, errs)
	}
	if code := run(t.Context(), []string{"health", "--addr=127.0.0.1:1"}, out, errs); code != 1 {
		t.Errorf("health of no server: got %d", code)
	}
}

// Files in directories and from patterns are uploaded with their relative names, several at a time. Files that the
// folder already has are not sent again, and every failure counts.
func TestUploadOfDirectories(t *testing.T) {
	t.Parallel()
	p := tenant(t)
	dir := t.TempDir()
	write := func(name, content string) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 30 {
		write(fmt.Sprintf("docs/part %d/notes.md", i), fmt.Sprintf("# Part %d\n", i))
	}
	write("docs/.git/config", "hidden")
	upload := func(code int, summary string, args ...string) (out string) {
		t.Helper()
		all, errs := newLines(), newLines()
		if got := run(t.Context(), p.asking(append([]string{"upload", "notes"}, args...)...), all,
			errs); got != code || !strings.Contains(all.String(), summary) || strings.Contains(errs.String(), "\r") {
			t.Errorf("%q: got %d, want %d and %q:\n%s\n%s", args, got, code, summary, all, errs)
		}
		return all.String() + errs.String()
	}
	docs := filepath.Join(dir, "docs")
	if out := upload(0, "30 files: 30 uploaded, 0 unchanged, 0 failed", docs); !strings.Contains(out,
		"part 7/notes.md: 1 lines, 1 chunks") {
		t.Errorf("got %s", out)
	}
	write("docs/part 7/notes.md", "# Part 7\n\nchanged\n")
	upload(0, "30 files: 1 uploaded, 29 unchanged, 0 failed", "--duplicates=replace", docs)
	upload(0, "3 files: 0 uploaded, 3 unchanged, 0 failed", docs+"/**/part {1,2,7}/*.md")
	upload(0, "30 files: 30 uploaded, 0 unchanged, 0 failed", "--again", "--duplicates=replace", docs)
	write("docs/image.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	write("docs/late.md", "late\n")
	if out := upload(1, "32 files: 1 uploaded, 30 unchanged, 1 failed", "--no-wait", docs); strings.Contains(out,
		"lines") {
		t.Errorf("it waited:\n%s", out)
	}
	write("docs/late.md", "later\n")
	upload(1, "32 files: 1 uploaded, 30 unchanged, 1 failed", docs)
	upload(1, "32 files: 0 uploaded, 31 unchanged, 1 failed", docs) // image.png has a numbered copy
	if err := errors.Join(os.Remove(filepath.Join(dir, "docs", "image.png")), os.Symlink(".", filepath.Join(dir, "docs",
		"loop")), syscall.Mkfifo(filepath.Join(dir, "docs", "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(docs, "pipe")
	if out := upload(0, "31 files: 0 uploaded, 31 unchanged, 0 failed", docs); !strings.Contains(out,
		pipe+": left out, because it is a pipe\n") || strings.Contains(out, "loop") {
		t.Errorf("got %s", out)
	}
	none, missing := filepath.Join(dir, "nothing", "*.md"), filepath.Join(dir, "nothing.md")
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	upload(1, "34 files: 0 uploaded, 31 unchanged, 3 failed", none, missing, docs, filepath.Join(dir, "empty"))
	for path, want := range map[string]string{none: "no file matches the pattern", missing: "no such file or directory",
		filepath.Join(dir, "empty"): "the directory has no files", pipe: "it is a pipe: upload a regular file",
		"/dev/null": "it is a device"} {
		errs := newLines()
		args := p.asking(append([]string{"upload", "more"}, strings.Fields(path)...)...)
		if code := run(t.Context(), args, newLines(), errs); code != 1 || !strings.Contains(errs.String(), want) ||
			strings.Count(errs.String(), "nothing") > 1 {
			t.Errorf("%s: got %d %s, want 1 and %q", path, code, errs, want)
		}
	}
	if n := len(call[[]identified](p, "GET", "/v1/folders/?name=more", nil)); n != 0 {
		t.Error("a folder was created for no file")
	}
	folder := call[[]identified](p, "GET", "/v1/folders/?name=notes", nil)[0].ID
	if n := len(p.await(folder)); n != 32 {
		t.Errorf("the folder has %d files, want 32", n)
	}
}

// There are several ways to ask for help.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"help", "serve"}, {"--help", "upload"}, {"help upload", "--no-wait"}, {"upload --help", "--no-wait"},
		{"help keys create", "Create"}, {"help orgs delete", "Delete"}, {"-h", "health"},
	} {
		out, errs := newLines(), newLines()
		if code := run(t.Context(), strings.Fields(c.args), out, errs); code != 0 || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: got %d, %s%s; want %q", c.args, code, out, errs, c.want)
		}
	}
	out, errs := newLines(), newLines()
	if code := run(t.Context(), []string{"help", "nothing"}, out, errs); code != 2 {
		t.Errorf("help of no command: got %d, %s%s", code, out, errs)
	}
}

// listen serves on a free port until the test ends.
func listen(t *testing.T, web *http.Server) (base string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() { _ = web.Serve(listener) })
	t.Cleanup(func() {
		if err := web.Close(); err != nil {
			t.Error(err)
		}
		served.Wait()
	})
	return "http://" + listener.Addr().String()
}
