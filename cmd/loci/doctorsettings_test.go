package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed/embedtest"
)

// If 'loci serve' refuses something, the doctor finds it broken.
func TestTheDoctorFindsWhatAServerRefuses(t *testing.T) {
	t.Parallel()
	words := embedtest.New(t, 8)
	pool, _ := dbtest.Org(t)
	url := dbtest.URLOf(dbtest.Owner(t, pool))
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	external := "--database-url=" + url
	for name, c := range map[string]struct {
		of, said string // said occurs in the text or the remedy
		flags    []string
	}{
		"a model without an endpoint": {"settings", "LOCI_EMBEDDING_MODEL", []string{external, "--embedding-model=m"}},
		"a next endpoint that is away": {"next embeddings", "connection refused", []string{external,
			"--embedding-base-url=" + words.URL + "/v1", "--embedding-model=m",
			"--embedding-next-base-url=http://127.0.0.1:1/v1", "--embedding-next-model=n"}},
		"a bound": {"settings", "LOCI_MAX_RUNS", []string{external, "--max-runs=0"}},
		"an owner that does not exist": {"owner", "LOCI_DATABASE_OWNER_URL", []string{external,
			"--database-owner-url=" + dbtest.As(url, "nobody_of_the_tests")}},
		"an owner that owns nothing": {"owner", "does not own it", []string{"--database-url=" + dbtest.Serving(url),
			"--database-owner-url=" + dbtest.Serving(url)}},
		"a key that is too short":    {"keys", "LOCI_API_KEY", []string{external, "--api-key=short"}},
		"a home that cannot be read": {"postgres", "cannot be read", []string{"--home=" + file}},
	} {
		code, found := examine(t, c.flags...)
		if f := found[c.of]; code != 1 || f.State != db.Broken || !strings.Contains(f.Text+f.Remedy, c.said) {
			t.Errorf("%s: got %d and %+v, want %q", name, code, f, c.said)
		}
	}
}

// The doctor says which part of a database URL is wrong, and how to correct it.
func TestTheDoctorSaysWhyADatabaseIsNotReached(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{"28P01": "ALTER ROLE", "28000": "pg_hba.conf", "3D000": "CREATE DATABASE",
		"42501": "GRANT CONNECT", "53300": "max_connections", "57P03": "starts"} {
		if got := db.ReachRemedy(&pgconn.PgError{Code: code}, "LOCI_DATABASE_URL"); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", code, got, want)
		}
	}
}
