package main

import (
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/tenant/apikey"
	"github.com/loci-memory/loci/tenant/quota"
)

// Keys and organizations can be managed over REST and in the database, with the same commands and answers.
func TestKeysAndOrganizationsOverREST(t *testing.T) {
	t.Parallel()
	p, url := tenant(t), sharedURL(t)
	operator := commands(t, url)("keys", "create", "--operator", "--name", "op")
	acme, fresh := "acme "+rand.Text(), "new "+rand.Text()
	for _, place := range []struct {
		name   string
		flags  []string
		status string // when a server refuses
	}{
		{"over REST", []string{"--addr=" + p.base, "--api-key=" + operator}, " (status"},
		{"in the database", []string{"--database-url=" + url}, ""},
	} {
		step := func(wantCode int, want string, args ...string) string {
			t.Helper()
			code, out, errs := command(t, append(args, place.flags...)...)
			if code != wantCode || !strings.Contains(out+errs, want) {
				t.Errorf("%s: loci %s ended with %d, want %d and %q:\n%s%s", place.name, strings.Join(args, " "), code, wantCode,
					want, out, errs)
			}
			return strings.TrimSpace(out)
		}
		id := step(0, "org-", "orgs", "create", " "+acme+"  corp ")
		step(1, `there is an organization "`+acme+` corp" already; choose another name`+place.status, "orgs", "create",
			acme+" corp")
		step(0, id, "orgs", "list")
		step(0, "", "orgs", "rename", acme+" corp", acme)
		step(1, "Organization with ID nobody not found", "orgs", "rename", "nobody", "some")
		step(0, "prompts_days       7\n", "orgs", "keep", acme, "--prompts-days=7")
		step(0, `"prompts_days": 7`, "orgs", "keep", acme, "--json")
		step(0, "stored_bytes              20000000000\n", "orgs", "quota", acme, "--agents=3", "--stored-bytes=20000000000")
		step(0, `"stored_bytes": null`, "orgs", "quota", id, "--stored-bytes=none", "--json")
		step(0, "requests_per_month        none\n", "orgs", "quota", acme)
		step(0, `"gateway_tokens_per_day": 500`, "orgs", "quota", id, "--gateway-tokens-per-day=500", "--json")
		step(2, "--agents is '-1'; it must be a number from 0, or 'none'", "orgs", "quota", acme, "--agents=-1")
		step(0, "0 of 3", "orgs", "usage", acme)
		var all []quota.OrgUsage
		if err := json.Unmarshal([]byte(step(0, "", "orgs", "usage", "--json")), &all); err != nil {
			t.Fatal(err)
		}
		index := slices.IndexFunc(all, func(u quota.OrgUsage) bool { return u.OrgID == id })
		if index < 1 || *all[index].Quotas.Agents != 3 || all[0].Requests == 0 { // the operator's organization is the first
			t.Errorf("%s: the usage is %+v", place.name, all)
		}
		secret := step(0, "loci_", "keys", "create", "--org="+acme, "--name=k", "--scope=read", "--expires=2d",
			"--requests-per-minute=5", "--gateway-mode=observe")
		step(0, "", "keys", "create", "--org="+fresh, "--name=another")
		step(2, "read, tools, write", "keys", "create", "--scope=all")
		step(2, "organization's name has 0 characters", "keys", "create", "--org=")
		step(2, "has control characters", "orgs", "create", "a\x1b")
		step(2, "has control characters", "orgs", "rename", acme, "a\x1b")
		step(2, "prompts_days: it is -1", "orgs", "keep", acme, "--prompts-days=-1")
		step(2, "agents: it is 9999999999999999", "orgs", "quota", acme, "--agents=9999999999999999")
		var made struct{ ID, Key, Name string }
		if err := json.Unmarshal([]byte(step(0, "", "keys", "create", "--name=j", "--json")), &made); err != nil ||
			!strings.HasPrefix(made.Key, "loci_") || made.Name != "j" {
			t.Errorf("%s: the key is %+v, %v", place.name, made, err)
		}
		var revoked, renamed, deleted struct{ ID, Name string }
		if err := json.Unmarshal([]byte(step(0, "", "keys", "revoke", made.Key, "--json")), &revoked); err != nil ||
			revoked.ID != made.ID {
			t.Errorf("%s: %+v is revoked, %v", place.name, revoked, err)
		}
		step(0, `"name": "second `, "orgs", "create", "second "+acme, "--json")
		again := step(0, "", "orgs", "rename", "second "+acme, "2nd "+acme, "--json")
		if err := json.Unmarshal([]byte(again), &renamed); err != nil || renamed.Name != "2nd "+acme {
			t.Errorf("%s: it was renamed to %+v, %v", place.name, renamed, err)
		}
		gone := step(0, "", "orgs", "delete", "2nd "+acme, "--yes", "--json")
		if err := json.Unmarshal([]byte(gone), &deleted); err != nil || deleted != renamed {
			t.Errorf("%s: %+v is deleted, %v", place.name, deleted, err)
		}
		var keys []apikey.Key
		if err := json.Unmarshal([]byte(step(0, "", "keys", "list", "--json")), &keys); err != nil {
			t.Fatal(err)
		}
		position := slices.IndexFunc(keys, func(k apikey.Key) bool { return k.Name == "k" && k.OrgName == acme })
		if k := keys[position]; k.ExpiresAt == nil || *k.RequestsPerMinute != 5 || k.Scopes[0] != "read" {
			t.Errorf("%s: the key is %+v", place.name, k)
		}
		step(0, "5/minute, gateway observe", "keys", "list")
		step(0, "", "keys", "revoke", secret)
		step(1, "there is no", "keys", "revoke", secret)
		step(1, "there is no", "keys", "revoke", "key-123e4567-e89b-42d3-8456-426614174000")
		another := keys[slices.IndexFunc(keys, func(k apikey.Key) bool { return k.Name == "another" && k.OrgName == fresh })]
		step(0, "", "keys", "revoke", another.Prefix)
		step(2, "give --yes", "orgs", "delete", acme)
		step(0, acme, "orgs", "delete", acme, "--yes")
		step(0, fresh, "orgs", "delete", fresh, "--yes")
		step(1, "not found", "orgs", "quota", acme)
		step(1, "cannot be deleted", "orgs", "delete", "default", "--yes")
	}
	code, _, errs := command(t, "orgs", "delete", "default", "--yes", "--wait", "--addr="+p.base)
	if code != 2 || !strings.Contains(errs, "--wait deletes the data in the database itself") {
		t.Errorf("a wait over REST ended with %d: %s", code, errs)
	}
}

// Over REST, an organization's key can manage the organization's keys, but no organizations.
func TestAnAdministratorOnTheCommandLine(t *testing.T) {
	t.Parallel()
	p, inDatabase, acme := tenant(t), commands(t, sharedURL(t)), "acme "+rand.Text()
	p.key = inDatabase("keys", "create", "--org="+acme, "--scope=admin", "--name=admin")
	step := func(wantCode int, want string, args ...string) {
		t.Helper()
		code, out, errs := command(t, p.asking(args...)...)
		if code != wantCode || !strings.Contains(out+errs, want) || strings.Contains(out+errs, "default") {
			t.Errorf("loci %s ended with %d, want %d and %q:\n%s%s", strings.Join(args, " "), code, wantCode, want, out, errs)
		}
	}
	step(0, "loci_", "keys", "create", "--name=own")
	step(0, "own", "keys", "list")
	step(1, "Only an operator's key makes", "keys", "create", "--operator")
	step(1, "Only the operator may send POST /v1/admin/orgs", "orgs", "create", "other")
	step(1, "Only the operator may send PATCH /v1/admin/quotas", "orgs", "quota", acme, "--agents=5")
	step(0, `"agents": null`, "orgs", "quota", acme, "--json")
	step(0, acme, "orgs", "usage")
	step(0, acme, "orgs", "list")
	if list := inDatabase("keys", "list"); !strings.Contains(list, acme) {
		t.Errorf("the key is not in the database:\n%s", list)
	}
}
