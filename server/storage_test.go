package server_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/server/servertest"
)

func (c *client) exec(sql string) {
	c.t.Helper()
	if _, err := c.pool.Exec(context.Background(), sql); err != nil {
		c.t.Fatalf("%s: %v", sql, err)
	}
}

// What Postgres lacks, as its errors name it, is not the request's fault, and passes.
func TestADatabaseWithoutRoomIs503(t *testing.T) {
	t.Parallel()
	c := newIdleClient(t)
	c.exec(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'could not extend file "base/16384/2619": at 10.1.2.3'
			USING ERRCODE = (SELECT description FROM folders LIMIT 1); END $$`)
	c.made("/v1/folders", `{"name":"f","description":"53100"}`)
	c.exec(`CREATE TRIGGER fail BEFORE INSERT ON blocks FOR EACH ROW EXECUTE FUNCTION fail()`)
	for code, want := range map[string]string{
		"53000": "The server has no room to store anything; try again when its operator has made some",
		"53100": "The server has no room to store anything; try again when its operator has made some",
		"58030": "The server has no room to store anything; try again when its operator has made some",
		"53200": "The database does not answer; try again in a moment",
		"53300": "The database does not answer; try again in a moment",
		"53400": "The database does not answer; try again in a moment",
	} {
		c.exec(`UPDATE folders SET description = '` + code + `'`)
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

func TestAServerThatCannotStoreIsNotReady(t *testing.T) {
	t.Parallel()
	c := newIdleClient(t)
	database := pgx.Identifier{c.pool.Config().ConnConfig.Database}.Sanitize()
	ctx := context.Background()
	operator, err := pgx.ConnectConfig(ctx, c.pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer operator.Close(ctx)
	readOnly := func(value string) {
		set := `ALTER DATABASE ` + database + ` SET default_transaction_read_only = ` + value
		if _, err := operator.Exec(ctx, set); err != nil {
			t.Fatal(err)
		}
		c.pool.Reset()
	}
	readOnly("on")
	for range 2 {
		got := c.call("POST", "/v1/blocks", `{"label":"notes","value":"x"}`)
		if got.Code != 503 || !strings.Contains(got.Text, "no room") {
			t.Errorf("a change: got %d %s, want 503", got.Code, got.Text)
		}
		if got := c.call("GET", "/v1/ready", ""); got.Code != 503 || !strings.Contains(got.Text, "no room") {
			t.Errorf("ready: got %d %s, want 503", got.Code, got.Text)
		}
		if got := c.call("GET", "/v1/blocks", ""); got.Code != 200 {
			t.Errorf("a list: got %d %s, want 200", got.Code, got.Text)
		}
	}
	readOnly("off")
	if got := c.call("GET", "/v1/ready", ""); got.Code != 200 {
		t.Errorf("ready again: got %d %s, want 200", got.Code, got.Text)
	}
}
