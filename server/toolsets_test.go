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
	bothTools = "conversation_search expand memory_insert memory_replace memory_rethink memory archival_memory_insert " +
		"archival_memory_search"
	lettaFileTools    = "open_files grep_files semantic_search_files"
	standardFileTools = lettaFileTools + " list_files close_files"
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
		byName := []string{"memory_files", "search_memory", "ask_session",
			"request_erasure", "query_result"} // an agent has these only if its tools name them
		if t.NeedsFolder == needFolder && !slices.Contains(byName, t.Name) {
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
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+agent+"/prompt?format=anthropic", "")),
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
		`{}`: {"all", allTools(false), allTools(true)},
		`{"include_base_tools":true,"include_base_tool_rules":true}`: {"standard", standardTools, standardFileTools},
		`{"tools":[],"tool_ids":[]}`:                                 {"all", allTools(false), allTools(true)},
		`{"tool_set":"all"}`:                                         {"all", allTools(false), allTools(true)},
		`{"tool_set":"standard"}`:                                    {"standard", standardTools, standardFileTools},
		`{"tool_set":"small"}`:                                       {"small", smallTools, lettaFileTools},
		`{"tool_set":"small","tools":["archival_memory_search"]}`: {"", smallTools + " archival_memory_search",
			lettaFileTools},
		`{"tool_set":"small","include_base_tools":true}`: {"", bothTools, standardFileTools},
		`{"tool_set":"all","include_base_tools":true}`:   {"all", allTools(false), allTools(true)},
		`{"include_base_tools":false}`:                   {"", "", lettaFileTools},
		`{"include_base_tools":false,"tools":["conversation_search","grep_files"]}`: {"", "conversation_search",
			"grep_files"},
		`{"include_base_tools":false,"tool_ids":["` + ids["expand"] + `"]}`: {"", "expand", lettaFileTools},
		`{"tools":["memory_insert"]}`:                                       {"standard", standardTools, standardFileTools},
		`{"tool_ids":["` + ids["archival_memory_delete"] + `"]}`: {"", standardTools + " archival_memory_delete",
			standardFileTools},
	} {
		agent := c.made("/v1/agents", body)
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
	change(`{"tools":["archival_memory_delete"],"include_base_tools":true}`, standardFileTools+" "+standardTools+
		" archival_memory_delete")
	change(`{"tool_set":"standard"}`, standardFileTools+" "+standardTools)
	change(`{"tool_set":"all"}`, allTools(true)+" "+allTools(false))
	change(`{"tool_set":"small","include_base_tools":true}`, standardFileTools+" "+bothTools)
	change(`{"tool_set":null,"tools":["expand"]}`, "expand")
	change(`{"tool_set":null}`, allTools(true)+" "+allTools(false))
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
		servertest.CheckProblem(t, c.call("POST", base+"/"+name+"/run", `{"args":{}}`), 404,
			map[string]any{"detail": "Tool " + name + " is detached from agent " + agent +
				": attach it first (PATCH /v1/agents/" + agent + "/tools/attach/" + ids[name] + ")"})
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
			"tool_set: there is no set 'tiny'; the sets are small, standard and all"},
		{"PATCH", "/v1/agents/" + agent + "/tools/attach/" + nobody, "", 404, "Tool with ID"},
		{"PATCH", "/v1/agents/" + agent + "/tools/detach/" + nobody, "", 404, "Tool with ID"},
		{"PATCH", "/v1/agents/" + agent + "/tools/attach/expand", "", 422, "tool_id"},
		{"PATCH", someAgent + "/tools/attach/" + toolIDs()["expand"], "", 404, "Agent with ID"},
		{"POST", "/v1/agents/" + agent + "/tools/grep_file/run", "", 404, "the nearest is grep_files"},
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
