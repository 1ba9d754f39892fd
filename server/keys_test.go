package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/server"
	"github.com/loci-memory/loci/server/metrics"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/servertest"
	"github.com/loci-memory/loci/tenant/apikey"
)

// wireKey is an API key in the API's form.
type wireKey struct {
	ID, Name, Prefix, Key string
	OrgID                 string   `json:"org_id"`
	Scopes                []string `json:"scopes"`
	AgentIDs              []string `json:"agent_ids"`
	Operator              bool
	ExpiresAt             *time.Time `json:"expires_at"`
	LastUsedAt            *time.Time `json:"last_used_at"`
	RequestsPerMinute     *int       `json:"requests_per_minute"`
	RequestsAtOnce        *int       `json:"requests_at_once"`
}

// withKey returns the same client with another key.
func (c *client) withKey(secret string) *client {
	other := *c
	other.key, other.open = secret, 0
	return &other
}

// scoped returns the same client with a new key of an organization.
func (c *client) scoped(n apikey.NewKey) *client {
	c.t.Helper()
	if n.Name = "test"; n.Org == "" {
		n.Org = c.unique("acme")
	}
	secret, key, err := c.server.Keys.Create(c.t.Context(), n)
	if err != nil {
		c.t.Fatal(err)
	}
	other := c.withKey(secret)
	other.org = key.Org
	return other
}

func (c *client) keys(query string) (list []wireKey) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/admin/keys"+query, "")), &list); err != nil {
		c.t.Fatal(err)
	}
	return list
}

// madeKey creates a key over REST.
func (c *client) madeKey(body string) (key wireKey) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.must("POST", "/v1/admin/keys", body)), &key); err != nil {
		c.t.Fatal(err)
	}
	return key
}

func TestAdminsManageTheKeysOfTheirOrganization(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	admin, other := c.scoped(apikey.NewKey{Scopes: []string{apikey.Admin}}), c.as("other")
	agent := admin.made("/v1/agents", `{"name":"a"}`)
	made := admin.madeKey(fmt.Sprintf(`{"name":"bot","scopes":["tools"],"agent_ids":[%q],
		"expires_at":"2100-01-31T00:00:00Z","requests_per_minute":60,"requests_at_once":4}`, agent))
	if !strings.HasPrefix(made.Key, made.Prefix) || made.AgentIDs[0] != agent || *made.RequestsPerMinute != 60 ||
		*made.RequestsAtOnce != 4 || made.ExpiresAt.Year() != 2100 || made.LastUsedAt != nil {
		t.Errorf("got %+v", made)
	}
	bot := c.withKey(made.Key)
	admin.greet(agent, "default")
	bot.must("GET", "/v1/agents/"+agent+"/prompt", "")
	list := admin.keys("")
	if len(list) != 2 || list[1].ID != made.ID || list[1].Key != "" || list[1].LastUsedAt == nil ||
		len(admin.keys("?limit=1&after="+list[0].ID)) != 1 {
		t.Errorf("got the list %+v, want the two of the organization, the second one used", list)
	}
	shown := admin.must("GET", "/v1/admin/keys/"+made.ID, "")
	if strings.Contains(shown, made.Key) || !strings.Contains(shown, made.ID) {
		t.Errorf("got %s, want the key without its secret", shown)
	}
	if got := c.operator().keys("?org_id=" + list[0].OrgID); len(got) != 2 {
		t.Errorf("the operator sees %+v, want the two of the organization", got)
	}
	admin.must("DELETE", "/v1/admin/keys/"+made.ID, "")
	if got := bot.call("GET", "/v1/agents/"+agent, ""); got.Code != 401 {
		t.Errorf("a revoked key: got %d %s", got.Code, got.Text)
	}
	foreign := c.operator().keys("?limit=1000")
	for _, k := range foreign {
		if k.OrgID == list[0].OrgID {
			continue
		}
		for _, method := range []string{"GET", "DELETE"} {
			if got := admin.call(method, "/v1/admin/keys/"+k.ID, ""); got.Code != 404 {
				t.Errorf("%s of another organization's key: got %d %s", method, got.Code, got.Text)
			}
		}
		if got := admin.call("GET", "/v1/admin/keys?org_id="+k.OrgID, ""); got.Code != 404 {
			t.Errorf("the keys of another organization: got %d %s", got.Code, got.Text)
		}
		body := fmt.Sprintf(`{"name":"x","scopes":["read"],"org_id":%q}`, k.OrgID)
		if got := admin.call("POST", "/v1/admin/keys", body); got.Code != 404 {
			t.Errorf("a key of another organization: got %d %s", got.Code, got.Text)
		}
	}
	if got := other.call("GET", "/v1/agents", ""); got.Code != 200 {
		t.Errorf("the other organization's key: got %d %s", got.Code, got.Text)
	}
}

func TestKeysCannotBeMadeStrongerOverREST(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	end := time.Now().Add(time.Hour)
	admin := c.scoped(apikey.NewKey{Org: apikey.DefaultOrg, Scopes: []string{apikey.Admin}, ExpiresAt: &end,
		RequestsPerMinute: new(1000)})
	for body, want := range map[string]int{
		`{"name":"k","scopes":["read"]}`: 403, // the key would not expire
		`{"name":"k","scopes":["read"],"expires_at":"2030-01-01T00:00:00Z","requests_per_minute":1}`: 403,
		fmt.Sprintf(`{"name":"k","scopes":["read"],"expires_at":%q}`, end.Format(time.RFC3339Nano)):  403,
		// the key would have no limit
		fmt.Sprintf(`{"name":"k","scopes":["admin"],"operator":true,"requests_per_minute":1,"expires_at":%q}`,
			end.Format(time.RFC3339Nano)): 403,
		fmt.Sprintf(`{"name":"k","scopes":["admin"],"requests_per_minute":1000,"expires_at":%q}`,
			end.Add(-time.Minute).Format(time.RFC3339Nano)): 200,
		`{"name":"k","scopes":[]}`: 422, `{"name":"k","scopes":["all"]}`: 422, `{"name":"","scopes":["read"]}`: 422,
		`{"name":"LOCI_API_KEY","scopes":["read"]}`: 422, `{"name":"k","scopes":["tools"]}`: 422,
		`{"name":"k","scopes":["read"],"expires_at":"2020-01-01T00:00:00Z"}`: 422,
	} {
		if got := admin.call("POST", "/v1/admin/keys", body); got.Code != want {
			t.Errorf("%s: got %d %s, want %d", body, got.Code, got.Text, want)
		}
	}
	operator := c.operator()
	for _, k := range operator.keys("") {
		if !k.Operator {
			continue
		}
		if got := admin.call("DELETE", "/v1/admin/keys/"+k.ID, ""); got.Code != 403 {
			t.Errorf("revoke the operator's key: got %d %s", got.Code, got.Text)
		}
	}
}

// A refusal says what is wrong with the key, and that repeating the request is useless.
func TestRefusalsOfKeysSayWhy(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	end := time.Now().Add(time.Hour)
	expired := c.scoped(apikey.NewKey{Scopes: []string{apikey.Read}, ExpiresAt: &end})
	if _, err := c.pool.Exec(t.Context(), `
		UPDATE api_keys SET expires_at = '2026-01-31 18:05:00Z' WHERE org = $1 AND expires_at IS NOT NULL`,
		expired.org); err != nil {
		t.Fatal(err)
	}
	writer := c.scoped(apikey.NewKey{Scopes: []string{apikey.Write}})
	agent, other := writer.made("/v1/agents", `{"name":"a"}`), writer.made("/v1/agents", `{"name":"b"}`)
	read := c.scoped(apikey.NewKey{Scopes: []string{apikey.Read}})
	tools := c.scoped(apikey.NewKey{Scopes: []string{apikey.Tools}, AgentIDs: []string{agent}})
	for _, r := range []struct {
		c                    *client
		method, path         string
		status               int
		code, detail, header string
	}{
		{c.withKey(""), "GET", "/v1/agents", 401, "unauthorized", "has no API key", `Bearer realm="Loci"`},
		{c.withKey("loci_X"), "GET", "/v1/agents", 401, "unauthorized", "does not know the API key",
			`Bearer realm="Loci", error="invalid_token"`},
		{expired, "GET", "/v1/agents", 401, "key_expired", "expired at 2026-01-31T18:05:00Z",
			`Bearer realm="Loci", error="invalid_token"`},
		{read, "POST", "/v1/agents", 403, "insufficient_scope", "lacks the scope write, which POST /v1/agents needs; it " +
			"has read", `Bearer realm="Loci", error="insufficient_scope", scope="write"`},
		{read, "GET", "/v1/agents/" + agent + "/prompt", 403, "insufficient_scope", "lacks the scope tools or write",
			`Bearer realm="Loci", error="insufficient_scope", scope="tools write"`},
		{writer, "GET", "/v1/admin/keys", 403, "insufficient_scope", "lacks the scope admin",
			`Bearer realm="Loci", error="insufficient_scope", scope="admin"`},
		{writer, "POST", "/v1/admin/orgs", 403, "insufficient_scope", "Only the operator",
			`Bearer realm="Loci", error="insufficient_scope", scope="operator"`},
		{tools, "GET", "/v1/agents/" + other + "/prompt", 403, "insufficient_scope", "lacks the scope tools of agent-",
			`Bearer realm="Loci", error="insufficient_scope", scope="tools"`},
	} {
		got := r.c.call(r.method, r.path, "")
		servertest.CheckForm(t, got)
		f := fields(t, got.Text)
		if got.Code != r.status || f["code"] != r.code || !strings.Contains(f["detail"].(string), r.detail) ||
			got.Header().Get("WWW-Authenticate") != r.header || got.Header().Get("X-Should-Retry") != "false" {
			t.Errorf("%s %s: got %d %s with %v, want %d, %s, %q", r.method, r.path, got.Code, got.Text, got.Header(), r.status,
				r.code, r.detail)
		}
	}
}

// A key of an agent reaches things that belong to that agent, also through its conversations and runs, and nothing
// else.
func TestKeysOfAgentsReachTheirAgents(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.work()
	agentTenant := newTenant(c, "acme")
	other := newTenantNamed(c, "acme", "others")
	key := agentTenant.scoped(apikey.NewKey{Scopes: []string{apikey.Tools},
		AgentIDs: []string{agentTenant.has["agent_id"]}})
	unknown := map[string]string{"agent_id": "agent-123e4567-e89b-42d3-8456-426614174000",
		"conversation_id": "conv-123e4567-e89b-42d3-8456-426614174000", "run_id": "run-123e4567-e89b-42d3-8456-426614174000"}
	for _, target := range []string{"agents/agent_id", "agents/agent_id/messages", "agents/agent_id/prompt",
		"conversations/conversation_id", "conversations/conversation_id/messages", "conversations/agent_id/messages",
		"runs/run_id", "runs/run_id/messages", "jobs/run_id"} {
		path := func(has map[string]string) string {
			return "/v1/" + strings.NewReplacer("agent_id", has["agent_id"], "conversation_id", has["conversation_id"],
				"run_id", has["run_id"]).Replace(target)
		}
		if got := key.call("GET", path(agentTenant.has), ""); got.Code != 200 {
			t.Errorf("%s of its agent: got %d %s", target, got.Code, got.Text)
		}
		refused, missing := key.call("GET", path(other.has), ""), key.call("GET", path(unknown), "")
		if refused.Code != 403 || missing.Code != 403 {
			t.Errorf("%s of another agent: got %d %s, of none %d %s", target, refused.Code, refused.Text, missing.Code,
				missing.Text)
		}
	}
	for _, target := range []string{"/v1/agents", "/v1/messages", "/v1/runs", "/v1/folders",
		"/v1/conversations/default?agent_id=" + agentTenant.has["agent_id"]} {
		if got := key.call("GET", target, ""); got.Code != 403 {
			t.Errorf("%s: got %d %s", target, got.Code, got.Text)
		}
	}
	key.must("POST", "/v1/agents/"+agentTenant.has["agent_id"]+"/messages/capture",
		`{"messages":[{"role":"user","content":"Hello."}]}`)
	key.must("POST", "/v1/agents/"+agentTenant.has["agent_id"]+"/tools/conversation_search/run",
		`{"args":{"query":"Hello"}}`)
}

// docs/api.md lists the routes for keys with the scope tools.
func TestRoutesOfAgentsKeysAreDocumented(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	table.WriteString("| route | scopes, of which one suffices |\n| --- | --- |\n")
	for _, r := range server.Routes(&server.Server{Metrics: metrics.New(""), Log: slog.New(slog.DiscardHandler)}) {
		switch r.Access {
		case rest.Tools:
			fmt.Fprintf(&table, "| `%s %s` | `tools`, `write` |\n", r.Method, r.Path)
		case rest.ReadAgent:
			fmt.Fprintf(&table, "| `%s %s` | `tools`, `read` |\n", r.Method, r.Path)
		}
	}
	checkTable(t, "../docs/api.md", "<!-- tools -->\n", table.String())
}

// The server's log contains no keys, at any level.
func TestLogsHaveNoKeys(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	var log bytes.Buffer
	c.own().Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c.Handler = c.server.Handler()
	admin := c.scoped(apikey.NewKey{Scopes: []string{apikey.Admin}})
	made := admin.madeKey(`{"name":"k","scopes":["read"]}`)
	read := c.withKey(made.Key)
	read.must("GET", "/v1/agents", "")
	read.call("POST", "/v1/agents", `{}`)
	read.call("GET", "/v1/agents/"+made.Key, "")
	read.call("GET", "/v1/agents?api_key="+made.Key, "")
	servertest.Send(c, "GET", "/v1/agents/"+made.Key, "")
	admin.must("DELETE", "/v1/admin/keys/"+made.ID, "")
	read.call("GET", "/v1/agents", "")
	for _, secret := range []string{admin.key, made.Key} {
		if strings.Contains(log.String(), secret) || !strings.Contains(log.String(), "path=/v1/agents") {
			t.Errorf("the log has a key, or nothing:\n%s", log.String())
		}
	}
}

func TestCallersAreNamed(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	if got := newOpenClient(t).must("GET", "/v1/caller", ""); !strings.Contains(got, `"org_name":"default"`) ||
		!strings.Contains(got, `"key_id":"","key_name":"","scopes":["admin"],"operator":true`) {
		t.Errorf("without a key: got %s", got)
	}
	got := c.scoped(apikey.NewKey{Org: c.unique("acme"), Scopes: []string{apikey.Read}}).must("GET", "/v1/caller", "")
	if !strings.Contains(got, fmt.Sprintf(`"org_name":%q`, c.unique("acme"))) ||
		!strings.Contains(got, `"key_name":"test","scopes":["read"],"operator":false,"version":"test"`) {
		t.Errorf("with a key of acme: got %s", got)
	}
}
