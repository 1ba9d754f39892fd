package db_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// A schema with another program's tables is refused and left unchanged. The error says what to do.
func otherProgramsTablesAreKept(t *testing.T, url string) {
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	const versions = `CREATE TABLE schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL);`
	for name, c := range map[string]struct{ sql, named string }{
		"versions of another program": {versions + `INSERT INTO schema_migrations VALUES (12, false)`,
			"schema_migrations"},
		"later versions of another program": {versions + `INSERT INTO schema_migrations VALUES (20240101000000, false);
			CREATE TABLE users (id int)`, "schema_migrations"},
		"versions of Rails": {`CREATE TABLE schema_migrations (version varchar PRIMARY KEY);
			INSERT INTO schema_migrations VALUES ('20240101')`, "schema_migrations"},
		"versions of Rails before the first": {`CREATE TABLE schema_migrations (version varchar PRIMARY KEY)`,
			"schema_migrations"},
		"organizations of another program": {versions + `INSERT INTO schema_migrations VALUES (3, false);
			CREATE TABLE organizations (id int)`, "organizations, schema_migrations"},
		"tables of Letta": {`CREATE TABLE organizations (id varchar PRIMARY KEY);
			CREATE TABLE agents (id varchar PRIMARY KEY);
			CREATE TABLE messages (id varchar)`, "agents, messages, organizations"},
		"another program's queue": {`CREATE TABLE river_migration (line text, version bigint);
			INSERT INTO river_migration VALUES ('main', 6)`, "river_migration"},
	} {
		if _, err := conn.Exec(t.Context(), `
			DROP SCHEMA IF EXISTS other CASCADE; CREATE SCHEMA other; SET search_path = other;`+c.sql); err != nil {
			t.Fatal(err)
		}
		tables := func() []string {
			names, err := db.All[string](t.Context(), conn, `
				SELECT relname || ' ' || attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
				WHERE c.relnamespace = 'other'::regnamespace ORDER BY 1`)
			if err != nil {
				t.Fatal(err)
			}
			return names
		}
		before := tables()
		within := url + map[bool]string{true: "&", false: "?"}[strings.Contains(url, "?")] + "search_path=other,public"
		_, migrated := db.Migrate(t.Context(), db.URLs{Server: within})
		for what, err := range map[string]error{"a migration": migrated, "a start": db.CheckSchema(t.Context(), conn)} {
			refused, ok := errors.AsType[*db.SchemaError](err)
			if !ok || !strings.Contains(refused.Error(), "tables of another program ("+c.named+"), which Loci does not touch") {
				t.Errorf("%s: %s ends with %v", name, what, err)
			}
		}
		if after := tables(); !slices.Equal(before, after) {
			t.Errorf("%s: the tables were %q, and are %q", name, before, after)
		}
	}
	if _, err := conn.Exec(t.Context(), `DROP SCHEMA other CASCADE`); err != nil {
		t.Fatal(err)
	}
}
