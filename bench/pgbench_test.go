package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

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
	got, err := ranking(log, inFiles("agent-1", nil).ranks)
	if err != nil {
		t.Fatal(err)
	}
	want := []sent{
		{"SELECT key AS id, -(lex <#> $1) AS score FROM chunks WHERE org = $2 AND " +
			"($3::bigint[] IS NULL OR file_key = ANY ($3)) LIMIT $10",
			map[string]string{"1": "{1:0.5}/16777216", "2": "1", "10": "it's"}},
		{sql: "BEGIN"}, {sql: "SET LOCAL hnsw.ef_search = 200"}, {sql: "SELECT chunk_key FROM chunk_vectors"},
		{sql: "COMMIT"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(sent{})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	var p pgbench
	script := p.script("v", want[:2])
	if diff := cmp.Diff("SELECT key AS id, -(lex <#> :v_0_1) AS score FROM chunks WHERE org = :v_0_2 AND "+
		"(NULL::bigint[] IS NULL OR "+
		"file_key = ANY (NULL)) LIMIT :v_0_10;\nBEGIN;\n", script); diff != "" {
		t.Errorf("the script: -want +got\n%s", diff)
	}
	if diff := cmp.Diff([]string{"-D", "v_0_1={1:0.5}/16777216", "-D", "v_0_2=1", "-D", "v_0_10=it's"},
		p.variables); diff != "" {
		t.Errorf("its variables: -want +got\n%s", diff)
	}
}

func TestLatenciesAreReadFromTheLogsOfPgbench(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"log.1": "0 1 2000 0 100 500000\n0 2 4000 0 101 0\n",
		"log.2": "1 1 6000 0 102 250000\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readLatencies(dir)
	if err != nil || len(got.seconds) != 3 || got.p50() != 0.004 ||
		got.took.Round(time.Millisecond) != 1752*time.Millisecond {
		t.Errorf("got %+v, %v, want three of 4 ms in the middle, in 1.752 s", got, err)
	}
	if _, err := readLatencies(t.TempDir()); err == nil {
		t.Error("no transaction was measured: got no error")
	}
}
