package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRankingStatementsAreReadFromALog(t *testing.T) {
	t.Parallel()
	const log = `time=1 level=INFO msg="postgres: execute stmtcache_1: SELECT key FROM agents WHERE id = $1"
time=1 level=INFO msg="postgres: DETAIL:  parameters: $1 = 'agent-1'"
time=1 level=INFO msg="postgres: execute stmtcache_2: "
time=1 level=INFO msg="postgres: \tSELECT key AS id, -(lex <#> $1) AS score FROM chunks"
time=1 level=INFO msg="postgres: \tWHERE org = $2 AND ($3::bigint[] IS NULL OR file_key = ANY ($3)) LIMIT $10"
time=1 level=INFO msg="postgres: DETAIL:  parameters: $1 = '{1:0.5}/16777216', $2 = '1', $3 = NULL, $10 = 'it''s'"
time=1 level=INFO msg="postgres: statement: begin"
time=1 level=INFO msg="postgres: statement: SET LOCAL hnsw.ef_search = 200"
time=1 level=INFO msg=request path="/v1/agents"
time=1 level=INFO msg="postgres: execute stmtcache_3: SELECT chunk_key FROM chunk_vectors"
`
	got, err := ranking(log)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"SELECT key AS id, -(lex <#> '{1:0.5}/16777216') AS score FROM chunks WHERE org = '1' AND (NULL::bigint[] IS NULL OR file_key = ANY (NULL)) LIMIT 'it''s'",
		"BEGIN", "SET LOCAL hnsw.ef_search = 200", "SELECT chunk_key FROM chunk_vectors", "COMMIT",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
