package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

const ownTool = `"client_tools":[{"name":"cust1","parameters":{"type":"object","properties":{}}}]`

// calling returns an answer with tool calls. In letters, i is a call that inserts into the memory, c a call of the
// client's tool, and s a search.
func calling(letters string) modeltest.Answer {
	var a modeltest.Answer
	for i, letter := range letters {
		id := fmt.Sprintf("%s%d", letters, i)
		call := map[rune]modeltest.Call{
			'i': {ID: id, Name: "memory_insert", Arguments: `{"label":"human","new_string":"+"}`},
			'c': {ID: id, Name: "cust1", Arguments: `{}`},
			's': {ID: id, Name: "conversation_search", Arguments: `{"query":"x"}`},
		}[letter]
		a.Calls = append(a.Calls, call)
	}
	if letters == "" {
		a.Text = "Bye"
	}
	return a
}

// runTurn sends a message to an agent, and answers the calls that need an answer until the turn ends. It returns the
// last stop reason.
func (r runner) runTurn(approve bool) string {
	got := r.send(`{"input":"Hello",` + ownTool + `}`)
	for n := 0; got.StopReason.StopReason == "requires_approval"; n++ {
		var answers []string
		for _, m := range got.Messages {
			if m["message_type"] != "approval_request_message" {
				continue
			}
			for _, c := range m["tool_calls"].([]any) {
				call := c.(map[string]any)
				answer := fmt.Sprintf(`{"type":"approval","approve":%t,"tool_call_id":%q}`, approve, call["tool_call_id"])
				if call["name"] == "cust1" {
					answer = fmt.Sprintf(`{"type":"tool","tool_call_id":%q,"tool_return":"Done","status":"success"}`,
						call["tool_call_id"])
				}
				answers = append(answers, answer)
			}
		}
		otid := fmt.Sprint("otid-", n)
		got = r.send(strings.TrimSuffix(approvals(otid, answers...), "}") + "," + ownTool + "}")
	}
	return got.StopReason.StopReason
}

// choices returns the tools that the model was forced to call, one word for each request.
func (r runner) choices() (all []string) {
	for _, asked := range r.model.Requests() {
		var choice struct{ Function struct{ Name string } }
		if raw := asked.Fields["tool_choice"]; json.Unmarshal(raw, &choice) != nil {
			choice.Function.Name = string(raw)
		}
		all = append(all, choice.Function.Name)
	}
	return all
}

// Rules count the calls since the user's newest message, over all runs of the turn.
func TestRulesHoldOverTheRunsOfATurn(t *testing.T) {
	t.Parallel()
	exit := func(tool string) string { return `{"type":"exit_loop","tool_name":"` + tool + `"}` }
	first := func(tool string) string { return `{"type":"run_first","tool_name":"` + tool + `"}` }
	required := func(tool string) string { return `{"type":"required_before_exit","tool_name":"` + tool + `"}` }
	approval := `{"type":"requires_approval","tool_name":"memory_insert"}`
	for name, test := range map[string]struct {
		rules   []string
		answers string // answers of the model, separated by spaces; the last one is repeated, and - is a text
		deny    bool
		inserts int
		reason  string
		choices []string // one for each request to the model
	}{
		"a count goes on after a result": {[]string{`{"type":"max_count_per_step","tool_name":"memory_insert",
			"max_count_limit":1}`}, "ic ic i -", false, 1, "end_turn", []string{"", "", "", ""}},
		"the first tool is first once": {[]string{first("cust1")}, "c -", false, 0, "end_turn", []string{"cust1", ""}},
		"children follow a client's tool": {[]string{`{"type":"constrain_child_tools","tool_name":"cust1",
			"children":["memory_insert"]}`}, "c s i -", false, 1, "end_turn",
			[]string{"", "memory_insert", "memory_insert", ""}},
		"children follow the last call": {[]string{`{"type":"constrain_child_tools","tool_name":"cust1",
			"children":["conversation_search"]}`}, "cs i -", false, 1, "end_turn", []string{"", "", ""}},
		"a client's tool ends the turn": {[]string{exit("cust1")}, "c -", false, 0, "tool_rule", []string{""}},
		"an approved tool ends the turn": {[]string{exit("memory_insert"), approval}, "i -", false, 1, "tool_rule",
			[]string{""}},
		"a denied tool does not end it": {[]string{exit("memory_insert"), approval}, "i -", true, 0, "end_turn",
			[]string{"", ""}},
		"a required tool was called before": {[]string{required("memory_insert")}, "ic -", false, 1, "end_turn",
			[]string{"", ""}},
		"a denied required tool is called": {[]string{required("memory_insert"), approval}, "i -", true, 0, "end_turn",
			[]string{"", ""}},
		"a denied first tool is called": {[]string{first("memory_insert"), approval}, "i -", true, 0, "end_turn",
			[]string{"memory_insert", ""}},
		"a tool that was not called is forced": {[]string{required("memory_insert")}, "- i -", false, 1, "end_turn",
			[]string{"", "memory_insert", ""}},
		"two tools are forced one after the other": {[]string{required("memory_insert"), required("cust1")}, "- i - c -",
			false, 1, "end_turn", []string{"", "memory_insert", "", "cust1", ""}},
		"a model that never calls it is told three times": {[]string{required("memory_insert")}, "-", false, 0,
			"no_tool_call", []string{"", "memory_insert", "memory_insert", "memory_insert"}},
		"nothing follows the last tool": {[]string{exit("conversation_search")}, "sis -", false, 0, "tool_rule",
			[]string{""}},
		"nothing follows a client's last": {[]string{exit("cust1")}, "ci -", false, 0, "tool_rule", []string{""}},
		"required tools come first": {[]string{exit("conversation_search"), required("memory_insert")}, "s i s -", false, 1,
			"tool_rule", []string{"", "memory_insert", ""}},
		"required tools come first in an answer": {[]string{exit("conversation_search"), required("memory_insert")}, "sisi -",
			false, 1, "tool_rule", []string{""}},
		"required tools come first after a result": {[]string{exit("cust1"), required("memory_insert")}, "c i -", false, 1,
			"end_turn", []string{"", "memory_insert", ""}},
		"a last tool does not end it before": {[]string{exit("conversation_search"), required("memory_insert")},
			"s", false, 0, "no_tool_call", []string{"", "memory_insert", "memory_insert", "memory_insert"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, `{"name":"a","tool_set":"standard","memory_blocks":[{"label":"human","value":"Ada"}]}`)
			// A client's tool has no rule until the server knows the tool.
			r.must("POST", "/v1/tools", strings.Replace(weatherTool, `"weather"`, `"cust1"`, 1))
			r.must("PATCH", "/v1/agents/"+r.agent, `{"tool_rules":[`+strings.Join(test.rules, ",")+`]}`)
			script := strings.Fields(test.answers)
			r.model.Reply = func(modeltest.Asked) modeltest.Answer {
				next := script[0]
				if len(script) > 1 {
					script = script[1:]
				}
				return calling(strings.Trim(next, "-"))
			}
			reason := r.runTurn(!test.deny)
			if diff := cmp.Diff(test.choices, r.choices()); diff != "" || reason != test.reason {
				t.Errorf("ended with %s; the requests (-want +got):\n%s", reason, diff)
			}
			block := r.must("GET", "/v1/agents/"+r.agent+"/core-memory/blocks/human", "")
			if n := strings.Count(fmt.Sprint(fields(t, block)["value"]), "+"); n != test.inserts {
				t.Errorf("%d inserts, want %d", n, test.inserts)
			}
		})
	}
}

// In a program's own loop, rules end a turn in the same way.
func TestAStepEndsByTheRules(t *testing.T) {
	t.Parallel()
	const exit, required = `{"type":"exit_loop","tool_name":"weather"}`,
		`{"type":"required_before_exit","tool_name":"core_memory_append"}`
	a, w := appends("a", "tea"), ownCall("w")
	result := `{"messages":[{"role":"tool","tool_call_id":"w","content":"Rain."}]}`
	deny := `{"approvals":[{"tool_call_id":"a","approve":false}]}`
	bye := func(otid string) string {
		return `{"otid":"` + otid + `","response":{"choices":[{"message":{"role":"assistant","content":"Bye"}}]}}`
	}
	for name, test := range map[string]struct {
		rules string
		steps []string
		next  []string // after each step
		notes string
	}{
		"nothing follows the last tool": {exit, []string{answering("1", w, a), result}, []string{"calls", "user"}, "milk"},
		"required tools come first": {exit + "," + required, []string{answering("1", w), result, answering("2", a),
			answering("3", w), result}, []string{"calls", "model core_memory_append", "model", "calls", "user"}, "milk\ntea"},
		"a denied required tool is called": {required + `,{"type":"requires_approval","tool_name":"core_memory_append"}`,
			[]string{answering("1", a), deny, bye("2")}, []string{"calls", "model", "user"}, "milk"},
		"a tool that was not called is forced": {required, []string{bye("1"), answering("2", a), bye("3")},
			[]string{"model core_memory_append", "model", "user"}, "milk\ntea"},
		"a model that never calls it is told three times": {required, []string{bye("1"), bye("2"), bye("3"), bye("3"),
			bye("4"), bye("4")}, []string{"model core_memory_append", "model core_memory_append",
			"model core_memory_append", "model core_memory_append", "user no_tool_call", "user no_tool_call"}, "milk"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t)
			c.must("POST", "/v1/tools", weatherTool)
			agent := c.stepper()
			c.must("PATCH", "/v1/agents/"+agent, `{"tool_rules":[`+test.rules+`]}`)
			c.step(agent, `{"messages":[{"role":"user","content":"Hello"}]}`)
			var next []string
			for _, body := range test.steps {
				got := c.step(agent, body)
				var forced struct{ Function struct{ Name string } }
				if raw := got.Prompt.Request["tool_choice"]; raw != nil && json.Unmarshal(raw, &forced) != nil {
					t.Errorf("the tool_choice is %s", raw)
				}
				reason := strings.TrimPrefix(got.Reason, "tool_rule")
				next = append(next, strings.TrimSpace(got.Next+" "+forced.Function.Name+reason))
			}
			if diff := cmp.Diff(test.next, next); diff != "" || c.notes(agent) != test.notes {
				t.Errorf("the notes are %q; next (-want +got):\n%s", c.notes(agent), diff)
			}
		})
	}
}

// A rule that limits nothing is refused.
func TestALimitOfARuleIsAtLeastOne(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.stepper()
	for limit, status := range map[string]int{``: 422, `,"max_count_limit":0`: 422, `,"max_count_limit":-1`: 422,
		`,"max_count_limit":null`: 422, `,"max_count_limit":1.5`: 422, `,"max_count_limit":"1"`: 422,
		`,"max_count_limit":1`: 200} {
		rules := `{"tool_rules":[{"type":"max_count_per_step","tool_name":"core_memory_append"` + limit + `}]}`
		for method, path := range map[string]string{"PATCH": "/v1/agents/" + agent, "POST": "/v1/agents"} {
			if got := c.call(method, path, rules); got.Code != status {
				t.Errorf("%s %s: got %d %.200s", method, rules, got.Code, got.Text)
			}
		}
	}
}

// If a tool's output is not in the mapping, a conditional rule with require_output_mapping allows no tool.
func TestAnOutputThatIsNotMappedAllowsNoTool(t *testing.T) {
	t.Parallel()
	for strict, status := range map[string]string{"true": "error", "false": "success"} {
		r := newRunner(t, `{"name":"a","tool_set":"standard","memory_blocks":[{"label":"human","value":"Ada."}],
			"tool_rules":[{"type":"conditional","tool_name":"conversation_search","require_output_mapping":`+strict+`,
			"child_output_mapping":{"never":"memory_replace"},"default_child":"memory_insert"}]}`)
		r.model.Says(callOf("a", "conversation_search", `{"query":"x"}`),
			modeltest.Answer{Calls: []modeltest.Call{noteCall()}})
		checkSaid(t, strict, itemTexts(r.send(hello).Messages), []string{"tool_call_message conversation_search",
			"tool_return_message a success", "tool_call_message memory_insert", "tool_return_message i " + status,
			"assistant_message Done."})
	}
}

// A null field in a rule is the same as an absent one. A deleted tool is in no rule.
func TestRulesAreKeptOnceAndNotOfDeletedTools(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	tool := fields(t, c.must("POST", "/v1/tools", weatherTool))["id"].(string)
	agent := c.stepper()
	c.must("PATCH", "/v1/agents/"+agent, `{"tool_rules":[{"type":"exit_loop","tool_name":"weather"},
		{"type":"exit_loop","tool_name":"weather","prompt_template":null},
		{"type":"constrain_child_tools","tool_name":"expand","children":["weather","core_memory_append"]},
		{"type":"constrain_child_tools","tool_name":"core_memory_append","children":["weather"]},
		{"type":"exit_loop","tool_name":"expand"}]}`)
	rules := func() string { return pick(t, c.must("GET", "/v1/agents/"+agent, ""), "tool_rules") }
	if got := rules(); strings.Count(got, "exit_loop") != 2 {
		t.Errorf("the rules are %s", got)
	}
	c.must("DELETE", "/v1/tools/"+tool, "")
	want := `{"tool_rules":[{"children":["core_memory_append"],"tool_name":"expand","type":"constrain_child_tools"},` +
		`{"tool_name":"expand","type":"exit_loop"}]}`
	if got := rules(); got != want {
		t.Errorf("without the tool: got\n%s, want\n%s", got, want)
	}
}

// Changes that would hide all messages, and models without a name, are refused.
func TestChangesThatMeanNothingAreRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.stepper()
	for body, status := range map[string]int{`{"message_ids":[]}`: 400, `{"model":"/"}`: 422,
		`{"model":"anthropic/"}`: 422, `{"model":"/gpt-4o"}`: 422} {
		field, _, _ := strings.Cut(strings.TrimPrefix(body, `{"`), `"`)
		if got := c.call("PATCH", "/v1/agents/"+agent, body); got.Code != status || !strings.Contains(got.Text, field) {
			t.Errorf("PATCH with %s: got %d %s", body, got.Code, got.Text)
		}
	}
	for _, model := range []string{"/", "anthropic/"} {
		for _, path := range []string{"/v1/agents", "/v1/conversations?agent_id=" + agent} {
			if got := c.call("POST", path, `{"model":"`+model+`"}`); got.Code != 422 || !strings.Contains(got.Text, "model") {
				t.Errorf("POST %s with the model %s: got %d %s", path, model, got.Code, got.Text)
			}
		}
		got := c.call("POST", "/v1/agents/"+agent+"/messages", `{"input":"Hello","override_model":"`+model+`"}`)
		if got.Code != 422 || !strings.Contains(got.Text, "override_model") {
			t.Errorf("a message to the model %s: got %d %s", model, got.Code, got.Text)
		}
	}
	fork := "/v1/conversations/default/fork?agent_id=" + agent
	if got := c.call("POST", fork, `{"message_id":"message-1"}`); got.Code != 422 ||
		!strings.Contains(got.Text, "?message_id=") {
		t.Errorf("a fork with a parameter in the body: got %d %s", got.Code, got.Text)
	}
	if got := c.call("POST", fork, `{}`); got.Code != 200 {
		t.Errorf("a fork with an empty body: got %d %s", got.Code, got.Text)
	}
}
