package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat/chattest"
	"github.com/loci-memory/loci/server/servertest"
)

// importing sends a file as Letta's clients do. texts are names of text parts, each followed by the part's text.
func (c *client) importing(file string, texts ...string) servertest.Reply {
	c.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i := 0; i+1 < len(texts); i += 2 {
		if err := form.WriteField(texts[i], texts[i+1]); err != nil {
			c.t.Fatal(err)
		}
	}
	part, err := form.CreateFormFile("file", "agent.af")
	if err == nil {
		_, err = part.Write([]byte(file))
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return servertest.Send(c, http.MethodPost, "/v1/agents/import", body.String(),
		append(c.headers(), "Content-Type", form.FormDataContentType())...)
}

// imported imports a file. It returns the ids of the agents, and the parts that were left out.
func (c *client) imported(file string, texts ...string) (ids, leftOut []string) {
	c.t.Helper()
	got := c.importing(file, texts...)
	var answer struct {
		AgentIDs []string `json:"agent_ids"`
		LeftOut  []string `json:"left_out"`
	}
	if err := json.Unmarshal([]byte(got.Text), &answer); err != nil || got.Code != http.StatusOK || answer.LeftOut == nil {
		c.t.Fatalf("import: %d %s", got.Code, got.Text)
	}
	return answer.AgentIDs, answer.LeftOut
}

// checkPrompts fails the test unless providers of all formats take an agent's next prompt.
func (c *client) checkPrompts(agent string) {
	c.t.Helper()
	for format, check := range map[string]func([]json.RawMessage) error{"openai": chattest.OpenAI,
		"anthropic": chattest.Anthropic, "responses": chattest.Responses} {
		if err := check(c.requested(agent, format)); err != nil {
			c.t.Errorf("%s: %v", format, err)
		}
	}
}

// tables counts the rows in each table that an import may write.
func (c *client) tables() map[string]int {
	c.t.Helper()
	counts, org := map[string]int{}, c.ofOrg()
	for _, table := range []string{"agents", "agent_heads", "agent_logs", "agent_blocks", "agent_files", "agent_folders",
		"agent_archives", "archives", "blobs", "block_versions", "blocks", "clips", "compactions", "conversations", "events",
		"file_originals",
		"files", "folders", "messages", "passages", "tool_calls", "tools", "agent_tools", "identities", "agent_identities",
		"block_identities", "event_consumers", "river_job"} {
		var n int
		if err := c.pool.QueryRow(c.t.Context(), `SELECT count(*) FROM `+table+` t `+org[table]).Scan(&n); err != nil {
			c.t.Fatal(err)
		}
		counts[table] = n
	}
	return counts
}

// lettasFile is a file as Letta's server exports it, with everything that Loci does not have.
const lettasFile = `{"agents":[{"name":"Ada","memory_blocks":[],"tools":[],
	"tool_ids":["tool-0","tool-1","tool-2","tool-3","tool-4"],
	"source_ids":["source-0"],"block_ids":["block-0","block-1"],
	"tool_rules":[{"tool_name":"send_message","type":"exit_loop"},
		{"tool_name":"weather","type":"max_count_per_step","max_count_limit":2},
		{"tool_name":"ask_server","type":"exit_loop"}],"tags":["a","b"],"system":"You are Ada.",
	"agent_type":"memgpt_v2_agent",
	"llm_config":{"model":"gpt-4o","model_endpoint_type":"openai","context_window":30000,"handle":"openai/gpt-4o",
		"temperature":0.5,"max_tokens":null,"enable_reasoner":false,"model_endpoint":"https://api.openai.com/v1",
		"put_inner_thoughts_in_kwargs":false,"provider_name":"openai","provider_category":"base"},
	"embedding_config":{"embedding_endpoint_type":"openai","embedding_model":"m","embedding_dim":1536,"handle":"openai/m"},
	"initial_message_sequence":null,"include_base_tools":false,"include_multi_agent_tools":false,
	"include_base_tool_rules":false,"include_default_source":false,"description":"An agent","metadata":{"k":[1]},
	"model":null,"embedding":null,"context_window_limit":null,"embedding_chunk_size":null,"max_tokens":null,
	"max_reasoning_tokens":null,"enable_reasoner":false,"from_template":null,"template":false,"project":null,
	"tool_exec_environment_variables":{"TOKEN":""},"memory_variables":null,"project_id":null,"template_id":null,
	"base_template_id":null,"identity_ids":null,"message_buffer_autoclear":true,"enable_sleeptime":true,
	"response_format":null,"timezone":"Europe/Berlin","max_files_open":3,"per_file_view_window_char_limit":4000,
	"hidden":null,"id":"agent-0","in_context_message_ids":["message-1","message-2","message-3","message-4","message-5",
		"message-6"],
	"messages":[
		{"type":"message","role":"user","content":"long ago","id":"message-0","created_at":"2025-01-01T00:00:00+00:00"},
		{"role":"system","content":[{"type":"text","text":"compiled"}],"id":"message-1","created_at":"2025-01-02T00:00:00"},
		{"role":"user","content":[{"type":"text","text":"hi"}],"id":"message-2","created_at":"2025-01-02T00:00:01Z"},
		{"role":"assistant","content":[{"type":"reasoning","is_native":true,"reasoning":"hm","signature":null}],
			"tool_calls":[{"id":"c1","type":"function","function":{"name":"send_message","arguments":"{\"message\":\"yo\"}"}}],
			"id":"message-3","model":"gpt-4o"},
		{"role":"tool","content":[{"type":"text","text":"{\"status\":\"OK\"}"}],"tool_call_id":"c1",
			"tool_returns":[{"tool_call_id":"c1","status":"success","stdout":null,"stderr":null,"func_response":"OK"}],
			"name":"send_message","id":"message-4"},
		{"role":"tool","content":[{"type":"text","text":"nobody asked"}],"tool_call_id":"c-orphan","id":"message-5"},
		{"role":"approval","content":null,"approve":true,"approvals":[{"type":"approval","approve":true,
			"tool_call_id":"c1"}],"id":"message-6"}],
	"files_agents":[{"id":"file_agent-0","agent_id":"agent-0","file_id":"file-0","source_id":"source-0",
		"file_name":"a.pdf","is_open":true,"visible_content":"one","last_accessed_at":"2025-01-02T00:00:00Z"}],
	"group_ids":["group-0"]}],
	"groups":[{"id":"group-0","agent_ids":["agent-0"],"description":"g"}],
	"blocks":[{"id":"block-0","value":"I am Ada.","limit":5000,"label":"persona","description":"who","metadata":{},
		"is_template":false,"template_name":null,"preserve_on_migration":false,"read_only":true,"project_id":null},
		{"id":"block-1","value":"","limit":5000,"label":"human","description":null,"metadata":{}}],
	"files":[{"id":"file-0","source_id":"source-0","file_name":"a.pdf","original_file_name":"a.pdf","file_path":null,
		"file_type":"application/pdf","file_size":3,"processing_status":"completed","content":"one\ntwo\n"}],
	"sources":[{"id":"source-0","name":"Papers","description":"d","instructions":"i","metadata":null,
		"embedding_config":{"embedding_model":"m"}}],
	"tools":[{"id":"tool-0","name":"send_message","tool_type":"letta_core","json_schema":{}},
		{"id":"tool-1","name":"conversation_search","tool_type":"letta_core","json_schema":{}},
		{"id":"tool-2","name":"roll_dice","tool_type":"custom","source_code":"def roll_dice(): ...","json_schema":{}},
		{"id":"tool-3","name":"weather","tool_type":"custom","source_code":"def weather(city: str): ...","tags":["t"],
			"description":"Tells the weather","source_type":"python","args_json_schema":null,"return_char_limit":50000,
			"pip_requirements":null,"npm_requirements":null,"default_requires_approval":null,"created_by_id":null,
			"last_updated_by_id":null,"metadata_":null,"json_schema":{"name":"weather","description":"Tells the weather",
				"parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}},
		{"id":"tool-4","name":"ask_server","tool_type":"external_mcp","source_code":"","json_schema":{"name":"weather"}}],
	"mcp_servers":[{"id":"mcp_server-0","server_type":"sse","server_name":"x"}],
	"metadata":{"revision_id":"abc"},"created_at":"2025-01-03T00:00:00Z"}`

func TestAFileOfLettaIsImported(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	c.made("/v1/folders", `{"name":"Papers"}`)
	file := strings.NewReplacer(`{"type":"text","text":"hi"}`, `{"type":"text","text":"hi","c":1}`,
		`"id":"message-0"`, `"id":"message-0","b":1`, `{"name":"send_message","arguments"`,
		`{"name":"send_message","d":1,"arguments"`, `"is_open":true`, `"is_open":true,"e":1`,
		`"file_size":3`, `"file_size":3,"f":1`, `"id":"message-6"}`, `"id":"message-6"},{"role":"user","content":null,
		"id":"message-7"}`).Replace(lettasFile)
	ids, leftOut := c.imported(strings.TrimSuffix(file, "}") + `,"bogus":1}`)
	agent := ids[0]
	var got struct {
		Name, System, Timezone, Model, Embedding string
		Tags                                     []string
		Blocks                                   []struct{ Label, Value string }
		Tools                                    []struct{ Name string }
		Sources                                  []struct{ ID, Name string }
		ToolRules                                []any `json:"tool_rules"`
		LLMConfig                                struct {
			ContextWindow int     `json:"context_window"`
			Temperature   float64 `json:"temperature"`
		} `json:"llm_config"`
		MaxFilesOpen int      `json:"max_files_open"`
		MessageIDs   []string `json:"message_ids"`
	}
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+agent, "")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Name != "Ada" || got.System != "You are Ada." || got.Timezone != "Europe/Berlin" ||
		got.Model != "openai/gpt-4o" || got.Embedding != "openai/m" || got.LLMConfig.ContextWindow != 30000 ||
		got.LLMConfig.Temperature != 0.5 ||
		got.MaxFilesOpen != 3 || !slices.Equal(got.Tags, []string{"a", "b"}) || len(got.Blocks) != 2 ||
		got.Blocks[0].Value != "I am Ada." || got.Sources[0].Name != "Papers (2)" || len(got.MessageIDs) != 4 ||
		len(got.ToolRules) != 2 {
		t.Errorf("got %+v", got)
	}
	names := []string{}
	for _, tool := range got.Tools {
		names = append(names, tool.Name)
	}
	if !slices.Equal(names, []string{"conversation_search", "send_message", "weather"}) {
		t.Errorf("the agent has the tools %v", names)
	}
	for _, part := range []string{`does not know the field "bogus"`,
		`agents[0].messages: Loci does not know the field "b"`,
		`agents[0].messages: Loci does not know the field "content.c"`,
		`agents[0].messages: Loci does not know the field "tool_calls.function.d"`,
		`agents[0].files_agents: Loci does not know the field "e"`, `files[0]: Loci does not know the field "f"`,
		"agents[0].messages[7]: left out. It has no content.", "groups: 1 left out", "mcp_servers: 1 left out",
		`"roll_dice" is left out. `, `"ask_server" is left out`, `agents[0].tool_rules[2]: left out`,
		"agents[0].tool_exec_environment_variables: left out",
		"agents[0].messages[6]: left out", "agents[0].group_ids: left out",
		"agents[0].enable_sleeptime: left out"} {
		if !slices.ContainsFunc(leftOut, func(s string) bool { return strings.Contains(s, part) }) {
			t.Errorf("left_out does not say %q: %q", part, leftOut)
		}
	}
	c.checkPrompts(agent)
	prompt := c.must("GET", "/v1/agents/"+agent+"/prompt?format=openai", "")
	if strings.Contains(prompt, "long ago") || strings.Contains(prompt, "nobody asked") ||
		!strings.Contains(prompt, "I am Ada.") {
		t.Errorf("the prompt is %s", prompt)
	}
	if said := strings.Join(c.said(agent), "\n"); !strings.Contains(said, "long ago") {
		t.Errorf("the log lacks what the model did not see: %s", said)
	}
	var files []struct{ ID string }
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/folders/"+got.Sources[0].ID+"/files", "")), &files); err != nil {
		t.Fatal(err)
	}
	c.awaitFile(got.Sources[0].ID, files[0].ID)
	if state := c.must("GET", "/v1/agents/"+agent, ""); !strings.Contains(state, `"is_open":true`) {
		t.Errorf("the open file is not open: %s", state)
	}
}

func TestAnImportHonoursItsOptionsOrRefusesThem(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	ids, _ := c.imported(lettasFile, "name", "Eve", "append_copy_suffix", "true", "strip_messages", "true",
		"override_existing_tools", "false", "env_vars_json", "{}", "project_id", "", "model", "openai/gpt-4.1",
		"embedding", "openai/other")
	var got struct {
		Name, Model, Embedding string
		MessageIDs             []string `json:"message_ids"`
	}
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+ids[0], "")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Name != "Eve_copy" || got.Model != "openai/gpt-4.1" || got.Embedding != "openai/other" ||
		len(got.MessageIDs) != 1 {
		t.Errorf("got %+v", got)
	}
	before := c.tables()
	for texts, want := range map[[2]string]string{
		{"secrets", `{"A":"b"}`}:             "body.secrets: this server runs no custom tools and stores no secrets",
		{"env_vars_json", `{"A":"b"}`}:       "body.env_vars_json: this server runs no custom tools and stores no secrets",
		{"env_vars_json", `[`}:               "body.env_vars_json: expected a JSON object",
		{"project_id", "p"}:                  "body.project_id: this server has no projects; leave it out",
		{"strip_messages", "maybe"}:          `body.strip_messages: expected true or false. Got: "maybe"`,
		{"override_existing_tools", "maybe"}: `body.override_existing_tools: expected true or false. Got: "maybe"`,
		{"dry_run", "true"}:                  "body.dry_run: there is no such part of an import; leave it out",
	} {
		got := c.importing(lettasFile, texts[:]...)
		if got.Code != http.StatusUnprocessableEntity || !strings.Contains(got.Text, strings.ReplaceAll(want, `"`, `\"`)) {
			t.Errorf("%v: got %d %s, want %s", texts, got.Code, got.Text, want)
		}
	}
	if diff := cmp.Diff(before, c.tables()); diff != "" {
		t.Errorf("a refused import wrote rows:\n%s", diff)
	}
}

// An import refuses a part that it does not know, or that it already got, as soon as the part begins, however long the
// part is. All texts together are bounded.
func TestPartsThatAnImportDoesNotHaveAreNotRead(t *testing.T) {
	t.Parallel()
	c := newClient(t).keyed()
	long := strings.Repeat("x", 3<<20)
	for want, texts := range map[string][]string{
		"body.other: there is no such part of an import; leave it out": {"other", long},
		"body.name: the part is there twice; send one":                 {"name", "a", "name", long},
		"besides the file is larger than 1048576 bytes":                {"name", long[:600<<10], "model", long[:600<<10]},
	} {
		if got := c.importing(lettasFile, texts...); got.Code < 413 || got.Code > 422 || !strings.Contains(got.Text, want) {
			t.Errorf("got %d %s, want %s", got.Code, got.Text, want)
		}
	}
}

// A custom tool of the file becomes a tool of the organization. If a tool of that name exists, the import changes it
// unless told otherwise.
func TestAnImportCreatesCustomTools(t *testing.T) {
	t.Parallel()
	c := newClient(t).keyed()
	weather := c.made("/v1/tools", weatherTool)
	before := c.must("GET", "/v1/tools/"+weather, "")
	ids, _ := c.imported(lettasFile, "override_existing_tools", "false")
	if after := c.must("GET", "/v1/tools/"+weather, ""); after != before {
		t.Errorf("a tool that was not to be changed is %s, and was %s", after, before)
	}
	holder := c.made("/v1/agents", fmt.Sprintf(`{"tool_ids":[%q]}`, weather))
	seen := len(c.events(holder, ""))
	again, _ := c.imported(lettasFile)
	changed := c.definition(weather)
	if changed.Description != "Tells the weather" || changed.SourceCode == nil {
		t.Errorf("the tool is %+v", changed)
	}
	if n := len(c.events(holder, "")); n != seen+1 {
		t.Errorf("an agent that has the tool was told %d times of the change", n-seen)
	}
	c.imported(lettasFile)
	if n := len(c.events(holder, "")); n != seen+1 {
		t.Errorf("an agent that has the tool was told %d times of one change", n-seen)
	}
	for _, id := range append(ids, again...) {
		if prompt := c.must("GET", "/v1/agents/"+id+"/prompt?format=openai", ""); !strings.Contains(prompt, `"weather"`) {
			t.Errorf("the model of %s is not given the tool: %s", id, prompt)
		}
	}
	otherOrg := c.as("other")
	copies, _ := otherOrg.imported(c.must("GET", "/v1/agents/"+again[0]+"/export", ""))
	if tools := otherOrg.must("GET", "/v1/agents/"+copies[0]+"/tools", ""); !strings.Contains(tools, "def weather") {
		t.Errorf("an agent of another organization has %s", tools)
	}
	if n := len(otherOrg.list("/v1/tools?tool_types=custom")); n != 1 {
		t.Errorf("the organization has %d tools, want 1", n)
	}
}

// changed returns lettasFile with a text replaced.
func changed(t *testing.T, old, now string) string {
	t.Helper()
	if !strings.Contains(lettasFile, old) {
		t.Fatalf("the file has no %q", old)
	}
	return strings.Replace(lettasFile, old, now, 1)
}

// nested returns a number of nested objects.
func nested(levels int) string {
	return strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels)
}

func TestABrokenAgentFileIsRefusedAndWritesNothing(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	before := c.tables()
	for name, file := range map[string]struct{ text, want string }{
		"nothing":            {"", "Corrupted agent file format"},
		"no JSON":            {"agents", "Corrupted agent file format"},
		"a list":             {"[]", "Corrupted agent file format"},
		"a text":             {`"agents"`, "Corrupted agent file format"},
		"cut off":            {lettasFile[:len(lettasFile)/2], "Corrupted agent file format"},
		"half an older file": {`{"agent_type":"memgpt_agent","messages":[]}`, "no list of agents"},
		"an older message":   {`{"messages":[1],"core_memory":[]}`, "messages: "},
		"an older place": {`{"messages":[],"core_memory":[],"in_context_message_indices":[0]}`,
			"the file has 0 messages"},
		"no agents":          {`{"agents":[]}`, "no list of agents"},
		"agents of a text":   {`{"agents":"x"}`, "no list of agents"},
		"a wrong agent":      {`{"agents":[1]}`, "agents[0]: "},
		"deep":               {`{"agents":[` + nested(5000) + `]}`, "nesting"},
		"a deep field":       {changed(t, `{"k":[1]}`, nested(200)), "nesting"},
		"a name of a number": {changed(t, `"name":"Ada"`, `"name":7`), "agents[0].name"},
		"a field twice":      {changed(t, `"name":"Ada"`, `"name":"Ada","name":"Eve"`), "twice"},
		"a NUL":              {changed(t, `"value":"I am Ada."`, `"value":"I\u0000"`), "blocks[0].value: the text has a NUL"},
		"no UTF-8":           {changed(t, `I am Ada.`, "I\xff"), "blocks[0].value: the text has"},
		"a block twice":      {changed(t, `"block-1","value"`, `"block-0","value"`), "blocks[1].id"},
		"a block of another": {changed(t, `"block_ids":["block-0"`, `"block_ids":["block-9"`), "agents[0].block_ids[0]"},
		"two equal labels":   {changed(t, `"label":"human"`, `"label":"persona"`), "agents[0]: the agent has another block"},
		"a long block":       {changed(t, `"limit":5000`, `"limit":3`), "blocks[0]: Edit failed"},
		"no id":              {changed(t, `"id":"agent-0",`, ``), "agents[0].id"},
		"a message twice":    {changed(t, `"id":"message-2"`, `"id":"message-0"`), "agents[0].messages[2].id"},
		"a wrong role":       {changed(t, `"role":"user"`, `"role":"boss"`), "role is"},
		"a wrong part":       {changed(t, `{"type":"text","text":"hi"}`, `{"type":"smell"}`), "messages[2]: content[0]"},
		"a wrong time":       {changed(t, `2025-01-02T00:00:01Z`, `soon`), "is no time"},
		"a message of nobody": {changed(t, `"in_context_message_ids":["message-1"`, `"in_context_message_ids":["message-77"`),
			"agents[0].in_context_message_ids[0]"},
		"a source of nobody": {changed(t, `"source_ids":["source-0"]`, `"source_ids":["source-1"]`), "source_ids[0]"},
		"a file of nobody":   {changed(t, `"files":[{"id":"file-0","source_id":"source-0`, `"files":[{"id":"x`), "files[0]"},
		"a tool of nobody":   {changed(t, `"tool_ids":["tool-0"`, `"tool_ids":["tool-8"`), "agents[0].tool_ids[0]"},
		"a path":             {changed(t, `"file_name":"a.pdf","original`, `"file_name":"../a","original`), "files[0]"},
		"a large file":       {changed(t, `one\ntwo`, strings.Repeat("x", maxUpload+1)), "larger than the limit"},
		"a wrong zone":       {changed(t, `Europe/Berlin`, `Mars`), "timezone"},
		"a custom tool built in": {changed(t, `"json_schema":{"name":"weather"`, `"json_schema":{"name":"expand"`),
			"tools[3]: expand is the name of a built-in tool"},
		"two tools of a name": {changed(t, `"tool-4","name":"ask_server","tool_type":"external_mcp"`,
			`"tool-4","name":"x","tool_type":"custom","description":"d"`), "tools[4]: "},
		"a tool twice":    {changed(t, `"id":"tool-4"`, `"id":"tool-3"`), "tools[4].id"},
		"a tool's number": {changed(t, `"id":"tool-4"`, `"id":4`), "tools[4].id"},
		"tools of a text": {changed(t, `"tool_ids":["tool-0"`, `"tool_ids":[{"a":"tool-0"}`), "agents[0]"},
		"a raw NUL":       {changed(t, `I am Ada.`, "I\x00"), "Corrupted agent file format"},
		"a NUL in a name": {changed(t, `"name":"Ada"`, `"name":"A\u0000"`), "agents[0].name: the text has a NUL"},
		"a NUL in a tool": {changed(t, `"name":"weather","tool_type"`, `"name":"w\u0000","tool_type"`),
			"tools[3].name: the text"},
		"cut in a letter":  {lettasFile[:strings.Index(lettasFile, "Ada")+1] + "\xc3", "Corrupted agent file format"},
		"two files":        {lettasFile + lettasFile, "Corrupted agent file format"},
		"groups of a text": {changed(t, `"groups":[`, `"groups":"x","g":[`), "groups"},
		"a later version":  {`{"agents":[{}],"loci":{"version":9}}`, "loci.version is 9"},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.importing(file.text)
			var p struct{ Detail string }
			if err := json.Unmarshal([]byte(got.Text), &p); err != nil || got.Code < 400 || got.Code > 499 ||
				!strings.Contains(p.Detail, file.want) || strings.Count(p.Detail, "Corrupted") > 1 ||
				strings.HasPrefix(file.want, "Corrupted") && got.Code != 400 {
				t.Errorf("got %d %.500s, want %q", got.Code, got.Text, file.want)
			}
		})
	}
	if diff := cmp.Diff(before, c.tables()); diff != "" {
		t.Errorf("a refused import wrote rows:\n%s", diff)
	}
}

// Each entry has the fields that Letta's schema of agent files requires, and only known fields where the schema forbids
// others.
func TestAnExportHasTheFormOfLettas(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	folder := c.made("/v1/folders", `{"name":"Papers"}`)
	c.uploaded(folder, "a.txt", "one\ntwo\n")
	agent := c.made("/v1/agents", fmt.Sprintf(`{"name":"Ädä","model":"openai/gpt-4o","folder_ids":[%q],"tool_set":"all",
		"memory_blocks":[{"label":"human","value":"Bob"}]}`, folder))
	c.append(agent, recall.DefaultConversation, spokenBy("user", "hi", "assistant", "hello")...)
	file := c.must("GET", "/v1/agents/"+agent+"/export", "")
	var got map[string][]map[string]any
	var whole map[string]json.RawMessage
	if err := json.Unmarshal([]byte(file), &whole); err != nil {
		t.Fatal(err)
	}
	delete(whole, "loci")
	delete(whole, "created_at")
	var metadata map[string]string
	if err := json.Unmarshal(whole["metadata"], &metadata); err != nil {
		t.Errorf("metadata has other values than texts: %v", err)
	}
	delete(whole, "metadata")
	raw, _ := json.Marshal(whole)
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	for list, fields := range map[string]string{
		"blocks": "id label value limit description read_only hidden metadata is_template template_name " +
			"preserve_on_migration",
		"files": "id source_id file_name original_file_name file_path file_type file_size file_creation_date " +
			"file_last_modified_date processing_status error_message total_chunks chunks_embedded content",
		"sources": "id name description instructions metadata embedding_config",
		"tools": "id tool_type description source_type name tags source_code json_schema args_json_schema " +
			"return_char_limit pip_requirements npm_requirements default_requires_approval created_by_id " +
			"last_updated_by_id metadata_",
	} {
		if len(got[list]) == 0 {
			t.Errorf("%s is empty", list)
		}
		for _, entry := range got[list] {
			names := []string{}
			for name := range entry {
				names = append(names, name)
			}
			want := strings.Fields(fields)
			slices.Sort(names)
			slices.Sort(want)
			if diff := cmp.Diff(want, names); diff != "" {
				t.Errorf("%s (-want +got):\n%s", list, diff)
			}
		}
	}
	a := got["agents"][0]
	if a["id"] != "agent-0" || a["name"] != "_d_" || got["groups"] == nil || got["mcp_servers"] == nil {
		t.Errorf("got %v", a["name"])
	}
	config := a["llm_config"].(map[string]any)
	if config["model"] != "gpt-4o" || config["model_endpoint_type"] != "openai" || config["context_window"] == nil {
		t.Errorf("llm_config is %v", config)
	}
	messages := a["messages"].([]any)
	if len(messages) != 3 || messages[2].(map[string]any)["id"] != "message-2" ||
		len(a["in_context_message_ids"].([]any)) != 3 {
		t.Errorf("messages are %v", messages)
	}
}

// spokenBy returns messages for pairs of a role and a text.
func spokenBy(said ...string) (all []recall.Draft) {
	for i := 0; i+1 < len(said); i += 2 {
		all = append(all, recall.Draft{Role: recall.Role(said[i]),
			Content: []recall.Part{{Type: recall.Text, Text: said[i+1]}}})
	}
	return all
}

// A plain file keeps everything about an agent that it can contain.
func TestAnExportedAgentIsImported(t *testing.T) {
	t.Parallel()
	c := newClient(t).keyed()
	folder := c.made("/v1/folders", `{"name":"Papers"}`)
	c.uploaded(folder, "a.txt", "one\ntwo\n")
	agent := c.made("/v1/agents", fmt.Sprintf(`{"name":"Ädä","model":"openai/gpt-4o","folder_ids":[%q],
		"tool_set":"small","context_window_limit":9000,"compaction_settings":{"goal":0.5},"recall_scope":"conversation",
		"tags":["x"],
		"model_settings":{"temperature":0.25,"max_output_tokens":77},
		"memory_blocks":[{"label":"human","value":"Bob"}]}`, folder))
	long := strings.Repeat("long line\n", 6000)
	c.append(agent, recall.DefaultConversation, spokenBy("user", "hi", "assistant", "hello")...)
	c.exchanged(agent, "look", `{}`, long)
	other := c.as("other")
	ids, _ := other.imported(c.must("GET", "/v1/agents/"+agent+"/export", ""))
	other.awaitFilesOf(ids[0])
	if diff := cmp.Diff(c.stateOf(agent), other.stateOf(ids[0])); diff != "" {
		t.Errorf("the agent differs (-exported +imported):\n%s", diff)
	}
	for _, format := range []string{"openai", "anthropic", "responses"} {
		exported, imported := encodedRaw(c.requested(agent, format)), encodedRaw(other.requested(ids[0], format))
		if diff := cmp.Diff(unnamed(string(exported)), unnamed(string(imported))); diff != "" {
			t.Errorf("the prompt in the format %s differs (-exported +imported):\n%s", format, diff)
		}
	}
}

// A request may append at most recall.MaxMessages messages, but a file may have more.
func TestAnAgentOfManyMessagesIsExportedAndImported(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	said := slices.Repeat(spokenBy("user", "m"), recall.MaxMessages)
	c.append(agent, recall.DefaultConversation, said...)
	c.append(agent, recall.DefaultConversation, spokenBy("user", "last but one", "assistant", "last")...)
	ids, _ := c.imported(c.must("GET", "/v1/agents/"+agent+"/export", ""))
	original, err := c.server.Recall.Conversation(t.Context(), c.org, agent, recall.DefaultConversation)
	copied, err2 := c.server.Recall.Conversation(t.Context(), c.org, ids[0], recall.DefaultConversation)
	if err != nil || err2 != nil || copied.Messages != recall.MaxMessages+3 || copied.Messages != original.Messages ||
		copied.FirstVisible != original.FirstVisible {
		t.Errorf("got %d messages from %d on, %v; want %d from %d on, %v", copied.Messages, copied.FirstVisible, err2,
			original.Messages, original.FirstVisible, err)
	}
}

// ofRows matches ids and times, which an import replaces.
var ofRows = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|` +
	`20\d\d-\d\d-\d\dT[0-9:.]+(Z|\+00:00)`)

// unnamed replaces each id and time in a text with a mark.
func unnamed(text string) string { return ofRows.ReplaceAllString(text, "~") }

// awaitFilesOf waits until all files of an agent have texts.
func (c *client) awaitFilesOf(agent string) {
	c.t.Helper()
	for _, folder := range c.list("/v1/agents/" + agent + "/folders") {
		for _, f := range c.list(fmt.Sprintf("/v1/folders/%s/files", folder["id"])) {
			c.awaitFile(folder["id"].(string), f["id"].(string))
		}
	}
}

// stateOf returns an agent as the API shows it, with marks in place of ids and times.
func (c *client) stateOf(agent string) (state any) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(unnamed(c.must("GET", "/v1/agents/"+agent, ""))), &state); err != nil {
		c.t.Fatal(err)
	}
	return state
}

// If a file is larger than the server allows, the answer is a 413 that names the limit, and nothing is stored.
func TestAnAgentFileAboveTheBoundIsRefused(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.own().MaxImportBytes = 2 << 20
	before := c.tables()
	for _, pad := range []int{2 << 20, 4 << 20} { // the body with the file exceeds the limit in one case only
		got := c.importing(strings.Replace(lettasFile, `"agents"`, `"pad":"`+strings.Repeat("x", pad)+`","agents"`, 1))
		if got.Code != http.StatusRequestEntityTooLarge || !strings.Contains(got.Text, "larger than 2097152 bytes") {
			t.Errorf("%d bytes: got %d %.300s", pad, got.Code, got.Text)
		}
	}
	if diff := cmp.Diff(before, c.tables()); diff != "" {
		t.Errorf("a refused file wrote (-before +after):\n%s", diff)
	}
	c.imported(lettasFile)
}

// If one call waits and another was run, the first waits in the imported agent, too.
func TestACallThatWaitsBesideAnotherIsImported(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	r.model.Says(modeltest.Answer{Calls: []modeltest.Call{
		{ID: "i", Name: "conversation_search", Arguments: `{"query":"x"}`},
		{ID: "w", Name: "weather", Arguments: `{}`}}})
	r.send(`{"input":"Hello","client_tools":[{"name":"weather"}]}`)
	ids, _ := r.imported(r.must("GET", "/v1/agents/"+r.agent+"/export", ""))
	var asked []string
	for _, item := range r.list("/v1/agents/" + ids[0] + "/messages") {
		if item["message_type"] == "approval_request_message" {
			asked = append(asked, fmt.Sprint(item["tool_call"].(map[string]any)["name"]))
		}
	}
	if !slices.Equal(asked, []string{"weather"}) {
		t.Errorf("the imported agent asks for %q", asked)
	}
}
