package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/db/local"
)

// These tests share one private Postgres, because creating it takes longer than all of them.
func TestAPrivatePostgres(t *testing.T) {
	home := newHome(t)
	for _, c := range []struct {
		name string
		run  func(t *testing.T, home string)
	}{
		{"memory is served on stdio from an empty directory", func(t *testing.T, home string) {
			remembersTea(t, mcpCmd{Home: home, remote: remote{APIKey: keyInEnvironment}}, "Stored 1 of 1 turns.")
		}},
		{"the memory is there the next time", func(t *testing.T, home string) { // and the server has not stored the key
			remembersTea(t, mcpCmd{Home: home}, "Stored 0 of 1 turns.")
		}},
		{"a server owns nothing", aServerOwnsNothingOfAPrivatePostgres},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, home) })
	}
}

const keyInEnvironment = "loci_of-the-environment"

// remembersTea runs a server with a directory, lets a client write to its memory, and ends both.
func remembersTea(t *testing.T, c mcpCmd, want string) {
	t.Setenv("LOCI_API_KEY", keyInEnvironment)
	session, ended := stdio(t, c)
	if got := rememberTea(t, session); !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "core_memory_append",
		Arguments: json.RawMessage(`{"label":"human","content":"Likes tea."}`)}); err != nil || got.IsError {
		t.Errorf("core_memory_append: %+v, %v", got, err)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the program ended with %v", err)
	}
}

// A private Postgres of an older version has no role for serving. The server creates the role, and owns nothing. If
// Postgres is killed, it is started again.
func aServerOwnsNothingOfAPrivatePostgres(t *testing.T, home string) {
	dropServingRole(t, home)
	p := serve(t, "--home="+home)
	p.usesEverything()
	owner, _, ok := local.Running(home)
	if !ok {
		t.Fatal("no private Postgres runs")
	}
	users := texts(t, owner, `SELECT DISTINCT usename::text FROM pg_stat_activity a JOIN pg_roles ON rolname = usename
		WHERE datname = 'loci' AND pid <> pg_backend_pid() AND NOT rolsuper
		  AND NOT EXISTS (SELECT FROM pg_shdepend WHERE deptype = 'o' AND refobjid = usesysid)`)
	if diff := cmp.Diff([]string{"loci_server"}, users); diff != "" {
		t.Errorf("the roles of the server's connections (-want +got): %s", diff)
	}
	for _, args := range []string{"keys list", "migrate"} {
		if code, _, errs := command(t, append(strings.Fields(args), "--home="+home)...); code != 0 {
			t.Errorf("%s while the server runs: %d, %s", args, code, errs)
		}
	}
	p.outlivesItsPostgres(home)
}

// dropServingRole drops the role for serving from the private Postgres of a directory.
func dropServingRole(t *testing.T, home string) {
	t.Helper()
	pg, err := local.Start(t.Context(), local.Options{Home: home, Bin: os.Getenv("LOCI_POSTGRES_BIN")})
	if err != nil {
		t.Fatal(err)
	}
	execute(t, pg.URL(), `DROP OWNED BY loci_server; DROP ROLE loci_server`)
	if err := pg.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// outlivesItsPostgres kills a server's private Postgres. The server starts it again, and goes on.
func (p *program) outlivesItsPostgres(home string) {
	p.t.Helper()
	folder := call[identified](p, "POST", "/v1/folders/", map[string]any{"name": "f"}).ID
	for round := range scale.Of(1, 2) {
		p.uploads(folder, fmt.Sprint(round), 5)
		killed := postmaster(p.t, home)
		send(p.t, syscall.SIGKILL, killed)
		for postmaster(p.t, home) == killed { // the killed one's file may still be there for a moment
			if !db.Pause(p.t.Context(), 20*time.Millisecond) {
				p.t.Fatal("no other Postgres is started")
			}
		}
		p.recovers(folder)
		p.completed(folder, 5*(round+1))
	}
}
