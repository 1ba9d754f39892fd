package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

const scout = `{"description":"finds ships","mode":"brief","prompt":"You are a scout.","tools":["conversation_search"],
	"policy":{"policy":{"preset":"pi"}},"context_window_limit":9000,
	"grants":{"blocks":[{"id":"plan","read_only":false}],"folders":["harbour"],"files":["harbour/ships.txt"]}}`

// subagentNamed defines sub-agents of a name, and returns the name.
func (c *client) subagentNamed(agent, name string) string {
	c.must("PUT", "/v1/agents/"+agent+"/subagents/"+name, `{}`)
	return name
}

// captain makes an agent that starts sub-agents and has something to give them.
func (c *client) captain() (agent string) {
	folder := c.made("/v1/folders", `{"name":"harbour"}`)
	c.uploaded(folder, "ships.txt", "The Erna is a ferry.")
	return c.made("/v1/agents", `{"name":"captain","tool_set":"all","tools":["start_subagent"],"folder_ids":["`+folder+`"],
		"memory_blocks":[{"label":"plan","value":"Sail."},{"label":"AGENTS","value":"Test first."}]}`)
}

// A definition is made once and starts sub-agents by its name, over REST and by the agent's model, which sees its name
// and description.
func TestSubagentsAreStartedByName(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.captain()
	path := "/v1/agents/" + agent + "/subagents"
	for range 2 {
		got := fields(t, c.must("PUT", path+"/scout", scout))
		if got["name"] != "scout" || got["prompt"] != "You are a scout." || got["mode"] != "brief" ||
			fmt.Sprint(got["policy"]) != "map[policy:map[preset:pi]]" {
			t.Errorf("the definition is %v", got)
		}
	}
	c.must("PUT", path+"/clerk", `{}`)
	if got := c.list(path); len(got) != 2 || got[0]["name"] != "clerk" || got[1]["name"] != "scout" {
		t.Errorf("the definitions are %v", got)
	}
	c.greet(agent, "default")
	if _, tools := c.nextPrompt(agent, "default"); !strings.Contains(tools, `\n- scout: finds ships`) {
		t.Errorf("the tools lack the definition: %s", tools)
	}
	child := c.child(agent, `{"definition":"scout","task":"Look around."}`)
	c.isScout(child, true)
	run := c.must("POST", "/v1/agents/"+agent+"/tools/start_subagent/run",
		`{"args":{"task":"Look again.","definition":"scout"}}`)
	if !strings.Contains(run, "(scout) has its task") {
		t.Errorf("started by a model: %s", run)
	}
	for _, started := range c.list("/v1/agents/" + agent + "/children") {
		if started["task"] == "Look again." {
			var child wireChild
			c.unmarshal(c.must("GET", fmt.Sprintf("/v1/agents/%s/children/%s", agent, started["id"]), ""), &child)
			c.isScout(child, true)
		}
	}
	c.isScout(c.child(agent, `{"definition":"scout","task":"Look.","mode":"blank","name":"eye"}`), false)
	c.must("DELETE", path+"/scout", "")
	c.refuses("GET", path+"/scout", "", 404, "no definition")
	c.refuses("DELETE", path+"/scout", "", 404, "no definition")
	c.refuses("POST", "/v1/agents/"+agent+"/children", `{"definition":"scout","task":"x"}`, 422, "there is clerk")
}

// isScout checks that a sub-agent has what the definition scout says.
func (c *client) isScout(child wireChild, brief bool) {
	c.t.Helper()
	state := c.must("GET", "/v1/agents/"+child.AgentID, "")
	contains(c.t, "the sub-agent", state, "You are a scout.", `"context_window_limit":9000`, `"preset":"pi"`, `"AGENTS"`,
		`"plan"`)
	messages, tools := c.nextPrompt(child.AgentID, "default")
	if !strings.Contains(tools, "conversation_search") || strings.Contains(tools, "open_files") {
		c.t.Errorf("its tools are %s", tools)
	}
	all := strings.Join(append(messages, c.promptOf(child.AgentID, "openai").state), "")
	if strings.Contains(all, "ferry") != brief {
		c.t.Errorf("its prompt is %s", all)
	}
}

// What breaks a rule in a definition is refused, and so is a request that says itself what the definition says.
func TestWrongDefinitionsAreRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.captain()
	path := "/v1/agents/" + agent + "/subagents/scout"
	for body, want := range map[string]string{
		`{"tools":["no_tool"]}`:                               `the parent has no tool \"no_tool\"`,
		`{"mode":"fork"}`:                                     "mode",
		`{"grants":{"files":["a/b"]}}`:                        "for the mode brief",
		`{"policy":{"mode":"no such mode"}}`:                  "mode",
		`{"context_window_limit":0}`:                          "context_window_limit",
		`{"description":"` + strings.Repeat("x", 1025) + `"}`: "1024 characters",
	} {
		c.refuses("PUT", path, body, 422, want)
	}
	c.refuses("PUT", "/v1/agents/"+agent+"/subagents/a.b", `{}`, 422, "letters, digits")
	c.must("PUT", path, `{"grants":{"blocks":[{"id":"gone"}]}}`)
	c.refuses("POST", "/v1/agents/"+agent+"/children", `{"definition":"scout","task":"x"}`, 422, "no block gone")
	c.must("PUT", path, scout)
	for _, more := range []string{`"tools":[]`, `"blocks":[{"id":"plan"}]`, `"system":"x"`, `"model":"openai/gpt-4o"`,
		`"default_grants":true`, `"context_window_limit":9000`, `"memory_tree":{}`, `"folders":[]`} {
		c.refuses("POST", "/v1/agents/"+agent+"/children", `{"definition":"scout","task":"x",`+more+`}`, 422,
			"says what the sub-agent is given")
	}
	c.refuses("POST", "/v1/agents/"+agent+"/children", `{"definition":"scout","task":"x","mode":"fork"}`, 422, "a fork")
	if got := c.must("GET", "/v1/agents/"+agent+"/children", ""); strings.TrimSpace(got) != "[]" {
		t.Errorf("the sub-agents are %s", got)
	}
}

// Definitions of sub-agents are in the agent's file, full or not.
func TestDefinitionsAreInTheAgentsFile(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.captain()
	c.must("PUT", "/v1/agents/"+agent+"/subagents/scout", scout)
	want := fields(t, c.must("GET", "/v1/agents/"+agent+"/subagents/scout", ""))
	for _, query := range []string{"", "?full=true"} {
		copies, _ := c.imported(c.must("GET", "/v1/agents/"+agent+"/export"+query, ""))
		got := fields(t, c.must("GET", "/v1/agents/"+copies[0]+"/subagents/scout", ""))
		for _, times := range []string{"created_at", "updated_at"} {
			delete(got, times)
			delete(want, times)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("export%s: got %v, want %v", query, got, want)
		}
	}
}

// A sub-agent that calls a tool of its parent's that it was not given is told so, in each loop.
func TestAToolThatWasNotGrantedIsNamed(t *testing.T) {
	t.Parallel()
	const words = "has the tool archival_memory_insert, and did not grant it to you."
	r := newStarter(t)
	r.must("PATCH", "/v1/agents/"+r.agent, `{"tool_set":"all","tools":["start_subagent"]}`)
	r.answers("Hello", starts(`{"task":"Note it.","tools":["conversation_search"]}`),
		"Note it.", callOf("n", "archival_memory_insert", `{"content":"x"}`),
		words, modeltest.Answer{Text: "I cannot note it."},
		"I cannot note it.", modeltest.Answer{Text: "It cannot."})
	if got := r.send(hello); !strings.Contains(got.returns()["s0"], "I cannot note it.") {
		t.Errorf("the server's loop: %q", got.returns())
	}
	child := r.child(r.agent, `{"mode":"blank","task":"x","tools":["conversation_search"]}`)
	run := r.must("POST", "/v1/agents/"+child.AgentID+"/tools/archival_memory_insert/run", `{"args":{"content":"x"}}`)
	if !strings.Contains(run, words) || !strings.Contains(run, `"status":"error"`) {
		t.Errorf("tools/run: %s", run)
	}
	answer, err := json.Marshal(map[string]any{"choices": []any{map[string]any{"message": map[string]any{
		"role": "assistant", "tool_calls": []any{map[string]any{"id": "n", "type": "function", "function": map[string]any{
			"name": "archival_memory_insert", "arguments": `{"content":"x"}`}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	step := r.step(child.AgentID, `{"response":`+string(answer)+`}`)
	if len(step.Results) != 1 || !strings.Contains(step.Results[0].Return, words) || len(step.Calls) > 0 {
		t.Errorf("a step: %+v", step)
	}
	if run := r.must("POST", "/v1/agents/"+child.AgentID+"/tools/query_log/run", `{"args":{"jq":"."}}`); strings.Contains(
		run, "did not grant") {
		t.Errorf("a tool that the parent lacks: %s", run)
	}
	fork := r.child(r.agent, `{"mode":"fork","task":"x","tools":["conversation_search"]}`)
	run = r.must("POST", "/v1/agents/"+r.agent+"/tools/archival_memory_insert/run",
		`{"args":{"content":"x"},"conversation_id":"`+fork.ConversationID+`"}`)
	if !strings.Contains(run, "the agent that gave you your task did not grant it") {
		t.Errorf("a fork: %s", run)
	}
}
