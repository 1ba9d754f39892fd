package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/files"
)

func TestPagesAreNamedByTheirURLs(t *testing.T) {
	t.Parallel()
	for _, row := range [][3]string{
		{"https://docs.example.com/", "text/html; charset=utf-8", "docs.example.com/index.html"},
		{"https://docs.example.com/guide", "text/html", "docs.example.com/guide.html"},
		{"https://docs.example.com/guide/", "application/xhtml+xml", "docs.example.com/guide/index.html"},
		{"https://docs.example.com/a.HTM", "text/html", "docs.example.com/a.HTM"},
		{"https://docs.example.com/a.php?id=3&x=a%2Fb", "text/html", "docs.example.com/a.php?id=3&x=a_b.html"},
		{"https://docs.example.com:8443/a%20b.pdf", "application/pdf", "docs.example.com:8443/a b.pdf"},
		{"https://docs.example.com/a.py", "text/plain", "docs.example.com/a.py"},
	} {
		if got := pageName(row[0], row[1]); got != row[2] {
			t.Errorf("%s: got %s, want %s", row[0], got, row[2])
		}
	}
	long := strings.Repeat("ä", 300)
	one, two := pageName("https://a.example/"+long+"1.pdf", ""), pageName("https://a.example/"+long+"2.pdf", "")
	if name, err := files.CleanPath(one); err != nil || name != one || one == two || !strings.HasSuffix(one, ".pdf") {
		t.Errorf("got %s and %s, %v", one, two, err)
	}
}

// website is a site whose pages a test changes.
type website struct {
	*httptest.Server

	mu    sync.Mutex
	pages map[string]string // texts, or "-> /path" for a permanent redirect, or a status
	asked []string          // what was asked for with its answer
	looks chan string       // nil, or gets what is asked for
}

func newWebsite(t *testing.T) *website {
	t.Helper()
	s := &website{pages: map[string]string{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *website) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.pages[r.URL.Path]
	var status int
	if _, err := fmt.Sscanf(text, "status %d", &status); err != nil && !ok {
		status = 404
	}
	to, moved := strings.CutPrefix(text, "-> ")
	etag := fmt.Sprintf(`"%x"`, len(text))
	switch {
	case status != 0:
	case moved:
		w.Header().Set("Location", to)
		status = 301
	case r.Header.Get("If-None-Match") == etag:
		status = 304
	default:
		status = 200
	}
	if r.URL.Path != "/robots.txt" && s.looks != nil {
		select {
		case s.looks <- r.URL.Path:
		case <-r.Context().Done():
		}
	}
	if r.URL.Path != "/robots.txt" {
		s.asked = append(s.asked, fmt.Sprint(r.URL.Path, " ", status))
	}
	if status == 200 || status == 304 {
		w.Header().Set("ETag", etag)
		w.Header().Set("Content-Type", "text/html")
	}
	w.WriteHeader(status)
	if status == 200 {
		_, _ = fmt.Fprint(w, text)
	}
}

// set changes pages. An empty text removes one.
func (s *website) set(pages map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, text := range pages {
		s.pages[path] = text
		if text == "" {
			delete(s.pages, path)
		}
	}
	s.asked = nil
}

// A folder follows a list of URLs: what did not change is not sent again, a page that moved keeps its file, and files
// go only if that is asked for and their pages are gone.
func TestAFolderFollowsAListOfURLs(t *testing.T) {
	t.Parallel()
	p, s := tenant(t), newWebsite(t)
	host := strings.TrimPrefix(s.URL, "http://") + "/"
	list := filepath.Join(t.TempDir(), "urls.txt")
	lists := func(paths ...string) {
		t.Helper()
		if err := os.WriteFile(list, []byte(s.URL+strings.Join(paths, "\n"+s.URL)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sync := func(wantCode int, flags ...string) (done syncDone) {
		t.Helper()
		args := append([]string{"sync", "--urls", list, "web", "--allow=127.0.0.1", "--json"}, flags...)
		code, out, errs := command(t, p.asking(args...)...)
		if code != wantCode || json.Unmarshal([]byte(out), &done) != nil {
			t.Fatalf("sync %v: ended with %d, want %d:\n%s%s", flags, code, wantCode, out, errs)
		}
		return done
	}
	stored := func() map[string]files.File {
		t.Helper()
		code, out, errs := command(t, p.asking("files", "list", "web", "--json")...)
		var all []files.File
		if err := json.Unmarshal([]byte(out), &all); code != 0 || err != nil {
			t.Fatalf("list: %v: %s%s", err, out, errs)
		}
		byName := map[string]files.File{}
		for _, f := range all {
			byName[strings.TrimPrefix(f.Name, host)] = f
		}
		return byName
	}
	check := func(claim string, got, want syncDone, asked ...string) {
		t.Helper()
		if diff := cmp.Diff(asked, s.asked); diff != "" {
			t.Errorf("%s: requests (-want +got):\n%s", claim, diff)
		}
		s.set(nil)
		got.FolderID, want.FolderID = "", ""
		for _, names := range []*[]string{&want.Uploaded, &want.Replaced, &want.Deleted, &want.Extra, &want.Skipped} {
			for i := range *names {
				(*names)[i] = host + (*names)[i]
			}
			*names = append([]string{}, *names...)
		}
		want.Moved = append([][2]string{}, want.Moved...)
		for i, m := range want.Moved {
			want.Moved[i] = [2]string{host + m[0], host + m[1]}
		}
		for i := range got.Failed {
			got.Failed[i].Name = strings.TrimPrefix(got.Failed[i].Name, s.URL)
			got.Failed[i].Error = strings.ReplaceAll(got.Failed[i].Error, s.URL, "")
		}
		want.Failed = append([]failure{}, want.Failed...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", claim, diff)
		}
	}
	page := func(text string) string { return "<!doctype html><title>Page</title><p>" + text }
	s.set(map[string]string{"/": page("start"), "/a": page("one"), "/b": page("two, too"), "/c": page("three, and more")})
	lists("/", "/a", "/b", "/c#part", "/c")
	names := []string{"index.html", "a.html", "b.html", "c.html"}
	check("a dry run", sync(0, "--dry-run"), syncDone{DryRun: true, Uploaded: append([]string{}, names...)},
		"/ 200", "/a 200", "/b 200", "/c 200")
	check("the first time", sync(0), syncDone{Uploaded: append([]string{}, names...)}, "/ 200", "/a 200", "/b 200",
		"/c 200")
	check("nothing changed", sync(0), syncDone{Unchanged: 4}, "/ 304", "/a 304", "/b 304", "/c 304")
	before := stored()
	if got := before["a.html"]; got.MediaType != "text/html" || !strings.Contains(string(got.Metadata), s.URL+"/a") {
		t.Errorf("stored %s with %s", got.MediaType, got.Metadata)
	}

	s.set(map[string]string{"/a": "-> /moved/a", "/moved/a": page("one"), "/b": page("two, changed")})
	check("moved and changed", sync(0), syncDone{Unchanged: 2, Replaced: []string{"b.html"},
		Moved: [][2]string{{"a.html", "moved/a.html"}}}, "/ 304", "/a 301", "/moved/a 304", "/a 301", "/moved/a 200",
		"/b 200", "/c 304")
	after := stored()
	if after["moved/a.html"].ID != before["a.html"].ID || len(after) != 4 {
		t.Errorf("got %v, want the id of a.html in %v", after, before)
	}
	check("moved before", sync(0), syncDone{Unchanged: 4}, "/ 304", "/a 301", "/moved/a 304", "/b 304", "/c 304")
	lists("/", "/moved/a", "/a", "/b", "/c")
	check("listed twice", sync(0), syncDone{Unchanged: 4}, "/ 304", "/moved/a 304", "/a 301", "/moved/a 304", "/b 304",
		"/c 304")

	s.set(map[string]string{"/b": "-> /d", "/d": page("four, in another place")})
	check("moved with a change", sync(0), syncDone{Unchanged: 3, Moved: [][2]string{{"b.html", "d.html"}},
		Replaced: []string{"d.html"}}, "/ 304", "/moved/a 304", "/a 301", "/moved/a 200", "/b 301", "/d 200", "/c 304")

	s.set(map[string]string{"/d": "status 503", "/c": ""})
	lists("/", "/b", "/c")
	failed := []failure{{"/b", "/d answers 503 Service Unavailable"}, {"/c", "/c answers 404 Not Found"}}
	check("a page fails", sync(1, "--delete"), syncDone{Unchanged: 1, Failed: failed,
		Extra: []string{"moved/a.html", "c.html"}}, "/ 304", "/b 301", "/d 503", "/c 404")
	s.set(map[string]string{"/d": page("four, in another place"), "/robots.txt": "User-agent: *\nDisallow: /d"})
	failed[0].Error = "the robots.txt of its host does not let Loci read it"
	check("robots.txt has a page that is stored", sync(1), syncDone{Unchanged: 1, Failed: failed,
		Extra: []string{"moved/a.html", "c.html"}}, "/ 304", "/b 301", "/c 404")
	check("deletions", sync(1, "--delete"), syncDone{Unchanged: 1, Failed: failed,
		Deleted: []string{"moved/a.html", "c.html"}}, "/ 304", "/b 301", "/c 404")
	if left := stored(); len(left) != 2 || left["d.html"].ID == "" {
		t.Errorf("left %v", left)
	}
}

// Only what is allowed is read, and a wrong command does nothing.
func TestAListOfURLsNeedsLeave(t *testing.T) {
	t.Parallel()
	p, s := tenant(t), newWebsite(t)
	dir := t.TempDir()
	list := filepath.Join(dir, "urls.txt")
	writeTree(t, dir, map[string]string{"urls.txt": s.URL + "/a\nftp://example.com/a\n"})
	s.set(map[string]string{"/a": "text"})
	for name, row := range map[string]struct {
		args string
		code int
		want string
	}{
		"nothing is allowed":     {"--urls " + list + " web", 2, "LOCI_SYNC_ALLOW"},
		"what is no host":        {"--urls " + list + " web --allow=http://x", 2, "'http://x' is no host"},
		"a directory and a list": {"--urls " + list + " " + dir + " web --allow=127.0.0.1", 2, "contradict"},
		"no folder":              {dir, 2, "name the directory and the folder"},
		"a list that is missing": {"--urls " + list + "x web --allow=127.0.0.1", 1, "no such file"},
		"a list elsewhere":       {"--urls " + s.URL + "/a web --allow=example.com", 1, "name 127.0.0.1 in --allow"},
		"pages elsewhere":        {"--urls " + list + " web --allow=example.com", 1, "name 127.0.0.1 in --allow"},
		"another scheme":         {"--urls " + list + " web --allow=example.com", 1, "only URLs of http and https"},
		"a page too large":       {"--urls " + list + " web --allow=127.0.0.1 --max-bytes=3", 1, "more than 3 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := command(t, p.asking(append([]string{"sync"}, strings.Fields(row.args)...)...)...)
			if code != row.code || !strings.Contains(errs, row.want) || strings.Contains(out, "uploaded:") {
				t.Errorf("ended with %d, want %d and %q: %s%s", code, row.code, row.want, out, errs)
			}
		})
	}
}

// A watched list is looked at again and again, also if a look fails, until the command is interrupted.
func TestAListOfURLsIsWatched(t *testing.T) {
	t.Parallel()
	p, s := tenant(t), newWebsite(t)
	list := filepath.Join(t.TempDir(), "urls.txt")
	writeTree(t, filepath.Dir(list), map[string]string{"urls.txt": s.URL + "/a\n"})
	s.looks = make(chan string)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	out, errs := newLines(), newLines()
	go func() {
		ended <- run(ctx, p.asking("sync", "--urls", list, "web", "--allow=127.0.0.1", "--watch", "--every=1ms"), out, errs)
	}()
	<-s.looks // there is no such page yet
	s.set(map[string]string{"/a": "<!doctype html><p>text"})
	<-s.looks
	<-s.looks
	stop()
	if code := <-ended; !strings.Contains(out.String(), "uploaded: ") || !strings.Contains(errs.String(), "404") {
		t.Errorf("ended with %d: %s%s", code, out, errs)
	}
}
