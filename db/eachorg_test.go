package db_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
)

// The query for the organizations fails as it does on a cluster with a node that is away.
func TestWorkForOrganizationsGoesOnWithoutANode(t *testing.T) {
	t.Parallel()
	pool, org := dbtest.Org(t)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), `
		CREATE FUNCTION pg_temp.away() RETURNS integer LANGUAGE plpgsql AS $$
		BEGIN
			RAISE EXCEPTION 'connection to the remote node failed' USING ERRCODE = '08006';
		END $$`); err != nil {
		t.Fatal(err)
	}
	var taken []db.Org
	take := func(o db.Org) error { taken = append(taken, o); return nil }
	if err := db.EachOrg(t.Context(), conn, take, `SELECT pg_temp.away()`); err != nil || !slices.Contains(taken, org) {
		t.Errorf("without a node: took %d organizations, %v", len(taken), err)
	}
	taken = nil
	err = db.EachOrg(t.Context(), conn, take, `SELECT $1::integer`, org)
	if err != nil || !slices.Equal(taken, []db.Org{org}) {
		t.Errorf("took %v, %v; want %d", taken, err, org)
	}
	if err := db.EachOrg(t.Context(), conn, take, `SELECT 1/0`); err == nil {
		t.Error("a faulty query has no error")
	}
}

func TestAKilledCoordinatorIsUnavailable(t *testing.T) {
	t.Parallel()
	for _, e := range []pgconn.PgError{
		{Severity: "ERROR", Code: "XX000", Message: "postmaster was shut down, exiting"},
		{Severity: "ERROR", Code: "08006", Message: "connection to the remote node failed"},
	} {
		if !db.Unavailable(&e) {
			t.Errorf("%s is not unavailable", e.Message)
		}
	}
	if db.Unavailable(&pgconn.PgError{Severity: "ERROR", Code: "XX000", Message: "something else"}) {
		t.Error("each internal error is unavailable")
	}
}

func TestConstraintsHaveOneNameOnEachNode(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"agent_blocks_label_key_102042": "agent_blocks_label_key", "files_name_key": "files_name_key"} {
		if got := db.Constraint(&pgconn.PgError{ConstraintName: name}); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	for message, want := range map[string]string{
		`duplicate key value violates unique constraint "agent_blocks_label_key_102039"`:       "agent_blocks_label_key",
		`update or delete on table "a_102001" violates foreign key constraint "b_fkey" on "b"`: "b_fkey",
		`null value in column "name" of relation "agents" violates not-null constraint`:        "",
	} {
		if got := db.Constraint(&pgconn.PgError{Code: "23505", Message: message}); got != want {
			t.Errorf("%s: got %q, want %q", message, got, want)
		}
	}
	if got := db.Constraint(&pgconn.PgError{Code: "42704", Message: `constraint "c" does not exist`}); got != "" {
		t.Errorf("an error of another kind names %q", got)
	}
}
