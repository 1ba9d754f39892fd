package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/server/servertest"
)

const (
	smallTools    = "conversation_search expand memory"
	standardTools = "conversation_search expand memory_insert memory_replace memory_rethink archival_memory_insert " +
		"archival_memory_search"
	bothTools         = "conversation_search expand memory_insert memory_replace memory"
	sleeptimeTools    = "memory_insert memory_replace memory_rethink memory_finish_edits"
	lettaFileTools    = "open_files grep_files semantic_search_files"
	standardFileTools = lettaFileTools + " list_files close_files"

	defaultTools      = "expand search_memory memory archival_memory_insert"
	defaultFileTools  = "open_files grep_files"
	smallDefaultFiles = "open_files"
	lettaTools        = "conversation_search expand memory_insert memory_replace"
)

// toolIDs returns the ids of the tools by name.
func toolIDs() map[string]string {
	ids := map[string]string{}
	for _, t := range tool.New(tool.Memories{}).Tools() {
		ids[t.Name] = t.ID
	}
	return ids
}

// allTools returns the names of all tools that need a folder, or of all that do not.
func allTools(needFolder bool) string {
	var names []string
	for _, t := range tool.New(tool.Memories{}).Tools() {
		byName := []string{"memory_files", "search_memory", "ask_session", "request_erasure", "query_result", "query_log",
			"start_subagent", "send_message", "memory_finish_edits"} // an agent has these only if its tools name them
		if t.NeedsFolder == needFolder && !t.NeedsSkills && !slices.Contains(byName, t.Name) {
			names = append(names, t.Name)
		}
	}
	return strings.Join(names, " ")
}

// toolsOf returns the names of an agent's tools. Its list of tools, its state and its prompt must agree.
func toolsOf(t *testing.T, c *client, agent string) string {
	t.Helper()
	listed := namesOf(t, c.must("GET", "/v1/agents/"+agent+"/tools?order=asc&limit=50", ""))
	var state struct{ Tools json.RawMessage }
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+agent, "")), &state); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(listed, namesOf(t, string(state.Tools))); diff != "" {
		t.Errorf("tools of the list and of the state (-list +state):\n%s", diff)
	}
	var prompt struct {
		Request struct{ Tools json.RawMessage }
	}
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+agent+"/prompt?format=anthropic&policy=letta", "")),
		&prompt); err != nil {
		t.Fatal(err)
	}
	given := []string{}
	if prompt.Request.Tools != nil {
		given = namesOf(t, string(prompt.Request.Tools))
	}
	if diff := cmp.Diff(listed, given); diff != "" {
		t.Errorf("tools of the list and of the prompt (-list +prompt):\n%s", diff)
	}
	return strings.Join(listed, " ")
}

func TestAnAgentIsCreatedWithTheToolsThatItsCallerNames(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	folder, ids := c.made("/v1/folders", `{"name":"f"}`), toolIDs()
	for body, want := range map[string]struct{ set, memory, files string }{
		`{}`:                              {"default", defaultTools, defaultFileTools},
		`{"context_window_limit":4096}`:   {"default", defaultTools, smallDefaultFiles},
		`{"model":"openai/gpt-4"}`:        {"default", defaultTools, defaultFileTools},
		`{"made_for":"letta"}`:            {"default", lettaTools, lettaFileTools},
		`{"agent_type":"letta_v1_agent"}`: {"default", lettaTools, lettaFileTools},
		`{"agent_type":"memgpt_agent"}`: {"default", "conversation_search expand core_memory_append core_memory_replace " +
			"memory_apply_patch memory send_message", lettaFileTools},
		`{"agent_type":"memgpt_v2_agent"}`:                         {"default", lettaTools + " send_message", lettaFileTools},
		`{"agent_type":"voice_convo_agent"}`:                       {"default", lettaTools, lettaFileTools},
		`{"agent_type":"react_agent"}`:                             {"default", "", lettaFileTools},
		`{"agent_type":"workflow_agent"}`:                          {"default", "", lettaFileTools},
		`{"agent_type":"sleeptime_agent"}`:                         {"default", sleeptimeTools, lettaFileTools},
		`{"agent_type":"react_agent","tools":["memory"]}`:          {"", "memory", lettaFileTools},
		`{"agent_type":"letta_v1_agent","tools":["send_message"]}`: {"default", lettaTools, lettaFileTools},
		`{"agent_type":"letta_v1_agent","tools":["send_message"],"include_base_tools":false}`: {"", "send_message",
			lettaFileTools},
		`{"agent_type":"memgpt_agent","made_for":"loci"}`: {"default", defaultTools, defaultFileTools},
		`{"made_for":"letta","include_base_tools":true}`:  {"default", lettaTools, lettaFileTools},
		`{"made_for":"letta","tools":["list_files"]}`: {"", lettaTools,
			"open_files grep_files semantic_search_files list_files"},
		`{"made_for":"letta","tool_set":"standard"}`:                 {"standard", standardTools, standardFileTools},
		`{"include_base_tools":true,"include_base_tool_rules":true}`: {"", lettaTools, lettaFileTools},
		`{"tools":[],"tool_ids":[]}`:                                 {"default", defaultTools, defaultFileTools},
		`{"tool_set":"all"}`:                                         {"all", allTools(false), allTools(true)},
		`{"tool_set":"standard"}`:                                    {"standard", standardTools, standardFileTools},
		`{"tool_set":"small"}`:                                       {"small", smallTools, lettaFileTools},
		`{"tool_set":"small","tools":["archival_memory_search"]}`: {"", smallTools + " archival_memory_search",
			lettaFileTools},
		`{"tool_set":"small","include_base_tools":true}`: {"", bothTools, lettaFileTools},
		`{"tool_set":"all","include_base_tools":true}`:   {"all", allTools(false), allTools(true)},
		`{"include_base_tools":false}`:                   {"", "", lettaFileTools},
		`{"include_base_tools":false,"tools":["conversation_search","grep_files"]}`: {"", "conversation_search",
			"grep_files"},
		`{"include_base_tools":false,"tool_ids":["` + ids["expand"] + `"]}`: {"", "expand", lettaFileTools},
		`{"tools":["memory_insert"]}`:                                       {"", lettaTools, lettaFileTools},
		`{"tool_ids":["` + ids["archival_memory_delete"] + `"]}`: {"", lettaTools + " archival_memory_delete",
			lettaFileTools},
	} {
		agent := c.madeAs("/v1/agents", body)
		if got := toolsOf(t, c, agent); got != want.memory {
			t.Errorf("%s: tools %q, want %q", body, got, want.memory)
		}
		if got, _ := fields(t, c.must("GET", "/v1/agents/"+agent, ""))["tool_set"].(string); got != want.set {
			t.Errorf("%s: tool_set %q, want %q", body, got, want.set)
		}
		c.must("PATCH", "/v1/agents/"+agent+"/folders/attach/"+folder, "")
		if got := toolsOf(t, c, agent); got != strings.TrimSpace(want.files+" "+want.memory) {
			t.Errorf("%s with a folder: tools %q, want %q and %q", body, got, want.files, want.memory)
		}
	}
}

func TestAnAgentsToolsAreChanged(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	folder, ids := c.made("/v1/folders", `{"name":"f"}`), toolIDs()
	agent := c.made("/v1/agents", `{"tool_set":"small"}`)
	change := func(body, want string) {
		t.Helper()
		c.must("PATCH", "/v1/agents/"+agent, body)
		if got := toolsOf(t, c, agent); got != want {
			t.Errorf("after %s: tools %q, want %q", body, got, want)
		}
	}
	change(`{"description":"d"}`, smallTools)
	change(`{"tool_ids":["`+ids["expand"]+`"]}`, "expand")
	change(`{"tools":[]}`, "")
	c.must("PATCH", "/v1/agents/"+agent+"/folders/attach/"+folder, "")
	change(`{"description":"e"}`, lettaFileTools) // the set named these, so the change could not see them
	change(`{"tools":["expand"]}`, "expand")      // now the change can see them
	change(`{"tools":["archival_memory_delete"],"include_base_tools":true}`, lettaFileTools+" "+lettaTools+
		" archival_memory_delete")
	change(`{"tool_set":"standard"}`, standardFileTools+" "+standardTools)
	change(`{"tool_set":"all"}`, allTools(true)+" "+allTools(false))
	change(`{"tool_set":"small","include_base_tools":true}`, lettaFileTools+" "+bothTools)
	change(`{"tool_set":null,"tools":["expand"]}`, "expand")
	change(`{"tool_set":null}`, defaultFileTools+" "+defaultTools)
	change(`{"context_window_limit":4096}`, smallDefaultFiles+" "+defaultTools)
	change(`{"made_for":"letta"}`, lettaFileTools+" "+lettaTools)
	change(`{"made_for":null,"context_window_limit":null}`, defaultFileTools+" "+defaultTools)
}

func TestSingleToolsAreAttachedAndDetached(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	ids := toolIDs()
	agent := c.made("/v1/agents", fmt.Sprintf(`{"folder_ids":[%q]}`, c.made("/v1/folders", `{"name":"f"}`)))
	base := "/v1/agents/" + agent + "/tools"
	all := strings.Fields(allTools(true) + " " + allTools(false))
	for _, name := range all {
		for range 2 { // the second time changes nothing
			if got := c.must("PATCH", base+"/detach/"+ids[name], ""); strings.TrimSpace(got) != "null" {
				t.Errorf("detach %s: got %s, want null", name, got)
			}
		}
		without := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return n == name })
		if got := toolsOf(t, c, agent); got != strings.Join(without, " ") {
			t.Errorf("without %s: %s", name, got)
		}
		got := fields(t, c.must("POST", base+"/"+name+"/run", `{"args":{}}`))
		if text, _ := got["func_return"].(string); got["status"] != "error" ||
			!strings.HasPrefix(text, "The tool "+name+" is not attached to you. Your tools are ") {
			t.Errorf("running %s: %v", name, got)
		}
		for range 2 {
			if got := c.must("PATCH", base+"/attach/"+ids[name], ""); strings.TrimSpace(got) != "null" {
				t.Errorf("attach %s: got %s, want null", name, got)
			}
		}
		if got := toolsOf(t, c, agent); got != strings.Join(all, " ") {
			t.Errorf("with %s again: %s", name, got)
		}
	}
}

func TestToolsThatAreNotThereAreNamed(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	const nobody = "tool-123e4567-e89b-42d3-8456-426614174000"
	for _, tt := range []struct {
		method, target, body string
		status               int
		detail               string
	}{
		{"POST", "/v1/agents", `{"tools":["memory_isnert"]}`, 400,
			"tools: there is no tool 'memory_isnert'; the nearest is memory_insert, and the tools are open_files, "},
		{"PATCH", "/v1/agents/" + agent, `{"tools":["open_file"]}`, 400, "the nearest is open_files"},
		{"POST", "/v1/agents", `{"tool_ids":["` + nobody + `"]}`, 404, "Tool with ID " + nobody + " not found"},
		{"POST", "/v1/agents", `{"tool_set":"tiny"}`, 400,
			"tool_set: there is no set 'tiny'; the sets are default, small, standard and all"},
		{"PATCH", "/v1/agents/" + agent + "/tools/attach/" + nobody, "", 404, "Tool with ID"},
		{"PATCH", "/v1/agents/" + agent + "/tools/detach/" + nobody, "", 404, "Tool with ID"},
		{"PATCH", "/v1/agents/" + agent + "/tools/attach/expand", "", 422, "tool_id"},
		{"PATCH", someAgent + "/tools/attach/" + toolIDs()["expand"], "", 404, "Agent with ID"},
		{"POST", "/v1/agents/" + agent + "/tools/archival_memory_insertt/run", "", 200,
			"The nearest of your tools is archival_memory_insert."},
	} {
		got := c.call(tt.method, tt.target, tt.body)
		if detail, _ := fields(t, got.Text)["detail"].(string); got.Code != tt.status ||
			!strings.Contains(got.Text, tt.detail) && !strings.Contains(detail, tt.detail) {
			t.Errorf("%s %s %s: got %d %s, want %d %s", tt.method, tt.target, tt.body, got.Code, got.Text, tt.status, tt.detail)
		}
	}
}

func TestDefaultInstructionsFollowTheTools(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	folder, ids := c.made("/v1/folders", `{"name":"f"}`), toolIDs()
	agent := c.made("/v1/agents", `{"tool_set":"small"}`)
	base := "/v1/agents/" + agent
	system := func() string {
		t.Helper()
		text, _ := fields(t, c.must("GET", base, ""))["system"].(string)
		if prompt := c.must("POST", base+"/recompile?dry_run=true", ""); !strings.Contains(prompt, text) {
			t.Errorf("the prompt lacks the instructions %q:\n%s", text, prompt)
		}
		return text
	}
	check := func(change, want, without string) {
		t.Helper()
		if got := system(); !strings.Contains(got, want) || without != "" && strings.Contains(got, without) {
			t.Errorf("after %s: %q, want %q in it and not %q", change, got, want, without)
		}
	}
	check("the beginning", "conversation_search finds", "open_files")
	c.must("PATCH", base+"/folders/attach/"+folder, "")
	check("a folder", "open_files shows", "list_files")
	returned, err := json.Marshal(map[string]string{"system": system()})
	if err != nil {
		t.Fatal(err)
	}
	c.must("PATCH", base, string(returned)) // a client that writes back what it read
	c.must("PATCH", base+"/tools/detach/"+ids["grep_files"], "")
	check("a detached tool", "open_files shows", "grep_files")
	c.must("PATCH", base, `{"system":"Be brief."}`)
	if got := system(); got != "Be brief." {
		t.Errorf("an operator's instructions are %q", got)
	}
	c.must("PATCH", base, `{"system":""}`)
	check("their end", "open_files shows", "grep_files")
}

func TestFoldersOpenTheirFilesUnlessToldNotTo(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	folder := c.made("/v1/folders", `{"name":"f"}`)
	c.uploaded(folder, "a.txt", "text\n")
	for body, opens := range map[string]bool{`{}`: true, `{"open_on_attach":true}`: true,
		`{"open_on_attach":false}`: false} {
		for query, want := range map[string]bool{"": opens, "?open_on_attach=true": true, "?open_on_attach=false": false} {
			agent := "/v1/agents/" + c.made("/v1/agents", body)
			c.must("PATCH", agent+"/folders/attach/"+folder+query, "")
			if open := strings.Contains(c.must("GET", agent+"/files", ""), `"is_open":true`); open != want {
				t.Errorf("%s, attached with %q: open %t, want %t", body, query, open, want)
			}
			if got := fields(t, c.must("GET", agent, ""))["open_on_attach"]; got != opens {
				t.Errorf("%s: open_on_attach is %v", body, got)
			}
		}
	}
	agent := "/v1/agents/" + c.made("/v1/agents", `{"open_on_attach":false,"folder_ids":["`+folder+`"]}`)
	if list := c.must("GET", agent+"/files", ""); strings.Contains(list, `"is_open":true`) {
		t.Errorf("an agent that opens none was created with open files: %s", list)
	}
	for _, target := range []string{agent + "/folders/attach/" + folder, agent + "/sources/attach/" + folder} {
		if got := c.call("PATCH", target+"?open_on_attach=perhaps", ""); got.Code != 422 {
			t.Errorf("%s: got %d %s, want 422", target, got.Code, got.Text)
		}
	}
}

func TestAnAgentIsMadeForTheClientThatCreatesIt(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, test := range []struct{ header, value, want string }{
		{"User-Agent", "Letta/JS 1.12.1", "letta"},
		{"User-Agent", "AsyncLetta/Python 1.12.1", "letta"},
		{"X-Fern-SDK-Name", "letta-client", "letta"},
		{"User-Agent", "Mozilla/5.0 Letta/1", "loci"},
		{"User-Agent", "OpenAI/Python 1.0", "loci"},
	} {
		created := servertest.Send(c, "POST", "/v1/agents", `{}`, append(c.headers(), "Content-Type", "application/json",
			test.header, test.value)...)
		state := fields(t, created.Text)
		if state["made_for"] != test.want {
			t.Errorf("%s: %s: made_for is %v, want %s", test.header, test.value, state["made_for"], test.want)
		}
		id, _ := state["id"].(string)
		other := map[string]string{"letta": "loci", "loci": "letta"}[test.want]
		c.must("PATCH", "/v1/agents/"+id, `{"made_for":"`+other+`"}`)
		if got := fields(t, c.must("GET", "/v1/agents/"+id, "")); got["made_for"] != other {
			t.Errorf("after a PATCH to %s: made_for is %v", other, got["made_for"])
		}
	}
}

// An agent of another server's file is made for Letta. One of Loci's own file stays what it was, with its set of tools.
func TestAnImportedAgentIsMadeForLetta(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	ids, _ := c.imported(`{"agents":[{"id":"agent-0","name":"a","messages":[]}]}`)
	if got := fields(t, c.must("GET", "/v1/agents/"+ids[0], "")); got["made_for"] != "letta" {
		t.Errorf("of Letta's file: made_for is %v", got["made_for"])
	}
	for _, madeFor := range []string{"loci", "letta"} {
		for _, query := range []string{"", "?full=true"} {
			own := c.madeAs("/v1/agents", `{"made_for":"`+madeFor+`"}`)
			ids, _ := c.imported(c.must("GET", "/v1/agents/"+own+"/export"+query, ""))
			if got := fields(t, c.must("GET", "/v1/agents/"+ids[0], "")); got["made_for"] != madeFor ||
				got["tool_set"] != "default" {
				t.Errorf("of Loci's file%s: made_for is %v, want %s; tool_set %v", query, got["made_for"], madeFor, got["tool_set"])
			}
		}
	}
}

// TestAnAgentOfASmallWindowHasRoom says something to an agent with the default tools, also with a folder.
func TestAnAgentOfASmallWindowHasRoom(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	folder := c.made("/v1/folders", `{"name":"f"}`)
	c.uploaded(folder, "a.txt", strings.Repeat("A line of a file.\n", 200))
	for _, body := range []string{`{"context_window_limit":4096}`,
		`{"context_window_limit":4096,"agent_type":"letta_v1_agent"}`,
		`{"context_window_limit":4096,"memory_blocks":[{"label":"human","value":"Her name is Ada."}]}`} {
		agent := c.madeAs("/v1/agents", body)
		for range 2 { // without a folder, and with one
			c.must("POST", "/v1/agents/"+agent+"/messages/capture", `{"messages":[{"role":"user","content":"Hello"}]}`)
			var prompt struct {
				Tokens struct{ Tools, Total int }
			}
			if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+agent+"/prompt", "")), &prompt); err != nil {
				t.Fatal(err)
			}
			if share := float64(prompt.Tokens.Tools) / 4096; share > 0.47 {
				t.Errorf("%s: the tools take %.0f %% of the window", body, 100*share)
			}
			c.must("PATCH", "/v1/agents/"+agent+"/folders/attach/"+folder, "")
		}
	}
}

// Whatever a model calls, the answer is one that it can read.
func TestMistakesOfAModelAreResults(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.madeAs("/v1/agents", `{"memory_blocks":[{"label":"human","value":"Ada"}]}`)
	run := func(name, args string) (status, text string) {
		t.Helper()
		got := fields(t, c.must("POST", "/v1/agents/"+agent+"/tools/"+name+"/run", `{"args":`+args+`}`))
		status, _ = got["status"].(string)
		text, _ = got["func_return"].(string)
		return status, text
	}
	for _, tt := range [][3]string{
		{"no_such_tool", `{}`, "There is no tool no_such_tool. Your tools are expand, search_memory, memory, " +
			"archival_memory_insert."},
		{"search_memories", `{}`, "search_memory needs the argument query."}, // the name is nearly right
		{"search_memroy_all", `{}`, "The nearest of your tools is search_memory."},
		{"memory_insert", `{"label":"human","new_string":"x"}`, "The tool memory_insert is not attached to you."},
		{"open_files", `{"file_requests":["a"]}`, "it comes with a folder of files, and you have none"},
		{"search_memory", `{}`, "search_memory needs the argument query."},
		{"search_memory", `[1]`, "must be a JSON object of: query, kinds, limit, as_of, filter; got [1]."},
		{"search_memory", `"Ada"`, "must be a JSON object of"},
		{"search_memory", `7`, "must be a JSON object of"},
		{"memory", `{"command":"insert","path":"human","insert_text":"x","pos":1}`,
			"Unknown argument pos: the command insert of memory takes path, insert_line, insert_text."},
	} {
		if status, text := run(tt[0], tt[1]); status != "error" || !strings.Contains(text, tt[2]) {
			t.Errorf("%s(%s): %s: %q, want an error with %q", tt[0], tt[1], status, text, tt[2])
		}
	}
	for _, tt := range [][3]string{
		{"memory", `"{\"command\":\"str_replace\",\"path\":\"human\",\"old_str\":\"Ada\",\"new_str\":\"Eve\"}"`, "Eve"},
		{"Search-Memory", `{"q":"Eve"}`, "block human"},
		{"search_memory", `null`, ""},
	} {
		status, text := run(tt[0], tt[1])
		if tt[2] != "" && (status != "success" || !strings.Contains(text, tt[2])) {
			t.Errorf("%s(%s): %s: %q, want %q", tt[0], tt[1], status, text, tt[2])
		}
	}
}

// A folder whose tools leave a small window no room for a prompt is not attached, by either route.
func TestAFolderThatLeavesNoRoomIsNotAttached(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	folder := c.made("/v1/folders", `{"name":"papers"}`)
	agent := c.made("/v1/agents", `{"name":"s","model":"qwen/qwen2.5-7b","tool_set":"all","context_window_limit":4600}`)
	path := "/v1/agents/" + agent
	c.refuses("PATCH", path+"/folders/attach/"+folder, "", 400, "The smallest that it can have is ")
	c.refuses("PATCH", path, `{"folder_ids":["`+folder+`"]}`, 400, "The smallest that it can have is ")
	if got := c.must("GET", path+"/folders", ""); got != "[]" {
		t.Errorf("attached: %s", got)
	}
	c.must("PATCH", path, `{"context_window_limit":16000}`)
	c.must("PATCH", path+"/folders/attach/"+folder, "")
}
