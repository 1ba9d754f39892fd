package server_test

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/server"
)

func newKey(t *testing.T, keys *server.Keys, org, name string) (string, server.Key) {
	t.Helper()
	secret, key, err := keys.Create(context.Background(), org, name)
	if err != nil {
		t.Fatalf("create a key for %s: %v", org, err)
	}
	return secret, key
}

func TestKeys(t *testing.T) {
	t.Parallel()
	ctx, keys := context.Background(), &server.Keys{DB: dbtest.New(t)}
	if any, err := keys.Any(ctx); any || err != nil {
		t.Errorf("any key at first: got %v, %v, want none", any, err)
	}
	secret, key := newKey(t, keys, "acme", "ci")
	if !regexp.MustCompile(`^loci_[A-Z2-7]{40}$`).MatchString(secret) || !strings.HasPrefix(secret, key.Prefix) || len(key.Prefix) > 12 ||
		key.Org != "acme" || key.Name != "ci" || !strings.HasPrefix(key.ID, "key-") {
		t.Errorf("got secret %q and %+v", secret, key)
	}
	other, otherKey := newKey(t, keys, "other", "ci")
	again, _ := newKey(t, keys, "acme", "second")
	acme := lookup(t, keys, secret)
	if got := lookup(t, keys, again); got != acme {
		t.Errorf("two keys of one organization: got %d and %d", acme, got)
	}
	if got := lookup(t, keys, other); got == acme {
		t.Errorf("keys of two organizations: got %d for both", got)
	}
	if list, err := keys.List(ctx); err != nil || len(list) != 3 || list[0] != key || list[1] != otherKey {
		t.Errorf("got list %+v, %v, want the three in the order of their making", list, err)
	}
	if err := keys.Revoke(ctx, key.ID); err != nil {
		t.Errorf("revoke by id: %v", err)
	}
	if err := keys.Revoke(ctx, otherKey.Prefix); err != nil {
		t.Errorf("revoke by prefix: %v", err)
	}
	for _, gone := range []string{secret, other, "", "loci_"} {
		if _, err := keys.Lookup(ctx, gone); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("look up %q: got %v, want ErrNotFound", gone, err)
		}
	}
	if err := keys.Revoke(ctx, key.ID); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("revoke a revoked key: got %v, want ErrNotFound", err)
	}
	if any, err := keys.Any(ctx); !any || err != nil {
		t.Errorf("any key at last: got %v, %v, want one", any, err)
	}
}

func lookup(t *testing.T, keys *server.Keys, secret string) db.Org {
	t.Helper()
	org, err := keys.Lookup(context.Background(), secret)
	if err != nil {
		t.Fatalf("look up %s: %v", secret, err)
	}
	return org
}

func TestKeysRefuseNames(t *testing.T) {
	t.Parallel()
	keys := &server.Keys{DB: dbtest.New(t)}
	long := strings.Repeat("a", 201)
	for _, c := range []struct{ org, name string }{{"", "a"}, {"a", ""}, {long, "a"}, {"a", long}, {"a", "LOCI_API_KEY"}} {
		if _, _, err := keys.Create(context.Background(), c.org, c.name); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("organization %.5q, key %.5q: got %v, want ErrInvalid", c.org, c.name, err)
		}
	}
}

func TestRevokeAsksWhichKey(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	keys := &server.Keys{DB: pool}
	newKey(t, keys, "acme", "a")
	newKey(t, keys, "acme", "b")
	if _, err := pool.Exec(context.Background(), `UPDATE api_keys SET prefix = 'loci_SAME'`); err != nil {
		t.Fatal(err)
	}
	if err := keys.Revoke(context.Background(), "loci_SAME"); !errors.Is(err, db.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
}

func TestRegister(t *testing.T) {
	t.Parallel()
	ctx, keys := context.Background(), &server.Keys{DB: dbtest.New(t)}
	if err := keys.Register(ctx, "fifteen-letters"); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("a short key: got %v, want ErrInvalid", err)
	}
	made, _ := newKey(t, keys, "default", "made")
	for range 2 {
		if err := keys.Register(ctx, "sixteen-letters-"); err != nil {
			t.Fatalf("register: %v", err)
		}
	}
	if a, b := lookup(t, keys, made), lookup(t, keys, "sixteen-letters-"); a != b {
		t.Errorf("got organizations %d and %d, want the default one", a, b)
	}
	if err := keys.Register(ctx, "another-of-sixteen"); err != nil {
		t.Fatalf("register another: %v", err)
	}
	if _, err := keys.Lookup(ctx, "sixteen-letters-"); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("the registered key's predecessor: got %v, want ErrNotFound", err)
	}
	list, err := keys.List(ctx)
	if err != nil || len(list) != 2 || list[1].Name != "LOCI_API_KEY" || list[1].Prefix != "anot" {
		t.Errorf("got %+v, %v, want the key that was made and the one registered last", list, err)
	}
}

func TestAuthentication(t *testing.T) {
	t.Parallel()
	s := newServer(t, dbtest.New(t))
	h := s.Handler()
	unauthorized := map[string]any{"detail": "Unauthorized"}

	if got := send(h, "GET", "/v1/agents", "", ""); got.Code != 200 {
		t.Errorf("without any key: got %d %s, want 200", got.Code, got.body)
	}
	if got := send(h, "GET", "/v1/agents", "", "", "Authorization", "Bearer left-over"); got.Code != 200 {
		t.Errorf("with a key that nobody made, without any: got %d %s, want 200", got.Code, got.body)
	}
	secret, _ := newKey(t, s.Keys, "acme", "ci")
	for _, headers := range [][]string{
		nil, {"Authorization", "Bearer"}, {"Authorization", "Bearer x" + secret}, {"Authorization", "Basic " + secret}, {"Authorization", secret},
		{"X-BARE-PASSWORD", "password x"},
	} {
		checkProblem(t, send(h, "GET", "/v1/agents", "", "", headers...), 401, unauthorized)
		checkProblem(t, send(h, "GET", "/v1/nowhere", "", "", headers...), 401, unauthorized)
		checkProblem(t, send(h, "GET", "/openapi.json", "", "", headers...), 401, unauthorized)
	}
	for _, headers := range [][]string{
		{"Authorization", "Bearer " + secret}, {"Authorization", "bearer  " + secret}, {"X-BARE-PASSWORD", "password " + secret},
		{"Authorization", "Bearer " + secret, "Origin", "https://app.example"},
	} {
		if got := send(h, "GET", "/v1/agents", "", "", headers...); got.Code != 200 {
			t.Errorf("%q: got %d %s, want 200", headers, got.Code, got.body)
		}
	}
	for _, target := range []string{"/v1/health", "/v1/health/", "/v1/ready", "/v1/ready/"} {
		if got := send(h, "GET", target, "", ""); got.Code != 200 || got.body != `{"version":"test","status":"ok"}` {
			t.Errorf("%s without a key: got %d %s", target, got.Code, got.body)
		}
	}
}

func TestWithoutAKeyOnlyThisMachineIsAnswered(t *testing.T) {
	t.Parallel()
	h := newServer(t, dbtest.New(t)).Handler()
	for _, c := range []struct {
		name, host, origin string
		want               int
	}{
		{"by name", "localhost:8283", "", 200},
		{"by name, without a port", "LOCALHOST", "", 200},
		{"by address", "127.0.0.1:8283", "", 200},
		{"by address of version 6", "[::1]:8283", "", 200},
		{"by address of version 6, without a port", "[::1]", "", 200},
		{"from a page of this machine", "localhost:8283", "http://localhost:3000", 200},
		{"by a name that points here", "evil.example:8283", "", 403},
		{"by a name that begins so", "localhost.evil.example", "", 403},
		{"by another address", "10.0.0.1:8283", "", 403},
		{"from a page of another site", "localhost:8283", "https://evil.example", 403},
		{"from a page that hides its site", "localhost:8283", "null", 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := sendTo(h, c.host, "/v1/agents", c.origin); got.Code != c.want {
				t.Errorf("%s from %q: got %d %s, want %d", c.host, c.origin, got.Code, got.body, c.want)
			}
			if got := sendTo(h, c.host, "/v1/health", c.origin); got.Code != http.StatusOK {
				t.Errorf("health on %s from %q: got %d, want 200", c.host, c.origin, got.Code)
			}
		})
	}
}

func TestAServerThatOthersReachAlwaysNeedsAKey(t *testing.T) {
	t.Parallel()
	s := newServer(t, dbtest.New(t))
	s.Loopback = false
	if got := sendTo(s.Handler(), "localhost:8283", "/v1/agents", ""); got.Code != http.StatusUnauthorized {
		t.Errorf("without any key in the database: got %d %s, want 401", got.Code, got.body)
	}
}

func TestReadyFollowsTheDatabase(t *testing.T) {
	t.Parallel()
	s := newServer(t, dbtest.New(t))
	s.Ping = func(context.Context) error { return errors.New("gone") }
	got := send(s.Handler(), "GET", "/v1/ready", "", "")
	checkProblem(t, got, 503, map[string]any{"detail": unavailable})
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
		checkProblem(t, send(h, "GET", target, "", ""), 503, map[string]any{"detail": unavailable})
	}
}
