package server_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/server/console"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/servertest"
	"github.com/loci-memory/loci/tenant/apikey"
)

// formCookie is the value that each of the console's forms repeats.
const formCookie = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// browse sends a request like a browser. If the client has a key, the browser is signed in with it.
func (c *client) browse(method, target string, form url.Values, headers ...string) servertest.Reply {
	cookies := "loci_form=" + formCookie
	if c.key != "" {
		cookies += "; loci_session=" + c.signedIn()
	}
	body := ""
	all := []string{"Cookie", cookies, "Sec-Fetch-Site", "same-origin"}
	if method == http.MethodPost {
		if form == nil {
			form = url.Values{}
		}
		if !form.Has("form") {
			form.Set("form", formCookie)
		}
		body = form.Encode()
		all = append(all, "Content-Type", "application/x-www-form-urlencoded")
	}
	return servertest.Send(firstPart{c}, method, target, body, append(all, headers...)...)
}

// signedIn returns the secret of a console session for the client's key; the key itself if no session begins.
func (c *client) signedIn() string {
	c.t.Helper()
	var started struct{ Secret string }
	got := c.call("POST", "/v1/sessions", "")
	if got.Code != http.StatusOK {
		return c.key
	}
	c.unmarshal(got.Text, &started)
	return started.Secret
}

// firstPart answers a request for a stream with the stream's first part only.
type firstPart struct{ http.Handler }

func (h firstPart) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/stream") {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		w, r = &endingWriter{w, cancel}, r.WithContext(ctx)
	}
	h.Handler.ServeHTTP(w, r)
}

// endingWriter ends a request as soon as something is written.
type endingWriter struct {
	http.ResponseWriter
	end func()
}

func (w *endingWriter) Write(p []byte) (int, error) {
	defer w.end()
	return w.ResponseWriter.Write(p)
}

func (w *endingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// pageOf returns the address of a page with a tenant's ids.
func pageOf(route string, owner tenant) (method, target string) {
	method, path, _ := strings.Cut(strings.TrimSuffix(route, "{$}"), " ")
	names := map[string]string{"agent": "agent_id", "block": "block_id", "folder": "folder_id", "file": "file_id",
		"archive": "archive_id", "passage": "passage_id", "compaction": "compaction_id", "key": "key_id", "org": "org_id",
		"run": "run_id", "replay": "replay_id", "session": "session_id"}
	verb := "close"
	if strings.Contains(path, "/folders/") {
		verb = "retry"
	}
	return method, pathParams.ReplaceAllStringFunc(path, func(param string) string {
		if id := owner.has[names[strings.Trim(param, "{}")]]; id != "" {
			return id
		}
		return verb
	})
}

// A page does not wait for slow cards. The browser asks for each of them.
func TestAPageDoesNotWaitForSlowCards(t *testing.T) {
	t.Parallel()
	c := newElsewhereServerClient(t)
	log := servertest.NewLog()
	log.Follow(t, c.org)
	c.own().PageWait, c.own().Log = time.Millisecond, slog.New(log)
	c = c.again()
	agent := c.made("/v1/agents", `{"name":"a"}`)
	tx, err := c.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE agent_files IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	page := c.browse("GET", "/console/agents/"+agent, nil)
	later := "/console/agents/" + agent + "?card=agent-files"
	if page.Code != 200 || !strings.Contains(page.Text, "takes longer than usual") ||
		!strings.Contains(page.Text, `hx-get="`+later+`" hx-trigger="load"`) {
		t.Errorf("the page: got %d %s", page.Code, page.Text)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	card := c.browse("GET", later, nil)
	if card.Code != 200 || strings.Contains(card.Text, "takes longer than usual") ||
		!strings.Contains(card.Text, `id="agent-files"`) {
		t.Errorf("the card: got %d %s", card.Code, card.Text)
	}
	if log := log.Text(t); strings.Contains(log, "level=ERROR") {
		t.Errorf("what a page does not wait for is logged as a failure: %s", log)
	}
}

// The console's pages are not routes of the API; each asks the API with the visitor's key. Without a key that the API
// knows, nobody sees a page. With a key that may only read, nobody changes anything.
func TestConsoleChecksKeysAsTheAPIDoes(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	m := newMatrix(t)
	read := m.scoped(apikey.NewKey{Org: m.unique("alice"), Scopes: []string{apikey.Read}})
	routes := console.New(nil, 0).Routes()
	if len(routes) < 6 {
		t.Fatalf("the console has the routes %v", routes)
	}
	m.watch(scale.Of(24, 1))
	for _, route := range routes {
		method, target := pageOf(route, m.alice)
		for what, c := range map[string]*client{"no key": m.withKey(""), "an unknown key": m.withKey("loci_UNKNOWN")} {
			got := c.browse(method, target, nil)
			signIn := strings.HasPrefix(got.Header().Get("Location"), "/console/sign-in?next=")
			if method == http.MethodGet && (got.Code != 303 || !signIn) || method != http.MethodGet && got.Code != 401 {
				t.Errorf("%s with %s: got %d %s, want to be sent to sign in, or a 401", route, what, got.Code, got.Text)
			}
			if strings.Contains(got.Text, "alice") {
				t.Errorf("%s with %s shows something of alice's: %s", route, what, got.Text)
			}
		}
		got := read.browse(method, target, url.Values{"value": {"x"}, "version": {"1"}})
		if method == http.MethodGet && got.Code != 200 || method != http.MethodGet && got.Code != 403 {
			t.Errorf("%s with a key that may only read: got %d %s", route, got.Code, got.Text)
		}
		if method == http.MethodGet && strings.Contains(got.Text, read.key) {
			t.Errorf("%s has the visitor's key in the page", route)
		}
		if foreign := m.mallory.browse(method, target, url.Values{"value": {"x"}, "version": {"1"}}); strings.Contains(target,
			"-") && foreign.Code != 404 && !strings.Contains(route, "{org}") && !strings.HasSuffix(route, "/upload") {
			t.Errorf("%s with the ids of another organization: got %d %s, want 404", route, foreign.Code, foreign.Text)
		}
		m.unchanged(operation{Route: rest.Route{Method: method, Path: target}})
	}
	m.compare(operation{Route: rest.Route{Path: routes[len(routes)-1]}})
}

// A change must come from one of the console's own pages.
func TestConsoleRefusesFormsOfOtherSites(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	id := c.made("/v1/blocks", `{"label":"human","value":"old"}`)
	form := func() url.Values { return url.Values{"value": {"new"}, "version": {"1"}} }
	guess := form()
	guess.Set("form", "guess")
	for _, row := range []struct {
		name    string
		form    url.Values
		headers []string
	}{
		{"another site", form(), []string{"Sec-Fetch-Site", "cross-site"}},
		{"another port", form(), []string{"Sec-Fetch-Site", "same-site"}},
		{"another site, of an older browser", form(), []string{"Sec-Fetch-Site", "", "Origin", "http://evil.example"}},
		{"someone who guesses", guess, nil},
		{"a browser without the cookie", form(), []string{"Cookie", ""}},
	} {
		if got := c.browse("POST", "/console/blocks/"+id, row.form, row.headers...); got.Code != 403 {
			t.Errorf("a form of %s: got %d %s, want 403", row.name, got.Code, got.Text)
		}
	}
	if got := c.must("GET", "/v1/blocks/"+id, ""); !strings.Contains(got, `"value":"old"`) {
		t.Errorf("the block was changed: %s", got)
	}
	if got := c.browse("POST", "/console/blocks/"+id, form()); got.Code != 303 {
		t.Errorf("a form of the console's own: got %d %s, want 303", got.Code, got.Text)
	}
	if got := c.must("GET", "/v1/blocks/"+id, ""); !strings.Contains(got, `"value":"new"`) {
		t.Errorf("the block was not changed: %s", got)
	}
}

// The console answers at the root and below /console/. Everywhere else, the API answers as before.
func TestConsoleLeavesTheRestToTheAPI(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, row := range []struct {
		name, method, target string
		status               int
		text                 string
	}{
		{"the root leads to the console", "GET", "/", 303, "/console/"},
		{"a change of the root is refused as JSON", "POST", "/", 404, `"code":"unknown_route"`},
		{"an unknown path is JSON", "GET", "/nothing", 404, `"code":"unknown_route"`},
		{"an unknown route of the API is JSON", "GET", "/v1/nothing", 404, `"code":"unknown_route"`},
		{"an unknown page is a page", "GET", "/console/nothing", 404, "There is no such page."},
		{"a page that another method asks for", "DELETE", "/console/agents", 405, "Method Not Allowed"},
		{"a directory of files", "GET", "/console/static/", 404, ""},
		{"a script", "GET", "/console/static/htmx/htmx.min.js", 200, "htmx"},
		{"no id", "GET", "/console/agents/agent-0", 422, "agent-0"},
	} {
		got := c.browse(row.method, row.target, nil, "Content-Type", "")
		if got.Code != row.status || !strings.Contains(got.Text, row.text) {
			t.Errorf("%s: got %d %.300s, want %d with %q", row.name, got.Code, got.Text, row.status, row.text)
		}
	}
}

// A key opens the console, but no page contains the key.
func TestConsoleSignsIn(t *testing.T) {
	t.Parallel()
	c := newClient(t).withKey("")
	key := newKey(t, c.server.Keys, c.unique("alice"))
	tools := c.withKey(key).must("POST", "/v1/agents", `{"name":"<script>alert(1)</script>"}`)
	agentID := fields(t, tools)["id"].(string)
	toolsKey, _, err := c.server.Keys.Create(t.Context(), apikey.NewKey{Org: c.unique("alice"), Name: "t",
		Scopes: []string{apikey.Tools}, AgentIDs: []string{agentID}})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, key, next string
		status          int
		text            string
	}{
		{"no key", "", "", 401, "Give a key."},
		{"an unknown key", "loci_UNKNOWN", "", 401, "API key"},
		{"what is no key", "a\nb", "", 401, "none of the characters"},
		{"a key that may not read", toolsKey, "", 403, "lacks the scope read"},
		{"a key", key, "/console/agents?q=x", 303, "/console/agents?q=x"},
		{"a key, and the page of another site", key, "https://evil.example/", 303, "/console/"},
		{"a key, and the page of another site without a scheme", key, "//evil.example/console/", 303, "/console/"},
	} {
		got := c.browse("POST", "/console/sign-in", url.Values{"key": {row.key}, "next": {row.next}})
		if got.Code != row.status || !strings.Contains(got.Text+got.Header().Get("Location"), row.text) {
			t.Errorf("%s: got %d %.1500s, want %d with %q", row.name, got.Code, got.Text, row.status, row.text)
		}
		cookie := strings.Join(got.Header().Values("Set-Cookie"), " ")
		if row.status == 303 && (got.Header().Get("Location") != row.text || !keyCookies.MatchString(cookie)) {
			t.Errorf("%s: got the cookies %q, and sent to %s", row.name, cookie, got.Header().Get("Location"))
		}
		if row.status != 303 && strings.Contains(cookie, "loci_session") ||
			row.key == key && strings.Contains(got.Text, key) {
			t.Errorf("%s: got the cookies %q and %s", row.name, cookie, got.Text)
		}
	}
	page := c.withKey(key).browse("GET", "/console/agents/"+agentID, nil)
	if page.Code != 200 || strings.Contains(page.Text, "<script>alert") ||
		!strings.Contains(page.Text, "&lt;script&gt;alert") {
		t.Errorf("a page with markup in a name: got %d %s", page.Code, page.Text)
	}
	if policy := page.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "script-src 'self';") {
		t.Errorf("got the policy %q", policy)
	}
	signOut := c.withKey(key).browse("POST", "/console/sign-out", nil)
	if got := strings.Join(signOut.Header().Values("Set-Cookie"), " "); signOut.Code != 303 ||
		!strings.Contains(got, "loci_session=; Path=/console/; Max-Age=0") {
		t.Errorf("sign out: got %d with the cookies %q", signOut.Code, got)
	}
}

// keyCookies matches a session's cookie. Scripts and other sites do not get the cookie, and it does not hold the key.
var keyCookies = regexp.MustCompile(`loci_session=loci-session_[A-Z2-7]{40}; Path=/console/; HttpOnly; SameSite=Strict`)
