package main

import (
	"crypto/rand"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/db"
)

// An empty flag for a key is an error, because the key would have more rights than intended.
func TestFlagsOfKeysAreNotEmpty(t *testing.T) {
	t.Parallel()
	url, org := sharedURL(t), "flags "+rand.Text()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--scope="}, "--scope: '' has an empty value"},
		{[]string{"--scope", ""}, "--scope: '' has an empty value"},
		{[]string{"--scope", "read,"}, "'read,' has an empty value"},
		{[]string{"--scope=read", "--scope= "}, "has an empty value"},
		{[]string{"--agent", ""}, "--agent: '' has an empty value"},
		{[]string{"--user", " "}, "--user is empty"},
		{[]string{"--user", "ann"}, "names none"},
		{[]string{"--expires", ""}, "--expires is ''"},
		{[]string{"--expires", "-1h"}, "--expires is '-1h'; it must be"},
		{[]string{"--expires", "yesterday"}, "--expires is 'yesterday'; it must be"},
		{[]string{"--expires", "2020-01-01"}, "the key would have expired"},
		{[]string{"--scope", "foo"}, "there is no scope 'foo'"},
		{[]string{"--scope", "tools"}, "names none"},
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
		if c.args[0] != "--org" {
			args = append(args, "--org", org)
		}
		if code := run(t.Context(), args, newLines(), errs); code != 2 || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%q ended with %d: %s, want 2 and %q", c.args, code, errs, c.want)
		}
	}
	command := commands(t, url)
	if list := keysOf(command("keys", "list"), org); len(list) > 0 {
		t.Errorf("keys were made:\n%q", list)
	}
	command("keys", "create", "--scope=read,write,read", "--scope", "write", "--expires", "1d12h", "--org", org)
	if list := keysOf(command("keys", "list"), org); len(list) != 1 ||
		!slices.Contains(strings.Fields(list[0]), "read,write") {
		t.Errorf("scopes that were given twice:\n%q", list)
	}
}

// keysOf returns the lines of a list of keys that name an organization.
func keysOf(list, org string) (lines []string) {
	for line := range strings.Lines(list) {
		if strings.Contains(line, org) {
			lines = append(lines, line)
		}
	}
	return lines
}

// If a key could not be printed, it is revoked, because nobody has seen it.
func TestKeysThatAreNotPrintedAreRevoked(t *testing.T) {
	t.Parallel()
	url, org, errs := sharedURL(t), "full "+rand.Text(), newLines()
	full, err := os.Create(filepath.Join(t.TempDir(), "full"))
	if err == nil {
		err = full.Close() // makes writes fail
	}
	if err != nil {
		t.Fatal(err)
	}
	code := run(t.Context(), []string{"keys", "create", "--org", org, "--database-url=" + url}, full, errs)
	if list := keysOf(commands(t, url)("keys", "list"), org); code != 1 || len(list) > 0 ||
		!strings.Contains(errs.String(), "and it is revoked") {
		t.Errorf("ended with %d: %s\n%q", code, errs, list)
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

// Only commands that serve, create a key or restore may create a private Postgres. For others, a home without one is a
// wrong setting.
func TestCommandsMakeNoDatabase(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "nowhere")
	for _, args := range []string{"keys list", "keys revoke key-1", "orgs list", "orgs create a", "orgs delete a --yes",
		"migrate", "migrate spread", "backup " + home + ".backup"} {
		errs := newLines()
		code := run(t.Context(), append(strings.Fields(args), "--home="+home), newLines(), errs)
		if _, err := os.Stat(home); code != 2 || !strings.Contains(errs.String(), "which has no database") || err == nil {
			t.Errorf("%s ended with %d: %s; the directory: %v", args, code, errs, err)
		}
	}
}

// Without a terminal, an organization can be deleted only with --yes.
func TestOrganizationsAreDeletedWithYes(t *testing.T) {
	t.Parallel()
	url, org := sharedURL(t), "acme "+rand.Text()
	command, errs := commands(t, url), newLines()
	command("orgs", "create", org)
	code := run(t.Context(), []string{"orgs", "delete", org, "--database-url=" + url}, newLines(), errs)
	if list := keysOf(command("orgs", "list"), org); code != 2 || !strings.Contains(errs.String(), "give --yes") ||
		len(list) != 1 || strings.Contains(list[0], "deleted)") {
		t.Errorf("ended with %d: %s\n%q", code, errs, list)
	}
	command("orgs", "delete", org, "--yes")
}

// At the start, the server warns if the configured key was revoked, and if --reopen opens nothing.
func theStartSaysWhichKeysDoNothing(t *testing.T, url string) {
	command := commands(t, url)
	pool, err := db.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	const setting = "--api-key=sixteen-letters-"
	serveAs(t, "--database-url="+url, setting)
	command("keys", "revoke", "sixteen-letters-")
	expired := command("keys", "create", "--expires=1h")
	if _, err := pool.Exec(t.Context(), `UPDATE api_keys SET expires_at = now()`); err != nil {
		t.Fatal(err)
	}
	p := serveAs(t, "--database-url="+url, setting, "--reopen")
	for _, want := range []string{"LOCI_API_KEY is a key that was revoked", "LOCI_REOPEN opens nothing",
		"every API key is revoked or has expired"} {
		if log := p.log.String(); !strings.Contains(log, want) {
			t.Errorf("the log does not say %q:\n%s", want, log)
		}
	}
	for _, key := range []string{"sixteen-letters-", "", expired} {
		p.key = key
		if status, body := p.send("GET", "/v1/agents/", nil); status != http.StatusUnauthorized {
			t.Errorf("with the key %q: status %d, %s", key, status, body)
		}
	}
	errs := newLines()
	args := []string{"serve", "--addr=127.0.0.1:0", "--database-url=" + url, "--api-key=" + expired}
	if code := run(t.Context(), args, newLines(), errs); code != 2 || !strings.Contains(errs.String(), "the key key-") {
		t.Errorf("a setting that is an expired key: ended with %d: %s", code, errs)
	}
}
