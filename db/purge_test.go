package db_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
)

// large creates an organization with 30 agents of 100 events each, and jobs, and marks it as deleted.
func large(t *testing.T, pool *pgxpool.Pool) db.Org {
	t.Helper()
	org, err := db.One[db.Org](t.Context(), pool, `
		INSERT INTO organizations (name, deleted_at) VALUES ('large', now()) RETURNING org`)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, pool, org, 30, 100)
	if _, err := pool.Exec(t.Context(), `
		INSERT INTO river_job (kind, queue, state, args, max_attempts)
		SELECT 'k', 'q', 'available', jsonb_build_object('org', $1::integer), 5
		FROM generate_series(1, 1500)`, org); err != nil {
		t.Fatal(err)
	}
	return org
}

func fill(t *testing.T, pool *pgxpool.Pool, org db.Org, agents, events int) {
	t.Helper()
	for _, sql := range []string{
		`INSERT INTO agents (org, name, agent_type, system)
		SELECT $1, 'a' || n, 'letta_v1_agent', '' FROM generate_series(1, $2::integer) n WHERE $3 > 0`,
		`INSERT INTO agent_heads (agent_id, org, seq) SELECT id, org, $3::integer FROM agents WHERE org = $1 AND $2 > 0`,
		`INSERT INTO events (agent_id, seq, org, type, ref_id, at)
		SELECT id, n, org, 'message', '', now() FROM agents, generate_series(1, $3::integer) n WHERE org = $1 AND $2 > 0`,
	} {
		if _, err := pool.Exec(t.Context(), sql, org, agents, events); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

func count(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) int {
	t.Helper()
	n, err := db.One[int](t.Context(), pool, sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// served returns a pool on a database for the role that serves.
func served(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	urls := db.URLs{Owner: url, Server: dbtest.Serving(url)}
	if _, err := db.Migrate(t.Context(), urls); err != nil {
		t.Fatal(err)
	}
	pool, err := db.Connect(t.Context(), urls.Server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// A purge is tested on a database that no other test uses, because these tests lock the rows of all other
// organizations, and record deletions with triggers.
func organizationsArePurged(t *testing.T, url string) {
	pool := served(t, url)
	for _, c := range []struct {
		name string
		run  func(t *testing.T, pool *pgxpool.Pool)
	}{
		{"it waits for nobody", purgeWaitsForNobody},
		{"it waits for running jobs", purgeWaitsForRunningJobs},
		{"it deletes what is being stored", purgeDeletesWhatIsBeingStored},
		{"it deletes in small transactions", purgeDeletesInSmallTransactions},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, pool) })
	}
}

// No transaction of a purge deletes more than 1,000 rows, including rows that references delete, even if others lock
// rows, and whatever plan Postgres chooses. A later run continues after an interruption, and finally deletes the
// organization's own row.
func purgeDeletesInSmallTransactions(t *testing.T, pool *pgxpool.Pool) {
	owner := dbtest.Owner(t, pool)
	org := large(t, pool)
	for _, sql := range []string{
		`CREATE TABLE seen (tx bigint, rows integer)`,
		`CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN INSERT INTO seen SELECT txid_current(), count(*) FROM gone; RETURN NULL; END $$`,
		`CREATE TRIGGER note AFTER DELETE ON events REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION note()`,
		`CREATE TRIGGER note AFTER DELETE ON agents REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION note()`,
		`CREATE TRIGGER note AFTER DELETE ON agent_heads
		REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION note()`,
		`CREATE TRIGGER note AFTER DELETE ON river_job
		REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION note()`,
	} {
		if _, err := owner.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	pool = withoutMemory(t, pool)
	killed, kill := context.WithCancel(t.Context())
	batches := 0
	purge := db.Purge{DB: pool, Org: org, Progress: func(string, int) {
		if batches++; batches == 5 {
			kill()
		}
	}}
	if done, err := purge.Run(killed); done || err == nil {
		t.Errorf("a purge that was broken off: got %v, %v", done, err)
	}
	rows := count(t, pool, `SELECT count(*) FROM events WHERE org = $1`, org)
	if rows == 0 {
		t.Fatal("the purge was not broken off")
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT FROM events WHERE org = $1 FOR UPDATE`, org); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		purge := db.Purge{DB: pool, Org: org}
		done, err := purge.Run(t.Context())
		if err == nil && !done {
			err = errors.New("something is left")
		}
		ended <- err
	}()
	dbtest.AwaitWaiters(t, pool, tx.Conn(), 1, func() bool { return len(ended) > 0 })
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the purge after it: %v", err)
	}
	if n := count(t, pool, `SELECT max(sum)::integer FROM (SELECT sum(rows) FROM seen GROUP BY tx) s`); n > 1000 {
		t.Errorf("a transaction deleted %d rows, want at most 1000", n)
	}
	if n := count(t, pool, `SELECT sum(rows)::integer FROM seen`); n != 30+30+30*100+1500 {
		t.Errorf("%d rows are deleted, want all", n)
	}
	if n := count(t, pool, `SELECT count(*) FROM organizations WHERE org = $1`, org); n != 0 {
		t.Error("the organization is left")
	}
}

// withoutMemory returns a pool with plans that repeat a subquery wherever possible, instead of keeping its rows.
func withoutMemory(t *testing.T, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	config := pool.Config()
	for _, way := range []string{"hashjoin", "mergejoin", "hashagg", "sort", "material", "memoize"} {
		config.ConnConfig.RuntimeParams["enable_"+way] = "off"
	}
	again, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Close)
	return again
}

// A purge deletes everything it has to while other organizations, their rows and the embedding spaces are locked.
func purgeWaitsForNobody(t *testing.T, pool *pgxpool.Pool) {
	org := large(t, pool)
	fill(t, pool, 1, 2, 10)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context())) //nolint:errcheck // nothing is to be stored
	for _, sql := range []string{
		`SELECT FROM organizations WHERE deleted_at IS NULL FOR UPDATE`, `SELECT FROM embedding_spaces FOR UPDATE`,
		`UPDATE agent_heads SET seq = seq + 1 WHERE org = 1`, `UPDATE events SET ref_id = 'x' WHERE org = 1`,
		`LOCK TABLE events, agents, agent_heads, organizations, river_job IN ROW EXCLUSIVE MODE`,
	} {
		if _, err := tx.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	impatient, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_, _ = impatient.Exec(context.WithoutCancel(t.Context()), `RESET lock_timeout`)
		impatient.Release()
	}()
	if _, err := impatient.Exec(t.Context(), `SET lock_timeout = '1ms'`); err != nil {
		t.Fatal(err)
	}
	purge := db.Purge{DB: impatient.Conn(), Org: org}
	if done, err := purge.Run(t.Context()); !done || err != nil {
		t.Errorf("got %v, %v; want all of it deleted", done, err)
	}
	if n := count(t, pool, `SELECT count(*) FROM events WHERE org = 1`); n != 20 {
		t.Errorf("the other organization has %d events, want its 20", n)
	}
}

// An organization stays while one of its jobs runs, because the job may store rows.
func purgeWaitsForRunningJobs(t *testing.T, pool *pgxpool.Pool) {
	org := large(t, pool)
	if _, err := pool.Exec(t.Context(), `
		UPDATE river_job SET state = 'running'
		WHERE id = (SELECT min(id) FROM river_job WHERE args @> jsonb_build_object('org', $1::integer))`, org); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{false, false} {
		purge := db.Purge{DB: pool, Org: org}
		if done, err := purge.Run(t.Context()); done != want || err != nil {
			t.Errorf("while a job runs: got %v, %v", done, err)
		}
	}
	fill(t, pool, org, 1, 5)
	if _, err := pool.Exec(t.Context(), `UPDATE river_job SET state = 'completed', finalized_at = now()`); err != nil {
		t.Fatal(err)
	}
	purge := db.Purge{DB: pool, Org: org}
	if done, err := purge.Run(t.Context()); !done || err != nil {
		t.Errorf("when the job has ended: got %v, %v", done, err)
	}
	if n := count(t, pool, `SELECT count(*) FROM agents WHERE org = $1`, org); n != 0 {
		t.Errorf("%d agents are left", n)
	}
}

// Every row with an organization refers to the organization, directly or through other rows, so that no row can be
// stored after the organization is gone.
func TestRowsReferToTheirOrganization(t *testing.T) {
	t.Parallel()
	pool, _ := dbtest.Org(t)
	loose, err := db.All[string](t.Context(), pool, `
		WITH RECURSIVE tied AS (
			SELECT 'organizations'::regclass::oid AS id
			UNION SELECT c.conrelid FROM pg_constraint c JOIN tied ON c.confrelid = tied.id WHERE c.contype = 'f'
		)
		SELECT t.relname::text FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = 'org'
		WHERE t.relkind = 'r' AND t.relnamespace = current_schema()::regnamespace AND t.oid NOT IN (SELECT id FROM tied)
		ORDER BY t.relname`)
	if err != nil || len(loose) > 0 {
		t.Errorf("got %v, %v; want no table", loose, err)
	}
}

// Rows that are being stored during a purge are deleted, too: the purge waits for a transaction that holds a row.
func purgeDeletesWhatIsBeingStored(t *testing.T, pool *pgxpool.Pool) {
	org := large(t, pool)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var agent string
	if err := tx.QueryRow(t.Context(), `
		UPDATE agent_heads SET seq = 101 WHERE agent_id = (SELECT min(id) FROM agents WHERE org = $1)
		RETURNING agent_id`, org).Scan(&agent); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `
		INSERT INTO events (agent_id, seq, org, type, ref_id, at) VALUES ($1, 101, $2, 'message', '', now())`,
		agent, org); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		purge := db.Purge{DB: pool, Org: org}
		done, err := purge.Run(t.Context())
		if err == nil && !done {
			t.Error("something is left")
		}
		ended <- err
	}()
	for count(t, pool, `
		SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0 {
		runtime.Gosched()
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if n := count(t, pool, `SELECT count(*) FROM events WHERE org = $1`, org); n != 0 {
		t.Errorf("%d events are left", n)
	}
}
