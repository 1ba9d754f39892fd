package db_test

import (
	"compress/gzip"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/migrations"
)

// former returns a connection to a database with the last schema before the baseline, and the database's URL. A program
// with that schema made it, with rows in almost every table, of two organizations.
func former(t *testing.T) (*pgx.Conn, string) {
	t.Helper()
	file, err := os.Open("testdata/former-0087.sql.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	sql, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	url := dbtest.EmptyURL(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.PgConn().Exec(t.Context(), string(sql)).ReadAll(); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `SET search_path = public`); err != nil {
		t.Fatal(err)
	}
	return conn, url
}

// catalogue returns the parts of the schema of a database, without indexes of vectors, which servers make.
func catalogue(t *testing.T, conn *pgx.Conn) (parts []string) {
	t.Helper()
	all, err := db.Catalogue(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range all {
		if !strings.Contains(part, "USING hnsw") {
			parts = append(parts, part)
		}
	}
	return parts
}

// columnsNow maps each table of a database that is left as it was → its columns, in JSON.
func columnsNow(t *testing.T, conn *pgx.Conn) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, table := range migrations.Tables() {
		switch table {
		case "organizations", "quotas":
			continue
		}
		columns, err := db.One[*string](t.Context(), conn, `
			SELECT json_agg(attname)::text FROM pg_attribute
			WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped`, table)
		if err != nil {
			t.Fatal(err)
		}
		if columns != nil { // no later migration creates the table
			found[table] = *columns
		}
	}
	return found
}

// sums returns a checksum of the rows of tables, of these columns.
func sums(t *testing.T, conn *pgx.Conn, columns map[string]string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for table, its := range columns {
		sum, err := db.One[string](t.Context(), conn, `
			SELECT count(*) || ' ' || coalesce(sum(hashtextextended((
				SELECT jsonb_object_agg(key, value) FROM jsonb_each(to_jsonb(r)) WHERE $1::jsonb ? key)::text, 0)), 0)
			FROM `+table+` r`, its)
		if err != nil {
			t.Fatal(err)
		}
		found[table] = sum
	}
	return found
}

// A database with the last schema before the baseline gets the schema of a new one. Its rows stay, its keys go on, and
// its quotas get a table of their own.
func formerDatabaseIsConverted(t *testing.T) {
	t.Parallel()
	conn, url := former(t)
	const limits = `SELECT string_agg(concat_ws(' ', agents, stored_bytes, requests_per_month), ';' ORDER BY org) FROM `
	columns := columnsNow(t, conn)
	before := sums(t, conn, columns)
	quotas, err := db.One[string](t.Context(), conn, limits+`(
		SELECT org, quotas ->> 'agents' AS agents, quotas ->> 'stored_bytes' AS stored_bytes,
		       quotas ->> 'requests_per_month' AS requests_per_month
		FROM organizations WHERE quotas <> '{}') q`)
	if err != nil || quotas == "" {
		t.Fatalf("quotas %q, %v", quotas, err)
	}
	keys, err := db.One[int64](t.Context(), conn, `SELECT max(key) FROM messages`)
	if err != nil {
		t.Fatal(err)
	}
	migrated, err := db.Migrate(t.Context(), db.URLs{Server: url})
	if err != nil || migrated.From.Version != migrations.Oldest {
		t.Fatalf("%+v, %v", migrated, err)
	}
	if err := db.CheckSchema(t.Context(), conn); err != nil {
		t.Error(err)
	}
	fresh, err := db.Dial(t.Context(), dbtest.OwnerURL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close(context.Background())
	if diff := cmp.Diff(catalogue(t, fresh), catalogue(t, conn)); diff != "" {
		t.Errorf("the schema is not that of a new database (-new +converted):\n%s", diff)
	}
	if diff := cmp.Diff(before, sums(t, conn, columns)); diff != "" {
		t.Errorf("rows differ (-before +now):\n%s", diff)
	}
	if got, err := db.One[string](t.Context(), conn, limits+`quotas`); got != quotas || err != nil {
		t.Errorf("the quotas are %q, %v; want %q", got, err, quotas)
	}
	next, err := db.One[int64](t.Context(), conn, `SELECT nextval('messages_key_seq')`)
	if err != nil || next <= keys {
		t.Errorf("the next key of a message is %d, %v; the last was %d", next, err, keys)
	}
}

// A database that is older than the last schema before the baseline, or that has not that schema, is left as it is. The
// error says what to do.
func otherDatabasesAreNotConverted(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		`UPDATE schema_migrations SET version = 61`: "the database has schema version 61, and this program upgrades from " +
			"version 87 on: start the last Loci with version 87 once",
		`UPDATE schema_migrations SET dirty = true`: "the database has schema version 86, and this program upgrades from",
		`ALTER TABLE passages DROP CONSTRAINT passages_provenance; ALTER TABLE files ALTER COLUMN name DROP NOT NULL`: "it " +
			"lacks column name of files: text  NOT NULL",
	} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			conn, url := former(t)
			if _, err := conn.Exec(t.Context(), change); err != nil {
				t.Fatal(err)
			}
			before := catalogue(t, conn)
			_, err := db.Migrate(t.Context(), db.URLs{Server: url})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want an error with %q", err, want)
			}
			if diff := cmp.Diff(before, catalogue(t, conn)); diff != "" {
				t.Errorf("the schema was changed (-before +now):\n%s", diff)
			}
		})
	}
}
