package db_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/cluster"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/db/migrations"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// These tests are about a whole database, its schema and its roles. They run one after the other, on a database that is
// empty at first.
func TestAWholeDatabase(t *testing.T) {
	t.Parallel()
	url := dbtest.EmptyURL(t)
	for _, c := range []struct {
		name string
		run  func(t *testing.T, url string)
	}{
		{"types that are made anew are used", rebuiltTypesAreUsed},
		{"tables of another program are not touched", otherProgramsTablesAreKept},
		{"two databases are not migrated", twoDatabasesAreNotMigrated},
		{"an owner that may create no roles", ownerMayCreateNoRoles},
		{"servers that start at once migrate once", serversMigrateOnce},
		{"the role that serves is made", servingRoleIsMade},
		{"missing rights are named", missingRightsAreNamed},
		{"a column without a foreign key is found", columnWithoutForeignKeyIsFound},
		{"a purge", organizationsArePurged},
		{"tables that grew are analyzed", grownTablesAreAnalyzed},
		{"indexes are rebuilt", indexesAreRebuilt},
		{"a locked table is told by a probe", lockedTableIsTold},
		{"a schema that is not whole is told by a probe", missingPartsAreTold},
		{"a read-only database is opened with its owner", readOnlyDatabaseIsOpened},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, url) })
	}
}

func serversMigrateOnce(t *testing.T, url string) {
	errs := make([]error, 6)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { _, errs[i] = db.Migrate(t.Context(), db.URLs{Server: url}) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	pool, err := db.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, table := range []string{"events", "chunks", "river_job"} {
		if _, err := pool.Exec(t.Context(), `SELECT FROM `+table); err != nil {
			t.Errorf("after six migrations: %v", err)
		}
	}
}

// Databases of earlier versions are migrated.
func TestOlderDatabasesAreMigrated(t *testing.T) {
	t.Parallel()
	t.Run("a migration that was cut off is applied again", cutOffMigrationIsAppliedAgain)
	t.Run("one from before the baseline is converted", formerDatabaseIsConverted)
	t.Run("others are not", otherDatabasesAreNotConverted)
	t.Run("a later migration makes any kind of change", laterMigrationIsApplied)
}

// laterMigration makes each kind of change.
const laterMigration = `
	CREATE TABLE later (
		org      integer NOT NULL REFERENCES organizations ON DELETE CASCADE,
		agent_id text    NOT NULL,
		PRIMARY KEY (org, agent_id),
		FOREIGN KEY (org, agent_id) REFERENCES agents (org, id) ON DELETE CASCADE
	);
	CREATE INDEX later_agent ON later (org, agent_id);
	CREATE FUNCTION later_kind(name text) RETURNS text LANGUAGE sql IMMUTABLE RETURN left(name, 3);
	ALTER TABLE agents ADD COLUMN kind text NOT NULL DEFAULT '' CONSTRAINT agents_kind CHECK (kind <> 'none');
	ALTER TABLE agents ADD COLUMN note text, ALTER COLUMN name DROP DEFAULT;
	ALTER TABLE agents ADD CONSTRAINT agents_note UNIQUE (org, note);
	CREATE INDEX agents_kind ON agents (org, kind);
	CREATE INDEX agents_later_kind ON agents (org, later_kind(kind));
	ALTER TABLE handover_updates DROP CONSTRAINT handover_updates_section;
	ALTER TABLE handover_updates ADD CONSTRAINT handover_updates_section CHECK (section <> 'none');
	UPDATE agents SET kind = 'first' WHERE name = 'agent 1';
	INSERT INTO later (org, agent_id) SELECT org, id FROM agents;
	UPDATE schema_migrations SET dirty = false;`

// On a database that is spread over a cluster, migrations run as on one Postgres, and tables that they add are spread,
// too.
func laterMigrationIsApplied(t *testing.T) {
	t.Parallel()
	url, spread := dbtest.SpreadURL(t)
	if !spread {
		url = dbtest.EmptyURL(t)
	}
	if _, err := db.Migrate(t.Context(), db.URLs{Owner: url, Server: dbtest.Serving(url)}); err != nil {
		t.Fatal(err)
	}
	conn, err := db.Dial(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if spread {
		if _, err := cluster.Run(t.Context(), conn, cluster.Options{Shards: 2}); err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{
		`INSERT INTO organizations (name) SELECT 'org ' || n FROM generate_series(1, 3) AS n`,
		`INSERT INTO agents (org, name, agent_type, system)
		 SELECT org, replace(name, 'org', 'agent'), 'memgpt_v2_agent', '' FROM organizations WHERE name LIKE 'org %'`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.ApplyMigration(url, laterMigration); err != nil {
		t.Fatal(err)
	}
	if err := db.ApplyMigration(url, `CREATE TABLE last (org integer PRIMARY KEY); SELECT 1 / 0;`); err == nil {
		t.Error("a migration that fails was applied")
	}
	type row struct {
		Name string `db:"name"`
		Kind string `db:"kind"`
	}
	got, err := db.All[row](t.Context(), conn, `
		SELECT a.name, a.kind FROM later l JOIN agents a ON a.org = l.org AND a.id = l.agent_id ORDER BY a.name`)
	if diff := cmp.Diff([]row{{"agent 1", "first"}, {"agent 2", ""}, {"agent 3", ""}}, got); err != nil || diff != "" {
		t.Errorf("rows: %v\n%s", err, diff)
	}
	_, err = conn.Exec(t.Context(), `INSERT INTO later (org, agent_id) VALUES (1, 'none')`)
	if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != pgerrcode.ForeignKeyViolation {
		t.Errorf("a row of no agent: got %v", err)
	}
	if last, err := db.One[bool](t.Context(), conn, `SELECT to_regclass('last') IS NULL`); err != nil || !last {
		t.Errorf("a migration that fails left its table: %v", err)
	}
	if !spread {
		return
	}
	if planned, err := cluster.Plan(t.Context(), conn); err != nil || planned.Moved != 0 {
		t.Errorf("%d tables lie elsewhere: %v", planned.Moved, err)
	}
}

// A server that is killed after it marked a version and before it applied it leaves that version dirty.
func cutOffMigrationIsAppliedAgain(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	names, err := fs.Glob(migrations.Files, "*.up.sql")
	if err != nil || len(names) < 2 {
		t.Fatalf("migrations: %v (%v)", names, err)
	}
	for applied, name := range names {
		if few := scale.Of(40, 1); applied%few != (len(names)-1)%few {
			continue
		}
		var version int
		if _, err := fmt.Sscanf(name, "%d_", &version); err != nil {
			t.Fatal(name, err)
		}
		url := dbtest.EmptyURL(t)
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		before := []string{
			`CREATE EXTENSION vector;
			CREATE TABLE schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL);`,
		}
		for _, name := range names[:applied] {
			sql, err := fs.ReadFile(migrations.Files, name)
			if err != nil {
				t.Fatal(err)
			}
			before = append(before, string(sql))
		}
		for _, sql := range append(before, fmt.Sprintf(`INSERT INTO schema_migrations VALUES (%d, true)`, version)) {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.Migrate(t.Context(), db.URLs{Server: url}); err != nil {
			t.Errorf("%s was cut off: %v", name, err)
		}
		if _, err := conn.Exec(t.Context(), `SELECT FROM agent_files`); err != nil {
			t.Errorf("%s was cut off: %v", name, err)
		}
	}
}

func TestErrorsAreNamed(t *testing.T) {
	t.Parallel()
	pool, _ := dbtest.Org(t)
	for name, c := range map[string]struct {
		sql  string
		want error
	}{
		"no row":          {`SELECT org FROM organizations WHERE false`, db.ErrNotFound},
		"a name twice":    {`INSERT INTO organizations (name) VALUES ('default') RETURNING org`, db.ErrConflict},
		"no parent":       {`INSERT INTO folders (org, name) VALUES (-1, 'x') RETURNING org`, db.ErrNotFound},
		"a broken rule":   {`INSERT INTO organizations (name) VALUES ('') RETURNING org`, db.ErrInvalid},
		"a missing value": {`INSERT INTO organizations (name) VALUES (NULL) RETURNING org`, db.ErrInvalid},
	} {
		if _, err := db.One[int32](t.Context(), pool, c.sql); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if _, err := db.One[string](t.Context(), pool, `SELECT $1::text`, "a\x00b"); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("NUL: got %v, want ErrInvalid", err)
	}
}

// sharedURL returns the URL of the database that tests share, with an additional pool setting.
func sharedURL(t *testing.T, setting string) string {
	t.Helper()
	pool, _ := dbtest.Org(t)
	return dbtest.URLOf(pool) + "&" + setting
}

func TestTheURLMaySizeThePool(t *testing.T) {
	t.Parallel()
	pool, err := db.Open(t.Context(), db.URLs{Server: sharedURL(t, "pool_max_conns=3")})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if n := pool.Config().MaxConns; n != 3 {
		t.Errorf("the pool has at most %d connections, want 3", n)
	}
}

// REST shows times in UTC, whatever the time zone of the machine or of Postgres.
func TestTimesAreInUTC(t *testing.T) {
	t.Parallel()
	pool, err := db.Connect(t.Context(), sharedURL(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var moment time.Time
	var text string
	if err := pool.QueryRow(t.Context(), `SELECT at, at::text FROM (
		SELECT '2026-03-01 23:30Z'::timestamptz AS at) AS t`).Scan(&moment, &text); err != nil {
		t.Fatal(err)
	}
	if moment.Location() != time.UTC || text != "2026-03-01 23:30:00+00" {
		t.Errorf("got %v in %v and %q, want UTC", moment, moment.Location(), text)
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	pool, _ := dbtest.Org(t)
	type row struct {
		ID string `db:"id"`
		N  int    `db:"n"`
	}
	const rows = `SELECT 'id-' || n AS id, n FROM generate_series(1, 7) AS n WHERE n > @above`
	for name, c := range map[string]struct {
		page db.Page
		want []int
	}{
		"everything, descending":      {db.Page{}, []int{7, 6, 5, 4, 3, 2, 1}},
		"the first, ascending":        {db.Page{Limit: 3, Ascending: true}, []int{1, 2, 3}},
		"after one, ascending":        {db.Page{Limit: 2, Ascending: true, After: "id-3"}, []int{4, 5}},
		"after one, descending":       {db.Page{Limit: 2, After: "id-3"}, []int{2, 1}},
		"before one, ascending":       {db.Page{Limit: 2, Ascending: true, Before: "id-5"}, []int{3, 4}},
		"before one, descending":      {db.Page{Limit: 2, Before: "id-5"}, []int{7, 6}},
		"between two, ascending":      {db.Page{Ascending: true, After: "id-2", Before: "id-6"}, []int{3, 4, 5}},
		"after the last":              {db.Page{Ascending: true, After: "id-7"}, nil},
		"after one that is not there": {db.Page{After: "id-99"}, nil},
	} {
		c.page.Order = "n"
		list, err := db.List[row](t.Context(), pool, c.page, rows, pgx.StrictNamedArgs{"above": 0})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []int
		for _, r := range list {
			got = append(got, r.N)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
