package web_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loci-memory/loci/cmd/loci/web"
)

// site serves pages by path, and counts the requests.
type site struct {
	*httptest.Server
	asked atomic.Int64
}

func newSite(t *testing.T, pages map[string]http.HandlerFunc) *site {
	t.Helper()
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		if page, ok := pages[r.URL.Path]; ok {
			page(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// at returns the site's URL with another name of the machine.
func (s *site) at(host, path string) string {
	u, _ := url.Parse(s.URL)
	return "http://" + host + ":" + u.Port() + path
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

func answers(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

func redirects(status int, to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, status) }
}

func reader(t *testing.T, allowed ...string) *web.Reader {
	t.Helper()
	a, err := web.NewAllowed(allowed)
	if err != nil {
		t.Fatal(err)
	}
	r := &web.Reader{Allowed: a, Agent: "loci/test", MaxBytes: 1000}
	r.Open()
	return r
}

// A page is read only from an address that is public and has a host that is named, or is named itself. The address is
// that of the connection, whatever the host's name stood for before; redirects, robots.txt and lists obey too.
func TestOnlyAllowedAddressesAreRead(t *testing.T) {
	t.Parallel()
	other := newSite(t, map[string]http.HandlerFunc{"/": says("secret")})
	s := newSite(t, map[string]http.HandlerFunc{"/": says("page"), "/away": redirects(302, other.at("127.0.0.2", "/")),
		"/file": redirects(302, "file:///etc/passwd")})
	for name, row := range map[string]struct {
		url     string
		allowed []string
		refused string // what would allow it; empty: it is read
	}{
		"an address that is named":               {s.at("127.0.0.1", "/"), []string{"127.0.0.1"}, ""},
		"a network that is named":                {s.at("127.0.0.1", "/"), []string{"127.0.0.0/8"}, ""},
		"a host in a network that is named":      {s.at("localhost", "/"), []string{"127.0.0.0/8", "::1"}, ""},
		"nothing is named":                       {s.at("127.0.0.1", "/"), nil, "127.0.0.1"},
		"another address":                        {s.at("127.0.0.1", "/"), []string{"127.0.0.2", "example.com"}, "127.0.0.1"},
		"a host that is named, but not public":   {s.at("localhost", "/"), []string{"localhost"}, "127.0.0.1"},
		"a host in capitals":                     {s.at("LOCALHOST.", "/"), []string{"LocalHost"}, "127.0.0.1"},
		"a host that is not named":               {"http://docs.example.com/", []string{"example.com"}, "docs.example.com"},
		"a domain is no host":                    {"http://example.com/", []string{"*.example.com"}, "example.com"},
		"a host that ends like a domain":         {"http://badexample.com/", []string{"*.example.com"}, "badexample.com"},
		"a redirect to an address":               {s.at("127.0.0.1", "/away"), []string{"127.0.0.1"}, "127.0.0.2"},
		"an address of version 4 in version 6":   {s.at("[::ffff:127.0.0.1]", "/"), []string{"10.0.0.1"}, "::ffff:127.0.0.1"},
		"an address that is a number":            {s.at("2130706433", "/"), []string{"example.com"}, "2130706433"},
		"metadata of a cloud":                    {"http://169.254.169.254/", []string{"example.com"}, "169.254.169.254"},
		"a public address that is not named":     {"http://93.184.216.34/", []string{"example.com"}, "93.184.216.34"},
		"an unspecified address":                 {s.at("0.0.0.0", "/"), []string{"example.com"}, "0.0.0.0"},
		"another scheme":                         {"file:///etc/passwd", []string{"127.0.0.1"}, "scheme"},
		"a redirect to another scheme":           {s.at("127.0.0.1", "/file"), []string{"127.0.0.1"}, "scheme"},
		"a password":                             {"http://a:b@127.0.0.1/", []string{"127.0.0.1"}, "password"},
		"an address with a zone that is allowed": {"http://[fe80::1%25lo]:1/", []string{"example.com"}, "fe80::1%lo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := reader(t, row.allowed...)
			var body bytes.Buffer
			_, err := r.Fetch(t.Context(), row.url, web.Validators{}, &body)
			refused, isRefused := errors.AsType[*web.RefusedError](err)
			switch {
			case row.refused == "":
				if err != nil || body.String() != "page" {
					t.Errorf("got %q, %v", body.String(), err)
				}
			case row.refused == "scheme" || row.refused == "password":
				if err == nil || isRefused {
					t.Errorf("got %v", err)
				}
			case !isRefused || refused.Entry != row.refused && refused.Entry != "::1":
				t.Errorf("got %v, want it refused unless %s is named", err, row.refused)
			}
			_, err = r.FetchList(t.Context(), row.url)
			if isRefused && !errors.As(err, &refused) {
				t.Errorf("a list: %v", err)
			}
		})
	}
	t.Cleanup(func() {
		if n := other.asked.Load(); n > 0 {
			t.Errorf("a site that is not allowed was asked %d times", n)
		}
	})
}

func TestEntriesThatNameNothingAreRefused(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"", "*", "http://example.com", "example.com/docs", "a b", "example.com:80", "*.*.com",
		"10.0.0.0/33", "."} {
		if a, err := web.NewAllowed([]string{entry}); err == nil || !a.IsEmpty() {
			t.Errorf("%q was taken", entry)
		}
	}
}

// What a host's robots.txt says to loci, or else to all, is obeyed. Without one all is read, and nothing if it cannot
// be read.
func TestRobotsAreObeyed(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		robots http.HandlerFunc
		path   string
		want   string // empty: it is read
	}{
		"none":                      {nil, "/a", ""},
		"all":                       {says("User-agent: *\nDisallow: /a"), "/a?x=1", "does not let"},
		"a page that is not named":  {says("User-agent: *\nDisallow: /b\n"), "/a", ""},
		"loci has its own":          {says("User-agent: *\nDisallow: /\n\nUser-agent: Loci\nAllow: /\n"), "/a", ""},
		"loci is shut out":          {says("User-agent: loci\nDisallow: /\nUser-agent: *\nAllow: /\n"), "/a", "does not let"},
		"the longer rule":           {says("User-agent: *\nDisallow: /\nAllow: /a$\n"), "/a", ""},
		"a pattern":                 {says("User-agent: *\nDisallow: /*.pdf$\n"), "/x/y.pdf", "does not let"},
		"a query":                   {says("User-agent: *\nDisallow: /a?\n"), "/a?b", "does not let"},
		"an error of the server":    {answers(503), "/a", "503"},
		"it is forbidden":           {answers(403), "/a", ""},
		"a web page":                {says("<!doctype html>\n<html><p>Welcome: a page\n</html>"), "/a", ""},
		"lines that nobody knows":   {says("Foo: bar\nno\nUser-agent: *\nX: 1\nDisallow: /a # b\n"), "/a", "does not let"},
		"a delay that is no number": {says("User-agent: *\nCrawl-delay: soon\nDisallow: /b\n"), "/a", ""},
		"it redirects in a circle":  {redirects(302, "/robots.txt"), "/a", "more than 10 times"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pages := map[string]http.HandlerFunc{"/a": says("page"), "/x/y.pdf": says("pdf")}
			if row.robots != nil {
				pages["/robots.txt"] = row.robots
			}
			s := newSite(t, pages)
			var body bytes.Buffer
			_, err := reader(t, "127.0.0.1").Fetch(t.Context(), s.URL+row.path, web.Validators{}, &body)
			if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("got %v, want %q", err, row.want)
			}
			if row.want != "" && body.Len() > 0 {
				t.Errorf("read %q all the same", body.String())
			}
		})
	}
}

// A host is not asked more often than its robots.txt wants, up to a minute between two requests.
func TestADelayIsKept(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{"/a": says("page"),
		"/robots.txt": says("User-agent: *\nCrawl-delay: 3600\n")})
	r := reader(t, "127.0.0.1")
	var waits []time.Duration
	r.Pause = func(_ context.Context, d time.Duration) bool { waits = append(waits, d); return len(waits) < 2 }
	for range 3 {
		if _, err := r.Fetch(t.Context(), s.URL+"/a", web.Validators{}, &bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
	}
	if len(waits) != 2 || waits[0] <= 0 || waits[0] > time.Minute {
		t.Errorf("waited %v", waits)
	}
}

// A page says where it is for good, whether it changed, and how it ended if it was not read.
func TestAPageIsRead(t *testing.T) {
	t.Parallel()
	versioned := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v2"`)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if r.Header.Get("If-None-Match") == `"v2"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write([]byte("text"))
	}
	s := newSite(t, map[string]http.HandlerFunc{"/v": versioned, "/moved": redirects(301, "/v#part"),
		"/for-now": redirects(302, "/v"), "/moved-then-for-now": redirects(308, "/for-now"),
		"/for-now-then-moved": redirects(307, "/moved"), "/big": says(strings.Repeat("x", 1001)),
		"/limit": says(strings.Repeat("x", 1000)), "/nowhere": answers(301),
		"/gone": answers(410),
		"/cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			_, _ = w.Write([]byte("12345"))
		}})
	for path, row := range map[string]struct {
		have      web.Validators
		url, want string
		unchanged bool
		fails     string
	}{
		"/v":                  {url: "/v", want: "text"},
		"/v?":                 {have: web.Validators{ETag: `"v1"`}, url: "/v?", want: "text"},
		"/v#part":             {have: web.Validators{ETag: `"v2"`}, url: "/v", unchanged: true},
		"/moved":              {have: web.Validators{ETag: `"v2"`}, url: "/v", unchanged: true},
		"/for-now":            {url: "/for-now", want: "text"},
		"/moved-then-for-now": {url: "/for-now", want: "text"},
		"/for-now-then-moved": {url: "/for-now-then-moved", want: "text"},
		"/limit":              {url: "/limit", want: strings.Repeat("x", 1000)},
		"/big":                {fails: "more than 1000 bytes"},
		"/gone":               {fails: "answers 410 Gone"},
		"/missing":            {fails: "answers 404 Not Found"},
		"/nowhere":            {fails: "no URL"},
		"/cut":                {fails: "EOF"},
	} {
		var body bytes.Buffer
		page, err := reader(t, "127.0.0.1").Fetch(t.Context(), s.URL+path, row.have, &body)
		if row.fails != "" {
			if err == nil || !strings.Contains(err.Error(), row.fails) {
				t.Errorf("%s: got %v, want %q", path, err, row.fails)
			}
			continue
		}
		if err != nil || page.URL != s.URL+row.url || page.Unchanged != row.unchanged || body.String() != row.want {
			t.Errorf("%s: got %+v, %q, %v, want %+v", path, page, body.String(), err, row)
		}
	}
}

// A list is lines or a sitemap, compressed or not, and leads to other sitemaps.
func TestAListIsRead(t *testing.T) {
	t.Parallel()
	const head = `<?xml version="1.0" encoding="UTF-8"?>`
	urls := func(paths ...string) string {
		text := head + `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`
		for _, path := range paths {
			text += "<url><loc>\n https://example.com" + path + " </loc><lastmod>2026-01-01</lastmod></url>"
		}
		return text + "</urlset>"
	}
	packed := func(text string) string {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, _ = w.Write([]byte(text))
		_ = w.Close()
		return out.String()
	}
	pages := map[string]http.HandlerFunc{"/a.xml": says(urls("/a", "/b?x=1&amp;y=2", "/a")),
		"/c.xml.gz": says(packed(urls("/c")))}
	s := newSite(t, pages)
	index := func(paths ...string) string {
		text := head + "<sitemapindex>"
		for _, path := range paths {
			text += "<sitemap><loc>" + s.URL + path + "</loc></sitemap>"
		}
		return text + "</sitemapindex>"
	}
	pages["/index.xml"], pages["/circle.xml"] = says(index("/a.xml", "/c.xml.gz")), says(index("/circle.xml"))
	pages["/page.xml"] = says("<html><body>no</body></html>")
	all := []string{"https://example.com/a", "https://example.com/b?x=1&y=2", "https://example.com/c"}
	var many strings.Builder
	for n := range web.MaxURLs + 1 {
		fmt.Fprintf(&many, "https://example.com/%d\n", n)
	}
	for name, row := range map[string]struct {
		text  string
		want  []string
		fails string
	}{
		"lines": {"\ufeff# all\r\nhttps://EXAMPLE.com:443/x/../a#part\r\n\nnot a url\nhttps://example.com/a", []string{all[0],
			"not a url"}, ""},
		"a sitemap":             {urls("/a"), all[:1], ""},
		"a packed sitemap":      {packed(urls("/a")), all[:1], ""},
		"an index":              {index("/a.xml", "/c.xml.gz"), all, ""},
		"a packed index":        {packed(index("/index.xml")), all, ""},
		"an index of itself":    {index("/circle.xml"), nil, "more than 3 times"},
		"a sitemap that is not": {index("/missing.xml"), nil, "/missing.xml: "},
		"a page":                {index("/page.xml"), nil, "begins with <html>"},
		"broken XML":            {urls("/a")[:80] + "<", nil, "no sitemap"},
		"too many":              {many.String(), nil, "more than 50000 URLs"},
		"a bomb":                {packed(strings.Repeat(" ", 51<<20)), nil, "more than"},
	} {
		got, err := reader(t, "127.0.0.1").ReadList(t.Context(), strings.NewReader(row.text))
		if row.fails != "" {
			if err == nil || !strings.Contains(err.Error(), row.fails) {
				t.Errorf("%s: got %v, want %q", name, err, row.fails)
			}
			continue
		}
		if err != nil || !slices.Equal(got, row.want) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, row.want)
		}
	}
	got, err := reader(t, "127.0.0.1").FetchList(t.Context(), s.URL+"/index.xml")
	if err != nil || !slices.Equal(got, all) {
		t.Errorf("at a URL: %q, %v", got, err)
	}
}
