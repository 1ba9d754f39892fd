package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/loop/model/modeltest"
	"github.com/loci-memory/loci/server/servertest"
)

var pathParams = regexp.MustCompile(`\{(\w+)\}`)

// tenant is an organization's client and its resources' ids, by the names of the path parameters.
type tenant struct {
	*client
	has map[string]string
}

// quietModel is a model that counts no tokens.
func quietModel(t *testing.T) *modeltest.Model {
	m := modeltest.New(t)
	m.Reply = func(modeltest.Asked) modeltest.Answer { return modeltest.Answer{Text: "Done.", PromptTokens: -1} }
	return m
}

func newTenant(c *client, org string) tenant { return newTenantNamed(c, org, org) }

// newTenantNamed is another tenant of an organization, all of whose texts have a name.
func newTenantNamed(c *client, org, name string) tenant {
	c = c.as(org)
	c.server.Loop = newLoop(c.t, c.server, quietModel(c.t).URL)
	name = "secret of " + name
	folder := c.made("/v1/folders", fmt.Sprintf(`{"name":%q,"description":%q}`, name, name))
	agent := c.made("/v1/agents", fmt.Sprintf(`{"name":%q,"tags":[%q],"folder_ids":[%q]}`, name, name, folder))
	file := c.uploaded(folder, name+".txt", name)
	c.must("PUT", "/v1/agents/"+agent+"/consumers/reader", `{"seq":1}`)
	conversation := c.made("/v1/conversations?agent_id="+agent, fmt.Sprintf(`{"summary":%q}`, name))
	shown := fields(c.t, c.must("GET", "/v1/conversations/"+conversation, ""))
	message := shown["in_context_message_ids"].([]any)[0].(string)
	block := c.made("/v1/blocks", fmt.Sprintf(`{"label":"notes","value":%q}`, name))
	c.must("PATCH", "/v1/agents/"+agent+"/core-memory/blocks/attach/"+block, "")
	archive := c.made("/v1/archives", fmt.Sprintf(`{"name":%q}`, name))
	c.must("PATCH", "/v1/agents/"+agent+"/archives/attach/"+archive, "")
	c.capture(agent, chatter(1, 6, name))
	compaction := c.compact("/v1/agents/"+agent+"/summarize", `{}`).Compaction.ID
	passage := c.made("/v1/archives/"+archive+"/passages", fmt.Sprintf(`{"text":%q}`, name))
	answered := c.must("POST", "/v1/agents/"+agent+"/messages", fmt.Sprintf(`{"input":%q}`, name))
	run := fields(c.t, answered)["run_id"].(string)
	step := regexp.MustCompile(`step-[0-9a-f-]{36}`).FindString(c.must("GET", "/v1/runs/"+run+"/steps", ""))
	return tenant{c, map[string]string{"agent_id": agent, "folder_id": folder, "file_id": file,
		"folder_name": strings.ReplaceAll(name, " ", "%20"),
		"tool_name":   "open_files", "tool_id": c.made("/v1/tools", weatherTool),
		"identity_id": c.made("/v1/identities", fmt.Sprintf(`{"identifier_key":%q,"name":%q,"identity_type":"user",
			"agent_ids":[%q]}`, name, name, agent)), "consumer_name": "reader",
		"clip_id":         c.clip(agent, name),
		"conversation_id": conversation, "message_id": message,
		"block_id": block, "block_label": "notes", "version": "1", "archive_id": archive, "passage_id": passage,
		"memory_id":     passage,
		"org_id":        c.orgNamed(org).ID,
		"key_id":        c.keyID(),
		"compaction_id": compaction, "run_id": run, "step_id": step}}
}

var clipIDs = regexp.MustCompile(`clip-[0-9a-f-]{36}`)

// clip captures a result of a tool that is put aside, and returns the id of its text.
func (c *client) clip(agent, text string) string {
	c.t.Helper()
	long, err := json.Marshal(strings.Repeat(text+"\n", recall.MaxResultChars/len(text)+1))
	if err != nil {
		c.t.Fatal(err)
	}
	got := c.capture(agent, `{"messages":[{"role":"assistant","tool_calls":[{"id":"c1","function":{"name":"read",
		"arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"c1","content":`+string(long)+`}]}`)
	return clipIDs.FindString(c.must("GET", "/v1/messages/"+got.Messages[1].ID, ""))
}

// keyID is the id of the client's key.
func (c *client) keyID() string {
	c.t.Helper()
	key, err := c.server.Keys.Lookup(c.t.Context(), c.key)
	if err != nil {
		c.t.Fatal(err)
	}
	return key.ID
}

// state is everything that a tenant sees of its own.
func (t tenant) state() []string {
	var seen []string
	for _, target := range []string{"/v1/agents?include=agent.blocks", "/v1/folders", "/v1/folders/" + t.has["folder_id"] +
		"/files?include_content=true",
		"/v1/folders/" + t.has["folder_id"] + "/agents", "/v1/agents/" + t.has["agent_id"] + "/files", "/v1/agents/" +
			t.has["agent_id"] + "/folders",
		"/v1/agents/" + t.has["agent_id"] + "/events", "/v1/agents/" + t.has["agent_id"] + "/consumers",
		"/v1/agents/" + t.has["agent_id"] + "/messages", "/v1/conversations", "/v1/runs", "/v1/steps", "/v1/blocks",
		"/v1/blocks/" + t.has["block_id"] + "/versions",
		"/v1/agents/" + t.has["agent_id"] + "/compactions", "/v1/archives", "/v1/agents/" + t.has["agent_id"] +
			"/archival-memory", "/v1/tools?tool_types=custom", "/v1/identities", "/v1/agents/" + t.has["agent_id"] + "/tools",
		"/v1/agents/" + t.has["agent_id"] + "/expand/" + t.has["clip_id"], "/v1/admin/orgs"} {
		seen = append(seen, target+"\n"+t.must("GET", target, ""))
	}
	return seen
}

// operations are those of the API's document, as METHOD /path.
func (c *client) operations() []string {
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(c.must("GET", "/openapi.json", "")), &document); err != nil {
		c.t.Fatal(err)
	}
	var all []string
	for path, methods := range document.Paths {
		for method := range methods {
			all = append(all, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(all)
	return all
}

// Every operation of the document is called with the key of one organization and the ids of another, all of them and
// each alone.
func TestTenantsDoNotMeet(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	alice, mallory := newTenant(c, "alice"), newTenant(c, "mallory")
	before := alice.state()
	calls := 0
	for _, operation := range mallory.operations() {
		method, path, _ := strings.Cut(operation, " ")
		for _, foreign := range combinations(path) {
			target := pathParams.ReplaceAllStringFunc(path, func(param string) string {
				name := strings.Trim(param, "{}")
				if slices.Contains(foreign, name) {
					return alice.has[name]
				}
				return mallory.has[name]
			})
			calls++
			got := mallory.attack(method, target)
			if got.Code != 404 {
				t.Errorf("%s with alice's %v: got %d %s, want 404", operation, foreign, got.Code, got.Text)
			}
		}
		if !strings.Contains(path, "{") && method == "GET" {
			calls++
			if got := mallory.call(method, path, ""); got.Code != 200 || strings.Contains(got.Text, "alice") {
				t.Errorf("%s: got %d %s, want 200 and nothing of alice's", operation, got.Code, got.Text)
			}
		}
	}
	for body, id := range map[string]string{`{"folder_ids":[%q]}`: "folder_id", `{"source_ids":[%q]}`: "folder_id",
		`{"tool_ids":[%q]}`: "tool_id", `{"identity_ids":[%q]}`: "identity_id"} {
		body = fmt.Sprintf(body, alice.has[id])
		for _, call := range [][2]string{{"POST", "/v1/agents"}, {"PATCH", "/v1/agents/" + mallory.has["agent_id"]}} {
			if got := mallory.call(call[0], call[1], body); got.Code != 404 {
				t.Errorf("%s %s with alice's %s: got %d %s, want 404", call[0], call[1], id, got.Code, got.Text)
			}
		}
	}
	for _, call := range [][3]string{
		{"POST", "/v1/conversations?agent_id=" + alice.has["agent_id"], ""},
		{"GET", "/v1/agents/" + mallory.has["agent_id"] + "/messages?conversation_id=" + alice.has["conversation_id"], ""},
		{"GET", "/v1/agents/" + mallory.has["agent_id"] + "/context?conversation_id=" + alice.has["conversation_id"], ""},
		{"GET", "/v1/messages?conversation_id=" + alice.has["conversation_id"], ""},
		{"GET", "/v1/messages?conversation_id=" + alice.has["agent_id"], ""},
		{"GET", "/v1/conversations/default?agent_id=" + alice.has["agent_id"], ""},
		{"GET", "/v1/conversations/" + alice.has["agent_id"], ""},
		{"GET", "/v1/conversations/default/messages?agent_id=" + alice.has["agent_id"], ""},
		{"PATCH", "/v1/conversations/default", fmt.Sprintf(`{"agent_id":%q,"summary":"x"}`, alice.has["agent_id"])},
		{"POST", "/v1/conversations/default/recompile", fmt.Sprintf(`{"agent_id":%q}`, alice.has["agent_id"])},
		{"POST", "/v1/messages/search", fmt.Sprintf(`{"query":"secret","agent_id":%q}`, alice.has["agent_id"])},
		{"POST", "/v1/messages/search", fmt.Sprintf(`{"query":"secret","conversation_id":%q}`, alice.has["conversation_id"])},
		{"POST", "/v1/agents/messages/search", fmt.Sprintf(`{"agent_id":%q}`, alice.has["agent_id"])},
		{"GET", "/v1/admin/keys?org_id=" + alice.has["org_id"], ""},
		{"POST", "/v1/admin/keys", fmt.Sprintf(`{"name":"k","scopes":["read"],"org_id":%q}`, alice.has["org_id"])},
		{"POST", "/v1/admin/keys", fmt.Sprintf(`{"name":"k","scopes":["tools"],"agent_ids":[%q]}`, alice.has["agent_id"])},
	} {
		if got := mallory.call(call[0], call[1], call[2]); got.Code != 404 {
			t.Errorf("%v: got %d %s, want 404", call, got.Code, got.Text)
		}
	}
	for _, call := range [][3]string{
		{"GET", "/v1/messages?after=" + alice.has["message_id"], ""},
		{"GET", "/v1/agents/" + mallory.has["agent_id"] + "/messages?before=" + alice.has["message_id"], ""},
		{"GET", "/v1/conversations?agent_id=" + alice.has["agent_id"], ""},
	} {
		if got := mallory.must(call[0], call[1], call[2]); got != "[]" {
			t.Errorf("%v: got %s, want nothing", call, got)
		}
	}
	for _, target := range []string{"/v1/messages/search", "/v1/agents/messages/search"} {
		if got := mallory.must("POST", target, `{"query":"secret of alice"}`); strings.Contains(got, "alice") {
			t.Errorf("%s: got %s, want nothing of alice's", target, got)
		}
	}
	if diff := cmp.Diff(before, alice.state()); diff != "" {
		t.Errorf("what alice has was changed (-before +after):\n%s", diff)
	}
	if calls < 50 {
		t.Errorf("only %d calls were made: is the document complete?", calls)
	}
}

// attack calls an operation with a body that it would accept.
func (t tenant) attack(method, target string) servertest.Reply {
	if strings.HasSuffix(target, "/upload") {
		body, mediaType := form("file", "a.txt", "text/plain", "x")
		return servertest.Send(t, method, target, body, append(t.headers(), "Content-Type", mediaType)...)
	}
	if strings.HasSuffix(target, "/properties") {
		return t.call(method, target, "[]")
	}
	return t.call(method, target+map[bool]string{true: "?query=x&from=1&to=1"}[strings.HasSuffix(target, "/search") ||
		strings.HasSuffix(target, "/diff")],
		`{"args":{"file_requests":[]},"seq":0,"messages":[{"role":"user","content":"x"}],"text":"x",`+
			`"passages":[{"text":"x"}],"value":"x"}`)
}

// combinations are the sets of a path's parameters that can be another organization's, the empty one left out.
func combinations(path string) [][]string {
	tenants := map[string]bool{"agent_id": true, "folder_id": true, "file_id": true, "folder_name": true,
		"conversation_id": true,
		"message_id":      true, "clip_id": true, "block_id": true, "archive_id": true, "passage_id": true, "memory_id": true,
		"compaction_id": true, "run_id": true, "step_id": true, "key_id": true, "tool_id": true, "identity_id": true}
	sets := [][]string{nil}
	for _, match := range pathParams.FindAllStringSubmatch(path, -1) {
		if !tenants[match[1]] {
			continue
		}
		for _, set := range slices.Clone(sets) {
			sets = append(sets, append(slices.Clone(set), match[1]))
		}
	}
	return sets[1:]
}

func TestTheDocumentIsComplete(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	var document struct {
		OpenAPI    string
		Paths      map[string]map[string]struct{ OperationID string }
		Components struct{ Schemas map[string]any }
	}
	body := c.must("GET", "/openapi.json", "")
	if err := json.Unmarshal([]byte(body), &document); err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{}
	for path, methods := range document.Paths {
		for method, operation := range methods {
			if other := ids[operation.OperationID]; other != "" || operation.OperationID == "" {
				t.Errorf("%s %s has the operation id %q of %s", method, path, operation.OperationID, other)
			}
			ids[operation.OperationID] = method + " " + path
		}
	}
	if len(document.Paths["/v1/folders/{folder_id}/upload"]) == 0 || document.OpenAPI != "3.1.0" {
		t.Errorf("got version %s with paths %v, want 3.1.0 and the uploads", document.OpenAPI,
			slices.Sorted(maps.Keys(document.Paths)))
	}
	for _, schema := range regexp.MustCompile(`#/components/schemas/(\w+)`).FindAllStringSubmatch(body, -1) {
		if document.Components.Schemas[schema[1]] == nil {
			t.Errorf("the document names a schema %s that it does not have", schema[1])
		}
	}
	for _, target := range []string{"/docs", "/schemas/Tool", "/openapi.yaml"} {
		servertest.CheckProblem(t, c.call("GET", target, ""), 404, map[string]any{"detail": "Not Found"})
	}
}
