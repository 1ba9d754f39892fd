package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
)

// earlier is a database with the last schema before the baseline. It has a trap, which is a lock that the test holds:
// the migrating session waits for the lock after one of the statements that change the schema.
type earlier struct {
	t    *testing.T
	url  string
	conn *pgx.Conn
}

// A migration is stopped after randomly chosen statements, in each way: its session ends, its program is killed, or
// both. Each time, nothing is changed, and the next migration begins again. LOCI_CHAOS_SEED repeats a run.
func TestAMigrationThatIsStoppedResumes(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	seed := chaosSeed(t)
	t.Logf("LOCI_CHAOS_SEED=%d", seed)
	dice := rand.New(rand.NewPCG(uint64(seed), 2)) //nolint:gosec // repeatable
	e := newEarlier(t)
	sums := e.sumQueries()
	before, schema := e.run(sums), schemaOf(t, e.url)
	e.setTrap()
	for round := range scale.Of(2, 12) {
		e.stopAt(1+dice.IntN(conversionStatements), round%2 == 0)
		if diff := cmp.Diff(schema, schemaOf(t, e.url)); diff != "" {
			t.Fatalf("the schema after a migration that was stopped (-before +now):\n%s", diff)
		}
	}
	e.outlive(1 + dice.IntN(conversionStatements))
	if diff := cmp.Diff(schemaOf(t, sharedURL(t)), schemaOf(t, e.url)); diff != "" {
		t.Errorf("the schema is not that of a new database (-new +upgraded):\n%s", diff)
	}
	if diff := cmp.Diff(before, e.run(sums)); diff != "" {
		t.Errorf("rows differ from before (-before +now):\n%s", diff)
	}
}

// conversionStatements is how many statements of a conversion change the schema, at least.
const conversionStatements = 100

// newEarlier returns a database with the last schema before the baseline, filled by a program of that version.
func newEarlier(t *testing.T) *earlier {
	t.Helper()
	e := &earlier{t: t, url: dbtest.EmptyURL(t)}
	restore(t, e.url, "testdata/upgrade/schema-0087.sql.gz")
	var err error
	if e.conn, err = pgx.Connect(t.Context(), e.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.conn.Close(context.WithoutCancel(t.Context())) })
	return e
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

// sumQueries returns, by table, a query for the number and a checksum of the rows, over the columns that stay.
func (e *earlier) sumQueries() map[string]string {
	e.t.Helper()
	queries := map[string]string{}
	for _, line := range texts(e.t, e.url, `
		SELECT c.relname || ' ' || format(
			'SELECT count(*) || '' '' || coalesce(sum(hashtextextended(ROW(%s)::text, 0)), 0) FROM %I',
			string_agg(quote_ident(attname), ', ' ORDER BY attnum), c.relname)
		FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid
		WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
		  AND relname <> 'schema_migrations' AND (relname, attname) <> ('organizations', 'quotas')
		GROUP BY c.relname`) {
		table, query, _ := strings.Cut(line, " ")
		queries[table] = query
	}
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
