package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall"
)

// remembering creates an agent with at least one of everything that an agent can have.
func (c *client) remembering() string {
	c.t.Helper()
	folder := c.made("/v1/folders", `{"name":"Papers","instructions":"read","skills":true}`)
	first := c.uploaded(folder, "a.txt", strings.Repeat("one line\n", 500))
	second := c.uploaded(folder, "b.md", "# Title\n\nsome text about whales\n")
	third := c.upload(folder, "?encoding=koi8-r", "empty.txt", "")
	c.awaitFile(folder, fields(c.t, third.Text)["id"].(string))
	block := c.made("/v1/blocks", `{"label":"shared","value":"v1","tags":["t"],"metadata":{"k":[1.5]},"limit":900,
		"read_only":true}`)
	tool := c.made("/v1/tools", customTool)
	agent := c.made("/v1/agents", fmt.Sprintf(`{"name":"Ädä","model":"openai/gpt-4o","folder_ids":[%q],"block_ids":[%q],
		"tool_set":"all","tool_ids":[%q],"context_window_limit":16000,"compaction_settings":{"goal":0.5},"tags":["x"],
		"metadata":{"a":"<&\u2028>"},"description":"d","embedding":"e/m","per_file_view_window_char_limit":5000,
		"model_settings":{"temperature":0.25},"timezone":"Europe/Berlin","max_files_open":4,"open_on_attach":true,
		"response_format":{"type":"json_object"},"message_buffer_autoclear":false,"enable_sleeptime":false,
		"recall_scope":"agent","working_memory":"manual","flush":{"mode":"flush"},
		"handover":{"mode":"off"},"made_for":"letta","prompt":{"cache_marks":false,"cache_key":"never"},
		"skills":{"list_tokens":300},"recall":{"budget_tokens":300},"gateway":{"mode":"observe","tools":["expand"]},
		"tool_rules":[{"type":"run_first","tool_name":"expand"},{"type":"requires_approval",
		"tool_name":"weather"}],"memory_blocks":[{"label":"human","value":"Bob"}]}`, folder, block, tool))
	c.made("/v1/identities", fmt.Sprintf(`{"identifier_key":"ada","name":"Ada <&>","identity_type":"user","agent_ids":[%q],
		"block_ids":[%q],"properties":[{"key":"k","value":"<b>","type":"string"}]}`, agent, block))
	base := "/v1/agents/" + agent
	bob := c.made("/v1/identities", `{"identifier_key":"bob","name":"Bob","identity_type":"user"}`)
	c.must("PATCH", "/v1/conversations/default?agent_id="+agent, `{"identity_id":"`+bob+`"}`)
	c.must("PATCH", base+"/core-memory/blocks/human", `{"value":"Bob, 40"}`)
	c.tool(agent, "core_memory_append", `{"label":"human","content":"likes whales"}`)
	c.must("PATCH", base+"/files/"+second+"/close", "")
	c.tool(agent, "open_files", `{"file_requests":[{"file_name":"Papers/a.txt","offset":10,"length":20}]}`)
	_ = first
	c.tool(agent, "archival_memory_insert", `{"content":"Whales are mammals.","tags":["sea"]}`)
	moon := c.tool(agent, "archival_memory_insert", `{"content":"The moon is near."}`)
	c.tool(agent, "archival_memory_insert", `{"content":"The moon is far away.","supersedes":"`+
		strings.TrimSuffix(strings.TrimPrefix(moon, "Archived as "), ".")+`"}`)
	c.capture(agent, chatter(1, 3, "before the reset"))
	c.must("PATCH", base+"/reset-messages", `{}`)
	c.capture(agent, chatter(1, 20, "the file is /srv/data/plan-7.txt, and whales swim"))
	for _, call := range [][2]string{ // what the agent keeps for Bob alone
		{"archival_memory_insert", `{"content":"Bob likes the moon."}`},
		{"core_memory_append", `{"label":"human","content":"His cat is Ivo."}`},
	} {
		got := fields(c.t, c.must("POST", base+"/tools/"+call[0]+"/run",
			`{"conversation_id":"default","recall_scope":"user","args":`+call[1]+`}`))
		if got["status"] != "success" {
			c.t.Fatalf("%s of Bob: %v", call[0], got)
		}
	}
	c.compact(base+"/summarize", `{}`)
	c.exchanged(agent, "look", `{"a": 1}`, strings.Repeat("a long line of a result\n", 4000))
	c.fit(agent, numbered(3_000), `,"policy":"four-layers"`)
	other := c.made("/v1/conversations?agent_id="+agent, `{"summary":"Second","description":"d"}`)
	c.append(agent, other, recall.Draft{Role: recall.User, OTID: new("otid-1"), Content: []recall.Part{
		{Type: recall.Text, Text: "see"},
		{Type: recall.Image, Source: json.RawMessage(`{"data":"aGk=","media_type":"image/png","type":"base64"}`)}}},
		recall.Draft{Role: recall.Assistant, RunID: new("run-1"), Content: []recall.Part{
			{Type: recall.SummarizedReasoning, CallID: "rs_1", Text: "Hm <b>.", Data: "gAAA+/==",
				Item: `{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA+/=="}`},
			{Type: recall.AnthropicBlock, Item: `{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"q":1.0}}`},
			{Type: recall.AnthropicBlock, Item: `{"type":"x","text":"<&> "}`},
			{Type: recall.Text, Text: "saw"}}},
		recall.Draft{Role: recall.User, Name: new("ada"), SenderID: new("s"), GroupID: new("g"), StepID: new("step-1"),
			Model: new("m"), CreatedAt: new(time.Now().Add(-48 * time.Hour)), IsErr: true,
			Content: []recall.Part{{Type: recall.Text, Text: "two days ago"}}},
		recall.Draft{Role: recall.System, Purpose: recall.ForFlush, Content: []recall.Part{{Type: recall.Text,
			Text: "a silent turn"}}})
	c.must("POST", base+"/messages/capture", fmt.Sprintf(`{"messages":[{"role":"user","content":"a broken picture"}],
		"conversation_id":%q,"refused":{"status":400,"message":"no picture"}}`, other))
	c.made(fmt.Sprintf("/v1/conversations/%s/fork", other), `{}`)
	c.must("PUT", base+"/consumers/reader", `{"seq":3}`)
	c.remembers(agent)
	c.child(agent, `{"mode":"fork","task":"Count whales.","tools":["expand"]}`)
	return agent
}

// remembers gives an agent a working memory and memory files.
func (c *client) remembers(agent string) {
	c.t.Helper()
	base := "/v1/agents/" + agent
	c.tool(agent, "update_working_memory", `{"changes":[{"field":"task","text":"count whales"},
		{"field":"decisions","text":"count at dawn"},
		{"field":"important_files","text":"Papers/b.md","evidence":"Papers/b.md"}]}`)
	c.tool(agent, "update_working_memory", `{"changes":[{"field":"next","text":"sail"}]}`)
	c.must("PATCH", base+"/tools/attach/"+toolIDs()["memory_files"], "")
	for _, command := range []string{
		`{"command":"create","path":"/memories/people/ada.md","file_text":"Ada counts whales.\n"}`,
		`{"command":"create","path":"/memories/MEMORY.md","file_text":"# Memory\n\n- Ada: people/ada.md\n"}`,
		`{"command":"create","path":"/memories/old.md","file_text":"The secret name is Moby.\n"}`,
		`{"command":"str_replace","path":"/memories/people/ada.md","old_str":"whales","new_str":"all whales"}`,
		`{"command":"delete","path":"/memories/old.md"}`,
		`{"command":"create","path":"/memories/noon.md","file_text":"The ferry leaves at noon.\n"}`,
		`{"command":"create","path":"/memories/one.md","file_text":"The ferry leaves at one.\n",
			"supersedes":"/memories/noon.md"}`,
	} {
		c.must("POST", base+"/memory-tree/command", command)
	}
	var tree struct{ ID string }
	if err := json.Unmarshal([]byte(c.must("GET", base+"/memory-tree", "")), &tree); err != nil {
		c.t.Fatal(err)
	}
	c.must("PATCH", "/v1/memory-trees/"+tree.ID, `{"description":"Of whales","rules":{"max_list_items":7}}`)
	c.must("POST", "/v1/memory-trees/"+tree.ID+"/redact", `{"text":"Moby"}`)
	c.must("PATCH", base+"/memory-trees/attach/"+tree.ID+"?read_only=true", `{}`)
}

// customTool is a definition with all fields.
const customTool = `{"json_schema":{"name":"weather","description":"Says <the> weather.",
	"parameters":{"type":"object","properties":{"city":{"type":"string","description":"a & b"}}}},
	"source_code":"def weather(city: str): ...","source_type":"python",
	"args_json_schema":{"type":"object","properties":{}},
	"tags":["t"],"return_char_limit":77,"pip_requirements":[{"name":"requests"}],"npm_requirements":[{"name":"x"}],
	"default_requires_approval":true,"enable_parallel_execution":true,"metadata_":{"k":1.50}}`

// memory returns everything that the API shows about an agent, by request.
func (c *client) memory(agent string) map[string]string {
	c.t.Helper()
	base := "/v1/agents/" + agent
	all := map[string]string{}
	ask := func(target string) { all[target] = c.must("GET", target, "") }
	for _, path := range []string{"", "/events?limit=1000", "/messages?limit=1000&order=asc", "/compactions",
		"/core-memory/blocks", "/archival-memory?limit=100", "/folders", "/files?limit=100", "/context",
		"/prompt?format=openai", "/prompt?format=anthropic", "/prompt?format=responses",
		"/archival-memory/search?query=whales", "/tools?limit=100", "/consumers", "/archives"} {
		if path == "/archives" {
			ask("/v1/archives?agent_id=" + agent)
			continue
		}
		ask(base + path)
	}
	for _, b := range c.list(base + "/core-memory/blocks") {
		ask(fmt.Sprintf("/v1/blocks/%s/versions", b["id"]))
	}
	for _, conversation := range c.list("/v1/conversations?agent_id=" + agent) {
		ask(fmt.Sprintf("/v1/conversations/%s", conversation["id"]))
		ask(fmt.Sprintf("/v1/conversations/%s/messages?limit=1000", conversation["id"]))
		ask(fmt.Sprintf("/v1/conversations/%s/working-memory", conversation["id"]))
		ask(fmt.Sprintf("/v1/conversations/%s/working-memory/versions", conversation["id"]))
	}
	ask(base + "/memory-tree")
	var tree struct{ ID string }
	if err := json.Unmarshal([]byte(all[base+"/memory-tree"]), &tree); err != nil {
		c.t.Fatal(err)
	}
	ask("/v1/memory-trees/" + tree.ID + "/files")
	for _, f := range c.memoryFiles(tree.ID) {
		ask("/v1/memory-trees/" + tree.ID + "/versions?memory_file_id=" + f)
	}
	ask("/v1/memory-trees/" + tree.ID + "/search?query=whales")
	for _, folder := range c.list(base + "/folders") {
		for _, f := range c.list(fmt.Sprintf("/v1/folders/%s/files?include_content=true", folder["id"])) {
			delete(f, "updated_at") // when it was parsed
			raw, _ := json.Marshal(f)
			all[fmt.Sprintf("file %s", f["id"])] = string(raw)
			all[fmt.Sprintf("original %s", f["id"])] = c.must("GET", fmt.Sprintf("/v1/folders/%s/files/%s/original",
				folder["id"], f["id"]), "")
		}
	}
	ask("/v1/tools?tool_types=custom")
	ask("/v1/identities")
	all["search"] = c.must("POST", "/v1/messages/search", fmt.Sprintf(`{"query":"whales swim","agent_id":%q}`, agent))
	all["reset"] = c.messagesWithReset(agent)
	return all
}

// memoryFiles returns the ids of a tree's files, including deleted files.
func (c *client) memoryFiles(tree string) []string {
	c.t.Helper()
	all, err := db.All[string](c.t.Context(), c.pool, `
		SELECT f.id FROM memory_files f JOIN memory_trees t ON t.org = f.org AND t.key = f.tree_key
		WHERE f.org = $1 AND t.org = $1 AND t.id = $2
		ORDER BY f.key`, c.org, tree)
	if err != nil {
		c.t.Fatal(err)
	}
	return all
}

// messagesWithReset returns the stored messages of an agent's log, including messages that a reset hid.
func (c *client) messagesWithReset(agent string) string {
	c.t.Helper()
	rows, err := c.pool.Query(c.t.Context(), `
		SELECT m.seq || ' ' || m.id || ' ' || m.position || ' ' || m.session || ' ' || m.role || ' ' || m.tokens || ' ' ||
			m.length || ' ' || m.content::text || coalesce(m.otid, '') || m.created_at || array_length(m.terms, 1)
		FROM messages m JOIN agents a ON a.org = m.org AND a.key = m.agent_key
		WHERE m.org = $1 AND a.org = $1 AND a.id = $2
		ORDER BY m.seq`, c.org, agent)
	if err != nil {
		c.t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var line *string
		if err := rows.Scan(&line); err != nil {
			c.t.Fatal(err)
		}
		if line == nil {
			line = new("without weights")
		}
		all = append(all, *line)
	}
	return strings.Join(all, "\n")
}

// If a full export is imported on an empty server, nothing is lost.
func TestAFullExportIsImportedWithoutLoss(t *testing.T) {
	t.Parallel()
	c, other := newClient(t), newElsewhereClient(t)
	agent := c.remembering()
	file := c.must("GET", "/v1/agents/"+agent+"/export?full=true", "")
	ids, leftOut := other.imported(file)
	if len(ids) != 1 || ids[0] != agent || len(leftOut) > 0 {
		t.Fatalf("got %v, left out %q", ids, leftOut)
	}
	other.awaitFilesOf(agent)
	exported, imported := c.memory(agent), other.memory(agent)
	for asked, answer := range exported {
		if diff := cmp.Diff(answer, imported[asked]); diff != "" {
			t.Errorf("%s differs (-exported +imported):\n%.3000s", asked, diff)
		}
	}
	if len(exported) != len(imported) {
		t.Errorf("got %d answers, want %d", len(imported), len(exported))
	}
	exportAgain := func(c *client) []string {
		lines := strings.Split(c.must("GET", "/v1/agents/"+agent+"/export?full=true", ""), "\n")
		return slices.DeleteFunc(lines, func(l string) bool { // only the first export names what it leaves out
			return strings.HasPrefix(l, `"created_at":`) || strings.HasPrefix(l, `"metadata":{"exported_by":`)
		})
	}
	if diff := cmp.Diff(exportAgain(c), exportAgain(other)); diff != "" {
		t.Errorf("a second export differs:\n%.2000s", diff)
	}
	// Messages that are appended next get the next numbers, and a compaction can be reverted.
	c.say(agent, "next")
	other.say(agent, "next")
	if w, g := len(c.events(agent, "")), len(other.events(agent, "")); w != g {
		t.Errorf("got %d events, want %d", g, w)
	}
	k := c.list("/v1/agents/" + agent + "/compactions")[0]["id"]
	other.must("POST", fmt.Sprintf("/v1/agents/%s/compactions/%s/revert", agent, k), `{}`)
}

// A full file says which hand-overs and sub-agents it leaves out, and why.
func TestAFullFileNamesWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	agent := c.filed(`,"handover":{"mode":"pending"}`)
	c.session(agent)
	waiting := len(c.handOver(agent).Updates)
	c.child(agent, `{"mode":"blank","task":"Look at the harbour."}`)
	var file struct {
		Metadata struct {
			LeftOut string `json:"left_out"`
		}
	}
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+agent+"/export?full=true", "")), &file); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Hand-overs (1) are", fmt.Sprintf("operator's approval (%d) are", waiting),
		"Sub-agents (1) are"} {
		if waiting == 0 || !strings.Contains(file.Metadata.LeftOut, want) ||
			strings.Contains(file.Metadata.LeftOut, "silent turns") {
			t.Errorf("left out: %q, want %q", file.Metadata.LeftOut, want)
		}
	}
}

// If an id is taken, all objects in the file get new ids, and nothing that already exists changes.
func TestAFullImportTouchesNothingThatIsThere(t *testing.T) {
	t.Parallel()
	c := newClient(t).keyed()
	agent := c.remembering()
	file := c.must("GET", "/v1/agents/"+agent+"/export?full=true", "")
	original := c.memory(agent)
	ids, _ := c.imported(file)
	if len(ids) != 1 || ids[0] == agent {
		t.Fatalf("got %v", ids)
	}
	c.awaitFilesOf(ids[0])
	for asked, answer := range c.memory(agent) {
		if diff := cmp.Diff(unlinked(original[asked]), unlinked(answer)); diff != "" && asked != "search" {
			t.Errorf("%s changed:\n%.2000s", asked, diff)
		}
	}
	counts := regexp.MustCompile(`"(tokens|total)":\d+`) // ids take different numbers of tokens
	// An import contains no keys.
	keys := regexp.MustCompile(`,"(provenance|attached_by)":\{"key_id":"key-~"\}|"key_id":"key-~",|` +
		`,"(made|changed)_by":(null|\{"key_id":"key-~"\})`)
	copied := func(text string) string {
		text = strings.ReplaceAll(unnamed(text), "Papers (2)", "Papers")
		return counts.ReplaceAllString(keys.ReplaceAllString(text, ""), "")
	}
	for _, path := range []string{"", "/messages?limit=1000&order=asc", "/events?limit=1000"} {
		w, g := c.must("GET", "/v1/agents/"+agent+path, ""), c.must("GET", "/v1/agents/"+ids[0]+path, "")
		if diff := cmp.Diff(copied(w), copied(g)); diff != "" {
			t.Errorf("%s of the copy differs:\n%.2000s", path, diff)
		}
	}
	other := c.as("other")
	imported, _ := other.imported(file)
	if imported[0] != agent {
		t.Errorf("the id is free in another organization, and became %s", imported[0])
	}
	for _, id := range []string{agent, ids[0]} {
		if got := c.call("GET", "/v1/agents/"+id, ""); got.Code != http.StatusOK {
			t.Errorf("%s is gone: %s", id, got.Text)
		}
	}
	other.must("DELETE", "/v1/agents/"+agent, "")
	for asked, answer := range c.memory(agent) {
		if diff := cmp.Diff(unlinked(original[asked]), unlinked(answer)); diff != "" && asked != "search" {
			t.Errorf("%s changed with another organization's agent:\n%.2000s", asked, diff)
		}
	}
}

// unlinked removes the agents and blocks of identities from an answer, because an import adds to them.
func unlinked(text string) string {
	return regexp.MustCompile(`"(agent|block)_ids":\[[^]]*\]|"changed_by":(null|\{[^}]*\})`).ReplaceAllString(text, "")
}

// A full file with a change made by hand is refused, and nothing is stored. The error names the place. Foreign ids in
// it do not reach other organizations.
func TestABrokenFullFileIsRefusedAndWritesNothing(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	c := newClient(t).keyed()
	agent := c.remembering()
	file := c.must("GET", "/v1/agents/"+agent+"/export?full=true", "")
	stranger, notes := c.made("/v1/agents", `{}`), c.made("/v1/blocks", `{"label":"notes","value":""}`)
	other := c.as("other")
	before := other.tables()
	edit := func(pattern, replacement string) string {
		find := regexp.MustCompile(pattern)
		match := find.FindStringSubmatchIndex(file)
		if match == nil {
			t.Fatalf("the file has no %s", pattern)
		}
		return file[:match[0]] + string(find.ExpandString(nil, replacement, file, match)) + file[match[1]:]
	}
	const nobody = "123e4567-e89b-42d3-8456-426614174000"
	for name, broken := range map[string]struct{ text, want string }{
		"an agent of nobody": {edit(`"loci_blocks":(.*?)"agent_id":"agent-[^"]*`,
			`"loci_blocks":[{"agent_id":"agent-`+nobody),
			"loci_blocks[0]"},
		"an id that is none": {edit(`"loci_blocks":\[\{"id":"block-`, `"loci_blocks":[{"id":"blok-`), "loci_blocks[0]"},
		"a version too many": {edit(`"loci_block_versions":\[`, `"loci_block_versions":[{"block_id":"block-`+nobody+`"},`),
			"versions"},
		"a message twice":   {edit(`"loci_messages":\[([^\n]*),\n`, `"loci_messages":[`), "loci_"},
		"a wrong position":  {edit(`"position":2,`, `"position":9,`), "the position of message"},
		"a wrong seq":       {edit(`"seq":1,"type":"agent_created"`, `"seq":5,"type":"agent_created"`), "loci_events"},
		"a type of nothing": {edit(`"type":"agent_created"`, `"type":"boom"`), "loci_events"},
		"a view beyond":     {edit(`"first_visible":14`, `"first_visible":999999`), "first_visible"},
		"a version below 0": {edit(`"view":\{"version":\d+`, `"view":{"version":-1`), "view is -1"},
		"settled below 0":   {edit(`"settled_tokens":\d+`, `"settled_tokens":-5`), "view is -5"},
		"an unknown field": {edit(`"loci_conversations":\[\{`, `"loci_conversations":[{"bogus":1,`),
			"loci_conversations[0]: unknown field"},
		"an unknown own field": {edit(`"loci":\{`, `"loci":{"bogus":1,`), "loci: unknown field"},
		"a definition of nothing": {edit(`"tools":\[\{"of":"[^"]*"`, `"tools":[{"of":"tool-99"`),
			"loci.tools[0].of"},
		"own fields of nobody": {edit(`"agents":\[\{"of"`,
			`"agents":[{"of":"agent-9"},{"of"`), "loci.agents[0].of"},
		"a block of nothing": {edit(`"block_ids":\["block-[^"]*"`, `"block_ids":["block-99"`), "agents[0].block_ids[0]"},
		"a view of nothing": {edit(`("files_agents":\[\{.*?"file_id":)"[^"]*"`, `$1"file-99"`),
			"agents[0].files_agents[0]"},
		"a summary of nothing": {edit(`"summary_position":42`, `"summary_position":3`), "summary"},
		"a summary unread":     {edit(`"stats":\{`, `"stats":7,"x":{`), "loci_messages"},
		"a window below 1": {edit(`("llm_config":\{[^}]*"context_window":)\d+`, `$1-1`),
			"llm_config.context_window is -1"},
		"a short original":  {edit(`"size_bytes":4500`, `"size_bytes":4501`), "loci_files[0]"},
		"a file twice":      {edit(`"loci_files":\[(\{[^\n]*\}),\n`, `"loci_files":[`), "loci_"},
		"no base64":         {edit(`"bytes":"`, `"bytes":"%%`), "loci_originals[0]"},
		"a mode of nothing": {edit(`"mode":"sliding_window","how"`, `"mode":"x","how"`), "loci_compactions[0]"},
		"no conversation": {edit(`(?s)"loci_conversations":.*"loci_compactions":`, `"loci_compactions":`),
			"default conversation"},
		"a tool without a name": {edit(`"json_schema":\{"name":"weather"`, `"json_schema":{"name":"a b"`), "json_schema"},
		"a built-in tool": {edit(`"json_schema":\{"name":"weather"`, `"json_schema":{"name":"expand"`),
			"expand is the name of a built-in tool"},
		"a tool's id":      {edit(`("tools":\[\{"of":"[^"]*","id":)"tool-[^"]*"`, `$1"tool-1"`), "tools["},
		"a tool too few":   {edit(`"custom_tools":\[[^]]*\]`, `"custom_tools":[]`), "custom_tools"},
		"a tool of nobody": {edit(`"custom_tools":\[\{"of":"[^"]*"`, `"custom_tools":[{"of":"tool-99"`), "tool-99"},
		"a reader beyond": {edit(`"name":"reader","seq":3`, `"name":"reader","seq":3000`),
			"loci_event_consumers[0]: seq"},
		"a reader of none": {edit(`"name":"reader"`, `"name":""`), "loci_event_consumers[0]"},
		"an identity twice": {edit(`(?s)"loci_identities":\[(.*?)\]\n`, `"loci_identities":[$1,$1]`),
			"loci_identities[2]"},
		"a type of an identity": {edit(`"identity_type":"user"`, `"identity_type":"boss"`), "loci_identities[0]"},
		"an identity of another's agent": {edit(`("properties":\[[^]]*\],"agent_ids":\[)"agent-[^"]*"`,
			`$1"`+stranger+`"`), "loci_identities[0]: agent_id"},
		"an identity of another's block": {edit(`("properties":\[[^]]*\],"agent_ids":\[[^]]*\],"block_ids":\[)"block-[^"]*"`,
			`$1"`+notes+`"`), "loci_identities[0]: block_ids[0]"},
		"a fork of nobody": {edit(`"forked_from":"conv-[^"]*"`, `"forked_from":"conv-`+nobody+`"`), "forked_from"},
		"a fork of itself": {edit(`("id":"(conv-[^"]*)"[^\n]*"forked_from":)"conv-[^"]*"`, `$1"$2"`), "forked_from"},
		"a fork too far":   {edit(`("forked_from":"conv-[^"]*","forked_to":)`, `${1}9`), "forked_to is 9"},
		"a working memory too many": {edit(`"loci_working_memories":\[`,
			`"loci_working_memories":[{"conversation_id":"conv-`+nobody+`"},`), "loci_working_memories[0]"},
		"a working memory that lacks a version": {edit(`"loci_working_memory_versions":\[[^\n]*,\n`,
			`"loci_working_memory_versions":[`), "lacks 1 of its versions"},
		"an entry of two lines": {edit(`"text":"count at dawn"`, `"text":"a\nb"`), "loci_working_memories[0]"},
		"evidence of nothing":   {edit(`"kind":"file"`, `"kind":"x"`), "loci_working_memories[0]"},
		"a path that leaves": {edit(`"path":"/memories/people/ada.md"`, `"path":"/memories/../ada.md"`),
			"loci_memory_files[0]"},
		"a file of no tree":      {edit(`"tree_id":"tree-[^"]*`, `"tree_id":"tree-`+nobody), "loci_memory_files[0]"},
		"a deletion with a text": {edit(`"change":"deleted"`, `"change":"created"`), "loci_memory_file_versions"},
		"a change of nothing":    {edit(`"change":"created"`, `"change":"made"`), "loci_memory_file_versions[0]"},
		"a tree of nobody": {edit(`("loci_memory_trees":\[.*"agent_id":)"agent-[^"]*"`, `$1"`+stranger+`"`),
			"loci_memory_trees[0]"},
		"a compaction of another's conversation": {edit(`("loci_compactions":\[\{[^\n]*?"conversation_id":)"conv-[^"]*"`,
			`$1"conv-`+nobody+`"`), "loci_compactions[0]"},
		"a passage of nobody": {edit(`"archive_id":"archive-[^"]*`, `"archive_id":"archive-`+nobody), "loci_passages[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			got := other.importing(broken.text)
			var p struct{ Detail string }
			if err := json.Unmarshal([]byte(got.Text), &p); err != nil || got.Code < 400 || got.Code > 499 ||
				!strings.Contains(p.Detail, broken.want) {
				t.Errorf("got %d %.500s, want %q", got.Code, got.Text, broken.want)
			}
		})
	}
	if diff := cmp.Diff(before, other.tables()); diff != "" {
		t.Errorf("a refused import wrote rows:\n%s", diff)
	}
}

// A file contains no secrets. If another server's file contains one, it is not stored.
func TestSecretsStayOutOfAgentFiles(t *testing.T) {
	t.Parallel()
	c := newClient(t).keyed()
	secret := "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bD1fG3hJ5"
	file := changed(t, `"TOKEN":""`, `"TOKEN":"`+secret+`"`)
	file = strings.Replace(file, `"text":"hi"`, `"text":"the key is `+secret+`"`, 1)
	ids, _ := c.imported(file)
	var redactionKey string
	if err := c.pool.QueryRow(t.Context(), `SELECT encode(redaction_key, 'hex') FROM organizations WHERE org = $1`,
		c.org).Scan(&redactionKey); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"", "?full=true"} {
		text := c.must("GET", "/v1/agents/"+ids[0]+"/export"+query, "")
		for _, hidden := range []string{secret, c.key, redactionKey, "TOKEN"} {
			if strings.Contains(text, hidden) {
				t.Errorf("the export %s has %q", query, hidden)
			}
		}
	}
}
