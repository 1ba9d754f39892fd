package dbtest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/loci-memory/loci/db/migrations"
)

// fingerprint returns a hash of the schema that db.Migrate creates, and of the role that serves.
func fingerprint() (string, error) {
	sum := sha256.New()
	entries, err := migrations.Files.ReadDir(".")
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		body, err := migrations.Files.ReadFile(e.Name())
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", e.Name(), len(body), body)
	}
	jobs, err := rivermigrate.New(riverpgxv5.New(nil), nil)
	if err != nil {
		return "", err
	}
	fmt.Fprintln(sum, serving)
	for _, v := range jobs.AllVersions() {
		fmt.Fprintf(sum, "%d\n%s", v.Version, v.SQLUp)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}
