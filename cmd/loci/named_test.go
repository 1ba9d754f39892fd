package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/tenant/apikey"
)

// oddName is an agent's name with characters that are special in shells, URLs and command lines.
const oddName = `-Ünï/../ k%20&name=x "q"`

// newAgent creates an agent with folders, and returns its ID.
func (p *program) newAgent(name string, folders ...string) string {
	p.t.Helper()
	return call[identified](p, "POST", "/v1/agents/", map[string]any{"name": name, "source_ids": folders}).ID
}

// Each command that is about an agent accepts the agent's name.
func TestCommandsTakeTheNameOfAnAgent(t *testing.T) {
	t.Parallel()
	p, dir := tenant(t), t.TempDir()
	session := filepath.Join(dir, "session.jsonl")
	if err := os.WriteFile(session, []byte(`{"role":"user","content":"Where is it set?"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := call[identified](p, "POST", "/v1/folders/", map[string]any{"name": "f"}).ID
	for i, name := range []string{"reader", oddName, "source-123e4567-e89b-42d3-8456-426614174000", "--json", "-5"} {
		id := p.newAgent(name, folder)
		p.newAgent("not the " + name)
		file := filepath.Join(dir, fmt.Sprintf("%d.af", i))
		for _, row := range []struct {
			want string
			args []string
		}{
			{`"sessions": [`, append(p.asking("stats", "--json"), "--", name)},
			{`"sessions": [`, p.asking("stats", "--json", id)},
			{`"agent_id": "` + id, append(p.asking("agents", "export", "--json"), "--", name, file)},
			{`"agents"`, append(p.asking("export"), "--", name)},
			{"Nothing was found", p.asking("search", "heron", "--agent="+name)},
			{"No files", append(p.asking("grep"), "--", name, "heron")},
			{`"agent_id": "` + id, p.asking("import", "sessions", "--json", session, "--agent="+name)},
		} {
			if code, out, errs := command(t, row.args...); code != 0 || !strings.Contains(out, row.want) {
				t.Errorf("loci %q: ended with %d, want %s: %.300s%s", row.args, code, row.want, out, errs)
			}
		}
		session, ended := stdio(t, mcpCmd{remote: p.remote(), Agent: name})
		if err := errors.Join(session.Close(), <-ended); err != nil {
			t.Errorf("loci mcp --agent=%q: %v", name, err)
		}
	}
}

// If no agent or several agents have a name, the command fails, and does nothing.
func TestANameOfSeveralAgentsIsRefusedWithTheirIDs(t *testing.T) {
	t.Parallel()
	p, file := tenant(t), filepath.Join(t.TempDir(), "a.af")
	first, second := p.newAgent("twin"), p.newAgent("twin")
	for range maxNamesakes + 2 {
		p.newAgent("many")
	}
	hidden := call[identified](p, "POST", "/v1/agents/", map[string]any{"name": "unseen", "hidden": true}).ID
	shown := p.newAgent("half")
	call[identified](p, "POST", "/v1/agents/", map[string]any{"name": "half", "hidden": true})
	for _, row := range []struct {
		name, want string
	}{
		{"twin", `2 agents have the name "twin": give the ID of one, ` + first + ", " + second},
		{"many", `more than 10 agents have the name "many": give the ID of one, such as agent-`},
		{"nobody", `there is no agent "nobody": 'loci agents list' shows them`},
		{"Twin", `there is no agent "Twin"`},
		{"agent-123e4567-e89b-42d3-8456-426614174000", "not found (status 404)"},
	} {
		code, out, errs := command(t, p.asking("agents", "export", row.name, file)...)
		if code != 1 || out != "" || !strings.Contains(errs, row.want) {
			t.Errorf("%s: ended with %d, want %q: %s%s", row.name, code, row.want, out, errs)
		}
	}
	if left, _ := filepath.Glob(filepath.Dir(file) + "/*"); len(left) > 0 {
		t.Errorf("something was written: %q", left)
	}
	for name, want := range map[string]string{"unseen": hidden, "half": shown} {
		if id, err := p.remote().agentID(t.Context(), name); id != want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", name, id, err, want)
		}
	}
	pool, org := dbtest.Org(t)
	reader := remote{Addr: p.base}
	secretOf, _ := keyOf(t, pool, apikey.NewKey{In: org, Name: "admin", Scopes: []string{apikey.Write}})
	reader.APIKey = secret(secretOf)
	if _, err := reader.agentID(t.Context(), "twin"); err == nil || !strings.Contains(err.Error(), "there is no agent") {
		t.Errorf("another organization finds the agent: %v", err)
	}
}

// A key for one agent may not list agents. Its holder is told to give an ID.
func TestAKeyThatMayNotListAgentsNeedsAnID(t *testing.T) {
	t.Parallel()
	p := tenant(t)
	id := p.newAgent("mine")
	code, key, errs := command(t, p.asking("keys", "create", "--scope=tools", "--agent=mine")...)
	if code != 0 {
		t.Fatal(errs)
	}
	flags := []string{"--addr=" + p.base, "--api-key=" + strings.TrimSpace(key)}
	if code, _, errs := command(t, append([]string{"stats", "mine"}, flags...)...); code != 1 ||
		!strings.Contains(errs, "Give its ID") {
		t.Errorf("by name: ended with %d: %s", code, errs)
	}
	if code, _, errs := command(t, append([]string{"stats", id}, flags...)...); code != 0 {
		t.Errorf("by ID: ended with %d: %s", code, errs)
	}
}

// A memory tree can also be named by name. A name of both an agent and a tree is refused.
func TestMemoryCompressTakesNames(t *testing.T) {
	t.Parallel()
	p := tenant(t)
	tree := call[identified](p, "POST", "/v1/memory-trees", map[string]any{"name": "team"}).ID
	agent := p.newAgent("reader")
	for name, want := range map[string]string{"team": tree, tree: tree, "reader": agent, agent: agent} {
		if id, err := p.remote().agentOrTreeID(t.Context(), name); id != want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", name, id, err, want)
		}
	}
	both := p.newAgent("team")
	_, err := p.remote().agentOrTreeID(t.Context(), "team")
	if want := "2 agents or memory trees have the name \"team\": give the ID of one, " + both + ", " + tree; err == nil ||
		err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := p.remote().agentOrTreeID(t.Context(), "none"); err == nil {
		t.Error("a name that nothing has is found")
	}
}

// Keys can name agents, and can be revoked, by name, in the database and over REST.
func TestKeysAreMadeAndRevokedByNames(t *testing.T) {
	t.Parallel()
	p := tenant(t)
	agent := p.newAgent("bot")
	org := call[struct {
		ID string `json:"org_id"`
	}](p, "GET", "/v1/caller", nil)
	name := call[struct {
		Name string `json:"org_name"`
	}](p, "GET", "/v1/caller", nil).Name
	locally := []string{"--database-url=" + sharedURL(t)}
	for _, row := range []struct {
		where []string
		org   string
	}{{p.asking(), ""}, {p.asking(), org.ID}, {locally, name}} {
		args := []string{"keys", "create", "--scope=tools", "--agent=bot", "--json", "--name=of the bot"}
		if row.org != "" {
			args = append(args, "--org="+row.org)
		}
		code, out, errs := command(t, append(args, row.where...)...)
		if code != 0 || !strings.Contains(out, agent) {
			t.Fatalf("%q: ended with %d: %s%s", args, code, out, errs)
		}
		code, _, errs = command(t, append(append(args, "--agent=nobody"), row.where...)...)
		if code != 1 || !strings.Contains(errs, `there is no agent "nobody"`) {
			t.Errorf("%q with nobody: ended with %d: %s", args, code, errs)
		}
	}
	smith := p.newAgent("Smith, John")
	code, out, errs := command(t, p.asking("keys", "create", "--scope=tools", `--agent="Smith, John", bot`, "--json")...)
	if code != 0 || !strings.Contains(out, smith) || !strings.Contains(out, agent) {
		t.Errorf("a name with a comma: ended with %d: %s%s", code, out, errs)
	}
	if code, _, errs = command(t, p.asking("keys", "create", "--scope=tools", "--agent=Smith, John")...); code != 1 ||
		!strings.Contains(errs, `there is no agent "Smith"`) {
		t.Errorf("without quotes: ended with %d: %s", code, errs)
	}
	revoke := func(place ...string) (int, string) {
		code, out, errs := command(t, append([]string{"keys", "revoke", "of the bot", "--json"}, place...)...)
		return code, out + errs
	}
	if code, printed := revoke(p.asking()...); code != 1 || !strings.Contains(printed, "3 API keys have the name") {
		t.Errorf("three keys of a name: ended with %d: %s", code, printed)
	}
	for _, k := range call[[]apikey.Key](p, "GET", "/v1/admin/keys?order=desc", nil)[1:3] {
		if k.Name != "of the bot" {
			t.Fatalf("the newest keys are not those: %+v", k)
		}
		if code, _, errs := command(t, p.asking("keys", "revoke", k.ID)...); code != 0 {
			t.Fatal(errs)
		}
	}
	if code, printed := revoke(p.asking()...); code != 0 || !strings.Contains(printed, `"id": "key-`) {
		t.Errorf("the only key of a name: ended with %d: %s", code, printed)
	}
	if code, printed := revoke(p.asking()...); code != 1 || !strings.Contains(printed, "no such API key") {
		t.Errorf("no key of a name: ended with %d: %s", code, printed)
	}
}

// A key for another organization than the caller's must name agents by ID. Nothing is created after the mistake.
func TestAgentsOfAnotherOrganizationAreNotFoundByName(t *testing.T) {
	t.Parallel()
	p, name := tenant(t), "new "+t.Name()
	p.newAgent("bot")
	code, _, errs := command(t, p.asking("keys", "create", "--scope=tools", "--agent=bot", "--org="+name)...)
	if code != 1 || !strings.Contains(errs, "give their IDs") {
		t.Errorf("over REST: ended with %d: %s", code, errs)
	}
	code, _, errs = command(t, "keys", "create", "--scope=tools", "--agent=bot", "--org="+name,
		"--database-url="+sharedURL(t))
	if code != 1 || !strings.Contains(errs, "there is no organization") {
		t.Errorf("on the database: ended with %d: %s", code, errs)
	}
}
