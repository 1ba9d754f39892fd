package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/servertest"
	"github.com/loci-memory/loci/tenant/erase"
)

var pathParams = regexp.MustCompile(`\{(\w+)\}`)

// tenant is a client of an organization with the ids of its resources, by the names of path parameters.
type tenant struct {
	*client
	has map[string]string
}

// quietModel returns a model that counts no tokens.
func quietModel(t *testing.T) *modeltest.Model {
	m := modeltest.New(t)
	m.Reply = func(modeltest.Asked) modeltest.Answer { return modeltest.Answer{Text: "Done.", PromptTokens: -1} }
	return m
}

func newTenant(c *client, org string) tenant { return newTenantNamed(c, org, org) }

// newTenantNamed creates another tenant of an organization. All its texts contain a name.
func newTenantNamed(c *client, org, name string) tenant {
	c = c.as(org)
	c.own().Loop = newLoop(c.t, c.server, quietModel(c.t).URL)
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
	tree := c.made("/v1/memory-trees", fmt.Sprintf(`{"name":%q}`, name))
	c.must("PATCH", "/v1/agents/"+agent+"/memory-trees/attach/"+tree, "")
	memoryFile := fields(c.t, c.must("PUT", "/v1/memory-trees/"+tree+"/file", fmt.Sprintf(
		`{"path":"/memories/notes.md","content":%q}`, name)))["id"].(string)
	c.capture(agent, chatter(1, 6, name))
	compaction := c.compact("/v1/agents/"+agent+"/summarize", `{}`).Compaction.ID
	c.must("PATCH", "/v1/conversations/"+conversation+"/working-memory",
		fmt.Sprintf(`{"changes":[{"field":"task","text":%q}]}`, name))
	passage := c.made("/v1/archives/"+archive+"/passages", fmt.Sprintf(`{"text":%q}`, name))
	answered := c.must("POST", "/v1/agents/"+agent+"/messages", fmt.Sprintf(`{"input":%q}`, name))
	handover := fields(c.t, c.must("POST", "/v1/agents/"+agent+"/handover", `{"pending":true}`))["id"].(string)
	run := fields(c.t, answered)["run_id"].(string)
	step := regexp.MustCompile(`step-[0-9a-f-]{36}`).FindString(c.must("GET", "/v1/runs/"+run+"/steps", ""))
	return tenant{c, map[string]string{"agent_id": agent, "folder_id": folder, "file_id": file,
		"folder_name": strings.ReplaceAll(name, " ", "%20"),
		"policy_name": "four-layers", "tool_name": "open_files", "tool_id": c.customTool(),
		"identity_id": c.made("/v1/identities", fmt.Sprintf(`{"identifier_key":%q,"name":%q,"identity_type":"user",
			"agent_ids":[%q]}`, name, name, agent)), "consumer_name": "reader",
		"clip_id":         c.clip(agent, name),
		"conversation_id": conversation, "message_id": message,
		"block_id": block, "block_label": "notes", "version": "1", "archive_id": archive, "passage_id": passage,
		"memory_id":  passage,
		"org_id":     c.orgID(),
		"key_id":     c.keyID(),
		"session_id": fields(c.t, c.must("POST", "/v1/sessions", ""))["id"].(string),
		"tree_id":    tree, "memory_file_id": memoryFile,
		"child_id": c.child(agent, `{"mode":"blank","task":"x"}`).ID,

		"subagent_name": c.subagentNamed(agent, "scout"),
		"handover_id":   handover, "number": "1",
		"replay_id": fields(c.t, c.accepted("/v1/lab/replays", fmt.Sprintf(
			`{"transcripts":[{"name":"a","text":%s}],"policies":["letta"]}`, recordedSession(1, name))))["id"].(string),
		"erasure_id":    c.asksToErase(agent),
		"compaction_id": compaction, "run_id": run, "step_id": step}}
}

// accepted sends a request that begins a job, and returns the answer.
func (c *client) accepted(target, body string) string {
	c.t.Helper()
	got := c.call("POST", target, body)
	if got.Code != 202 {
		c.t.Fatal(got)
	}
	return got.Text
}

// asksToErase returns the id of an erasure that waits for approval.
func (c *client) asksToErase(agent string) string {
	c.t.Helper()
	e, err := c.server.Erasures.Create(c.t.Context(), c.orgKey(), erase.Request{Texts: []string{"nothing has this text"},
		By: erase.Requester{Agent: agent}})
	if err != nil {
		c.t.Fatal(err)
	}
	return e.ID
}

// orgKey returns the organization of the client's key.
func (c *client) orgKey() db.Org {
	c.t.Helper()
	key, err := c.server.Keys.Lookup(c.t.Context(), c.key)
	if err != nil {
		c.t.Fatal(err)
	}
	return key.Org
}

var clipIDs = regexp.MustCompile(`clip-[0-9a-f-]{36}`)

// clip captures a tool result that is put aside because of its length, and returns the id of its text.
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

// customTool returns the id of a tool, which all tenants of an organization share.
func (c *client) customTool() string {
	c.t.Helper()
	return fields(c.t, c.must("PUT", "/v1/tools", weatherTool))["id"].(string)
}

// keyID returns the id of the client's key.
func (c *client) keyID() string {
	c.t.Helper()
	key, err := c.server.Keys.Lookup(c.t.Context(), c.key)
	if err != nil {
		c.t.Fatal(err)
	}
	return key.ID
}

// state returns everything that a tenant sees of its own resources.
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
		"/v1/agents/" + t.has["agent_id"] + "/expand/" + t.has["clip_id"], "/v1/admin/orgs",
		"/v1/agents/" + t.has["agent_id"] + "/handovers", "/v1/memory-trees",
		"/v1/memory-trees/" + t.has["tree_id"] + "/files",
		"/v1/memory-trees/" + t.has["tree_id"] + "/versions?path=/memories/notes.md"} {
		seen = append(seen, target+"\n"+t.must("GET", target, ""))
	}
	return seen
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
