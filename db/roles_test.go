package db_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
)

// roleName returns the name of a role that does not exist yet. At the end of the test the role is dropped, with its
// rights.
func roleName(t *testing.T, superuser *pgx.Conn) string {
	t.Helper()
	name := fmt.Sprintf("loci_test_%016x", rand.Uint64()) //nolint:gosec // no secret
	t.Cleanup(func() {
		for _, sql := range []string{`REASSIGN OWNED BY ` + name + ` TO CURRENT_USER`, `DROP OWNED BY ` + name,
			`DROP ROLE ` + name} {
			if _, err := superuser.Exec(context.Background(), sql); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
		}
	})
	return name
}

// If the role that serves is missing, it is created once, with its rights. It can then serve without an owner.
func servingRoleIsMade(t *testing.T, owner string) {
	superuser := dial(t, owner)
	urls := db.URLs{Owner: owner, Server: dbtest.As(owner, roleName(t, superuser))}
	for i, want := range []bool{true, false} {
		m, err := db.Migrate(t.Context(), urls)
		if err != nil || m.Created != want || m.Granted > 0 != want {
			t.Errorf("call %d: got %+v, %v; want a new role with its rights: %t", i, m, err, want)
		}
	}
	pool, err := db.Open(t.Context(), db.URLs{Server: urls.Server})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if own, err := db.OpenOwner(t.Context(), db.URLs{Server: urls.Server}, pool); own != nil || err != nil {
		t.Errorf("the role owns the schema, %v", err)
	}
	if err := db.CheckRoom(t.Context(), pool); err != nil {
		t.Errorf("the role cannot check for room: %v", err)
	}
	// a table of a later migration
	if _, err := superuser.Exec(t.Context(), `CREATE TABLE later (key bigserial)`); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `INSERT INTO later DEFAULT VALUES`); err != nil {
		t.Errorf("the role has no rights on a table that was made later: %v", err)
	}
	if _, err := superuser.Exec(t.Context(), `DROP TABLE later`); err != nil {
		t.Fatal(err)
	}
}

// A server checks that it has the rights it needs before it serves.
func missingRightsAreNamed(t *testing.T, owner string) {
	superuser := dial(t, owner)
	role := roleName(t, superuser)
	urls := db.URLs{Owner: owner, Server: dbtest.As(owner, role)}
	if _, err := db.Migrate(t.Context(), urls); err != nil {
		t.Fatal(err)
	}
	if _, err := superuser.Exec(t.Context(), `REVOKE UPDATE ON passages FROM `+role); err != nil {
		t.Fatal(err)
	}
	_, err := db.Open(t.Context(), db.URLs{Server: urls.Server})
	_, final := errors.AsType[*db.SchemaError](err)
	want := "GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE passages TO " + role + "): run 'loci migrate'"
	if !final || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want a *SchemaError with %q", err, want)
	}
	if _, err := db.Migrate(t.Context(), urls); err != nil {
		t.Fatal(err)
	}
	pool, err := db.Open(t.Context(), db.URLs{Server: urls.Server})
	if err != nil {
		t.Fatalf("after the rights were given: %v", err)
	}
	pool.Close()
}

// The URLs of the owner and of the role that serves must name the same database, whether or not that role exists.
func twoDatabasesAreNotMigrated(t *testing.T, first string) {
	second := dbtest.EmptyURL(t)
	for what, server := range map[string]string{
		"the same role": second, "a role that is missing": dbtest.As(second, "nobody_yet"),
		"no such database": strings.Replace(second, "/loci_test_", "/no_loci_test_", 1)} {
		_, err := db.Migrate(t.Context(), db.URLs{Owner: first, Server: server})
		if err == nil || !strings.Contains(err.Error(), "let LOCI_DATABASE_URL and LOCI_DATABASE_OWNER_URL name the same") {
			t.Errorf("%s in another database: got %v", what, err)
		}
	}
	var tables int
	if err := dial(t, first).QueryRow(t.Context(), `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`).
		Scan(&tables); err != nil || tables > 0 {
		t.Errorf("the owner's database has %d tables, %v; want none", tables, err)
	}
}

// If the owner may not create roles, the error has the statement that creates the role.
func ownerMayCreateNoRoles(t *testing.T, url string) {
	superuser := dial(t, url)
	owner := roleName(t, superuser)
	for _, sql := range []string{`CREATE ROLE ` + owner + ` LOGIN PASSWORD '` + owner + `'`, `CREATE EXTENSION vector`,
		`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I OWNER TO ` + owner + `', current_database()); END $$`} {
		if _, err := superuser.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	_, err := db.Migrate(t.Context(), db.URLs{Owner: dbtest.As(url, owner), Server: dbtest.As(url, "nobody_yet")})
	want := "there is no role nobody_yet, and role " + owner + " may not create it: " +
		"let a superuser run CREATE ROLE nobody_yet LOGIN PASSWORD '…' once"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
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

// A database that can store nothing can still be read.
func readOnlyDatabaseIsOpened(t *testing.T, owner string) {
	urls := db.URLs{Server: owner, Owner: owner}
	pool, err := db.Open(t.Context(), urls)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `
		DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`,
	); err != nil {
		t.Fatal(err)
	}
	pool.Close()
	pool, err = db.Open(t.Context(), urls)
	if err != nil {
		t.Fatalf("open the database: %v", err)
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), `SELECT FROM agents`); err != nil {
		t.Error(err)
	}
}
