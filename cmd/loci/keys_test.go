package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/db/dbtest"
)

// A flag of a key that is there and says nothing is an error: the key would do more than was meant.
func TestFlagsOfKeysAreNotEmpty(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--scope="}, "--scope: '' has an empty value"},
		{[]string{"--scope", ""}, "--scope: '' has an empty value"},
		{[]string{"--scope", "read,"}, "'read,' has an empty value"},
		{[]string{"--scope=read", "--scope= "}, "has an empty value"},
		{[]string{"--agent", ""}, "--agent: '' has an empty value"},
		{[]string{"--expires", ""}, "--expires is ''"},
		{[]string{"--expires", "-1h"}, "--expires is '-1h'; it must be"},
		{[]string{"--expires", "0d"}, "--expires is '0d'; it must be"},
		{[]string{"--expires", "200000d"}, "too far ahead; it may be 36500 days"},
		{[]string{"--expires", "99999999999999999999w"}, "too far ahead"},
		{[]string{"--expires", "9999999999h"}, "too far ahead"},
		{[]string{"--org", ""}, "organization's name has 0 characters"},
		{[]string{"--name", ""}, "key's name has 0 characters"},
		{[]string{"--requests-per-minute", ""}, "--requests-per-minute"},
		{[]string{"--requests-per-minute", "-1"}, "requests_per_minute is -1; it must be from 1"},
		{[]string{"--requests-at-once", "-1"}, "requests_at_once is -1; it must be from 1"},
	} {
		errs := newLines()
		args := append([]string{"keys", "create", "--database-url=" + url}, c.args...)
		if code := run(t.Context(), args, newLines(), errs); code == 0 || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%q ended with %d: %s, want %q", c.args, code, errs, c.want)
		}
	}
	command := commands(t, url)
	if list := command("keys", "list"); strings.Contains(list, "key-") {
		t.Errorf("keys were made:\n%s", list)
	}
	command("keys", "create", "--scope=read,write,read", "--scope", "write", "--expires", "1d12h")
	if list := command("keys", "list"); !slices.Contains(strings.Fields(list), "read,write") {
		t.Errorf("scopes that were given twice:\n%s", list)
	}
}

func TestTimesFromNow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 18, 5, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{"12h": 12 * time.Hour, "90d": 90 * 24 * time.Hour,
		"1d12h": 36 * time.Hour, "2w": 14 * 24 * time.Hour, "1w1d1h30m": 193*time.Hour + 30*time.Minute,
		"2026-02-01T18:05:00Z": 24 * time.Hour} {
		if got, err := expiry(&text, now); err != nil || got.Sub(now) != want {
			t.Errorf("%s: got %v, %v, want %v from %v", text, got, err, want, now)
		}
	}
}
