package dbtest

import "testing"

func TestStatementsThatAClusterRefusesAreFound(t *testing.T) {
	t.Parallel()
	tenants := func(table string) bool { return table == "agents" || table == "events" || table == "blobs" }
	for name, c := range map[string]struct {
		sql     string
		across  bool
		refused bool
	}{
		"a row":                 {`SELECT key FROM agents WHERE org = $1`, false, false},
		"a row and a job":       {`SELECT FROM agents a JOIN river_job j ON true WHERE a.org = $1`, false, true},
		"a row and a key":       {`SELECT FROM agents a JOIN api_keys k USING (org) WHERE a.org = $1`, false, true},
		"a row and its space":   {`SELECT FROM agents a JOIN embedding_spaces s ON true WHERE a.org = $1`, false, false},
		"jobs alone":            {`WITH RECURSIVE j AS (SELECT FROM river_job FOR UPDATE) SELECT FROM j`, true, false},
		"a list of many":        {`SELECT DISTINCT org FROM agents`, true, false},
		"a lock over many":      {`SELECT key FROM agents LIMIT 1 FOR UPDATE SKIP LOCKED`, true, true},
		"a recursion over many": {`WITH RECURSIVE a AS (SELECT org FROM agents) SELECT FROM a`, true, true},
		"a deletion over many":  {`DELETE FROM agents WHERE name = $1`, true, true},
		"a recursion in one":    {`WITH RECURSIVE a AS (SELECT org FROM agents WHERE org = $1) SELECT FROM a`, false, false},
		"a value from a table":  {`INSERT INTO agents (org, key) VALUES ($1, (SELECT max(key) FROM events))`, false, true},
		"values":                {`INSERT INTO agents (org, key) VALUES ($1, now())`, false, false},
		"rows of a table":       {`INSERT INTO agents (org, key) SELECT org, key FROM events WHERE org = $1`, false, false},
		"a subquery that is told": {
			`INSERT INTO agents (org) VALUES ($1) RETURNING key, (SELECT count(*) FROM events WHERE org = $1)`, false, true},
		"a time now and then": {`UPDATE agents SET at = CASE WHEN $2 THEN now() ELSE at END WHERE org = $1`, false, true},
		"a time once":         {`UPDATE agents SET at = coalesce(at, now()) WHERE org = $1`, false, true},
		"the earlier time":    {`UPDATE agents SET at = least(at, now()) WHERE org = $1`, false, false},
		"a time if it is there": {
			`INSERT INTO blobs AS b (org) VALUES ($1) ON CONFLICT (org) DO UPDATE SET at = now()`, false, true},
		"a time that is inserted": {
			`INSERT INTO blobs AS b (org) VALUES ($1) ON CONFLICT (org) DO UPDATE SET at = excluded.at`, false, false},
		"a comment":         {"SELECT key FROM agents -- not FROM river_job\nWHERE org = $1", false, false},
		"the text of a row": {`UPDATE agents SET text = 'FROM river_job' WHERE org = $1`, false, false},
	} {
		if got := refused(c.sql, c.across, tenants); (got != "") != c.refused {
			t.Errorf("%s: refused for %q, want refused %v", name, got, c.refused)
		}
	}
}
