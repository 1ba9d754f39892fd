package db_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest/golden"
)

// The schema is a small one, so that migrations do not change this plan.
func planForCitus(t *testing.T, url string) {
	conn := rolledBack(t, url)
	if _, err := conn.Exec(t.Context(), `
		CREATE TABLE organizations (org integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
		CREATE TABLE embedding_spaces (id smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
		CREATE TABLE api_keys (id text PRIMARY KEY, org integer NOT NULL REFERENCES organizations ON DELETE CASCADE);
		CREATE TABLE schema_migrations (version bigint PRIMARY KEY);
		CREATE TABLE river_job (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
		CREATE TABLE notes (
			org integer NOT NULL REFERENCES organizations ON DELETE CASCADE,
			key bigint GENERATED ALWAYS AS IDENTITY, label text NOT NULL, replaces bigint, terms int[] NOT NULL,
			PRIMARY KEY (org, key), UNIQUE (org, key, label),
			CONSTRAINT notes_replaces FOREIGN KEY (org, replaces) REFERENCES notes ON DELETE SET NULL (replaces));
		CREATE INDEX notes_terms ON notes USING gin (terms);
		CREATE TABLE books (
			org integer NOT NULL, key bigint NOT NULL, label text NOT NULL, space_id smallint NOT NULL,
			PRIMARY KEY (org, key),
			CONSTRAINT books_space FOREIGN KEY (space_id) REFERENCES embedding_spaces ON DELETE CASCADE,
			CONSTRAINT books_note FOREIGN KEY (org, key, label) REFERENCES notes (org, key, label)
				ON UPDATE CASCADE ON DELETE CASCADE);
		CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
		CREATE TRIGGER books_keep AFTER DELETE ON books REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
			EXECUTE FUNCTION keep()`); err != nil {
		t.Fatal(err)
	}
	got, err := db.CitusPlan(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/citus.sql", got)
}

// Postgres runs those statements of the plan that it knows. The others are checked against the resulting schema.
func planForCitusIsInOrder(t *testing.T, url string) {
	pool := rolledBack(t, url)
	plan, err := db.CitusPlan(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	place, reference, distributed := map[string]int{}, map[string]bool{}, map[string]bool{}
	calls := regexp.MustCompile(`SELECT create_(reference|distributed)_table\('(\w+)'`).FindAllStringSubmatch(plan, -1)
	for i, call := range calls {
		if place[call[2]] > 0 {
			t.Errorf("table %s occurs twice", call[2])
		}
		place[call[2]] = i + 1
		reference[call[2]], distributed[call[2]] = call[1] == "reference", call[1] == "distributed"
	}
	before := regexp.MustCompile(`(?s)^(.*?)SELECT create_`).FindStringSubmatch(plan)[1]
	if _, err := pool.Exec(t.Context(), strings.ReplaceAll(before, "SET citus.", "SET custom.")); err != nil {
		t.Fatalf("%s: %v", before, err)
	}
	for _, table := range all[string](t, pool, `
		SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`) {
		local := strings.HasPrefix(table, "river_") || table == "schema_migrations"
		if distributed[table] == db.Shared(table) || reference[table] != (db.Shared(table) && !local) {
			t.Errorf("table %s: reference %v, distributed %v", table, reference[table], distributed[table])
		}
	}
	type key struct {
		Child, Parent, Definition string
		Refused                   bool
	}
	for _, k := range all[key](t, pool, `
		SELECT conrelid::regclass::text AS child, confrelid::regclass::text AS parent,
		       pg_get_constraintdef(oid) AS definition, confupdtype IN ('c', 'n', 'd') OR confdeltype IN ('n', 'd') AS refused
		FROM pg_constraint WHERE contype = 'f' AND conrelid <> confrelid AND connamespace = 'public'::regnamespace`) {
		if !strings.HasPrefix(k.Child, "river_") && (place[k.Parent] >= place[k.Child] || k.Refused) {
			t.Errorf("%s (table %d) has %s (table %d)", k.Child, place[k.Child], k.Definition, place[k.Parent])
		}
	}
	if triggers := all[string](t, pool, `SELECT tgname::text FROM pg_trigger WHERE NOT tgisinternal`); len(triggers) > 0 {
		t.Errorf("triggers that are left: %v", triggers)
	}
}

// rolledBack begins a transaction on a database, which is rolled back at the end of the test.
func rolledBack(t *testing.T, url string) pgx.Tx {
	t.Helper()
	tx, err := dial(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func all[T any](t *testing.T, d db.DB, sql string) []T {
	t.Helper()
	list, err := db.All[T](t.Context(), d, sql)
	if err != nil {
		t.Fatal(err)
	}
	return list
}
