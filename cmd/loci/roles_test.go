package main

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
)

// migrateAdvice ends the error of a server that may not migrate.
const migrateAdvice = ": stop every server of Loci on this database, then run 'loci migrate' with " +
	"LOCI_DATABASE_OWNER_URL set to the URL of the role that owns the schema\n"

// command runs the program to its end.
func command(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	o, e := newLines(), newLines()
	ctx, cancel := context.WithTimeout(t.Context(), patience) // a server would not end
	defer cancel()
	code = run(ctx, args, o, e)
	return code, o.String(), e.String()
}

// schemaVersion returns the version of a new database's schema.
func schemaVersion(t *testing.T) string {
	t.Helper()
	return texts(t, sharedURL(t), `SELECT version::text FROM schema_migrations`)[0]
}

// ownedDatabase returns the URL of an empty database, with a role that owns it and is not a superuser. A role
// loci_test_guest has no rights on the database.
func ownedDatabase(t *testing.T) string {
	t.Helper()
	url := dbtest.EmptyURL(t)
	execute(t, url, `
		DO $$ BEGIN
			CREATE ROLE loci_test_owner LOGIN PASSWORD 'loci_test_owner';
			CREATE ROLE loci_test_guest LOGIN PASSWORD 'loci_test_guest';
		EXCEPTION WHEN duplicate_object THEN NULL; END $$;
		DO $$ BEGIN EXECUTE format('ALTER DATABASE %I OWNER TO loci_test_owner', current_database()); END $$;
		CREATE EXTENSION vector`)
	return dbtest.As(url, "loci_test_owner")
}

// On a database that `loci migrate` prepared, a server can work with a role that owns nothing and is not a superuser.
func TestAServerOwnsNothing(t *testing.T) {
	t.Parallel()
	version, owner := schemaVersion(t), ownedDatabase(t)
	serving := dbtest.Serving(owner)
	emptyDatabaseIsExplained(t, owner)
	want := "loci: the database has no schema of Loci" + migrateAdvice
	code, _, errs := command(t, "serve", "--addr=127.0.0.1:0", "--database-url="+serving)
	if code != 1 || errs != want {
		t.Fatalf("on an empty database serve ends with %d: %s", code, cmp.Diff(want, errs))
	}
	for _, want := range []string{
		"The schema has version " + version + ", the database had none.\nThe role loci_test_server was given its rights.\n",
		"The schema has version " + version + ", as before.\nThe role loci_test_server has its rights, as before.\n",
	} {
		code, out, errs := command(t, "migrate", "--database-owner-url="+owner, "--database-url="+serving)
		if diff := cmp.Diff(want+"Indexes of vectors that were built: 0.\n", out); code != 0 || diff != "" {
			t.Fatalf("migrate ends with %d: %s%s", code, errs, diff)
		}
	}
	endpoint := listen(t, &http.Server{Handler: http.HandlerFunc(embedAnything), ReadHeaderTimeout: patience})
	p := serveAs(t, "--database-url="+serving, "--embedding-base-url="+endpoint+"/v1", "--embedding-model=m",
		"--log-level=warn")
	p.usesEverything()
	users := texts(t, owner, `SELECT DISTINCT usename::text FROM pg_stat_activity
		WHERE datname = current_database() AND usename IS NOT NULL AND pid <> pg_backend_pid()`)
	if diff := cmp.Diff([]string{"loci_test_server"}, users); diff != "" {
		t.Errorf("the server's connections are of other roles: %s", diff)
	}
	for kind, sql := range map[string]string{
		"things that the role owns": `
			SELECT classid::regclass || ' ' || objid FROM pg_shdepend
			WHERE deptype = 'o' AND refobjid = 'loci_test_server'::regrole
			  AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())`,
		"rights that the role has in the cluster": `
			SELECT rolname FROM pg_roles WHERE rolname = 'loci_test_server'
			AND (rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls)`,
		"roles that the role belongs to": `
			SELECT roleid::regrole::text FROM pg_auth_members WHERE member = 'loci_test_server'::regrole`,
	} {
		if got := texts(t, owner, sql); len(got) > 0 {
			t.Errorf("%s: %q", kind, got)
		}
	}
	if log := p.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "vectors are not indexed by this "+
		"server, because its database role does not own the schema") {
		t.Errorf("the server logs more or less than one advice:\n%s", log)
	}
}

// emptyDatabaseIsExplained checks the errors of commands that change nothing on a database without a schema.
func emptyDatabaseIsExplained(t *testing.T, owner string) {
	t.Helper()
	code, found := examine(t, "--database-url="+owner)
	if f := found["schema"]; code != 1 || f.State != db.Broken || !strings.Contains(f.Remedy, "loci migrate") {
		t.Errorf("the doctor: got %d and %+v", code, f)
	}
	_, found = examine(t, "--database-url="+dbtest.As(owner, "loci_test_guest"))
	if f := found["schema"]; f.State != db.Broken || !strings.Contains(f.Remedy, "GRANT CREATE ON SCHEMA public TO") {
		t.Errorf("the doctor as a role that may make nothing: got %+v", f)
	}
	if code, out, errs := command(t, "migrate", "spread", "--dry-run", "--database-url="+owner); code != 1 ||
		!strings.Contains(errs, "the database has no schema of Loci") {
		t.Errorf("migrate spread ended with %d: %s%s", code, out, errs)
	}
}

// usesEverything uploads, searches, writes, reads and deletes.
func (p *program) usesEverything() {
	p.t.Helper()
	folder := call[identified](p, "POST", "/v1/folders/", map[string]any{"name": "notes"}).ID
	agent := call[identified](p, "POST", "/v1/agents/", map[string]any{"name": "a", "tool_set": "all",
		"folder_ids": []string{folder}}).ID
	tides := fileForm(p.t, "tides.md", []byte("The moon pulls the sea.\n"))
	call[stored](p, "POST", "/v1/folders/"+folder+"/upload", tides)
	p.await(folder)
	call[any](p, "POST", "/v1/agents/"+agent+"/messages/capture", map[string]any{"messages": []map[string]any{
		{"role": "user", "content": "Which body pulls the ocean?"}, {"role": "assistant", "content": "The moon."}}})
	for _, c := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"semantic_search_files", map[string]any{"query": "what pulls the sea"}, "The moon pulls the sea."},
		{"grep_files", map[string]any{"pattern": "moon"}, "The moon pulls the sea."},
		{"archival_memory_insert", map[string]any{"content": "Grace keeps the code."}, ""},
		{"archival_memory_search", map[string]any{"query": "who keeps the code"}, "Grace"},
		{"conversation_search", map[string]any{"query": "ocean"}, "ocean"},
	} {
		if got := p.tool(agent, c.tool, c.args); got.Status != "success" || !strings.Contains(got.Text, c.want) {
			p.t.Errorf("%s: got %+v, want %q", c.tool, got, c.want)
		}
	}
	call[any](p, "GET", "/v1/agents/"+agent+"/prompt", nil)
	for _, path := range []string{"/v1/folders/" + folder, "/v1/agents/" + agent} {
		if status, body := p.send("DELETE", path, nil); status >= 300 {
			p.t.Errorf("DELETE %s: %d %s", path, status, body)
		}
	}
}

// Every command refuses a schema of another version, explains why, and changes nothing.
func anotherSchemaIsRefused(t *testing.T, owner string) {
	version := schemaVersion(t)
	jobs := texts(t, owner, `SELECT version::text FROM river_migration ORDER BY version DESC LIMIT 2`)
	newer := "loci: the database has schema version 9999, and this program knows versions up to " + version +
		": run the Loci that migrated it, or a newer one\n"
	serving := dbtest.Serving(owner)
	for _, c := range []struct{ change, args, want string }{
		{"UPDATE schema_migrations SET version = 20", "serve --database-url=" + serving,
			"loci: the database has schema version 20, and this program needs version " + version + migrateAdvice},
		{"UPDATE schema_migrations SET version = 20", "keys list --database-url=" + serving,
			"loci: the database has schema version 20, and this program needs version " + version + migrateAdvice},
		{"UPDATE schema_migrations SET version = 9999", "serve --database-url=" + serving, newer},
		{"UPDATE schema_migrations SET version = 9999", "serve --database-url=" + owner, newer},
		{"UPDATE schema_migrations SET version = 9999", "keys list --database-url=" + serving, newer},
		{"UPDATE schema_migrations SET version = 9999", "migrate --database-owner-url=" + owner, newer},
		{"UPDATE schema_migrations SET version = " + version + "; DELETE FROM river_migration WHERE version = " +
			jobs[0], "serve --database-url=" + serving, "loci: the schema of the database's job queue has version " + jobs[1] +
			", and this program needs version " + jobs[0] + migrateAdvice},
		{"REVOKE SELECT ON schema_migrations FROM loci_test_server", "serve --database-url=" + serving,
			"loci: this database role has no rights on the tables of Loci (permission denied for table schema_migrations): " +
				"run 'loci migrate' with LOCI_DATABASE_URL set to the URL of this role, and LOCI_DATABASE_OWNER_URL to that of " +
				"the role that owns the schema\n"},
	} {
		execute(t, owner, c.change)
		args := append(strings.Fields(c.args), "--addr=127.0.0.1:0")
		if args[0] != "serve" {
			args = args[:len(args)-1]
		}
		if code, _, errs := command(t, args...); code != 1 || errs != c.want {
			t.Errorf("%s, then %s: ended with %d:\n%s", c.change, c.args, code, cmp.Diff(c.want, errs))
		}
	}
}

// On one Postgres, the command says what makes a cluster of it.
func TestMigrateSpread(t *testing.T) {
	t.Parallel()
	url := "--database-url=" + sharedURL(t)
	for args, want := range map[string]string{
		"--dry-run " + url:  "run CREATE EXTENSION citus in this database",
		"--shards=0 " + url: "--shards=0 must be at least 1",
	} {
		code, out, errs := command(t, append([]string{"migrate", "spread"}, strings.Fields(args)...)...)
		if code == 0 || !strings.Contains(out+errs, want) {
			t.Errorf("migrate spread %s ended with %d and %q, want %q", args, code, out+errs, want)
		}
	}
}
