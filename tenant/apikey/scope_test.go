package apikey_test

import (
	"errors"
	"testing"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/apikey"
)

const someAgent = "agent-123e4567-e89b-42d3-8456-426614174000"

func TestScopesIncludeWeakerOnes(t *testing.T) {
	t.Parallel()
	tools := apikey.Key{Scopes: []string{apikey.Tools}, AgentIDs: []string{someAgent}}
	for _, c := range []struct {
		key  apikey.Key
		may  []string
		acts bool
	}{
		{apikey.Key{}, nil, false},
		{apikey.Key{Scopes: []string{apikey.Read}}, []string{apikey.Read}, false},
		{tools, []string{apikey.Tools}, true},
		{apikey.Key{Scopes: []string{apikey.Write}}, []string{apikey.Read, apikey.Tools, apikey.Write}, true},
		{apikey.Key{Scopes: []string{apikey.Admin}}, apikey.Scopes, true},
		{apikey.Key{Operator: true}, apikey.Scopes, true},
	} {
		may := map[string]bool{}
		for _, scope := range c.may {
			may[scope] = true
		}
		for _, scope := range apikey.Scopes {
			if got := c.key.May(scope); got != may[scope] {
				t.Errorf("%+v: may %s is %v, want %v", c.key, scope, got, may[scope])
			}
		}
		if got := c.key.MayActAs(someAgent); got != c.acts {
			t.Errorf("%+v: may act as the agent is %v, want %v", c.key, got, c.acts)
		}
	}
	if tools.MayActAs("agent-of-others") {
		t.Error("a key of one agent may act as another one")
	}
}

func TestKeysRefuseScopes(t *testing.T) {
	t.Parallel()
	keys := newStore(t)
	past, acme := time.Now().Add(-time.Second), keys.name("acme")
	for what, n := range map[string]apikey.NewKey{
		"no scope":                  {},
		"a scope that is none":      {Scopes: []string{"all"}},
		"tools of no agent":         {Scopes: []string{apikey.Tools}},
		"an agent without tools":    {Scopes: []string{apikey.Write}, AgentIDs: []string{someAgent}},
		"an operator without admin": {Org: "default", Scopes: []string{apikey.Write}, Operator: true},
		"an end in the past":        {Scopes: []string{apikey.Read}, ExpiresAt: &past},
		"no requests a minute":      {Scopes: []string{apikey.Read}, RequestsPerMinute: new(0)},
		"too many requests at once": {Scopes: []string{apikey.Read}, RequestsAtOnce: new(1_000_001)},
	} {
		if n.Name = "k"; n.Org == "" {
			n.Org = acme
		}
		if _, _, err := keys.Create(t.Context(), n); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", what, err)
		}
	}
	_, _, err := keys.Create(t.Context(), apikey.NewKey{Org: acme, Name: "k", Scopes: []string{apikey.Tools},
		AgentIDs: []string{someAgent}})
	if !errors.Is(err, db.ErrNotFound) {
		t.Errorf("an agent that does not exist: got %v, want ErrNotFound", err)
	}
	if _, err := keys.Organization(t.Context(), acme); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("the organization of a key that was refused: got %v, want ErrNotFound", err)
	}
}

func TestKeysMakeNoStrongerOnes(t *testing.T) {
	t.Parallel()
	keys := newStore(t)
	soon, late := time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	admin := apikey.Key{ID: "key-1", Scopes: []string{apikey.Admin}}
	limited := apikey.Key{ID: "key-2", Scopes: []string{apikey.Admin}, RequestsPerMinute: new(10), RequestsAtOnce: new(2)}
	short := apikey.Key{ID: "key-3", Scopes: []string{apikey.Admin}, ExpiresAt: &soon}
	write := []string{apikey.Write}
	for what, c := range map[string]struct {
		maker apikey.Key
		made  apikey.NewKey
		want  bool
	}{
		"an equal one":                {admin, apikey.NewKey{Scopes: []string{apikey.Admin}}, true},
		"a weaker one":                {admin, apikey.NewKey{Scopes: []string{apikey.Read}}, true},
		"an operator's":               {admin, apikey.NewKey{Scopes: []string{apikey.Admin}, Operator: true}, false},
		"admin of one that may write": {apikey.Key{Scopes: write}, apikey.NewKey{Scopes: []string{apikey.Admin}}, false},
		"tools of one of tools": {apikey.Key{Scopes: []string{apikey.Tools}, AgentIDs: []string{someAgent}},
			apikey.NewKey{Scopes: []string{apikey.Tools}, AgentIDs: []string{someAgent}}, false},
		"one without an end":            {short, apikey.NewKey{Scopes: write}, false},
		"one that works longer":         {short, apikey.NewKey{Scopes: write, ExpiresAt: &late}, false},
		"one that works as long":        {short, apikey.NewKey{Scopes: write, ExpiresAt: &soon}, true},
		"one without limits":            {limited, apikey.NewKey{Scopes: write}, false},
		"one of more requests a minute": {limited, withLimits(11, 2), false},
		"one of more requests at once":  {limited, withLimits(10, 3), false},
		"one of as many":                {limited, withLimits(10, 2), true},
		"one of more than the server's": {admin, withLimits(21, 3), false},
		"one of more at once than its":  {admin, withLimits(20, 4), false},
		"one of the server's limits":    {admin, withLimits(20, 3), true},
		"one of more by an operator": {apikey.Key{ID: "key-4", Operator: true, Scopes: []string{apikey.Admin}},
			withLimits(1000, 1000), true},
		"an operator's of the operator's": {apikey.Key{Operator: true, Scopes: []string{apikey.Admin}},
			apikey.NewKey{Scopes: []string{apikey.Admin}, Operator: true}, true},
	} {
		c.made.Org, c.made.Name, c.made.Maker = "default", "k", &c.maker
		c.made.Defaults = apikey.Limits{PerMinute: 20, AtOnce: 3}
		_, _, err := keys.Create(t.Context(), c.made)
		_, stronger := errors.AsType[*apikey.StrongerError](err)
		if c.want != (err == nil) || !c.want && !stronger {
			t.Errorf("%s: got %v, want a key: %v", what, err, c.want)
		}
	}
}

func withLimits(perMinute, atOnce int) apikey.NewKey {
	return apikey.NewKey{Scopes: []string{apikey.Write}, RequestsPerMinute: &perMinute, RequestsAtOnce: &atOnce}
}

func TestKeysExpire(t *testing.T) {
	t.Parallel()
	keys := newStore(t)
	end := time.Now().Add(time.Hour)
	secret, key, err := keys.Create(t.Context(), apikey.NewKey{Org: keys.name("acme"), Name: "k",
		Scopes: []string{apikey.Read}, ExpiresAt: &end})
	if err != nil || key.ExpiresAt == nil || key.ExpiresAt.Sub(end).Abs() > time.Millisecond {
		t.Fatalf("got %+v, %v, want the end %v", key, err, end)
	}
	if _, err := keys.Lookup(t.Context(), secret); err != nil {
		t.Errorf("before its end: got %v", err)
	}
	if _, err := keys.DB.Exec(t.Context(), `UPDATE api_keys SET expires_at = now() WHERE id = $1`, key.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := keys.Lookup(t.Context(), secret); !errors.Is(err, apikey.ErrExpired) || got.ID != key.ID {
		t.Errorf("after its end: got %+v, %v, want ErrExpired with the key", got, err)
	}
}

// The last use is stored at most once a minute, however often a key is used.
func TestTheLastUseIsStoredToAMinute(t *testing.T) {
	t.Parallel()
	keys := newStore(t)
	_, key := newKey(t, keys, keys.name("acme"), "k")
	used := func() time.Time {
		t.Helper()
		if err := keys.Used(t.Context(), key.ID); err != nil {
			t.Fatal(err)
		}
		got, err := keys.Key(t.Context(), 0, key.ID)
		if err != nil || got.LastUsedAt == nil {
			t.Fatalf("got %+v, %v, want a last use", got, err)
		}
		return *got.LastUsedAt
	}
	if _, err := keys.DB.Exec(t.Context(), `
		UPDATE api_keys SET last_used_at = now() + interval '1 hour' WHERE id = $1`, key.ID); err != nil {
		t.Fatal(err)
	}
	first := used() // less than a minute ago, however long this test takes
	if again := used(); !again.Equal(first) {
		t.Errorf("within a minute: got %v after %v, want no change", again, first)
	}
	if _, err := keys.DB.Exec(t.Context(), `
		UPDATE api_keys SET last_used_at = now() - interval '2 minutes' WHERE id = $1`, key.ID); err != nil {
		t.Fatal(err)
	}
	if before, later := time.Now().Add(-time.Minute), used(); !later.After(before) {
		t.Errorf("after a minute: got %v, want a time after %v", later, before)
	}
}
