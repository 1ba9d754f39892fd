package server_test

import (
	"html"
	"net/url"
	"strings"
	"testing"

	"github.com/loci-memory/loci/tenant/apikey"
)

// After signing in, a visitor stays on a page of the console, whatever address the link to the sign-in page contains.
func TestSigningInStaysBelowTheConsole(t *testing.T) {
	t.Parallel()
	c := newClient(t).scoped(apikey.NewKey{Scopes: []string{apikey.Read}})
	for _, address := range []string{"/console/", "/console/agents/agent-1?tab=files&after=a%2Fb", "/console/a%20b",
		"/console/x/"} {
		signInGoesTo(t, c, address, address)
	}
	for _, refused := range []string{"", "agents", "/", "/v1/agents", "//evil.example/console/",
		"https://evil.example/console/",
		"javascript:alert(1)", `/\evil.example/`, `/console/\evil.example`, "/console/%5Cevil.example",
		"/console/..", "/console/../v1/agents",
		"/console/x/../../v1", "/console/%2e%2e/v1/agents", "/console/.%2E/v1", "/console/..%2fv1", "/console//evil.example",
		"/console/%2f/evil.example", "/console/./x", "/console/\t/x", "/console/x\n", "/console", "/consoles/",
		"/console/x/..", "\x01/console/"} {
		signInGoesTo(t, c, refused, "/console/")
	}
}

// signInGoesTo checks where the sign-in page leads if its link contains an address.
func signInGoesTo(t *testing.T, c *client, next, want string) {
	t.Helper()
	page := c.browse("GET", "/console/sign-in?next="+url.QueryEscape(next), nil)
	_, field, found := strings.Cut(page.Text, `name="next" value="`)
	shown, _, _ := strings.Cut(field, `"`)
	if got := html.UnescapeString(shown); !found || got != want {
		t.Errorf("signing in with next=%q leads to %q, want %q", next, got, want)
	}
	signedIn := c.browse("POST", "/console/sign-in", url.Values{"key": {c.key}, "next": {next}})
	if got := signedIn.Header().Get("Location"); got != want {
		t.Errorf("after signing in with next=%q: %d to %q, want %q", next, signedIn.Code, got, want)
	}
}
