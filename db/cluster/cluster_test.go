package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/cluster"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/migrations"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// With a cluster, a filled database is spread. A run that is stopped at any of its steps is run again: the rows, the
// foreign keys and the places of the tables are the same as without the stops. Without a cluster, the error says how to
// make one.
func TestAFilledDatabaseIsSpread(t *testing.T) {
	t.Parallel()
	url, ok := dbtest.SpreadURL(t)
	if !ok {
		url = dbtest.EmptyURL(t)
	}
	if _, err := db.Migrate(t.Context(), db.URLs{Owner: url, Server: dbtest.Serving(url)}); err != nil {
		t.Fatal(err)
	}
	conn := dial(t, url)
	fill(t, conn)
	before := references(t, conn)
	if !ok {
		onePostgresIsNotSpread(t, conn)
		if spread, err := db.IsSpread(t.Context(), conn); err != nil || spread {
			t.Errorf("one Postgres: spread %v, %v", spread, err)
		}
		return
	}
	stopAtEachStep(t, url)
	if _, err := db.Open(t.Context(), db.URLs{Owner: url, Server: dbtest.Serving(url)}); err == nil ||
		!strings.Contains(err.Error(), "loci migrate spread") {
		t.Errorf("a server on half of a spread database: got %v", err)
	}
	again := dial(t, url)
	done, err := cluster.Run(t.Context(), again, cluster.Options{Shards: 2})
	if err != nil || !done.Resumed {
		t.Fatalf("run again: resumed %v, %v", done.Resumed, err)
	}
	for _, table := range done.Tables {
		if !table.Done {
			t.Errorf("table %s is not %s", table.Name, table.Place)
		}
	}
	if after := references(t, again); !slices.Equal(before, after) {
		t.Errorf("foreign keys: %d before, %d after", len(before), len(after))
	}
	names, err := db.All[string](t.Context(), again, `
		SELECT a.name FROM agents a JOIN organizations USING (org) ORDER BY a.name`)
	if err != nil || !slices.Equal(names, []string{"agent 1", "agent 2", "agent 3"}) {
		t.Errorf("agents: %v, %v", names, err)
	}
	if planned, err := cluster.Plan(t.Context(), again); err != nil || planned.Moved != 0 || planned.Resumed {
		t.Errorf("afterwards: %d tables would be moved, resumed %v, %v", planned.Moved, planned.Resumed, err)
	}
}

// stopAtEachStep runs the spreading again and again, and stops it: first after five tables, then after each third
// table, then after each fifth foreign key. It returns before the last keys are added.
func stopAtEachStep(t *testing.T, url string) {
	t.Helper()
	runs, moved, added := 0, 0, 0
	for tables := 5; added < 40; tables = 3 { // agents is the fourth, and agent_archives is among the later ones
		ctx, stop := context.WithCancel(t.Context())
		conn := dial(t, url)
		begun, keys := 0, 0
		_, err := cluster.Run(ctx, conn, cluster.Options{Shards: 2, Progress: func(r cluster.Report) {
			switch {
			case strings.HasPrefix(r.Step, "move"):
				begun++
			case strings.HasPrefix(r.Step, "add foreign key"):
				keys++
			}
			if begun > tables || keys > 5 {
				stop()
			}
		}})
		stop()
		_ = conn.Close(t.Context()) // it would keep the next run off
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("run %d, after %d tables and %d keys: got %v, want that it is stopped", runs, moved, added, err)
		}
		runs, moved, added = runs+1, moved+min(begun, tables), added+min(keys, 5)
	}
	t.Logf("stopped %d times", runs)
}

// onePostgresIsNotSpread checks that the error says what an operator does first.
func onePostgresIsNotSpread(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	_, err := cluster.Plan(t.Context(), conn)
	if !errors.Is(err, db.ErrConflict) || !strings.Contains(err.Error(), "CREATE EXTENSION citus") {
		t.Errorf("got %v, want a conflict that names the extension", err)
	}
	if _, err := cluster.Run(t.Context(), conn, cluster.Options{}); !errors.Is(err, db.ErrConflict) {
		t.Errorf("got %v, want a conflict", err)
	}
}

// fill makes three organizations with an agent each.
func fill(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), `
		WITH o AS (INSERT INTO organizations (name) SELECT 'org ' || n FROM generate_series(1, 3) AS n RETURNING org, name)
		INSERT INTO agents (org, id, name, agent_type, system)
		SELECT org, 'agent-' || gen_random_uuid(), replace(name, 'org', 'agent'), 'memgpt_v2_agent', '' FROM o`); err != nil {
		t.Fatal(err)
	}
}

func references(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	list, err := db.All[string](t.Context(), conn, `
		SELECT c.relname || ' ' || conname || ' ' || pg_get_constraintdef(f.oid)
		FROM pg_constraint f JOIN pg_class c ON c.oid = conrelid
		WHERE contype = 'f' AND connamespace = 'public'::regnamespace ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func dial(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := db.Dial(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// On a spread database, migrations run as on one Postgres, and the tables that they add are spread, too.
func TestASpreadDatabaseIsMigrated(t *testing.T) {
	t.Parallel()
	url, ok := dbtest.SpreadURL(t)
	if !ok {
		return // TestOlderDatabasesAreMigrated migrates one Postgres
	}
	urls := db.URLs{Owner: url, Server: dbtest.Serving(url)}
	conn := dial(t, url)
	baseline(t, conn)
	if _, err := cluster.RunAnyway(t.Context(), conn, cluster.Options{Shards: 2}); err != nil {
		t.Fatal(err)
	}
	fill(t, conn)
	if m, err := db.Migrate(t.Context(), urls); err != nil || m.From.Version != migrations.Baseline {
		t.Fatalf("migrate from %d: %v", m.From.Version, err)
	}
	planned, err := cluster.Plan(t.Context(), conn)
	if err != nil || planned.Moved != 0 {
		t.Errorf("tables that migrations added elsewhere: %d of %v, %v", planned.Moved, planned.Tables, err)
	}
	pool, err := db.Open(t.Context(), urls)
	if err != nil {
		t.Fatal(err)
	}
	pool.Close()
}

// baseline makes the schema of the baseline.
func baseline(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	files, version, err := migrations.Since(0)
	if err != nil {
		t.Fatal(err)
	}
	statements := append([]string{`CREATE EXTENSION vector`,
		`CREATE TABLE schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL)`,
		fmt.Sprintf(`INSERT INTO schema_migrations VALUES (%d, false)`, version)}, files...)
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}
