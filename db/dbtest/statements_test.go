package dbtest

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

func TestStatementsThatReadMoreThanOneOrganizationAreFound(t *testing.T) {
	t.Parallel()
	pool := Pool(t)
	for name, c := range map[string]struct {
		sql  string
		want []string
	}{
		"one table":             {`SELECT key FROM agents WHERE org = $1 AND id = $2`, nil},
		"one table, not pinned": {`SELECT key FROM agents WHERE id = $1`, []string{"agents"}},
		"two organizations":     {`SELECT key FROM agents WHERE org = ANY ($1)`, []string{"agents"}},
		"another condition":     {`SELECT key FROM agents WHERE org > $1`, []string{"agents"}},
		"no index of it":        {`SELECT key FROM agents WHERE org = $1::oid`, nil},
		"a join": {
			`SELECT FROM agents a JOIN agent_heads h ON h.org = a.org AND h.agent_id = a.id WHERE a.org = $1`,
			nil},
		"a join without it": {
			`SELECT FROM agents a JOIN agent_heads h ON h.agent_id = a.id WHERE a.org = $1`,
			[]string{"agent_heads"}},
		"a join of nothing": {`SELECT FROM agents a JOIN agent_heads h ON h.org = a.org`, []string{"agent_heads", "agents"}},
		"a subquery": {
			`SELECT FROM agents a WHERE org = $1 AND EXISTS (SELECT FROM events e WHERE e.agent_id = a.id)`,
			[]string{"events"}},
		"a subquery of the row's organization": {
			`SELECT ARRAY(SELECT e.seq FROM events e WHERE e.org = a.org AND e.agent_id = a.id) FROM agents a WHERE org = $1`,
			[]string{"events"}},
		"a change":        {`UPDATE agents SET name = $2 WHERE org = $1`, nil},
		"a change of all": {`UPDATE agents SET name = $1`, []string{"agents"}},
		"a deletion by another": {
			`DELETE FROM events e USING agents a WHERE a.org = $1 AND e.agent_id = a.id`,
			[]string{"events"}},
		"an insertion": {
			`INSERT INTO agents (org, name, agent_type, system) VALUES ($1, $2, '', '')`,
			nil},
		"an insertion of others'": {
			`INSERT INTO events (org, agent_id, seq, type, ref_id, at) SELECT $1, agent_id, seq, '', '', now() FROM agent_heads`,
			[]string{"agent_heads"}},
		"shared tables": {`SELECT FROM organizations o JOIN api_keys k USING (org)`, nil},
	} {
		got, err := unpinned(t.Context(), pool, c.sql)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, %v; want %v", name, got, err, c.want)
		}
	}
}

// A statement of a test is not collected. A statement that the product's code runs through db.All is.
func TestStatementsOfTestsAreNotCollected(t *testing.T) {
	t.Parallel()
	var c collector
	pool, err := db.ConnectWith(t.Context(), SharedURL(t), db.Options{Tracer: &c})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := db.All[string](t.Context(), pool, `SELECT id FROM agents`); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Orgs(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if _, err := db.AgentKey(t.Context(), pool, 1, "agent-none"); err == nil {
		t.Fatal("an agent that does not exist has a key")
	}
	const named = `SELECT FROM agents WHERE id = @id`
	if err := pool.SendBatch(t.Context(), batchOf(named, pgx.NamedArgs{"id": ""})).Close(); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var from []string
	for _, function := range c.from {
		from = append(from, function)
	}
	slices.Sort(from)
	if want := []string{"db.Orgs", "db.setUp"}; !slices.Equal(from, want) { // setUp prepares the connection
		t.Errorf("collected the statements of %v, want those of %v", from, want)
	}
}

func batchOf(sql string, args ...any) *pgx.Batch {
	var b pgx.Batch
	b.Queue(sql, args...)
	return &b
}
