package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent/handover"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/db"
)

// provenances returns the provenances of an object or of a list's objects, from a field.
func (c *client) provenances(path, field string) (all []db.Provenance) {
	c.t.Helper()
	text := c.must("GET", path, "")
	if strings.HasPrefix(text, "{") {
		text = "[" + text + "]"
	}
	var list []map[string]json.RawMessage
	c.unmarshal(text, &list)
	for _, object := range list {
		var p db.Provenance
		if raw := object[field]; raw != nil {
			c.unmarshal(string(raw), &p)
		}
		all = append(all, p)
	}
	return all
}

func (c *client) expectProvenance(path, field string, want ...db.Provenance) {
	c.t.Helper()
	if diff := cmp.Diff(want, c.provenances(path, field)); diff != "" {
		c.t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// keyedRunner returns a runner with a key. A scripted model answers for its agents.
func keyedRunner(t *testing.T, agent string) runner {
	t.Helper()
	c, m := newServerClient(t).as("acme"), modeltest.New(t)
	c.own().Loop = newLoop(t, c.server, m.URL)
	c.own().Children.Loop = c.server.Loop
	return runner{c, m, c.made("/v1/agents", agent)}
}

// defaultConversation returns the id of an agent's default conversation.
func (c *client) defaultConversation(agent string) string {
	c.t.Helper()
	conversation, err := c.server.Recall.Conversation(c.t.Context(), c.orgKey(), agent, "default")
	if err != nil {
		c.t.Fatal(err)
	}
	return conversation.ID
}

// Everything that a run's tools store has a provenance: the key of the request, the agent, the conversation, the call's
// position and the tool.
func TestToolsOfARunTellWhoStored(t *testing.T) {
	t.Parallel()
	r := keyedRunner(t, `{"name":"a","tools":["archival_memory_insert","memory_insert","memory_files",
		"update_working_memory"],"memory_blocks":[{"label":"human","value":"Ada."}]}`)
	r.model.Says(modeltest.Answer{Calls: []modeltest.Call{
		{ID: "a", Name: "archival_memory_insert", Arguments: `{"content":"Tea is green."}`},
		{ID: "b", Name: "memory_insert", Arguments: `{"label":"human","new_string":"Likes tea."}`},
		{ID: "c", Name: "memory_files", Arguments: `{"command":"create","path":"/memories/t.md","file_text":"Tea.\n"}`},
		{ID: "d", Name: "update_working_memory", Arguments: `{"changes":[{"field":"task","text":"make tea"}]}`}}},
		modeltest.Answer{Text: "Done."})
	r.send(hello)
	base := "/v1/agents/" + r.agent
	provenance := db.Provenance{KeyID: r.keyID(), AgentID: r.agent, ConversationID: r.defaultConversation(r.agent),
		Position: 3}
	ofTool := func(tool string) db.Provenance {
		provenance := provenance
		provenance.Tool = tool
		return provenance
	}
	r.expectProvenance(base+"/archival-memory", "provenance", ofTool("archival_memory_insert"))
	block := fields(t, r.must("GET", base+"/core-memory/blocks/human", ""))["id"]
	r.expectProvenance(fmt.Sprintf("/v1/blocks/%s/versions", block), "provenance", ofTool("memory_insert"),
		db.Provenance{KeyID: provenance.KeyID})
	tree := fields(t, r.must("GET", base+"/memory-tree", ""))["id"].(string)
	r.expectProvenance("/v1/memory-trees/"+tree+"/file?path=/memories/t.md", "provenance", ofTool("memory_files"))
	r.expectProvenance("/v1/memory-trees/"+tree+"/versions?path=/memories/t.md", "author", ofTool("memory_files"))
	var versions []struct{ Author, Provenance db.Provenance }
	r.unmarshal(r.must("GET", "/v1/conversations/"+provenance.ConversationID+"/working-memory/versions", ""), &versions)
	if len(versions) != 1 || versions[0].Author != ofTool("update_working_memory") {
		t.Errorf("the versions of the working memory are %+v", versions)
	}
	key := db.Provenance{KeyID: provenance.KeyID}
	result := func(tool string) db.Provenance {
		return db.Provenance{KeyID: provenance.KeyID, Position: 3, Tool: tool}
	}
	r.expectProvenance(base+"/messages?order=asc&limit=20", "provenance", key, key, key,
		result("archival_memory_insert"), result("memory_insert"), result("memory_files"), result("update_working_memory"),
		key)
}

// Everything that requests store has their key in its provenance, and the agent and the conversation in their path.
func TestRequestsTellWhoStored(t *testing.T) {
	t.Parallel()
	c := newClient(t).as("acme")
	agent, key := c.made("/v1/agents", `{"name":"a"}`), c.keyID()
	base := "/v1/agents/" + agent
	provenance := db.Provenance{KeyID: key, AgentID: agent}
	c.must("POST", base+"/archival-memory", `{"text":"Tea is green."}`)
	c.expectProvenance(base+"/archival-memory", "provenance", provenance)
	archive := c.made("/v1/archives", `{"name":"teas"}`)
	passage := c.made("/v1/archives/"+archive+"/passages", `{"text":"Tea is black."}`)
	c.expectProvenance("/v1/archives/"+archive+"/passages/"+passage, "provenance", db.Provenance{KeyID: key})
	folder := c.made("/v1/folders", `{"name":"Papers"}`)
	file := c.uploaded(folder, "a.txt", "one line\n")
	c.expectProvenance("/v1/folders/"+folder+"/files/"+file, "provenance", db.Provenance{KeyID: key})
	c.must("POST", base+"/messages/capture", `{"messages":[{"role":"user","content":"hi"}]}`)
	c.must("POST", base+"/step", `{"messages":[{"role":"assistant","content":"hello"}]}`)
	c.expectProvenance(base+"/messages?order=asc", "provenance", db.Provenance{KeyID: key}, db.Provenance{KeyID: key},
		db.Provenance{KeyID: key})
	other := c.as("acme")
	id := fields(t, other.must("PATCH", base+"/archival-memory/"+c.list(base + "/archival-memory")[0]["id"].(string),
		`{"text":"Tea is white."}`))["id"].(string)
	c.expectProvenance(base+"/archival-memory", "provenance", db.Provenance{KeyID: other.keyID(), AgentID: agent})
	c.must("PATCH", base+"/archival-memory/"+id, `{"tags":["x"]}`)
	c.expectProvenance(base+"/archival-memory", "provenance", db.Provenance{KeyID: other.keyID(), AgentID: agent})
}

// Folders, archives, identities and definitions of tools show who made them and who last changed them. An agent's
// blocks show who attached them.
func TestPlacesTellWhoMadeAndChangedThem(t *testing.T) {
	t.Parallel()
	r := keyedRunner(t, `{"name":"a","tools":["memory","archival_memory_insert"]}`)
	c, base, key := r.client, "/v1/agents/"+r.agent, db.Provenance{KeyID: r.keyID()}
	for list, object := range map[string]string{"folders": `{"name":"Papers"}`, "archives": `{"name":"teas"}`,
		"identities": `{"identifier_key":"ada","name":"Ada","identity_type":"user"}`,
		"tools": `{"json_schema":{"name":"tea","description":"Makes tea.","parameters":{"type":"object",
			"properties":{"kind":{"type":"string"}}}}}`,
	} {
		path := "/v1/" + list + "/" + c.made("/v1/"+list, object)
		c.expectProvenance(path, "made_by", key)
		c.expectProvenance(path, "changed_by", db.Provenance{})
		other := c.as("acme")
		change := `{"name":"Changed"}`
		if list == "tools" {
			change = `{"description":"Brews tea."}`
		}
		other.must("PATCH", path, change)
		c.expectProvenance(path, "made_by", key)
		c.expectProvenance(path, "changed_by", db.Provenance{KeyID: other.keyID()})
	}
	block := c.made("/v1/blocks", `{"label":"human","value":"Ada."}`)
	c.must("PATCH", base+"/core-memory/blocks/attach/"+block, "")
	r.model.Says(modeltest.Answer{Calls: []modeltest.Call{
		{ID: "a", Name: "memory", Arguments: `{"command":"create","path":"tea","description":"teas",
			"file_text":"Green."}`},
		{ID: "b", Name: "archival_memory_insert", Arguments: `{"content":"Tea is green."}`}}},
		modeltest.Answer{Text: "Done."})
	r.send(hello)
	provenance := db.Provenance{KeyID: key.KeyID, AgentID: r.agent, ConversationID: r.defaultConversation(r.agent),
		Position: 3}
	memory, insert := provenance, provenance
	memory.Tool, insert.Tool = "memory", "archival_memory_insert"
	c.expectProvenance(base+"/core-memory/blocks/human", "attached_by", db.Provenance{KeyID: key.KeyID, AgentID: r.agent})
	c.expectProvenance(base+"/core-memory/blocks/tea", "attached_by", memory)
	c.expectProvenance("/v1/blocks/"+block, "attached_by", db.Provenance{})
	c.expectProvenance("/v1/archives?agent_id="+r.agent, "made_by", insert)
}

// A hand-over that is made by a job has the key of the request that asked for it.
func TestJobsTellWhoBeganThem(t *testing.T) {
	t.Parallel()
	c := newServerClient(t).as("acme")
	c.work()
	agent := c.filed("")
	s := c.session(agent)
	release := c.writesSlowly(written(s))
	id := fields(t, c.call("POST", "/v1/agents/"+agent+"/handover", `{}`).Text)["id"].(string)
	close(release)
	if h := c.awaitHandover(agent, id); h.Status != handover.Done {
		t.Fatalf("the hand-over is %+v", h)
	}
	provenance := db.Provenance{KeyID: c.keyID(), AgentID: agent}
	c.expectProvenance("/v1/agents/"+agent+"/handovers/"+id, "provenance", provenance)
	conversation := c.defaultConversation(agent)
	var versions []struct{ Author db.Provenance }
	c.unmarshal(c.must("GET", "/v1/conversations/"+conversation+"/working-memory/versions", ""), &versions)
	if len(versions) == 0 || versions[0].Author != provenance {
		t.Errorf("the versions of the working memory are %+v, want those of %+v", versions, provenance)
	}
}

// A full file keeps the provenance of everything, with the ids of the imported objects, but without keys of the
// organization that it comes from.
func TestAnImportKeepsWhoStoredButNoKey(t *testing.T) {
	t.Parallel()
	c := newClient(t).as("acme")
	agent := c.made("/v1/agents", `{"name":"a","tools":["archival_memory_insert","memory_files"]}`)
	c.tool(agent, "archival_memory_insert", `{"content":"Tea is green."}`)
	c.tool(agent, "memory_files", `{"command":"create","path":"/memories/t.md","file_text":"Tea.\n"}`)
	c.capture(agent, `{"messages":[{"role":"user","content":"hi"}]}`)
	file := c.must("GET", "/v1/agents/"+agent+"/export?full=true", "")
	other := c.as("globex")
	ids, _ := other.imported(file)
	base := "/v1/agents/" + ids[0]
	other.expectProvenance(base+"/archival-memory", "provenance", db.Provenance{AgentID: ids[0],
		Tool: "archival_memory_insert"})
	tree := fields(t, other.must("GET", base+"/memory-tree", ""))["id"].(string)
	other.expectProvenance("/v1/memory-trees/"+tree+"/versions?path=/memories/t.md", "author",
		db.Provenance{AgentID: ids[0], Tool: "memory_files"})
	other.expectProvenance(base+"/messages?order=asc", "provenance", db.Provenance{}, db.Provenance{})
	if again := other.must("GET", "/v1/agents/"+ids[0]+"/export?full=true", ""); strings.Contains(again, c.keyID()) {
		t.Error("the imported agent tells a key of another organization")
	}
	long := strings.Replace(file, `"tool":"archival_memory_insert"`, `"tool":"`+strings.Repeat("x", 201)+`"`, 1)
	if got := other.importing(long); got.Code != 422 && got.Code != 400 || !strings.Contains(got.Text, "provenance") {
		t.Errorf("a provenance that is too long: %d %s", got.Code, got.Text)
	}
}
