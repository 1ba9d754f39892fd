package main

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
)

// These tests check commands, and the start of a server, that are about a whole database. They run one after another on
// their own database. It has no key at first, and no server runs on it in between.
func TestCommandsOnADatabase(t *testing.T) {
	t.Parallel()
	owner := dbtest.OwnerURL(t)
	serving := dbtest.Serving(owner)
	for _, c := range []struct {
		name string
		run  func(t *testing.T, url string)
		as   string // the database URL
	}{
		{"the doctor says what to do", theDoctorSaysWhatToDo, owner},
		{"the doctor finds what waits", theDoctorFindsWhatWaits, owner},
		{"other machines are not served without a key", otherMachinesAreNotServedWithoutAKey, serving},
		{"a deletion is waited for later", aDeletionIsWaitedForLater, serving},
		{"keys are made and revoked", keysAreMadeAndRevoked, serving},
		{"the start says which keys do nothing", theStartSaysWhichKeysDoNothing, serving},
		{"another schema is refused", anotherSchemaIsRefused, owner},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, c.as) })
	}
}

// Without a key, a server that other machines could reach does not start, and the doctor says so.
func otherMachinesAreNotServedWithoutAKey(t *testing.T, url string) {
	code, _, errs := command(t, "serve", "--addr=0.0.0.0:0", "--database-url="+url)
	if code != 2 || !strings.Contains(errs, "LOCI_ADDR") || !strings.Contains(errs, "LOCI_API_KEY") {
		t.Errorf("serve ended with %d: %s", code, errs)
	}
	code, found := examine(t, "--database-url="+url, "--addr=0.0.0.0:8283")
	if f := found["keys"]; code != 1 || f.State != db.Broken || !strings.Contains(f.Text+f.Remedy, "LOCI_ADDR") {
		t.Errorf("the doctor: got %d and %+v", code, f)
	}
}
