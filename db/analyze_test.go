package db_test

import (
	"slices"
	"testing"

	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
)

// After a bulk load, AnalyzeGrown makes Postgres' statistics of a table match the loaded rows.
func grownTablesAreAnalyzed(t *testing.T, url string) {
	pool, owner := served(t, url), dial(t, url)
	if _, err := owner.Exec(t.Context(), `
		ALTER TABLE organizations SET (autovacuum_enabled = false)`); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `
		INSERT INTO organizations (id, name)
		SELECT 'org-' || gen_random_uuid(), repeat('n', 190) || n FROM generate_series(1, 20000) n`); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false} {
		tables, err := db.AnalyzeGrown(t.Context(), pool)
		if err != nil || slices.Contains(tables, "organizations") != want {
			t.Errorf("call %d: analyzed %q, %v; want organizations among them: %t", i, tables, err, want)
		}
	}
	rows, err := db.One[float64](t.Context(), pool, `
		SELECT reltuples::float8 FROM pg_class WHERE oid = 'organizations'::regclass`)
	if err != nil || rows < 19_000 {
		t.Errorf("the statistics know of %.0f rows, %v; want some 20,000", rows, err)
	}
}

// The owner rebuilds the indexes of jobs, unless another server builds an index.
func indexesAreRebuilt(t *testing.T, url string) {
	owner, err := db.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	file := func() int64 {
		t.Helper()
		number, err := db.One[int64](t.Context(), owner, `SELECT pg_relation_filenode('river_job_pkey')::bigint`)
		if err != nil {
			t.Fatal(err)
		}
		return number
	}
	builder, err := owner.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := builder.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, db.LockIndex); err != nil {
		t.Fatal(err)
	}
	before := file()
	if err := db.Reindex(t.Context(), owner, "river_job_pkey"); err != nil || file() != before {
		t.Errorf("while another server builds an index: %v", err)
	}
	if _, err := builder.Exec(t.Context(), `SELECT pg_advisory_unlock($1)`, db.LockIndex); err != nil {
		t.Fatal(err)
	}
	builder.Release()
	if err := db.Reindex(t.Context(), owner, river.ReindexerIndexNamesDefault()...); err != nil || file() == before {
		t.Errorf("the index was not rebuilt: %v", err)
	}
}
