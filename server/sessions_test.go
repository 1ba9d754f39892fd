package server_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci/tenant/apikey"
)

// After signing in to the console, a person has a session instead of the key. It can be listed and ended. It also ends
// with its key, or by itself. A session cannot start another one.
func TestSessionsOfTheConsoleEnd(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	admin := c.scoped(apikey.NewKey{Scopes: []string{apikey.Admin}})
	key := admin.madeKey(`{"name":"of Ann","scopes":["read"]}`)
	ann := c.withKey(key.Key)
	start := func() (id, secret string) {
		t.Helper()
		started := fields(t, ann.must("POST", "/v1/sessions", ""))
		return started["id"].(string), started["secret"].(string)
	}
	id, secret := start()
	if secret == key.Key || strings.Contains(secret, key.Key) {
		t.Fatalf("the secret of the session is the key")
	}
	signedIn := c.withKey(secret)
	if got := signedIn.must("GET", "/v1/caller", ""); !strings.Contains(got, key.ID) {
		t.Errorf("the session is not its key's: %s", got)
	}
	if got := signedIn.call("POST", "/v1/sessions", ""); got.Code != 403 {
		t.Errorf("a session starts another one: got %d %s", got.Code, got.Text)
	}
	if got := signedIn.call("GET", "/v1/admin/sessions", ""); got.Code != 403 {
		t.Errorf("a session may more than its key: got %d %s", got.Code, got.Text)
	}
	list := admin.must("GET", "/v1/admin/sessions", "")
	if !strings.Contains(list, id) || !strings.Contains(list, `"key_name":"of Ann"`) || strings.Contains(list, secret) {
		t.Errorf("the sessions lack %s, or show its secret: %s", id, list)
	}
	checkEnds := func(what, secret string, endIt func()) {
		t.Helper()
		c.withKey(secret).must("GET", "/v1/caller", "")
		if endIt(); c.withKey(secret).call("GET", "/v1/caller", "").Code != 401 {
			t.Errorf("a session goes on although %s", what)
		}
	}
	checkEnds("it was ended", secret, func() { admin.must("DELETE", "/v1/admin/sessions/"+id, "") })
	if got := admin.call("DELETE", "/v1/admin/sessions/"+id, ""); got.Code != 404 {
		t.Errorf("it ends twice: got %d %s", got.Code, got.Text)
	}
	id, secret = start()
	checkEnds("its time is over", secret, func() {
		_, err := c.pool.Exec(t.Context(), `UPDATE console_sessions SET expires_at = now() WHERE id = $1`, id)
		if err != nil {
			t.Fatal(err)
		}
	})
	_, secret = start()
	checkEnds("who had it signed out", secret, func() { c.withKey(secret).must("DELETE", "/v1/sessions", "") })
	_, secret = start()
	cookies := []string{"Cookie", "loci_session=" + secret}
	if got := ann.withKey("").browse("GET", "/console/agents", nil, cookies...); got.Code != 200 && got.Code != 303 {
		t.Errorf("the console with the session: got %d %s", got.Code, got.Text)
	}
	checkEnds("its key was revoked", secret, func() { admin.must("DELETE", "/v1/admin/keys/"+key.ID, "") })
}

// The number of a key's sessions is bounded, even if many begin at the same time. The oldest end.
func TestAKeyHasABoundedNumberOfSessions(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	admin := c.scoped(apikey.NewKey{Scopes: []string{apikey.Admin}})
	key := admin.madeKey(`{"name":"of Ann","scopes":["read"]}`)
	ann := c.withKey(key.Key)
	start := func() (secret string) {
		return fields(t, ann.must("POST", "/v1/sessions", ""))["secret"].(string)
	}
	first := start()
	var beginning sync.WaitGroup
	for range 10 {
		beginning.Go(func() {
			for range 6 {
				ann.call("POST", "/v1/sessions", "")
			}
		})
	}
	beginning.Wait()
	last := start()
	if n := strings.Count(admin.must("GET", "/v1/admin/sessions?limit=1000", ""), key.ID); n != 50 {
		t.Errorf("the key has %d sessions", n)
	}
	if got := c.withKey(first).call("GET", "/v1/caller", ""); got.Code != 401 {
		t.Errorf("the oldest session goes on: %d %s", got.Code, got.Text)
	}
	c.withKey(last).must("GET", "/v1/caller", "")
}
