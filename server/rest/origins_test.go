package rest_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/servertest"
	"github.com/loci-memory/loci/tenant/apikey"
)

// Browsers learn which pages may call the API. Preflights need no key; what follows does, unless the server needs none
// and the page's origin is named.
func TestNamedOriginsMayCallTheAPI(t *testing.T) {
	t.Parallel()
	const page, other = "https://app.example", "https://other.example"
	lookup := func(_ context.Context, secret string) (apikey.Key, error) {
		if secret != "right" {
			return apikey.Key{}, db.ErrNotFound
		}
		return apikey.Key{ID: "k", Org: 1, Scopes: []string{apikey.Admin}}, nil
	}
	keyless := func(context.Context) (db.Org, error) { return 1, nil }
	preflight := []string{"Access-Control-Request-Method", "PATCH", "Access-Control-Request-Headers",
		"authorization,x-stainless-lang"}
	key := []string{"Authorization", "Bearer right"}
	for _, c := range []struct {
		name    string
		origins rest.Origins
		open    bool // the server needs no key
		method  string
		origin  string
		headers []string
		status  int
		allowed string
	}{
		{"without origins nothing is said", nil, false, "GET", page, key, 200, ""},
		{"a preflight of a named page", rest.Origins{page}, false, "OPTIONS", page, preflight, 204, page},
		{"a preflight of another page", rest.Origins{page}, false, "OPTIONS", other, preflight, 204, ""},
		{"a named page with a key", rest.Origins{page}, false, "GET", page, key, 200, page},
		{"in other capitals", rest.Origins{"https://App.Example"}, false, "GET", page, key, 200, page},
		{"a named page without a key can read why", rest.Origins{page}, false, "GET", page, nil, 401, page},
		{"another page", rest.Origins{page}, false, "GET", other, key, 200, ""},
		{"another port is another page", rest.Origins{page}, false, "GET", page + ":8443", key, 200, ""},
		{"every page, with a key", rest.Origins{"*"}, false, "GET", other, key, 200, other},
		{"every page, with no key", rest.Origins{"*"}, true, "GET", other, nil, 403, other},
		{"a named page, with no key", rest.Origins{page}, true, "GET", page, []string{"Sec-Fetch-Site", "cross-site"}, 200,
			page},
		{"another page, with no key", rest.Origins{page}, true, "GET", other, nil, 403, ""},
	} {
		keys := &rest.Keys{Lookup: lookup}
		if c.open {
			keys.OpenOrg = keyless
		}
		a := rest.New(rest.Config{Title: "Toys", Version: "1", Log: slog.New(slog.DiscardHandler), Keys: keys,
			Origins: c.origins})
		toys(a)
		got := servertest.Send(a.Handler(), c.method, "/v1/toys/count", "", append(c.headers, "Origin", c.origin)...)
		h := got.Header()
		if got.Code != c.status || h.Get("Access-Control-Allow-Origin") != c.allowed {
			t.Errorf("%s: got %d and the origin %q, want %d and %q: %s", c.name, got.Code,
				h.Get("Access-Control-Allow-Origin"), c.status, c.allowed, got.Text)
		}
		if isPreflight := c.method == "OPTIONS"; isPreflight && c.allowed != "" {
			if h.Get("Access-Control-Allow-Headers") != preflight[3] ||
				!strings.Contains(h.Get("Access-Control-Allow-Methods"), "PATCH") {
				t.Errorf("%s: got %v", c.name, h)
			}
		} else if exposed := h.Get("Access-Control-Expose-Headers"); c.allowed != "" &&
			!strings.Contains(exposed, "Retry-After") {
			t.Errorf("%s: the page may read %q", c.name, exposed)
		}
	}
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	for origin, isOne := range map[string]bool{"https://app.example": true, "http://localhost:3000": true, "*": true,
		"app.example": false, "https://app.example/": false, "https://app.example/path": false,
		"https://*.example": false, "": false, "null": false} {
		if err := (rest.Origins{origin}).Check(); (err == nil) != isOne {
			t.Errorf("%q: got %v, want an origin: %v", origin, err, isOne)
		}
	}
}
