package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// Programs that were written for Letta create agents with what Loci does not have: it is left out, and named.
func TestWhatAnAgentDoesNotGetIsNamed(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	c.made("/v1/tools", strings.Replace(weatherTool, `"weather"`, `"web_search"`, 1)) // the organization's own
	agent := "/v1/agents/" + c.made("/v1/agents", `{}`)
	for _, row := range []struct{ body, warning string }{
		{`"tools":["send_message","memory_finish_edits"],"tool_rules":[{"type":"exit_loop","tool_name":"send_message"}]`, ""},
		{`"tools":["web_search"],"tool_rules":[{"type":"run_first","tool_name":"web_search"}]`, ""},
		{`"tools":["run_code","expand"]`, "tools: run_code: left out, as this server runs no code of others."},
		{`"tools":["fetch_webpage"]`, "tools: fetch_webpage: left out, as this server does not reach the web."},
		{`"tools":["send_message_to_agent_async"]`,
			"tools: send_message_to_agent_async: left out, as this server sends no messages between agents."},
		{`"tool_rules":[{"type":"exit_loop","tool_name":"send_message_to_agents_matching_tags"}]`,
			"tool_rules: a rule is left out, as this server has no tool send_message_to_agents_matching_tags."},
		{`"tool_rules":[{"type":"constrain_child_tools","tool_name":"expand","children":["run_code"]}]`,
			"tool_rules: a rule is left out, as this server has no tool run_code."},
		{`"tool_rules":[{"type":"run_first","tool_name":"expand","args":{"seq":1}}]`,
			"tool_rules[0].args: left out, as this server sets no arguments of calls, which are what the model writes."},
		{`"tool_rules":[{"type":"constrain_child_tools","tool_name":"expand","children":["memory"],"child_arg_nodes":[
			{"name":"memory","args":{"path":"x"}}]}]`, "tool_rules[0].child_arg_nodes: left out, as this server sets no " +
			"arguments of calls, which are what the model writes."},
		{`"enable_sleeptime":true`,
			"enable_sleeptime: left out, as this server runs no second agent that edits memory meanwhile."},
		{`"message_buffer_autoclear":true`, ""},
		{`"secrets":{"a":"b"}`, "secrets: left out, as this server runs no custom tools and stores no secrets."},
		{`"tool_exec_environment_variables":{"a":"b"}`, "tool_exec_environment_variables: left out, as this server runs no " +
			"custom tools and stores no secrets."},
		{`"include_multi_agent_tools":true`,
			"include_multi_agent_tools: left out, as this server has no tools for several agents."},
		{`"project_id":"p"`, "project_id: left out, as this server has no projects."},
		{`"include_default_source":true`, "include_default_source: left out, as Loci makes no folder with an agent."},
	} {
		want := "[" + row.warning + "]"
		if row.warning == "" {
			want = "<nil>"
		}
		for _, call := range [][2]string{{"POST", "/v1/agents"}, {"PATCH", agent}} {
			state := fields(t, c.must(call[0], call[1], "{"+row.body+"}"))
			if got := fmt.Sprint(state["warnings"]); got != want {
				t.Errorf("%s of %s: the warnings are %s, want %s", call[0], row.body, got, want)
			}
			for _, word := range []string{"run_code", `"args"`, "send_message_to"} {
				if rules := pick(t, c.must("GET", agent, ""), "tool_rules"); strings.Contains(rules, word) {
					t.Errorf("after %s of %s: the rules are %s", call[0], row.body, rules)
				}
			}
		}
	}
	for _, name := range []string{"voice_convo_agent", "voice_sleeptime_agent", "split_thread_agent"} {
		state := fields(t, c.must("POST", "/v1/agents", `{"agent_type":"`+name+`"}`))
		if got := fmt.Sprint(state["warnings"]); got != "[agent_type: "+name+
			" is only a label here: the agent runs as a letta_v1_agent.]" {
			t.Errorf("%s: the warnings are %s", name, got)
		}
	}
}

// Each type of Letta's that runs here has Letta's rules and instructions.
func TestATypeHasRulesAndInstructions(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, row := range []struct{ body, rules, says string }{
		{`"agent_type":"letta_v1_agent"`, "", "conversation_search finds"},
		{`"agent_type":"memgpt_agent"`, "continue conversation_search, continue core_memory_append, " +
			"continue core_memory_replace, continue memory_apply_patch, continue memory, exit send_message",
			"To answer the user, call send_message"},
		{`"agent_type":"memgpt_v2_agent","model":"openai/gpt-5"`, "continue conversation_search, continue memory_insert, " +
			"continue memory_replace, exit send_message", "To answer the user, call send_message"},
		{`"agent_type":"memgpt_v2_agent","include_base_tool_rules":false`, "", "To answer the user"},
		{`"agent_type":"memgpt_v2_agent","tool_rules":[{"type":"exit_loop","tool_name":"send_message"}]`,
			"exit send_message, continue conversation_search, continue memory_insert, continue memory_replace",
			"To answer the user"},
		{`"agent_type":"sleeptime_agent"`, "continue memory_insert, continue memory_replace, continue memory_rethink, " +
			"exit memory_finish_edits", "call memory_finish_edits"},
		{`"agent_type":"react_agent"`, "", "You work with your tools, one step after the other"},
		{`"agent_type":"react_agent","tools":["memory_insert"],"model":"openai/gpt-5-mini"`, "continue memory_insert",
			"memory_insert adds lines"},
		{`"agent_type":"react_agent","tools":["memory_insert"],"model":"openai/gpt-5"`, "", "memory_insert adds lines"},
		{`"agent_type":"workflow_agent"`, "", "You see nothing of earlier requests"},
		{`"include_base_tools":true,"include_base_tool_rules":true`,
			"continue conversation_search, continue memory_insert, continue memory_replace", ""},
		{`"tools":["memory_insert"],"tool_rules":[{"type":"run_first","tool_name":"expand"}]`, "run_first expand", ""},
	} {
		state := fields(t, c.must("POST", "/v1/agents", "{"+row.body+"}"))
		var rules []string
		for _, rule := range state["tool_rules"].([]any) {
			r := rule.(map[string]any)
			rules = append(rules, strings.TrimSuffix(fmt.Sprint(r["type"]), "_loop")+" "+fmt.Sprint(r["tool_name"]))
		}
		if got := strings.Join(rules, ", "); got != row.rules {
			t.Errorf("%s: the rules are\n%s, want\n%s", row.body, got, row.rules)
		}
		if system, _ := state["system"].(string); !strings.Contains(system, row.says) {
			t.Errorf("%s: the instructions are %q, want %q in them", row.body, system, row.says)
		}
		if clears := state["message_buffer_autoclear"]; clears != strings.Contains(row.body, "workflow") {
			t.Errorf("%s: message_buffer_autoclear is %v", row.body, clears)
		}
	}
}

// An agent of the older types must call a tool in each answer, and what it says with send_message ends its turn, with
// Letta's rules and without.
func TestAgentsOfOlderTypesSpeakWithATool(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`"agent_type":"memgpt_agent"`,
		`"agent_type":"memgpt_v2_agent","include_base_tool_rules":false`} {
		r := newRunner(t, `{"name":"a",`+body+`}`)
		r.model.Says(modeltest.Answer{Text: "I greet.", Calls: []modeltest.Call{{ID: "m", Name: "send_message",
			Arguments: `{"message":"Hello, Ann."}`}}})
		got := r.send(hello)
		checkSaid(t, body, itemTexts(got.Messages), []string{"reasoning_message I greet.", "assistant_message Hello, Ann."})
		if got.StopReason.StopReason != "end_turn" {
			t.Errorf("%s: the turn ends with %s", body, got.StopReason.StopReason)
		}
		if asked := r.model.Requests(); len(asked) != 1 || !strings.Contains(string(asked[0].Body),
			`"tool_choice":"required"`) {
			t.Errorf("%s: the model was asked %d times, first with %s", body, len(asked), asked[0].Body)
		}
	}
}

// An agent that keeps memory in order ends its turn with memory_finish_edits.
func TestASleeptimeAgentEndsWithItsTool(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","agent_type":"sleeptime_agent","memory_blocks":[{"label":"human","value":"Ada."}]}`)
	r.model.Says(callOf("i", "memory_insert", `{"label":"human","new_string":"Likes tea."}`),
		callOf("f", "memory_finish_edits", `{}`))
	got := r.send(`{"input":"Ada said: I like tea."}`)
	checkSaid(t, "the answer", itemTexts(got.Messages), []string{"tool_call_message memory_insert",
		"tool_return_message i success", "tool_call_message memory_finish_edits", "tool_return_message f success"})
	if got.StopReason.StopReason != "tool_rule" {
		t.Errorf("the turn ends with %s", got.StopReason.StopReason)
	}
}

// A model that calls a tool of Letta's that no agent has here is told that this server does not run it.
func TestAModelIsToldWhatThisServerDoesNotRun(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","agent_type":"letta_v1_agent","tools":["run_code"]}`)
	r.model.Says(callOf("c", "run_code", `{"code":"1+1","language":"python"}`), modeltest.Answer{Text: "I cannot."})
	got := r.send(hello)
	checkSaid(t, "the answer", itemTexts(got.Messages), []string{"tool_call_message run_code",
		"tool_return_message c error", "assistant_message I cannot."})
	if text := fmt.Sprint(got.Messages[1]["tool_return"]); !strings.HasPrefix(text,
		"This server does not run run_code: this server runs no code of others. ") {
		t.Errorf("the result is %q", text)
	}
	run := fields(t, r.must("POST", "/v1/agents/"+r.agent+"/tools/web_search/run", `{"args":{}}`))
	if text := fmt.Sprint(run["func_return"]); run["status"] != "error" || !strings.HasPrefix(text,
		"This server does not run web_search: ") {
		t.Errorf("running web_search: %v", run)
	}
}

// The model of an agent whose message buffer is cleared sees the instructions and the request, and nothing earlier. An
// answer to a request for approval belongs to the request before.
func TestAModelSeesNothingOfEarlierRequestsWhereTheBufferIsCleared(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`"tool_set":"standard","message_buffer_autoclear":true`,
		`"agent_type":"workflow_agent","tools":["expand"]`} {
		r := newRunner(t, `{"name":"a","system":"You are Eve.",`+body+`,"memory_blocks":[{"label":"human","value":"Ada."}],
			"tool_rules":[{"type":"requires_approval","tool_name":"expand"}]}`)
		r.model.Says(modeltest.Answer{Text: "The first answer."}, callOf("e", "expand", `{"seq":1}`),
			modeltest.Answer{Text: "The third answer."})
		r.send(`{"input":"The first request."}`)
		asks := r.send(`{"input":"The second request."}`)
		r.send(fmt.Sprintf(`{"messages":[{"type":"approval","approval_request_id":%q,"approve":true}]}`,
			asks.Messages[len(asks.Messages)-1]["id"]))
		asked := r.model.Requests()
		if len(asked) != 3 {
			t.Fatalf("%s: the model was asked %d times", body, len(asked))
		}
		for i, a := range asked {
			text := string(a.Body)
			for word, want := range map[string]bool{"You are Eve.": true, "The first request.": i == 0,
				"The first answer.": false, "The second request.": i > 0} {
				if strings.Contains(text, word) != want {
					t.Errorf("%s: request %d has %q: %t, want %t", body, i+1, word, !want, want)
				}
			}
		}
		if log := strings.Join(r.log(), "\n"); !strings.Contains(log, "The first request.") ||
			!strings.Contains(log, "The first answer.") {
			t.Errorf("%s: the log is\n%s", body, log)
		}
	}
}
