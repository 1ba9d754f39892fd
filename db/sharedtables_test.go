package db_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
)

// crossIndexes lists the indexes of tenants' tables that do not begin with the organization, each with the reason. A
// gin or hnsw index cannot have the organization as its first column.
var crossIndexes = map[string]string{
	"deleted_places_time": "what is older than a day is deleted in all organizations at once",
	"passages_same":       "its hash is of one archive; behind org, other conditions would read it",
}

// Each query yields one row per fault of the schema. No query names a table.
func TestEveryKeyOfATenantsTableBeginsWithItsOrganization(t *testing.T) {
	t.Parallel()
	pool, _ := dbtest.Org(t)
	type fault struct {
		Table  string `db:"table"`
		Detail string `db:"detail"`
	}
	const columns = `SELECT c.relname AS table, `
	for what, sql := range map[string]string{
		"has no column org, integer and NOT NULL": columns + `'' AS detail FROM pg_class c
			WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND NOT EXISTS (
				SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'org' AND a.attnotnull
				  AND a.atttypid = 'integer'::regtype)`,
		"has no primary key": columns + `'' AS detail FROM pg_class c
			WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
			  AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)`,
		"has an index that does not begin with org": columns + `i.indexrelid::regclass::text AS detail
			FROM pg_class c JOIN pg_index i ON i.indrelid = c.oid
			JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am m ON m.oid = x.relam
			WHERE c.relnamespace = 'public'::regnamespace AND m.amname NOT IN ('gin', 'hnsw') AND NOT EXISTS (
				SELECT FROM pg_attribute a
				WHERE a.attrelid = c.oid AND a.attnum = i.indkey[0] AND a.attname = 'org')`,
		"refers to a tenant's row without its org": columns + `f.conname || ' ' || f.confrelid::regclass AS detail
			FROM pg_class c JOIN pg_constraint f ON f.conrelid = c.oid AND f.contype = 'f'
			WHERE c.relnamespace = 'public'::regnamespace
			  AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = f.confrelid AND a.attname = 'org')
			  AND (SELECT a.attname FROM pg_attribute a WHERE a.attrelid = f.conrelid AND a.attnum = f.conkey[1])
			      || (SELECT a.attname FROM pg_attribute a WHERE a.attrelid = f.confrelid AND a.attnum = f.confkey[1])
			      <> 'orgorg'`,
	} {
		faults, err := db.All[fault](t.Context(), pool, sql)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		shared := 0
		for _, f := range faults {
			switch {
			case db.Shared(f.Table):
				shared++
			case crossIndexes[f.Detail] == "":
				t.Errorf("table %s %s %s", f.Table, what, f.Detail)
			}
		}
		if shared == 0 && what == "has no column org, integer and NOT NULL" {
			t.Error("the query finds no shared table, and so would find no fault")
		}
	}
}

// refused are queries for what Citus refuses in a table that it distributes. Each yields one row per fault.
var refused = map[string]string{
	"has an identity column": `
		SELECT c.relname AS table, a.attname AS detail FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relnamespace = 'public'::regnamespace AND a.attidentity <> ''`,
	"has a trigger": `
		SELECT c.relname AS table, t.tgname AS detail FROM pg_class c JOIN pg_trigger t ON t.tgrelid = c.oid
		WHERE c.relnamespace = 'public'::regnamespace AND NOT t.tgisinternal`,
	"changes its organization's rows through a key": `
		SELECT c.relname AS table, f.conname || ': ' || pg_get_constraintdef(f.oid) AS detail
		FROM pg_class c JOIN pg_constraint f ON f.conrelid = c.oid AND f.contype = 'f'
		WHERE c.relnamespace = 'public'::regnamespace AND (f.confupdtype <> 'a' OR f.confdeltype NOT IN ('a', 'r', 'c'))`,
	"refers to a row of another kind of table": `
		SELECT c.relname AS table, f.conname || ': ' || f.confrelid::regclass AS detail
		FROM pg_class c JOIN pg_constraint f ON f.conrelid = c.oid AND f.contype = 'f'
		JOIN pg_class r ON r.oid = f.confrelid
		WHERE c.relnamespace = 'public'::regnamespace AND c.relname = ANY ($1) AND r.relname <> ALL ($1)`,
}

// What Citus refuses is not in the schema, on one Postgres neither.
func TestTheSchemaHasNothingThatCitusRefuses(t *testing.T) {
	t.Parallel()
	pool, _ := dbtest.Org(t)
	for _, fault := range faults(t, pool) {
		t.Error(fault)
	}
}

// faults returns what Citus would refuse in the tables of a database. River's tables are not distributed.
func faults(t *testing.T, d db.DB) (found []string) {
	t.Helper()
	type fault struct {
		Table  string `db:"table"`
		Detail string `db:"detail"`
	}
	var shared []string
	for table := range db.SharedTables {
		shared = append(shared, table)
	}
	for what, sql := range refused {
		args := []any{shared}[:strings.Count(sql, "ALL ($1)")]
		all, err := db.All[fault](t.Context(), d, sql, args...)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for _, f := range all {
			if !strings.HasPrefix(f.Table, "river_") {
				found = append(found, "table "+f.Table+" "+what+": "+f.Detail)
			}
		}
	}
	slices.Sort(found)
	return found
}

// A table that no longer exists must not stay in SharedTables.
func TestSharedTablesExist(t *testing.T) {
	t.Parallel()
	pool, _ := dbtest.Org(t)
	for table := range db.SharedTables {
		if _, err := pool.Exec(t.Context(), `SELECT FROM `+table); err != nil {
			t.Errorf("table %s: %v", table, err)
		}
	}
}
