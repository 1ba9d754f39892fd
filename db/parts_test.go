package db_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pgvector/pgvector-go"

	"github.com/loci-memory/loci/db"
)

// A probe notices every kind of part that may be missing while a backup is restored, and names the missing part.
func missingPartsAreTold(t *testing.T, url string) {
	ctx := t.Context()
	pool, err := db.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	parts, err := db.PartsOf(ctx, pool)
	if err != nil {
		t.Fatal(err)
	}
	probe := func() error {
		_, err := db.Probe(ctx, pool, "test", parts)
		return err
	}
	for _, c := range []struct{ thing, part, name, other string }{
		{"TABLE %s RENAME TO", " of blocks", "blocks", "other"},
		{"TABLE blocks RENAME COLUMN %s TO", "column label of blocks", "label", "other"},
		{"TABLE blocks RENAME CONSTRAINT %s TO", "constraint blocks_pkey of blocks", "blocks_pkey", "other"},
		{"INDEX %s RENAME TO", "index files_name_key of files", "files_name_key", "other"},
		{"FUNCTION %s RENAME TO", "function analyze_table", "analyze_table", "other"},
		{"TABLE schema_migrations RENAME COLUMN %s TO", "column dirty of schema_migrations", "dirty", "other"},
	} {
		rename := func(from, to string) {
			if _, err := pool.Exec(ctx, "ALTER "+strings.Replace(c.thing, "%s", from, 1)+" "+to); err != nil {
				t.Fatal(err)
			}
		}
		rename(c.name, c.other)
		if err := probe(); !db.LacksSchema(err) || !db.Unavailable(err) || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: the probe's error is %v", c.part, err)
		}
		rename(c.other, c.name)
		if err := probe(); err != nil {
			t.Errorf("%s is there again: %v", c.part, err)
		}
	}
	for _, sql := range []string{`UPDATE schema_migrations SET version = version + 1`,
		`UPDATE schema_migrations SET version = version - 1`} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
		if err := probe(); db.LacksSchema(err) != strings.Contains(sql, "+") {
			t.Errorf("%s: the probe's error is %v", sql, err)
		}
	}
}

// After pgvector is created anew, its types have other numbers. Connections that know the old numbers are replaced.
func rebuiltTypesAreUsed(t *testing.T, url string) {
	ctx := context.Background()
	exec := func(sql string) {
		conn, err := db.Dial(ctx, url)
		if err == nil {
			defer conn.Close(ctx) //nolint:errcheck // it was told
			_, err = conn.Exec(ctx, sql)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE EXTENSION vector`)
	pool, err := db.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	length := func() error {
		_, err := db.One[float64](ctx, pool, `SELECT vector_norm($1::vector)`, pgvector.NewVector([]float32{3, 4}))
		return err
	}
	used := func(want bool) { // by several connections
		for range 4 {
			conn, err := pool.Acquire(ctx)
			if err == nil {
				defer conn.Release()
				var norm float64
				err = conn.QueryRow(ctx, `SELECT vector_norm($1::vector)`, pgvector.NewVector([]float32{3, 4})).Scan(&norm)
			}
			if (err == nil) != want || err != nil && (!db.LacksSchema(err) || !db.Unavailable(err)) {
				t.Errorf("a vector is used: got %v, want well: %t", err, want)
			}
		}
	}
	used(true)
	exec(`DROP EXTENSION vector CASCADE`)
	used(false)
	exec(`CREATE EXTENSION vector`)
	used(true)
	exec(`BEGIN; DROP EXTENSION vector CASCADE; CREATE EXTENSION vector; COMMIT`)
	if err := length(); !db.LacksSchema(err) {
		t.Errorf("with the number of a type that is gone: got %v", err)
	}
	used(true)
	exec(`DROP EXTENSION vector CASCADE`)
}
