package migrations_test

import (
	"regexp"
	"testing"

	"github.com/loci-memory/loci/db/migrations"
)

// Two migrations with one number come of branches that each add one: the later one takes the next number.
func TestEachMigrationHasItsOwnNumber(t *testing.T) {
	t.Parallel()
	entries, err := migrations.Files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	form, of := regexp.MustCompile(`^(\d{4})_[a-z0-9_]+\.up\.sql$`), map[string]string{}
	for _, e := range entries {
		parts := form.FindStringSubmatch(e.Name())
		if parts == nil {
			t.Errorf("%s is not named NNNN_what.up.sql", e.Name())
			continue
		}
		if other, taken := of[parts[1]]; taken {
			t.Errorf("%s and %s have one number: give the one that landed later the next free number", other, e.Name())
		}
		of[parts[1]] = e.Name()
	}
}
