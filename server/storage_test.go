package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/server/servertest"
)

// exec runs a statement. If other tests have rows in its tables, the statement must name the client's organization.
func (c *client) exec(sql string, args ...any) {
	c.t.Helper()
	if _, err := c.pool.Exec(context.Background(), sql, args...); err != nil {
		c.t.Fatalf("%s: %v", sql, err)
	}
}

// If Postgres lacks space or another resource, as its error says, the request is not at fault, and can be repeated
// later.
func TestADatabaseWithoutRoomIs503(t *testing.T) {
	t.Parallel()
	c := newElsewhereServerClient(t)
	c.made("/v1/folders", `{"name":"f","description":"53100"}`)
	c.trigger(`BEFORE INSERT ON blocks`, fmt.Sprintf(`
		RAISE EXCEPTION 'could not extend file "base/16384/2619": at 10.1.2.3'
		USING ERRCODE = (SELECT description FROM folders WHERE org = %d)`, c.org))
	for code, want := range map[string]string{
		"53000": "The server has no room to store anything; try again when its operator has made some",
		"53100": "The server has no room to store anything; try again when its operator has made some",
		"58030": "The server has no room to store anything; try again when its operator has made some",
		"53200": "The database does not answer; try again in a moment",
		"53300": "The database takes no more connections, because other sessions have them all; try again in a moment",
		"55P03": "Another session of the database holds a lock that this needs; try again in a moment",
		"53400": "The database does not answer; try again in a moment",
		"42P01": "The database lacks a part of Loci's schema, because that is being rebuilt, as from a backup, or is not " +
			"this version's; try again in a moment",
	} {
		c.exec(`UPDATE folders SET description = $2 WHERE org = $1`, c.org, code)
		got := c.call("POST", "/v1/blocks", `{"label":"notes","value":"x"}`)
		servertest.CheckProblem(t, got, 503, map[string]any{"detail": want})
		if got.Header().Get("Retry-After") == "" {
			t.Errorf("%s: got no Retry-After", code)
		}
	}
	if got := c.call("GET", "/v1/ready", ""); got.Code != 200 {
		t.Errorf("with room again: got %d %s, want 200", got.Code, got.Text)
	}
}

// newReadOnlyClient returns a client of its own server, and a function that makes the server's database connections
// read-only, or writable again.
func newReadOnlyClient(t *testing.T) (c *client, readOnly func(on bool)) {
	t.Helper()
	var on atomic.Bool
	config := dbtest.Pool(t).Config()
	config.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) {
		_, err := conn.Exec(ctx, fmt.Sprintf(`SET default_transaction_read_only = %t`, on.Load()))
		return err == nil, err
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return serverClientOn(t, pool, dbtest.NewOrg(t, pool)), on.Store
}

// While nothing can be stored, every operation and tool that only reads answers as before. Rows that reading would
// store are left out.
func TestReadingNeedsNoRoom(t *testing.T) {
	t.Parallel()
	c, readOnly := newReadOnlyClient(t)
	c.work()
	reader := newTenant(c, "reads")
	reader.uploaded(reader.has["folder_id"], "later.txt", "of no use")
	agent := "/v1/agents/" + reader.has["agent_id"]
	total, _ := fields(t, reader.must("GET", agent+"/prompt", ""))["tokens"].(map[string]any)["total"].(float64)
	reader.must("PATCH", agent, fmt.Sprintf(`{"context_window_limit":%d}`, int(total/0.85))) // so that a warning is due
	calls := [][3]string{{"POST", "/v1/passages/search", `{"query":"secret"}`},
		{"POST", "/v1/messages/search", `{"query":"secret"}`}, {"POST", "/v1/agents/messages/search", `{"query":"secret"}`},
		{"POST", agent + "/tools/grep_files/run", `{"args":{"pattern":"secret"}}`},
		{"POST", agent + "/tools/semantic_search_files/run", `{"args":{"query":"secret"}}`},
		{"POST", agent + "/tools/conversation_search/run", `{"args":{"query":"secret"}}`},
		{"POST", agent + "/tools/archival_memory_search/run", `{"args":{"query":"secret"}}`}}
	for _, o := range reader.operations() {
		if o.Method == "GET" && !strings.HasSuffix(o.Path, "/stream") && o.Path != "/v1/ready" {
			calls = append(calls, [3]string{"GET", pathParams.ReplaceAllStringFunc(o.Path,
				func(p string) string { return reader.has[strings.Trim(p, "{}")] })})
		}
	}
	readOnly(true)
	failed := map[[3]string]int{}
	for _, call := range calls {
		if got := reader.call(call[0], call[1], call[2]); got.Code >= 400 {
			failed[call] = got.Code
		}
	}
	readOnly(false)
	for call, code := range failed {
		if got := reader.call(call[0], call[1], call[2]); got.Code != code {
			t.Errorf("%s: got %d, and with room %d", call, code, got.Code)
		}
	}
}

func TestAServerThatCannotStoreIsNotReady(t *testing.T) {
	t.Parallel()
	c, readOnly := newReadOnlyClient(t)
	readOnly(true)
	if got := c.call("GET", "/v1/ready", ""); got.Code != 503 || !strings.Contains(got.Text, "read-only") {
		t.Errorf("ready before a change: got %d %s, want 503", got.Code, got.Text)
	}
	for range 2 {
		got := c.call("POST", "/v1/blocks", `{"label":"notes","value":"x"}`)
		if got.Code != 503 || !strings.Contains(got.Text, "read-only") {
			t.Errorf("a change: got %d %s, want 503", got.Code, got.Text)
		}
		if got := c.call("GET", "/v1/ready", ""); got.Code != 503 || !strings.Contains(got.Text, "read-only") {
			t.Errorf("ready: got %d %s, want 503", got.Code, got.Text)
		}
		if got := c.call("GET", "/v1/blocks", ""); got.Code != 200 {
			t.Errorf("a list: got %d %s, want 200", got.Code, got.Text)
		}
	}
	readOnly(false)
	if got := c.call("GET", "/v1/ready", ""); got.Code != 200 {
		t.Errorf("ready again: got %d %s, want 200", got.Code, got.Text)
	}
}

// If a request fails because a part of the schema is missing, all requests are refused until the schema is complete.
// Otherwise they could write into a backup that is being restored, or find things missing.
func TestNothingIsServedOfASchemaThatIsRebuilt(t *testing.T) {
	t.Parallel()
	c := newElsewhereServerClient(t)
	var lacks atomic.Bool
	probe := c.server.Probe
	c.own().Probe = func(ctx context.Context) (time.Duration, error) {
		if lacks.Load() {
			return 0, &pgconn.PgError{Severity: "ERROR", Code: "42P01"}
		}
		return probe(ctx)
	}
	agent := c.made("/v1/agents", `{"name":"a"}`)
	c.trigger(`BEFORE INSERT ON blocks`, `RAISE EXCEPTION 'no relation' USING ERRCODE = '42P01'`)
	get := func() servertest.Reply { return c.call("GET", "/v1/agents/"+agent, "") }
	if got := c.call("POST", "/v1/blocks", `{"label":"notes","value":"x"}`); got.Code != 503 {
		t.Errorf("a wrong statement: got %d %s", got.Code, got.Text)
	}
	if got := get(); got.Code != 200 {
		t.Errorf("with a whole schema: got %d %s", got.Code, got.Text)
	}
	lacks.Store(true)
	c.call("POST", "/v1/blocks", `{"label":"notes","value":"x"}`)
	for _, path := range []string{"/v1/agents/" + agent, "/v1/agents/agent-00000000-0000-4000-8000-000000000000",
		"/v1/ready"} {
		if got := c.call("GET", path, ""); got.Code != 503 || !strings.Contains(got.Text, "being rebuilt") ||
			got.Header().Get("Retry-After") == "" {
			t.Errorf("%s: got %d %s, want 503", path, got.Code, got.Text)
		}
	}
	if got := c.call("GET", "/v1/health", ""); got.Code != 200 {
		t.Errorf("health: got %d %s", got.Code, got.Text)
	}
	lacks.Store(false)
	if got := get(); got.Code != 200 {
		t.Errorf("with a whole schema again: got %d %s", got.Code, got.Text)
	}
}
