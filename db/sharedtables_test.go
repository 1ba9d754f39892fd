package db_test

import (
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
)

// crossIndexes lists the indexes of tenants' tables that do not begin with the organization, each with the reason. A
// gin or hnsw index cannot have the organization as its first column.
var crossIndexes = map[string]string{
	"deleted_places_time": "what is older than a day is deleted in all organizations at once",
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
