package server_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci/tenant/apikey"
)

// Who signs in to the console has a session in place of the key: it is listed, ended, and ends with its key or by
// itself. A session starts no other one.
func TestSessionsOfTheConsoleEnd(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	admin := c.scoped(apikey.NewKey{Scopes: []string{apikey.Admin}})
	made := admin.madeKey(`{"name":"of Ann","scopes":["read"]}`)
	ann := c.withKey(made.Key)
	start := func() (id, secret string) {
		t.Helper()
		started := fields(t, ann.must("POST", "/v1/sessions", ""))
		return started["id"].(string), started["secret"].(string)
	}
	id, secret := start()
	if secret == made.Key || strings.Contains(secret, made.Key) {
		t.Fatalf("the secret of the session is the key")
	}
	signedIn := c.withKey(secret)
	if got := signedIn.must("GET", "/v1/caller", ""); !strings.Contains(got, made.ID) {
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
	ends := func(what, secret string, end func()) {
		t.Helper()
		c.withKey(secret).must("GET", "/v1/caller", "")
		if end(); c.withKey(secret).call("GET", "/v1/caller", "").Code != 401 {
			t.Errorf("a session goes on although %s", what)
		}
	}
	ends("it was ended", secret, func() { admin.must("DELETE", "/v1/admin/sessions/"+id, "") })
	if got := admin.call("DELETE", "/v1/admin/sessions/"+id, ""); got.Code != 404 {
		t.Errorf("it ends twice: got %d %s", got.Code, got.Text)
	}
	id, secret = start()
	ends("its time is over", secret, func() {
		_, err := c.pool.Exec(t.Context(), `UPDATE console_sessions SET expires_at = now() WHERE id = $1`, id)
		if err != nil {
			t.Fatal(err)
		}
	})
	_, secret = start()
	ends("who had it signed out", secret, func() { c.withKey(secret).must("DELETE", "/v1/sessions", "") })
	_, secret = start()
	cookies := []string{"Cookie", "loci_session=" + secret}
	if got := ann.withKey("").browse("GET", "/console/agents", nil, cookies...); got.Code != 200 && got.Code != 303 {
		t.Errorf("the console with the session: got %d %s", got.Code, got.Text)
	}
	ends("its key was revoked", secret, func() { admin.must("DELETE", "/v1/admin/keys/"+made.ID, "") })
}

// A key has a bounded number of sessions, also if many are begun at once: the oldest end.
func TestAKeyHasABoundedNumberOfSessions(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	admin := c.scoped(apikey.NewKey{Scopes: []string{apikey.Admin}})
	made := admin.madeKey(`{"name":"of Ann","scopes":["read"]}`)
	ann := c.withKey(made.Key)
	start := func() (secret string) {
		return fields(t, ann.must("POST", "/v1/sessions", ""))["secret"].(string)
	}
	first := start()
	var begun sync.WaitGroup
	for range 10 {
		begun.Go(func() {
			for range 6 {
				ann.call("POST", "/v1/sessions", "")
			}
		})
	}
	begun.Wait()
	last := start()
	if n := strings.Count(admin.must("GET", "/v1/admin/sessions?limit=1000", ""), made.ID); n != 50 {
		t.Errorf("the key has %d sessions", n)
	}
	if got := c.withKey(first).call("GET", "/v1/caller", ""); got.Code != 401 {
		t.Errorf("the oldest session goes on: %d %s", got.Code, got.Text)
	}
	c.withKey(last).must("GET", "/v1/caller", "")
}
