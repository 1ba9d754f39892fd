package apikey_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/tenant/apikey"
)

// A database has one first key, and one key from the settings. These tests therefore run one after another in a
// database of their own.
func TestTheFirstKeyAndTheOneOfTheSettings(t *testing.T) {
	t.Parallel()
	keys := store{Store: &apikey.Store{DB: dbtest.New(t)}}
	for _, test := range []struct {
		name string
		run  func(*testing.T, store)
	}{
		{"the first key over REST manages keys", theFirstKeyOverREST},
		{"a key of the settings takes the place of another", aKeyOfTheSettings},
		{"a revoked key of the settings stays revoked", aRevokedKeyOfTheSettings},
		{"a key of the settings is no other key", aKeyOfTheSettingsThatIsAnother},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, keys) })
	}
}

// The first key closes the server to requests without a key, such as the one that created it.
func theFirstKeyOverREST(t *testing.T, keys store) {
	if any, err := keys.Any(t.Context()); any || err != nil {
		t.Errorf("any key at first: got %v, %v, want none", any, err)
	}
	org, err := keys.OpenOrg(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	open := apikey.Key{Org: org, Operator: true, Scopes: []string{apikey.Admin}}
	other, err := keys.CreateOrg(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		in     db.Org
		scopes []string
	}{"without admin": {org, []string{apikey.Write}}, "of another organization": {other.Org, []string{apikey.Admin}}} {
		_, _, err := keys.Create(t.Context(), apikey.NewKey{In: c.in, Name: "k", Scopes: c.scopes, Maker: &open})
		if !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", what, err)
		}
	}
	if _, err := keys.OpenOrg(t.Context()); err != nil {
		t.Errorf("after refusals: got %v, want an open server", err)
	}
	_, key, err := keys.Create(t.Context(), apikey.NewKey{In: org, Name: "k",
		Scopes: []string{apikey.Admin, apikey.Read, apikey.Admin}, Maker: &open})
	if want := []string{apikey.Admin, apikey.Read}; err != nil || !slices.Equal(key.Scopes, want) {
		t.Errorf("got %v, %v, want a key of %v", key.Scopes, err, want)
	}
	sent := dbtest.Sent(t, keys.DB.(*pgxpool.Pool), func() {
		for range 100 {
			if _, err := keys.OpenOrg(t.Context()); !errors.Is(err, db.ErrNotFound) {
				t.Fatalf("a request without a key: got %v, want ErrNotFound", err)
			}
		}
	})
	dbtest.AtMost(t, 50, "refusing 100 requests without a key", sent) // one for each second that it takes
}

func aKeyOfTheSettings(t *testing.T, keys store) {
	ctx := t.Context()
	before, err := keys.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
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
	list = slices.DeleteFunc(list, func(k apikey.Key) bool {
		return slices.ContainsFunc(before, func(b apikey.Key) bool { return b.ID == k.ID })
	})
	if err != nil || len(list) != 2 || list[1].Name != "LOCI_API_KEY" || list[1].Prefix != "anot" {
		t.Errorf("got %+v, %v, want the key that was made and the one registered last", list, err)
	}
}

// The next start does not make a revoked key of the settings valid again.
func aRevokedKeyOfTheSettings(t *testing.T, keys store) {
	ctx := t.Context()
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
	for _, secret := range []string{third, fourth, third} { // a key that was only replaced is not revoked
		if revoked, err := keys.Register(ctx, secret); err != nil || revoked {
			t.Errorf("register %s: got %v, %v", secret, revoked, err)
		}
	}
}

// The secret of another key is refused if that key has other rights than a key from the settings.
func aKeyOfTheSettingsThatIsAnother(t *testing.T, keys store) {
	end := time.Now().Add(time.Hour)
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
