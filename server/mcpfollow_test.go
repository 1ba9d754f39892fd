package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
)

// maxFollowed is how many of an agent's resources the clients of a key may follow.
const maxFollowed = 1000

// listened returns the resources that the acknowledgement of a listen message names, or the error's code.
func (c *client) listened(web *httptest.Server, agent string, uris []string) (honoured []string, code int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	body := stateless(c.t, 1, "subscriptions/listen", map[string]any{
		"notifications": map[string]any{"resourcesListChanged": true, "resourceSubscriptions": uris}})
	r, err := http.NewRequestWithContext(ctx, "POST", web.URL+"/mcp/agents/"+agent, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for name, value := range map[string]string{"Accept": "application/json, text/event-stream",
		versionHeader: "2026-07-28", "Mcp-Method": "subscriptions/listen", "Content-Type": "application/json"} {
		r.Header.Set(name, value)
	}
	res, err := bearer{key: c.key}.RoundTrip(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text := strings.TrimPrefix(lines.Text(), "data: ")
		if !strings.HasPrefix(text, "{") {
			continue
		}
		var got struct {
			Params struct {
				Notifications struct{ ResourceSubscriptions []string }
			}
			Error struct{ Code int }
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			c.t.Fatal(err)
		}
		return got.Params.Notifications.ResourceSubscriptions, got.Error.Code
	}
	c.t.Fatalf("listen is not answered: %d %v", res.StatusCode, lines.Err())
	return nil, 0
}

type queryCount struct{ atomic.Int64 }

func (n *queryCount) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	n.Add(1)
	return ctx
}

func (*queryCount) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A client can listen to up to 1,000 resources, each once, and the server reads them together.
func TestManyResourcesAreListenedTo(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	agent := c.made("/v1/agents", `{"name":"a","tool_set":"all","tools":["memory_files"],
		"memory_blocks":[{"label":"human","value":"Ada"}]}`)
	var files, missing []string
	for i := range 40 {
		path := fmt.Sprintf("/memories/f%d.md", i)
		c.tool(agent, "memory_files", fmt.Sprintf(`{"command":"create","path":%q,"file_text":"x"}`, path))
		files = append(files, "loci://"+agent+"/memory"+path)
	}
	for i := range maxFollowed {
		missing = append(missing, fmt.Sprintf("loci://%s/blocks/none%d", agent, i))
	}
	counted := new(queryCount)
	traced := tracedPool(t, c.pool, counted)
	c.own().Blocks, c.own().MemoryFiles = &block.Store{DB: traced}, memoryfile.New(traced, memoryfile.Options{})
	web := httptest.NewServer(c.again())
	t.Cleanup(web.Close)
	block := "loci://" + agent + "/blocks/human"
	if got, _ := c.listened(web, agent, slices.Repeat([]string{block}, 40_000)); !slices.Equal(got, []string{block}) {
		t.Errorf("one resource is acknowledged as %v", got)
	}
	if got, code := c.listened(web, agent, append([]string{block}, missing...)); code != -32602 {
		t.Errorf("%d resources: got %v and the code %d, want -32602", 1+len(missing), got, code)
	}
	if got, code := c.listened(web, agent, append([]string{block}, missing[1:]...)); !slices.Equal(got, []string{block}) {
		t.Errorf("%d resources: got %v and the code %d, want the one that there is", len(missing), got, code)
	}
	before := counted.Load()
	if got, _ := c.listened(web, agent, files); !slices.Equal(got, files) {
		t.Errorf("got %v, want all files", got)
	}
	if n := counted.Load() - before; n >= int64(len(files)) {
		t.Errorf("%d files are read with %d statements, want fewer than one a file", len(files), n)
	}
}

// tracedPool returns a pool on the same database with a tracer.
func tracedPool(t *testing.T, original *pgxpool.Pool, tracer pgx.QueryTracer) *pgxpool.Pool {
	t.Helper()
	config := original.Config()
	config.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// The sessions of a key follow at most 1,000 resources of an agent.
func TestSessionsFollowBoundedResources(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a","memory_blocks":[{"label":"human","value":"Ada"}]}`)
	s, other := c.mcpSession(agent), c.mcpSession(agent)
	subscribe := func(s mcpSession, i int) string {
		uri := "loci://" + agent + "/" // the block's URI, written in one of 2,048 ways
		for k, letter := range []byte("blocks/human") {
			if letter != '/' && i>>k&1 == 1 {
				uri += fmt.Sprintf("%%%02x", letter)
			} else {
				uri += string(letter)
			}
		}
		return answerIn(s.send(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"` + uri + `"}}`))
	}
	ways := 0
	for i := 0; ways < maxFollowed; i++ {
		if i>>len("blocks")&1 == 1 { // the slash is never escaped
			continue
		}
		session := s
		if ways%2 == 1 {
			session = other
		}
		if got := subscribe(session, i); !strings.Contains(got, `"result"`) {
			t.Fatalf("the resource %d: %s", ways, got)
		}
		ways++
	}
	const more = 1<<12 - 1 - 1<<6 // every letter is escaped
	if got := subscribe(s, more); !strings.Contains(got, `"code":-32602`) || !strings.Contains(got, "1,000 resources") {
		t.Errorf("one more resource: %s", got)
	}
	if got := subscribe(s, 0); !strings.Contains(got, `"result"`) {
		t.Errorf("one that is followed already: %s", got)
	}
}

// A resource's path of a memory file is the path that the tools use, with or without the first slash, in every request
// that takes a resource.
func TestMemoryFilesAreNamedAsTheToolsNameThem(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a","tool_set":"all","tools":["memory_files"]}`)
	c.tool(agent, "memory_files", `{"command":"create","path":"/memories/l.md","file_text":"Ada likes tea."}`)
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	updated := make(chan string, 10)
	session := c.mustDial(web, mcpTo{path: "/mcp/agents/" + agent, version: "2025-11-25", options: &sdk.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) {
			updated <- r.Params.URI
		}}})
	base := "loci://" + agent + "/memory/"
	uris := []string{base + "memories/l.md", base + "/memories/l.md", base + "%2Fmemories%2Fl.md"}
	for _, uri := range uris {
		if text, err := readText(t, session, uri); err != nil || text != "Ada likes tea." {
			t.Errorf("%s: got %q, %v", uri, text, err)
		}
		if err := session.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err != nil {
			t.Errorf("subscribe to %s: %v", uri, err)
		}
	}
	if got, _ := c.listened(web, agent, uris); !slices.Equal(got, uris) {
		t.Errorf("listened to %v, want %v", got, uris)
	}
	for _, uri := range []string{base, base + "/", base + "//memories/l.md", base + "l.md", base + "memories"} {
		if text, err := readText(t, session, uri); err == nil {
			t.Errorf("%s is %q", uri, text)
		}
	}
	c.tool(agent, "memory_files", `{"command":"str_replace","path":"/memories/l.md","old_str":"tea","new_str":"figs"}`)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for want := slices.Clone(uris); len(want) > 0; {
		select {
		case got := <-updated:
			want = slices.DeleteFunc(want, func(w string) bool { return w == got })
		case <-ctx.Done():
			t.Fatalf("not told of %v", want)
		}
	}
	described := false
	for template, err := range session.ResourceTemplates(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		described = described || template.Name == "memory_file" && strings.Contains(template.Description, "/memories/")
	}
	if !described {
		t.Error("the template of memory files does not say what a path is")
	}
}

// After a session's agent was deleted, every request of the session gets the same error.
func TestADeletedAgentIsNotFoundInASession(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.own().Followers = event.NewFollowers(c.pool, time.Hour) // so that sessions do not end with the agent
	c.Handler = c.server.Handler()
	agent := c.made("/v1/agents", `{"name":"a","tool_set":"all"}`)
	s := c.mcpSession(agent)
	c.must("DELETE", "/v1/agents/"+agent, "")
	for _, message := range []string{`"tools/list"`, `"tools/call","params":{"name":"list_files"}`, `"resources/list"`,
		`"resources/templates/list"`, `"resources/read","params":{"uri":"loci://` + agent + `/conversations/default"}`,
		`"resources/subscribe","params":{"uri":"loci://` + agent + `/conversations/default"}`, `"prompts/list"`,
		`"prompts/get","params":{"name":"handover"}`, `"prompts/get","params":{"name":"context"}`} {
		w := s.send(`{"jsonrpc":"2.0","id":1,"method":` + message + `}`)
		var got struct {
			Error struct {
				Code    int
				Message string
			}
		}
		if err := json.Unmarshal([]byte(answerIn(w)), &got); err != nil || got.Error.Code != -32602 ||
			got.Error.Message != "Agent with ID "+agent+" not found" {
			t.Errorf("%s: got %d %s (%v), want that there is no such agent", message, w.Code, w.Text, err)
		}
	}
}

// If a client resumes a stream that has ended, it gets a 204. It would take an empty answer for a broken one.
func TestAStreamThatEndedIsNotResumed(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a","tool_set":"all"}`)
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	s := c.mcpSession(agent)
	for _, method := range []string{`"ping"`, `"tools/call","params":{"name":"nope"}`} {
		text := s.send(`{"jsonrpc":"2.0","id":1,"method":` + method + `}`).Text
		var ids []string
		for line := range strings.Lines(text) {
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				ids = append(ids, strings.TrimSpace(id))
			}
		}
		if len(ids) != 2 {
			t.Fatalf("the answer has the ids %v: %s", ids, text)
		}
		for id, want := range map[string]int{ids[0]: 200, ids[1]: 204, "x_0": 400} {
			got := c.raw(web, wireRequest{"GET", "/mcp/agents/" + agent, "", append(s.headers, "Last-Event-ID", id)})
			if got.status != want || (got.text == "") != (want == 204) {
				t.Errorf("%s behind %s: got %d %q, want %d", method, id, got.status, got.text, want)
			}
		}
	}
}

// If a conversation's newest messages do not fit into its resource, the resource says how many it leaves out.
func TestALongConversationSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	for i := range 10 {
		c.capture(agent, fmt.Sprintf(`{"messages":[{"role":"user","content":"short %d"}]}`, i))
	}
	for range 2 {
		c.capture(agent, `{"messages":[{"role":"user","content":"`+strings.Repeat("word ", 140_000)+`"}]}`)
	}
	c.capture(agent, `{"messages":[{"role":"user","content":"the last"}]}`)
	text, err := readText(t, c.mustDial(web, mcpTo{path: "/mcp/agents/" + agent}),
		"loci://"+agent+"/conversations/default")
	first, _, _ := strings.Cut(text, "\n")
	if err != nil || !strings.HasPrefix(first, "[10 of the newest 13 messages are left out") ||
		!strings.HasSuffix(strings.TrimSpace(text), "the last") || strings.Contains(text, "short") {
		t.Errorf("got %d bytes that begin with %q, %v", len(text), first, err)
	}
}
