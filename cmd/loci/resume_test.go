package main

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/db/migrations"
	"github.com/loci-memory/loci/files"
)

// earlier is a database with the schema and the rows of migration 21. It has a trap, which is a lock that the test
// holds: the migrating session waits for the lock after one of the statements that change the schema.
type earlier struct {
	t    *testing.T
	url  string
	conn *pgx.Conn
}

// A migration is stopped by rows that break its rules, and after randomly chosen statements, in each way: its session
// ends, its program is killed, or both. Each time, the next migration continues. LOCI_CHAOS_SEED repeats a run.
func TestAMigrationThatIsStoppedResumes(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	seed := chaosSeed(t)
	t.Logf("LOCI_CHAOS_SEED=%d", seed)
	dice := rand.New(rand.NewPCG(uint64(seed), 2)) //nolint:gosec // repeatable
	e := newEarlier(t, scale.Of(3000, 22000))
	e.setTrap()
	sums := e.sumQueries()
	before := e.run(sums)
	execute(t, e.url, `
		INSERT INTO folders (org, name) VALUES (NULL, 'deleted, without files'), (NULL, 'deleted, without files');
		INSERT INTO forgotten_agents VALUES (9999)`) // this agent has no messages
	e.rowsOfAnotherOrganizationStopIt()
	orgKeys, references := statementsOf(t, "0022", "0022"), statementsOf(t, "0029", "0029")
	for round := range scale.Of(1, 6) {
		e.stopAt(1+dice.IntN(orgKeys), round%2 == 0)
	}
	e.stopAt(statementsOf(t, "0022", "0028")+prepared, true)
	for round := range scale.Of(1, 6) {
		e.stopAt(1+dice.IntN(references), round%2 == 0)
	}
	e.rowsThatNameNoRowStopIt()
	if v := e.query(`SELECT version FROM schema_migrations`); v != "29" {
		t.Errorf("the migration was stopped at version %s, want 29", v)
	}
	e.outlive(1 + dice.IntN(references))
	if diff := cmp.Diff(schemaOf(t, sharedURL(t)), schemaOf(t, e.url)); diff != "" {
		t.Errorf("the schema is not that of a new database (-new +upgraded):\n%s", diff)
	}
	if diff := cmp.Diff(before, e.run(sums)); diff != "" {
		t.Errorf("rows differ from before (-before +now):\n%s", diff)
	}
	e.rowsHaveTheOrganizationsOfTheirParents()
	if n := e.query(`SELECT count(*) FROM agent_logs WHERE agent_key IS NULL`); n != "3" {
		t.Errorf("%s logs are of deleted agents, want 3", n)
	}
	e.isServed()
}

// rowsOfAnotherOrganizationStopIt checks that the migration stops, and changes nothing, if rows have another
// organization than their parents.
func (e *earlier) rowsOfAnotherOrganizationStopIt() {
	e.t.Helper()
	schema := schemaOf(e.t, e.url)
	for _, c := range []struct{ table, parent, reference, row string }{
		{"chunk_vectors", "chunks", "chunk_key", "chunk_key = 1"},
		{"messages", "conversations", "conversation_key", "key = 1"},
		{"unembedded_passages", "passages", "passage_key", "passage_key = 1"},
	} {
		change := `UPDATE ` + c.table + ` SET org = 3 - org WHERE ` + c.row
		execute(e.t, e.url, change)
		e.isStopped(fmt.Sprintf("of table %s have another organization than the row of table %s that their column %s names",
			c.table, c.parent, c.reference))
		if diff := cmp.Diff(schema, schemaOf(e.t, e.url)); diff != "" {
			e.t.Errorf("the schema after a migration that failed (-before +now):\n%s", diff)
		}
		execute(e.t, e.url, change)
	}
}

// isStopped checks that the migration fails with a text.
func (e *earlier) isStopped(want string) {
	e.t.Helper()
	_, err := db.Migrate(e.t.Context(), db.URLs{Owner: e.url})
	if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 500 {
		e.t.Fatalf("error %v, want one with %q", err, want)
	}
}

// rowsThatNameNoRowStopIt checks that the migration stops at rows with no parent, or with a wrong copy of a parent's
// column, in the same organization.
func (e *earlier) rowsThatNameNoRowStopIt() {
	e.t.Helper()
	for _, c := range []struct{ table, change, mend, columns string }{
		{"chunks", "folder_key = folder_key + 3 WHERE key = 1", "folder_key = folder_key - 3 WHERE key = 1",
			"folder_key, file_key no row of table files"},
		{"messages", "conversation_key = 4, position = 99999 WHERE key = 1",
			"conversation_key = (SELECT conversation_key FROM messages WHERE key = 31), position = 1 WHERE key = 1",
			"agent_key, conversation_key no row of table conversations"},
		{"chunk_vectors", "folder_key = 99 WHERE chunk_key = 1",
			"folder_key = (SELECT folder_key FROM chunks WHERE key = 1) WHERE chunk_key = 1",
			"folder_key, chunk_key no row of table chunks"},
		{"passage_vectors", "archive_key = 99 WHERE passage_key = 2",
			"archive_key = (SELECT archive_key FROM passages WHERE key = 2) WHERE passage_key = 2",
			"archive_key, passage_key no row of table passages"},
	} {
		execute(e.t, e.url, `UPDATE `+c.table+` SET `+c.change)
		e.isStopped(" of table " + c.table + " name by their columns " + c.columns)
		execute(e.t, e.url, `UPDATE `+c.table+` SET `+c.mend)
	}
}

// newEarlier returns a database with about four rows for each message, over all tables.
func newEarlier(t *testing.T, messages int) *earlier {
	t.Helper()
	e := &earlier{t: t, url: dbtest.EmptyURL(t)}
	var err error
	if e.conn, err = pgx.Connect(t.Context(), e.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.conn.Close(context.WithoutCancel(t.Context())) })
	execute(t, e.url, `
		CREATE EXTENSION vector;
		CREATE TABLE schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL)`)
	for _, name := range migrationFiles(t) {
		if name < "0022" {
			execute(t, e.url, readMigration(t, name))
		}
	}
	rows, err := os.ReadFile("testdata/upgrade/rows-0021.sql")
	if err != nil {
		t.Fatal(err)
	}
	execute(t, e.url, fmt.Sprintf(`INSERT INTO schema_migrations VALUES (21, false); SET loci.messages = %d; `, messages)+
		string(rows))
	return e
}

func migrationFiles(t *testing.T) []string {
	t.Helper()
	names, err := fs.Glob(migrations.Files, "*.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func readMigration(t *testing.T, name string) string {
	t.Helper()
	sql, err := fs.ReadFile(migrations.Files, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(sql)
}

// prepared is an upper bound for the statements before the first migration that change the schema.
const prepared = 6

// statementsOf counts the statements in some migrations that change the schema. After a stop in a later migration,
// these would stay applied, and the next round would have fewer statements.
func statementsOf(t *testing.T, first, last string) (n int) {
	t.Helper()
	changes := regexp.MustCompile(`(?m)^(ALTER|CREATE|DROP) `)
	for _, name := range migrationFiles(t) {
		if name >= first && name[:len(last)] <= last {
			n += len(changes.FindAllString(readMigration(t, name), -1))
		}
	}
	return n
}

// setTrap takes the lock. The session that runs the statement with the number trap.next waits for it.
func (e *earlier) setTrap() {
	e.t.Helper()
	execute(e.t, e.url, `
		CREATE SCHEMA trap;
		CREATE TABLE trap.next AS SELECT 0 AS statement;
		CREATE SEQUENCE trap.statements;
		CREATE FUNCTION trap.wait() RETURNS event_trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF nextval('trap.statements') = (SELECT statement FROM trap.next) THEN
				PERFORM pg_advisory_xact_lock(4711);
			END IF;
		END $$;
		CREATE EVENT TRIGGER trap ON ddl_command_end EXECUTE FUNCTION trap.wait()`)
	e.query(`SELECT pg_advisory_lock(4711)`)
}

// query runs a statement in the test's session, and returns its single value as text.
func (e *earlier) query(sql string, args ...any) (value string) {
	e.t.Helper()
	if err := e.conn.QueryRow(e.t.Context(), `SELECT coalesce((`+sql+`)::text, '')`, args...).Scan(&value); err != nil {
		e.t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// start starts a program that migrates, and waits until its session is in the trap, after a statement.
func (e *earlier) start(statement int) (program *exec.Cmd, session string) {
	e.t.Helper()
	execute(e.t, e.url, fmt.Sprintf(
		`SELECT setval('trap.statements', 1, false); UPDATE trap.next SET statement = %d`, statement))
	log := newLines()
	args := []string{"migrate", "--database-url=" + e.url}
	program = exec.CommandContext(e.t.Context(), os.Args[0], args...) //nolint:gosec // this program
	program.Stderr = log
	if err := program.Start(); err != nil {
		e.t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; {
		if session = e.waiting(`=`); session != "" {
			return program, session
		}
		if time.Now().After(deadline) || !db.Pause(e.t.Context(), 10*time.Millisecond) {
			_ = program.Process.Kill()
			e.t.Fatalf("the migration does not come to statement %d: %v:\n%s", statement, program.Wait(), log)
		}
	}
}

// waiting returns the id of a session that waits for the trap's lock, or, with <>, for another advisory lock.
func (e *earlier) waiting(operator string) string {
	e.t.Helper()
	return e.query(`
		SELECT pid FROM pg_locks
		WHERE locktype = 'advisory' AND NOT granted AND objid ` + operator + ` 4711
		  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		LIMIT 1`)
}

// stopAt ends a migration's session after one of its statements. If kill is set, it first kills the program.
func (e *earlier) stopAt(statement int, kill bool) {
	e.t.Helper()
	program, session := e.start(statement)
	if kill {
		_ = program.Process.Kill()
	}
	e.query(`SELECT pg_terminate_backend($1::text::int, 60000)`, session)
	if err := program.Wait(); err == nil {
		e.t.Errorf("the program ended well though its migration was stopped after statement %d", statement)
	}
}

// outlive kills a migrating program after one of its statements. Postgres does not notice until the migration is done.
// Meanwhile another program waits.
func (e *earlier) outlive(statement int) {
	e.t.Helper()
	program, _ := e.start(statement)
	_ = program.Process.Kill()
	_ = program.Wait()
	out, next := newLines(), make(chan int, 1)
	go func() { next <- run(e.t.Context(), []string{"migrate", "--database-url=" + e.url}, out, out) }()
	for deadline := time.Now().Add(patience); e.waiting(`<>`) == ""; {
		if time.Now().After(deadline) || !db.Pause(e.t.Context(), 10*time.Millisecond) {
			e.t.Fatal("the next program does not wait for the session of the one that was killed")
		}
	}
	e.query(`SELECT pg_advisory_unlock(4711)`)
	if code := <-next; code != 0 || !strings.HasPrefix(out.String(), "The schema has version "+schemaVersion(e.t)+", ") {
		e.t.Errorf("the program after the one that was killed after statement %d ended with %d: %s", statement, code, out)
	}
	execute(e.t, e.url, `DROP EVENT TRIGGER trap; DROP SCHEMA trap CASCADE`)
}

// sumQueries returns, by table, a query for the number and a checksum of the rows, over the current columns. A deleted
// folder got its organization back, and the messages of deleted agents got their conversations back.
func (e *earlier) sumQueries() map[string]string {
	e.t.Helper()
	queries := map[string]string{}
	for _, line := range texts(e.t, e.url, `
		SELECT c.relname || ' ' || format(
			'SELECT count(*) || '' '' || coalesce(sum(hashtextextended(ROW(%s)::text, 0)), 0) FROM %I',
			string_agg(quote_ident(attname), ', ' ORDER BY attnum), c.relname)
		FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid
		WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
		  AND relname NOT IN ('schema_migrations', 'forgotten_agents') AND (relname, attname) <> ('folders', 'org')
		GROUP BY c.relname`) {
		table, query, _ := strings.Cut(line, " ")
		queries[table] = query
	}
	queries["conversations"] += ` c WHERE EXISTS (SELECT FROM agents a WHERE a.key = c.agent_key)`
	return queries
}

func (e *earlier) run(queries map[string]string) map[string]string {
	e.t.Helper()
	results := map[string]string{}
	for table, query := range queries {
		results[table] = e.query(query)
	}
	return results
}

// rowsHaveTheOrganizationsOfTheirParents checks all references with a constraint, and the columns that are named after
// another table.
func (e *earlier) rowsHaveTheOrganizationsOfTheirParents() {
	e.t.Helper()
	references := texts(e.t, e.url, `
		SELECT format('%s refers to %s by (%s)', conrelid::regclass, confrelid::regclass, string_agg(c.attname, ', '))
			|| ': ' || format('SELECT count(*) FROM %s c JOIN %s p ON %s WHERE c.org <> p.org', conrelid::regclass,
			confrelid::regclass, string_agg(format('c.%I = p.%I', c.attname, p.attname), ' AND '))
		FROM pg_constraint k, unnest(conkey, confkey) AS u (child, parent)
		JOIN pg_attribute c ON true JOIN pg_attribute p ON true
		WHERE contype = 'f' AND c.attrelid = conrelid AND c.attnum = child AND p.attrelid = confrelid
		  AND p.attnum = parent AND c.attname <> 'org' AND confrelid::regclass::text NOT IN ('embedding_spaces', 'blobs')
		  AND conrelid <> 'console_sessions'::regclass -- whose organization is that of the key
		GROUP BY k.oid, conrelid, confrelid
		UNION ALL
		SELECT format('%s names %s by %s: SELECT count(*) FROM %s c JOIN %s p ON p.key = c.%s WHERE c.org <> p.org',
			c.attrelid::regclass, p.relname, attname, c.attrelid::regclass, p.relname, attname)
		FROM pg_attribute c JOIN pg_class p ON p.relname || '_key' = regexp_replace(attname, '_key$', 's_key')
		WHERE p.relnamespace = 'public'::regnamespace AND p.relkind = 'r' AND p.relname <> 'blocks'
		  AND EXISTS (SELECT FROM pg_class WHERE oid = c.attrelid AND relkind = 'r')`)
	if len(references) < 60 {
		e.t.Errorf("there are %d references, want at least 60", len(references))
	}
	for _, r := range references {
		what, query, _ := strings.Cut(r, ": ")
		if n := e.query(query); n != "0" {
			e.t.Errorf("%s: %s rows have different organizations", what, n)
		}
	}
}

// isServed checks that a server shows the default organization's rows, and removes its deleted folders.
func (e *earlier) isServed() {
	e.t.Helper()
	execute(e.t, e.url, `
		INSERT INTO river_job (kind, queue, args, max_attempts, state)
		SELECT 'purge_folder', '`+files.QueueUpkeep+`', json_build_object('org', org, 'folder_key', key), 9, 'available'
		FROM folders WHERE deleted_at IS NOT NULL`)
	p := serve(e.t, "--database-url="+e.url)
	agents := call[[]identified](p, "GET", "/v1/agents/?limit=100", nil)
	if len(agents) != 9 {
		e.t.Fatalf("there are %d agents, want 9", len(agents))
	}
	if n := len(call[[]identified](p, "GET", "/v1/agents/"+agents[0].ID+"/messages?limit=100", nil)); n != 100 {
		e.t.Errorf("the agent has %d messages, want 100", n)
	}
	if n := len(call[[]identified](p, "GET", "/v1/folders/?limit=100", nil)); n != 6 {
		e.t.Errorf("there are %d folders, want 6", n)
	}
	const deleted = `SELECT count(*) FROM folders WHERE deleted_at IS NOT NULL`
	for deadline := time.Now().Add(patience); e.query(deleted) != "0"; {
		if time.Now().After(deadline) || !db.Pause(e.t.Context(), 20*time.Millisecond) {
			e.t.Fatalf("deleted folders are still there:\n%s", p.log)
		}
	}
}
