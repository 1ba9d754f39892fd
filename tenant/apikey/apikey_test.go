package apikey_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/tenant/apikey"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// store is a store on the database that the package's tests share. org is this test's organization; the test's own
// names end with it.
type store struct {
	*apikey.Store
	org db.Org
}

func newStore(t *testing.T) store {
	t.Helper()
	pool, org := dbtest.Org(t)
	return store{&apikey.Store{DB: pool}, org}
}

// name returns a name that no other test uses.
func (s store) name(of string) string { return fmt.Sprintf("%s %d", of, s.org) }

func newKey(t *testing.T, keys store, org, name string) (string, apikey.Key) {
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
	ctx, keys := context.Background(), newStore(t)
	acme, others := keys.name("acme"), keys.name("other")
	secret, key := newKey(t, keys, acme, "ci")
	if !regexp.MustCompile(`^loci_[A-Z2-7]{40}$`).MatchString(secret) || !strings.HasPrefix(secret, key.Prefix) ||
		len(key.Prefix) > 12 ||
		key.OrgName != acme || key.Name != "ci" || !strings.HasPrefix(key.ID, "key-") {
		t.Errorf("got secret %q and %+v", secret, key)
	}
	other, otherKey := newKey(t, keys, others, "ci")
	again, _ := newKey(t, keys, acme, "second")
	org := lookup(t, keys, secret)
	if got := lookup(t, keys, again); got != org {
		t.Errorf("two keys of one organization: got %d and %d", org, got)
	}
	if got := lookup(t, keys, other); got == org {
		t.Errorf("keys of two organizations: got %d for both", got)
	}
	list, err := keys.List(ctx)
	list = slices.DeleteFunc(list, func(k apikey.Key) bool { return k.OrgName != acme && k.OrgName != others })
	if err != nil || len(list) != 3 || !cmp.Equal(list[0], key) || !cmp.Equal(list[1], otherKey) {
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

func lookup(t *testing.T, keys store, secret string) db.Org {
	t.Helper()
	key, err := keys.Lookup(context.Background(), secret)
	if err != nil {
		t.Fatalf("look up %s: %v", secret, err)
	}
	return key.Org
}

func TestKeysRefuseNames(t *testing.T) {
	t.Parallel()
	keys := newStore(t)
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
	keys := newStore(t)
	newKey(t, keys, keys.name("acme"), "a")
	_, b := newKey(t, keys, keys.name("acme"), "b")
	if _, err := keys.DB.Exec(context.Background(), `
		UPDATE api_keys SET prefix = 'loci_SAME' WHERE org = $1`, b.Org); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Revoke(context.Background(), "loci_SAME"); !errors.Is(err, db.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
}

// A name that looks like an id is refused, because a search by id or name could find it in place of the organization
// with that id.
func TestNamesOfOrganizationsAreNames(t *testing.T) {
	t.Parallel()
	keys := newStore(t)
	o, err := keys.CreateOrg(t.Context(), keys.name("org-chart"))
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

// Names that look alike are equal: white space and Unicode's normal forms do not make another organization.
func TestNamesOfOrganizationsThatLookAlikeAreTheSame(t *testing.T) {
	t.Parallel()
	keys := newStore(t)
	o, err := keys.CreateOrg(t.Context(), keys.name(" Cafe\u0301  Noir")+" ")
	if err != nil || o.Name != keys.name("Caf\u00e9 Noir") {
		t.Fatalf("got %q, %v; want the name in the form NFC with single spaces", o.Name, err)
	}
	for _, name := range []string{"Caf\u00e9 Noir", "Cafe\u0301 Noir", "Caf\u00e9\u00a0Noir"} {
		name := keys.name(name)
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

// A list continues behind an organization that was deleted meanwhile.
func TestListsGoOnAfterADeletedOrganization(t *testing.T) {
	t.Parallel()
	keys := newStore(t)
	var made []apikey.Organization
	for _, name := range []string{"a", "b", "c"} {
		o, err := keys.CreateOrg(t.Context(), keys.name(name))
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, o)
	}
	if _, err := keys.DeleteOrg(t.Context(), keys.name("b")); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Clear(t.Context(), func(apikey.Organization, string, int) {}); err != nil {
		t.Fatal(err)
	}
	list, err := keys.Orgs(t.Context(), 1, true, db.Page{After: made[1].ID, Ascending: true, Limit: 1000})
	var ids []string // of this test's organizations
	for _, o := range list {
		if slices.ContainsFunc(made, func(m apikey.Organization) bool { return m.ID == o.ID }) {
			ids = append(ids, o.ID)
		}
	}
	if err != nil || !slices.Equal(ids, []string{made[2].ID}) {
		t.Errorf("after the deleted one: got %v, %v; want %s", ids, err, made[2].ID)
	}
}
