package db_test

import (
	"context"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/migrations"
)

// atVersion returns a connection to a database with the schema of a version, and the database's URL.
func atVersion(t *testing.T, last string) (*pgx.Conn, string) {
	t.Helper()
	names, err := fs.Glob(migrations.Files, "*.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	url := dbtest.EmptyURL(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	statements := []string{`
		CREATE EXTENSION vector;
		CREATE TABLE schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL);`}
	for _, name := range names {
		if name[:4] <= last {
			sql, err := fs.ReadFile(migrations.Files, name)
			if err != nil {
				t.Fatal(err)
			}
			statements = append(statements, string(sql))
		}
	}
	for _, sql := range append(statements, `INSERT INTO schema_migrations VALUES (`+last+`, false)`) {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return conn, url
}

// A migration fills in the depth of sub-agents in a database from before they had one. Copies of their conversations,
// and copies of those copies, get the depth, too.
func depthsOfAnOlderDatabaseAreFilled(t *testing.T) {
	t.Parallel()
	conn, url := atVersion(t, "0061")
	if _, err := conn.Exec(t.Context(), `
		SET session_replication_role = replica; -- what else a conversation refers to does not matter here
		INSERT INTO organizations (org, name) OVERRIDING SYSTEM VALUE VALUES (70, 'older');
		INSERT INTO agents (org, key, name, agent_type, system) OVERRIDING SYSTEM VALUE
		SELECT 70, key, name, 'letta_v1_agent', '' FROM (VALUES (1, 'parent'), (2, 'child'), (3, 'grandchild')) a (key, name);
		INSERT INTO conversations (org, key, agent_key, summary, forked_from) OVERRIDING SYSTEM VALUE
		VALUES (70, 11, 1, 'of the parent', NULL), (70, 12, 1, 'a fork that works', 11),
		       (70, 13, 1, 'a copy of the fork', 12), (70, 14, 1, 'a copy of the copy', 13),
		       (70, 15, 1, 'a copy of the parent''s', 11), (70, 21, 2, 'of the child', NULL),
		       (70, 31, 3, 'of the grandchild', NULL), (70, 32, 3, 'a fork of the grandchild', 31);
		INSERT INTO children (org, parent_key, parent_conversation, agent_key, conversation_key, mode, name, task, depth,
		                      runs, after_position)
		VALUES (70, 1, 11, 1, 12, 'fork', 'f', 't', 1, false, 0), (70, 1, 11, 2, 21, 'blank', 'c', 't', 1, false, 0),
		       (70, 2, 21, 3, 31, 'brief', 'g', 't', 2, false, 0), (70, 3, 31, 3, 32, 'fork', 'h', 't', 3, false, 0)`,
	); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Migrate(t.Context(), db.URLs{Server: url}); err != nil {
		t.Fatal(err)
	}
	type depth struct {
		Of    string `db:"of"`
		Depth int    `db:"depth"`
	}
	got, err := db.All[depth](t.Context(), conn, `
		SELECT name AS of, depth FROM agents WHERE org = 70
		UNION ALL
		SELECT summary, depth FROM conversations WHERE org = 70
		ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	want := []depth{{"a copy of the copy", 1}, {"a copy of the fork", 1}, {"a copy of the parent's", 0},
		{"a fork of the grandchild", 3}, {"a fork that works", 1}, {"child", 1}, {"grandchild", 2}, {"of the child", 0},
		{"of the grandchild", 0}, {"of the parent", 0}, {"parent", 0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
