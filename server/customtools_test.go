package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/servertest"
)

// rollDice is a request for a tool with a schema in its source.
const rollDice = `{"source_code":"def roll_dice(sides: int, label: str = \"\") -> int:\n    \"\"\"Roll a <die>.\n\n` +
	`    Args:\n        sides: How many sides it has.\n    \"\"\"\n    return 4\n",` +
	`"tags":["games"],"pip_requirements":[{"name":"numpy","version":"2.1"}],"default_requires_approval":true}`

const rollDiceSchema = `{"name":"roll_dice","description":"Roll a <die>.","parameters":{"type":"object","properties":` +
	`{"sides":{"description":"How many sides it has.","type":"integer"},"label":{"type":"string"}},"required":["sides"]}}`

// weatherTool is a request for a tool with a schema.
const weatherTool = `{"json_schema":{"name":"weather","description":"Tells the weather.","parameters":{"type":` +
	`"object","properties":{"place":{"type":"string"}},"required":["place"]}}}`

func (c *client) definition(id string) (t letta.Tool) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/tools/"+id, "")), &t); err != nil {
		c.t.Fatal(err)
	}
	return t
}

func TestToolsAreKeptAsDefinitions(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	id := c.made("/v1/tools", rollDice)
	want := `{"id":"` + id + `","name":"roll_dice","description":"Roll a <die>.","source_code":` +
		strings.TrimSuffix(strings.TrimPrefix(strings.Split(rollDice, `,"tags"`)[0], `{"source_code":`), `}`) +
		`,"source_type":"python","json_schema":` + rollDiceSchema + `,"args_json_schema":null,"tags":["games"],` +
		`"tool_type":"custom","return_char_limit":50000,"pip_requirements":[{"name":"numpy","version":"2.1"}],` +
		`"npm_requirements":null,"default_requires_approval":true,"enable_parallel_execution":false,"metadata_":null,` +
		`"project_id":null,"created_by_id":null,"last_updated_by_id":null,"made_by":null,"changed_by":null}`
	if diff := cmp.Diff(fields(t, want), fields(t, c.must("GET", "/v1/tools/"+id, ""))); diff != "" {
		t.Errorf("a tool from its source (-want +got):\n%s", diff)
	}
	again := strings.Replace(rollDice, "Roll a <die>.", "Roll dice.", 1)
	for _, method := range []string{"POST", "PUT"} {
		if got := fields(t, c.must(method, "/v1/tools", again)); got["id"] != id || got["description"] != "Roll dice." {
			t.Errorf("%s of the same name: got %v", method, got)
		}
	}
	c.must("PATCH", "/v1/tools/"+id, `{"return_char_limit":10,"tags":["a","b"],"metadata_":{"x":1},"source_type":null}`)
	if got := c.definition(id); got.ReturnCharLimit != 10 || !slices.Equal(got.Tags, []string{"a", "b"}) ||
		string(got.Metadata) != `{"x":1}` || got.Name != "roll_dice" || got.SourceType != "python" {
		t.Errorf("changed: got %+v", got)
	}
	c.must("PATCH", "/v1/tools/"+id, `{"args_json_schema":{"type":"object","properties":{"n":{"type":"integer"}}}}`)
	if got := string(c.definition(id).JSONSchema); !strings.Contains(got, `"n":`) || strings.Contains(got, "sides") {
		t.Errorf("with args_json_schema: got %s", got)
	}
	c.must("PATCH", "/v1/tools/"+id, `{"description":"Throws."}`)
	if got := c.definition(id); got.Description != "Throws." || !strings.Contains(string(got.JSONSchema), `"Throws."`) {
		t.Errorf("described: got %+v", got)
	}
	c.must("PATCH", "/v1/tools/"+id, `{"source_code":"def throw(n: int):\n  'Throws.'","args_json_schema":null}`)
	if got := c.definition(id); got.Name != "throw" {
		t.Errorf("renamed: got %+v", got)
	}
	if got := c.must("DELETE", "/v1/tools/"+id, ""); got != "null" {
		t.Errorf("deleted: got %s", got)
	}
	for _, method := range []string{"GET", "DELETE", "PATCH"} {
		if got := c.call(method, "/v1/tools/"+id, ""); got.Code != 404 {
			t.Errorf("%s of a deleted tool: got %d %s", method, got.Code, got.Text)
		}
	}
}

func TestToolsThatCannotBeDefinedAreRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	id, own := c.made("/v1/tools", weatherTool), toolIDs()["expand"]
	c.made("/v1/tools", rollDice)
	for _, tt := range []struct {
		method, path, body string
		status             int
		detail             string
	}{
		{"POST", "", `{}`, 422, "required without source_code"},
		{"POST", "", `{"source_code":"x = 1"}`, 422, "body.source_code: the source has no function"},
		{"POST", "", `{"source_code":"def f(x: int): pass"}`, 422, "has no docstring"},
		{"POST", "", `{"source_code":"function f() {}","source_type":"typescript"}`, 422, "only Python sources are read"},
		{"POST", "", `{"source_code":"` + strings.Repeat("#", 200_001) + `"}`, 422, "at most 200000"},
		{"POST", "", `{"json_schema":{"type":"function","function":{}}}`, 422, "it is an object of name"},
		{"POST", "", `{"json_schema":{"name":"a b"}}`, 422, "1 to 64 letters"},
		{"POST", "", `{"json_schema":{"name":"a","parameters":{"type":"string"}}}`, 422, "the JSON schema of an object"},
		{"POST", "", `{"json_schema":{"name":"a"},"return_char_limit":0}`, 422, "return_char_limit"},
		{"POST", "", `{"json_schema":{"name":"open_files"}}`, 409, "the name of a built-in tool"},
		{"PUT", "", `{"json_schema":{"name":"memory"}}`, 409, "the name of a built-in tool"},
		{"PATCH", "/" + id, `{"json_schema":{"name":"memory"}}`, 409, "the name of a built-in tool"},
		{"PATCH", "/" + id, `{"json_schema":{"name":"roll_dice"}}`, 409, "another tool has the name roll_dice"},
		{"PATCH", "/" + own, `{"description":"x"}`, 409, "built-in tool, which cannot be changed"},
		{"DELETE", "/" + own, "", 409, "built-in tool, which cannot be changed"},
		{"POST", "/run", `{"source_code":"x"}`, 501, "runs no code"},
		{"GET", "?tool_types=nonsense", "", 400, "there is no type"},
	} {
		got := c.call(tt.method, "/v1/tools"+tt.path, tt.body)
		if detail, _ := fields(t, got.Text)["detail"].(string); got.Code != tt.status ||
			!strings.Contains(detail, tt.detail) {
			t.Errorf("%s %s %.80s: got %d %s, want %d %q", tt.method, tt.path, tt.body, got.Code, got.Text, tt.status,
				tt.detail)
		}
	}
	if got := c.definition(id); got.Name != "weather" {
		t.Errorf("a refused change left %+v", got)
	}
}

func TestDefinitionsAreListedAfterBuiltInTools(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	var made []string
	for i := range 30 {
		made = append(made, c.made("/v1/tools", fmt.Sprintf(`{"json_schema":{"name":"custom_%d","description":"d"}}`, i)))
	}
	all := append(slices.Collect(func(yield func(string) bool) {
		for _, t := range tool.New(tool.Memories{}).Tools() {
			if !yield(t.ID) {
				return
			}
		}
	}), made...)
	for query, want := range map[string][]string{
		"order=asc": all, "order=asc&tool_types=custom": made,
		"order=asc&exclude_tool_types=custom,letta_core,letta_sleeptime_core": all[:5],
		"order=asc&return_only_letta_tools=true":                              all[:len(all)-30], "name=custom_3": {made[3]},
		"names=custom_3&names=memory": {made[3], toolIDs()["memory"]}, "tool_ids=" + made[7]: {made[7]},
		"search=Custom_2&order=asc": append([]string{made[2]}, made[20:]...), "name=none": {},
		"search=_": nil, // any tools; only the count must agree
	} {
		got := []string{}
		for after := ""; ; {
			var page []letta.Tool
			if err := json.Unmarshal([]byte(c.must("GET", "/v1/tools?limit=7&after="+after+"&"+query, "")), &page); err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, one := range page {
				got = append(got, one.ID)
			}
			after = got[len(got)-1]
		}
		if diff := cmp.Diff(want, got); want != nil && diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
		if n := c.must("GET", "/v1/tools/count?"+query, ""); n != fmt.Sprint(len(got)) {
			t.Errorf("%s: the count is %s of %d", query, n, len(got))
		}
	}
	if got := namesOf(t, c.must("POST", "/v1/tools/add-base-tools", "")); len(got) != len(all)-30 {
		t.Errorf("base tools: got %v", got)
	}
}

func TestDefinitionsAreGivenToAgents(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	weather, dice := c.made("/v1/tools", weatherTool), c.made("/v1/tools", rollDice)
	agent := c.made("/v1/agents", `{"include_base_tools":false,"tools":["weather","expand"],"tool_ids":["`+dice+`"]}`)
	path := "/v1/agents/" + agent
	check := func(after, want string) {
		t.Helper()
		if got := toolsOf(t, c, agent); got != want {
			t.Errorf("%s: got %q, want %q", after, got, want)
		}
	}
	check("created", "expand weather roll_dice")
	for range 2 { // the second time changes nothing
		if got := c.must("PATCH", path+"/tools/detach/"+weather, ""); got != "null" {
			t.Errorf("detached: got %s", got)
		}
	}
	check("detached", "expand roll_dice")
	for range 2 {
		c.must("PATCH", path+"/tools/attach/"+weather, "")
	}
	check("attached", "expand roll_dice weather")
	c.must("PATCH", path, `{"tool_set":"small"}`)
	check("another set", "conversation_search expand memory roll_dice weather")
	c.must("PATCH", path, `{"tool_ids":["`+weather+`"]}`)
	check("another list", "weather")
	c.must("PATCH", path, `{"tools":["memory","roll_dice"]}`)
	check("names", "memory roll_dice")
	c.must("PATCH", path, `{"description":"d"}`)
	check("no list", "memory roll_dice")
	if got := c.call("PATCH", path, `{"tools":["weathr"]}`); got.Code != 400 {
		t.Errorf("an unknown name: got %d %s", got.Code, got.Text)
	}
	c.greet(agent, "default")
	for format, want := range map[string]string{
		"openai":    `{"function":` + rollDiceSchema + `,"type":"function"}`,
		"responses": `{"type":"function",` + strings.TrimSuffix(rollDiceSchema[1:], "}") + `,"strict":false}`,
		"anthropic": strings.TrimSuffix(strings.Replace(rollDiceSchema, "parameters", "input_schema", 1), "}") +
			`,"cache_control":{"type":"ephemeral"}}`,
	} {
		if got := c.must("GET", path+"/prompt?format="+format, ""); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s in it", format, got, want)
		}
	}
	before := len(eventsOf(t, c, agent))
	c.must("PATCH", "/v1/tools/"+dice, `{"description":"Throws."}`)
	if got := c.must("GET", path+"/prompt", ""); !strings.Contains(got, `"Throws."`) {
		t.Errorf("after a change the prompt is %s", got)
	}
	c.must("DELETE", "/v1/tools/"+dice, "")
	check("deleted", "memory")
	if got := eventsOf(t, c, agent); len(got) != before+2 {
		t.Errorf("a change and a deletion made the events %v", got[before:])
	}
	c.must("DELETE", path, "")
	c.must("DELETE", "/v1/tools/"+weather, "")
}

// eventsOf returns the types of an agent's events.
func eventsOf(t *testing.T, c *client, agent string) (types []string) {
	t.Helper()
	var got []struct{ Type string }
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+agent+"/events?limit=1000", "")), &got); err != nil {
		t.Fatal(err)
	}
	for _, e := range got {
		types = append(types, e.Type)
	}
	return types
}

func TestCallsOfDefinitionsAreHandedToTheClient(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	r.must("PATCH", "/v1/agents/"+r.agent+"/tools/attach/"+r.made("/v1/tools", weatherTool), "")
	r.model.Says(callOf("w", "weather", `{"place":"Oslo"}`))
	got := r.send(hello)
	checkSaid(t, "asked", itemTexts(got.Messages), []string{"approval_request_message weather"})
	if got.StopReason.StopReason != "requires_approval" ||
		!strings.Contains(string(r.model.Requests()[0].Body), `"Tells the weather."`) {
		t.Errorf("got %+v after %s", got.StopReason, r.model.Requests()[0].Body)
	}
	for _, body := range []string{approvals("o", approveW), `{"messages":[{"type":"approval","approve":true}]}`} {
		if got := r.call("POST", r.path(), body); got.Code != 400 || !strings.Contains(got.Text, "send its result") {
			t.Errorf("approved by %s: got %d %s", body, got.Code, got.Text)
		}
	}
	r.model.Says(modeltest.Answer{Text: "It rains."})
	got = r.send(`{"messages":[{"type":"tool_return","tool_returns":[{"type":"tool","tool_call_id":"w",
		"tool_return":"Rain","status":"success"}]}]}`)
	checkSaid(t, "answered", itemTexts(got.Messages), []string{"tool_return_message w success",
		"assistant_message It rains."})
	if asked := r.model.Requests(); !strings.Contains(string(asked[1].Body), "Rain") {
		t.Errorf("the model was not given the result: %s", asked[1].Body)
	}
	stepped := r.step(r.agent, `{"response":{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"v","type":
		"function","function":{"name":"weather","arguments":"{}"}}]}}]}}`)
	if len(stepped.Calls) != 1 || stepped.Calls[0].Name != "weather" || stepped.Next != "calls" {
		t.Errorf("a step: got %+v", stepped)
	}
	run := r.call("POST", "/v1/agents/"+r.agent+"/tools/weather/run", `{"args":{"place":"Oslo"}}`)
	servertest.CheckProblem(t, run, 501, map[string]any{"detail": "Tool weather is a definition, and this server runs " +
		"no code of its users: run it in your own program."})
}

func TestRulesOfToolsAreCheckedAndStoredOnce(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	c.made("/v1/tools", weatherTool)
	path := "/v1/agents/" + c.made("/v1/agents", `{"tool_rules":[{"type":"exit_loop","tool_name":"weather"},
		{"tool_name":"weather","type":"exit_loop"},{"type":"run_first","tool_name":"expand"}]}`)
	unchanged := `{"tool_rules":[{"type":"exit_loop","tool_name":"weather"},{"type":"run_first","tool_name":"expand"}]}`
	check := func(after string) {
		t.Helper()
		var want, got struct {
			Rules []map[string]string `json:"tool_rules"`
		}
		for body, target := range map[string]any{unchanged: &want, c.must("GET", path, ""): &got} {
			if err := json.Unmarshal([]byte(body), target); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", after, diff)
		}
	}
	check("created")
	for _, refused := range [][2]string{
		{`[{"type":"exit_loop"}]`, "body.tool_rules[0].tool_name: required"},
		{`[{"type":"x","tool_name":"expand"}]`, "body.tool_rules[0].type: expected one of run_first"},
		{`[{"type":"exit_loop","tool_name":"nobody"}]`, `there is no tool "nobody"`},
		{`[{"type":"conditional","tool_name":"expand","child_output_mapping":{"a":"nobody"}}]`, `there is no tool "nobody"`},
		{`[{"type":"constrain_child_tools","tool_name":"expand"}]`, "body.tool_rules[0].children: required"},
		{`[{"type":"conditional","tool_name":"expand"}]`, "body.tool_rules[0].child_output_mapping: required"},
	} {
		body, want := refused[0], refused[1]
		for _, call := range [][2]string{{"POST", "/v1/agents"}, {"PATCH", path}} {
			got := c.call(call[0], call[1], `{"tool_rules":`+body+`}`)
			if detail, _ := fields(t, got.Text)["detail"].(string); got.Code/100 != 4 || !strings.Contains(detail, want) {
				t.Errorf("%v %s: got %d %s, want %s", call, body, got.Code, got.Text, want)
			}
		}
	}
	check("refused")
	c.must("PATCH", path, unchanged) // a client that sends back what it read
	check("sent back")
}

// A definition says whether its calls need approval by default. An agent that gets the definition also gets one rule
// for it.
func TestADefinitionAsksForApprovalByDefault(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	tool := c.made("/v1/tools", strings.Replace(weatherTool, `{"json_schema"`,
		`{"default_requires_approval":true,"json_schema"`, 1))
	plain := c.made("/v1/tools", strings.Replace(weatherTool, `"weather"`, `"tides"`, 1))
	const exit = `{"type":"exit_loop","tool_name":"weather"}`
	rules := func(agent string) (all []string) {
		list, _ := fields(t, c.must("GET", "/v1/agents/"+agent, ""))["tool_rules"].([]any)
		for _, rule := range list {
			fieldsOf := rule.(map[string]any)
			all = append(all, fmt.Sprint(fieldsOf["type"], " ", fieldsOf["tool_name"]))
		}
		return all
	}
	created := c.made("/v1/agents", `{"tool_ids":["`+tool+`","`+plain+`"],"tool_rules":[`+exit+`]}`)
	checkSaid(t, "created", rules(created), []string{"exit_loop weather", "requires_approval weather"})
	ruled := c.made("/v1/agents", `{"tool_ids":["`+tool+
		`"],"tool_rules":[{"type":"requires_approval","tool_name":"weather"}]}`)
	checkSaid(t, "with the rule already", rules(ruled), []string{"requires_approval weather"})
	agent := c.made("/v1/agents", `{}`)
	for range 2 {
		c.must("PATCH", "/v1/agents/"+agent+"/tools/attach/"+tool, "")
		c.must("PATCH", "/v1/agents/"+agent+"/tools/attach/"+plain, "")
		checkSaid(t, "attached", rules(agent), []string{"requires_approval weather"})
	}
	c.must("PATCH", "/v1/agents/"+agent+"/tools/approval/weather", `{"requires_approval":false}`)
	c.must("PATCH", "/v1/agents/"+agent+"/tools/attach/"+tool, "")
	checkSaid(t, "attached already", rules(agent), nil)
	updated := c.made("/v1/agents", `{}`)
	got := fields(t, c.must("PATCH", "/v1/agents/"+updated, `{"tool_ids":["`+tool+`"],"tool_rules":[`+exit+`]}`))
	checkSaid(t, "updated", rules(updated), []string{"exit_loop weather", "requires_approval weather"})
	if shown, _ := got["tool_rules"].([]any); len(shown) != 2 {
		t.Errorf("the answer has the rules %v", shown)
	}
}

// A renamed tool keeps its rules, including rules of agents that do not have the tool.
func TestRulesFollowARenamedTool(t *testing.T) {
	t.Parallel()
	c := newClient(t).keyed()
	other := c.as("other")
	other.made("/v1/tools", weatherTool)
	tool := c.made("/v1/tools", weatherTool)
	const rules = `[{"type":"run_first","tool_name":"weather","prompt_template":"weather"},
		{"type":"constrain_child_tools","tool_name":"expand","children":["weather","memory"]},
		{"type":"conditional","tool_name":"memory","default_child":"weather","child_output_mapping":{"weather":"weather"}}]`
	rulesOf := func(c *client, agent string) (rules any) {
		return fields(t, c.must("GET", "/v1/agents/"+agent, ""))["tool_rules"]
	}
	withTool := c.made("/v1/agents", fmt.Sprintf(`{"tool_ids":[%q],"tool_rules":%s}`, tool, rules))
	withoutTool := c.made("/v1/agents", fmt.Sprintf(`{"tool_rules":%s}`, rules))
	withoutRules, foreign := c.made("/v1/agents", `{}`), other.made("/v1/agents", fmt.Sprintf(`{"tool_rules":%s}`, rules))
	foreignRules := rulesOf(other, foreign)
	seen := map[string]int{}
	for _, id := range []string{withTool, withoutTool, withoutRules} {
		seen[id] = len(c.events(id, ""))
	}
	c.must("PATCH", "/v1/tools/"+tool, strings.Replace(weatherTool, `"weather"`, `"forecast"`, 1))
	var want any
	if err := json.Unmarshal([]byte(`[{"type":"run_first","tool_name":"forecast","prompt_template":"weather"},
		{"type":"constrain_child_tools","tool_name":"expand","children":["forecast","memory"]},
		{"type":"conditional","tool_name":"memory","default_child":"forecast",
			"child_output_mapping":{"weather":"forecast"}}]`), &want); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{withTool, withoutTool} {
		if diff := cmp.Diff(want, rulesOf(c, id)); diff != "" {
			t.Errorf("the rules (-want +got):\n%s", diff)
		}
		if n := len(c.events(id, "")) - seen[id]; n != 1 {
			t.Errorf("an agent whose rules changed was told so %d times", n)
		}
	}
	if n := len(c.events(withoutRules, "")) - seen[withoutRules]; n != 0 {
		t.Errorf("an agent without the tool and rules was told %d times", n)
	}
	if diff := cmp.Diff(foreignRules, rulesOf(other, foreign)); diff != "" {
		t.Errorf("another organization's rules changed:\n%s", diff)
	}
}
