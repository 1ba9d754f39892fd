package apikey_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/server/apikey"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func newKey(t *testing.T, keys *apikey.Store, org, name string) (string, apikey.Key) {
	t.Helper()
	secret, key, err := keys.Create(context.Background(), apikey.NewKey{Org: org, Name: name,
		Scopes: []string{apikey.Write}})
	if err != nil {
		t.Fatalf("create a key for %s: %v", org, err)
	}
	return secret, key
}

func TestKeys(t *testing.T) {
	t.Parallel()
	ctx, keys := context.Background(), &apikey.Store{DB: dbtest.New(t)}
	if any, err := keys.Any(ctx); any || err != nil {
		t.Errorf("any key at first: got %v, %v, want none", any, err)
	}
	secret, key := newKey(t, keys, "acme", "ci")
	if !regexp.MustCompile(`^loci_[A-Z2-7]{40}$`).MatchString(secret) || !strings.HasPrefix(secret, key.Prefix) ||
		len(key.Prefix) > 12 ||
		key.OrgName != "acme" || key.Name != "ci" || !strings.HasPrefix(key.ID, "key-") {
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
	if list, err := keys.List(ctx); err != nil || len(list) != 3 ||
		!cmp.Equal(list[0], key) || !cmp.Equal(list[1], otherKey) {
		t.Errorf("got list %+v, %v, want the three in the order of their making", list, err)
	}
	if _, err := keys.Revoke(ctx, key.ID); err != nil {
		t.Errorf("revoke by id: %v", err)
	}
	if _, err := keys.Revoke(ctx, otherKey.Prefix); err != nil {
		t.Errorf("revoke by prefix: %v", err)
	}
	for _, gone := range []string{secret, other, "", "loci_"} {
		if _, err := keys.Lookup(ctx, gone); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("look up %q: got %v, want ErrNotFound", gone, err)
		}
	}
	if _, err := keys.Revoke(ctx, key.ID); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("revoke a revoked key: got %v, want ErrNotFound", err)
	}
	if any, err := keys.Any(ctx); !any || err != nil {
		t.Errorf("any key at last: got %v, %v, want one", any, err)
	}
}

func lookup(t *testing.T, keys *apikey.Store, secret string) db.Org {
	t.Helper()
	key, err := keys.Lookup(context.Background(), secret)
	if err != nil {
		t.Fatalf("look up %s: %v", secret, err)
	}
	return key.Org
}

func TestKeysRefuseNames(t *testing.T) {
	t.Parallel()
	keys := &apikey.Store{DB: dbtest.New(t)}
	long := strings.Repeat("a", 201)
	for _, c := range []apikey.NewKey{{Org: "", Name: "a"}, {Org: "a", Name: ""}, {Org: long, Name: "a"},
		{Org: "a", Name: long}, {Org: "a", Name: "LOCI_API_KEY"}, {Org: "a\nb", Name: "a"}, {Org: "a", Name: "a\x1b[2J"},
		{Org: "a", Name: "a\u0085"}, {Org: "a", Name: "a", Operator: true}} {
		c.Scopes = []string{apikey.Admin}
		if _, _, err := keys.Create(context.Background(), c); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("organization %.5q, key %.5q: got %v, want ErrInvalid", c.Org, c.Name, err)
		}
	}
}

func TestRevokeAsksWhichKey(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	keys := &apikey.Store{DB: pool}
	newKey(t, keys, "acme", "a")
	newKey(t, keys, "acme", "b")
	if _, err := pool.Exec(context.Background(), `UPDATE api_keys SET prefix = 'loci_SAME'`); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Revoke(context.Background(), "loci_SAME"); !errors.Is(err, db.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
}

// A name that looks like an id would be found before the organization with that id, or after it.
func TestNamesOfOrganizationsAreNames(t *testing.T) {
	t.Parallel()
	keys := &apikey.Store{DB: dbtest.New(t)}
	o, err := keys.CreateOrg(t.Context(), "org-chart")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{o.ID, "  ", "", "a\xffb", "a\uFFFDb", "defa\u200bult", "a\u202eb",
		"a\u2028b"} {
		if _, err := keys.CreateOrg(t.Context(), name); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("an organization %q: got %v, want ErrInvalid", name, err)
		}
		if _, _, err := keys.Create(t.Context(), apikey.NewKey{Org: name, Name: "k",
			Scopes: []string{apikey.Write}}); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("a key of the organization %q: got %v, want ErrInvalid", name, err)
		}
	}
}

// Names that look alike are the same: white space and Unicode's forms do not make another organization.
func TestNamesOfOrganizationsThatLookAlikeAreTheSame(t *testing.T) {
	t.Parallel()
	keys := &apikey.Store{DB: dbtest.New(t)}
	o, err := keys.CreateOrg(t.Context(), " Cafe\u0301  Noir ")
	if err != nil || o.Name != "Caf\u00e9 Noir" {
		t.Fatalf("got %q, %v; want the name in the form NFC with single spaces", o.Name, err)
	}
	for _, name := range []string{"Caf\u00e9 Noir", "Cafe\u0301 Noir", "Caf\u00e9\u00a0Noir"} {
		if _, err := keys.CreateOrg(t.Context(), name); !errors.Is(err, db.ErrConflict) {
			t.Errorf("another organization %q: got %v, want ErrConflict", name, err)
		}
		if found, err := keys.Organization(t.Context(), name); err != nil || found.ID != o.ID {
			t.Errorf("the organization %q: got %v, %v", name, found, err)
		}
		if _, key, err := keys.Create(t.Context(), apikey.NewKey{Org: name, Name: "k",
			Scopes: []string{apikey.Write}}); err != nil || key.OrgID != o.ID {
			t.Errorf("a key of %q: got organization %s, %v; want %s", name, key.OrgID, err, o.ID)
		}
	}
}

// A list goes on after an organization that was deleted since.
func TestListsGoOnAfterADeletedOrganization(t *testing.T) {
	t.Parallel()
	keys := &apikey.Store{DB: dbtest.New(t)}
	var made []apikey.Organization
	for _, name := range []string{"a", "b", "c"} {
		o, err := keys.CreateOrg(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, o)
	}
	if _, err := keys.DeleteOrg(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Clear(t.Context(), func(apikey.Organization, string, int) {}); err != nil {
		t.Fatal(err)
	}
	list, err := keys.Orgs(t.Context(), 1, true, db.Page{After: made[1].ID, Ascending: true, Limit: 5})
	if err != nil || len(list) != 1 || list[0].ID != made[2].ID {
		t.Errorf("after the deleted one: got %v, %v; want %s", list, err, made[2].ID)
	}
}

func TestRegister(t *testing.T) {
	t.Parallel()
	ctx, keys := context.Background(), &apikey.Store{DB: dbtest.New(t)}
	if _, err := keys.Register(ctx, "fifteen-letters"); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("a short key: got %v, want ErrInvalid", err)
	}
	made, _ := newKey(t, keys, "default", "made")
	for range 2 {
		if _, err := keys.Register(ctx, "sixteen-letters-"); err != nil {
			t.Fatalf("register: %v", err)
		}
	}
	if a, b := lookup(t, keys, made), lookup(t, keys, "sixteen-letters-"); a != b {
		t.Errorf("got organizations %d and %d, want the default one", a, b)
	}
	if _, err := keys.Register(ctx, "another-of-sixteen"); err != nil {
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

// A key of the settings that was revoked is not made a key again by the next start.
func TestARevokedKeyOfTheSettingsStaysRevoked(t *testing.T) {
	t.Parallel()
	ctx, keys := t.Context(), &apikey.Store{DB: dbtest.New(t)}
	const secret, other = "sixteen-letters-", "another-of-sixteen"
	for i, revoke := range []func(secret, id string) error{
		func(secret, _ string) error { _, err := keys.Revoke(ctx, secret); return err },
		func(_, id string) error { _, err := keys.Delete(ctx, 0, id, apikey.Key{Operator: true}); return err },
	} {
		secret := []string{secret, other}[i]
		if revoked, err := keys.Register(ctx, secret); err != nil || revoked {
			t.Fatalf("register: got %v, %v", revoked, err)
		}
		key, err := keys.Lookup(ctx, secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := revoke(secret, key.ID); err != nil {
			t.Fatal(err)
		}
		if revoked, err := keys.Register(ctx, secret); err != nil || !revoked {
			t.Errorf("register a revoked key: got %v, %v, want that it stays revoked", revoked, err)
		}
		if _, err := keys.Lookup(ctx, secret); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("look up a revoked key: got %v, want ErrNotFound", err)
		}
	}
	const third, fourth = "a third of sixteen", "a fourth of sixteen"
	for _, secret := range []string{third, fourth, third} { // one that was only replaced is not revoked
		if revoked, err := keys.Register(ctx, secret); err != nil || revoked {
			t.Errorf("register %s: got %v, %v", secret, revoked, err)
		}
	}
}

// A key of the settings that is another key would do less than the settings say, or more.
func TestAKeyOfTheSettingsIsNoOther(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	keys, end := &apikey.Store{DB: pool}, time.Now().Add(time.Hour)
	for what, c := range map[string]struct {
		key  apikey.NewKey
		want bool
	}{
		"one that reads":              {apikey.NewKey{Org: "default", Scopes: []string{apikey.Read}}, false},
		"one of another organization": {apikey.NewKey{Org: "other", Scopes: []string{apikey.Write}}, false},
		"one that ends": {apikey.NewKey{Org: "default", Scopes: []string{apikey.Write}, ExpiresAt: &end},
			false},
		"one with a limit": {apikey.NewKey{Org: "default", Scopes: []string{apikey.Write}, RequestsPerMinute: new(1)},
			false},
		"one that does the same": {apikey.NewKey{Org: "default", Scopes: []string{apikey.Write}}, true},
	} {
		c.key.Name = "k"
		secret, key, err := keys.Create(t.Context(), c.key)
		if err != nil {
			t.Fatal(err)
		}
		_, err = keys.Register(t.Context(), secret)
		if c.want && err != nil || !c.want && (!errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), key.ID)) {
			t.Errorf("%s: got %v, want it registered: %v", what, err, c.want)
		}
	}
}
