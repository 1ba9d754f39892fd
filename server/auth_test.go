package server_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/server"
	"github.com/loci-memory/loci/server/servertest"
	"github.com/loci-memory/loci/tenant/apikey"
)

func newKey(t *testing.T, keys *apikey.Store, org string) (secret string) {
	t.Helper()
	secret, _, err := keys.Create(context.Background(), apikey.NewKey{Org: org, Name: "test",
		Scopes: []string{apikey.Admin}})
	if err != nil {
		t.Fatalf("create a key for %s: %v", org, err)
	}
	return secret
}

// keyIn returns a key with all rights in an organization.
func keyIn(t testing.TB, keys *apikey.Store, org db.Org) (secret string) {
	t.Helper()
	secret, _, err := keys.Create(context.Background(), apikey.NewKey{In: org, Name: "test",
		Scopes: []string{apikey.Admin}})
	if err != nil {
		t.Fatalf("create a key: %v", err)
	}
	return secret
}

// After the first key of a database was created, the server refuses requests without a key. The tests run one after
// another in a database of their own, at first without a key.
func TestTheFirstKeyOfADatabase(t *testing.T) {
	t.Parallel()
	s := newServer(t, dbtest.New(t))
	for name, test := range map[string]func(*testing.T, *server.Server){
		"requests are answered by their keys":             requestsAreAnsweredByTheirKeys,
		"what browsers and proxies forward is refused":    forwardedRequestsAreRefused,
		"a server whose last key is revoked stays closed": serverStaysClosed,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := s.DB.Exec(t.Context(), `DELETE FROM api_keys`); err != nil {
				t.Fatal(err)
			}
			if err := s.Keys.Reopen(t.Context()); err != nil {
				t.Fatal(err)
			}
			test(t, s)
		})
	}
}

func requestsAreAnsweredByTheirKeys(t *testing.T, s *server.Server) {
	h := s.Handler()
	const remedy = "; send 'Authorization: Bearer KEY' with a key of 'loci keys create'"
	unauthorized := map[string]any{"code": "unauthorized", "type": "authentication", "link": "/v1/errors/unauthorized"}
	noKey, unknown := "Unauthorized: the request has no API key"+remedy,
		"Unauthorized: this server does not know the API key, or it was revoked"+remedy

	if got := servertest.Send(h, "GET", "/v1/agents", ""); got.Code != 200 {
		t.Errorf("without any key: got %d %s, want 200", got.Code, got.Text)
	}
	if got := servertest.Send(h, "GET", "/v1/agents", "", "Authorization", "Bearer left-over"); got.Code != 200 {
		t.Errorf("with a key that nobody made, without any: got %d %s, want 200", got.Code, got.Text)
	}
	secret := newKey(t, s.Keys, "acme")
	for _, headers := range [][]string{
		nil, {"Authorization", "Bearer"}, {"Authorization", "Basic " + secret}, {"Authorization", secret},
		{"Authorization", "Bearer x" + secret}, {"X-BARE-PASSWORD", "password x"},
	} {
		unauthorized["detail"] = noKey
		if strings.HasSuffix(strings.Join(headers, " "), " x"+secret) || strings.HasPrefix(strings.Join(headers, ""), "X") {
			unauthorized["detail"] = unknown
		}
		servertest.CheckProblem(t, servertest.Send(h, "GET", "/v1/agents", "", headers...), 401, unauthorized)
		servertest.CheckProblem(t, servertest.Send(h, "GET", "/v1/nowhere", "", headers...), 401, unauthorized)
		servertest.CheckProblem(t, servertest.Send(h, "GET", "/openapi.json", "", headers...), 401, unauthorized)
	}
	for _, headers := range [][]string{
		{"Authorization", "Bearer " + secret}, {"Authorization", "bearer  " + secret},
		{"X-BARE-PASSWORD", "password " + secret},
		{"Authorization", "Bearer " + secret, "Origin", "https://app.example"},
	} {
		if got := servertest.Send(h, "GET", "/v1/agents", "", headers...); got.Code != 200 {
			t.Errorf("%q: got %d %s, want 200", headers, got.Code, got.Text)
		}
	}
	for _, name := range []string{"Authorization", "X-BARE-PASSWORD"} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/v1/agents", nil)
		r.Header.Add(name, "Bearer "+secret)
		r.Header.Add(name, "Bearer "+secret)
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != 400 || !strings.Contains(w.Body.String(), "2 headers") {
			t.Errorf("two headers %s: got %d %s, want 400", name, w.Code, w.Body)
		}
	}
	challenge := servertest.Send(h, "GET", "/v1/agents", "").Header().Get("WWW-Authenticate")
	if challenge != `Bearer realm="Loci"` {
		t.Errorf("got the challenge %q", challenge)
	}
	if got := servertest.Send(h, "GET", "/v1/errors/unauthorized", ""); got.Code != 200 {
		t.Errorf("the link of the error, without a key: got %d %s", got.Code, got.Text)
	}
	for _, target := range []string{"/v1/health", "/v1/health/", "/v1/ready", "/v1/ready/"} {
		got := servertest.Send(h, "GET", target, "")
		if got.Code != 200 || !strings.HasPrefix(got.Text, `{"version":"test","status":"ok"`) {
			t.Errorf("%s without a key: got %d %s", target, got.Code, got.Text)
		}
	}
}

func TestWithoutAKeyOnlyThisMachineIsAnswered(t *testing.T) {
	t.Parallel()
	h := newOpenClient(t)
	for _, c := range []struct {
		name, host, origin string
		want               int
	}{
		{"by name", "localhost:8283", "", 200},
		{"by name, without a port", "LOCALHOST", "", 200},
		{"by address", "127.0.0.1:8283", "", 200},
		{"by address of version 6", "[::1]:8283", "", 200},
		{"by address of version 6, without a port", "[::1]", "", 200},
		{"from a page of its own", "localhost:8283", "http://localhost:8283", 200},
		{"from a page of another port", "localhost:8283", "http://localhost:3000", 403},
		{"from a page of another name of this machine", "localhost:8283", "http://127.0.0.1:8283", 403},
		{"by a name that points here", "evil.example:8283", "", 403},
		{"by a name that begins so", "localhost.evil.example", "", 403},
		{"by another address", "10.0.0.1:8283", "", 403},
		{"from a page of another site", "localhost:8283", "https://evil.example", 403},
		{"from a page that hides its site", "localhost:8283", "null", 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := sendTo(h, c.host, "/v1/agents", c.origin); got.Code != c.want {
				t.Errorf("%s from %q: got %d %s, want %d", c.host, c.origin, got.Code, got.Text, c.want)
			}
			if got := sendTo(h, c.host, "/v1/health", c.origin); got.Code != http.StatusOK {
				t.Errorf("health on %s from %q: got %d, want 200", c.host, c.origin, got.Code)
			}
		})
	}
}

// If the database has no key, the server refuses requests that a browser sends for another site, and requests that a
// proxy forwards.
func forwardedRequestsAreRefused(t *testing.T, s *server.Server) {
	h := s.Handler()
	headers := map[string][2]int{ // the statuses without any key, and with one
		"Sec-Fetch-Site: cross-site": {403, 200}, "Sec-Fetch-Site: CROSS-SITE": {403, 200},
		"Sec-Fetch-Site: same-site": {403, 200}, "Sec-Fetch-Site: something": {403, 200},
		"Sec-Fetch-Site: same-origin": {200, 200}, "Sec-Fetch-Site: none": {200, 200},
		"Forwarded: for=10.0.0.1": {403, 200}, "X-Forwarded-For: 10.0.0.1": {403, 200},
		"X-Forwarded-Host: example.com": {403, 200}, "x-forwarded-proto: https": {403, 200},
		"X-Forwarded-For: ": {403, 200}, "X-Real-IP: 127.0.0.1": {403, 200}, "Via: 1.1 proxy": {403, 200},
		"User-Agent: curl": {200, 200},
	}
	call := func(header, key string) int {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/v1/agents", nil)
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		return servertest.Do(h, r).Code
	}
	for header, want := range headers {
		if got := call(header, ""); got != want[0] {
			t.Errorf("%s without any key: got %d, want %d", header, got, want[0])
		}
	}
	key := newKey(t, s.Keys, "default")
	for header, want := range headers {
		if got := call(header, key); got != want[1] {
			t.Errorf("%s with a key: got %d, want %d", header, got, want[1])
		}
	}
}

func serverStaysClosed(t *testing.T, s *server.Server) {
	h, ctx := s.Handler(), t.Context()
	status := func(target string, want int) {
		t.Helper()
		if got := servertest.Send(h, "GET", "/v1/agents", ""); got.Code != want {
			t.Errorf("%s: got %d %s, want %d", target, got.Code, got.Text, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	revoke := func(secret string) {
		t.Helper()
		_, err := s.Keys.Revoke(ctx, secret)
		must(err)
	}
	status("before any key", 200)
	revoke(newKey(t, s.Keys, "acme"))
	status("after the last", 401)
	_, err := s.Keys.Register(ctx, "a secret of the settings")
	must(err)
	status("with a registered key", 401)
	must(s.Keys.Reopen(ctx))
	status("opened while there is a key", 401)
	revoke("a secret of the settings")
	status("after the registered key", 401)
	must(s.Keys.Reopen(ctx))
	status("opened again", 200)
	revoke(newKey(t, s.Keys, "acme"))
	status("after another last", 401)
}

func TestAServerThatOthersReachAlwaysNeedsAKey(t *testing.T) {
	t.Parallel()
	s := newServer(t, openServer().pool) // its database has no key
	s.OpenOrg = nil
	if got := sendTo(s.Handler(), "localhost:8283", "/v1/agents", ""); got.Code != http.StatusUnauthorized {
		t.Errorf("without any key in the database: got %d %s, want 401", got.Code, got.Text)
	}
}

func TestReadyFollowsTheDatabase(t *testing.T) {
	t.Parallel()
	s := newServer(t, openServer().pool)
	s.Probe = func(context.Context) (time.Duration, error) { return 0, errors.New("gone") }
	got := servertest.Send(s.Handler(), "GET", "/v1/ready", "")
	servertest.CheckProblem(t, got, 503, map[string]any{"detail": "The database does not answer; try again in a moment"})
	if after := got.Header().Get("Retry-After"); after != "1" {
		t.Errorf("got Retry-After %q, want 1", after)
	}
}

func TestARequestWithoutADatabaseIs503(t *testing.T) {
	t.Parallel()
	nowhere, err := pgxpool.New(context.Background(), "host=127.0.0.1 port=1 connect_timeout=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nowhere.Close)
	h := newServer(t, nowhere).Handler()
	for _, target := range []string{"/v1/agents", "/v1/folders", "/v1/ready"} {
		servertest.CheckProblem(t, servertest.Send(h, "GET", target, ""), 503, map[string]any{"detail": "The database does " +
			"not answer; try again in a moment"})
	}
}
