package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// envelopeOf returns a result of a tool as Letta stores it: JSON within JSON.
func envelopeOf(status, message string) string {
	return fmt.Sprintf(`"{\n  \"status\": \"%s\",\n  \"message\": %s,\n  \"time\": \"2026-11-30 01:15:46 PM CET+0100\"\n}"`,
		status, strings.ReplaceAll(message, `"`, `\"`))
}

// olderAgent is a file of an agent of one of Letta's older types, which speaks with send_message.
func olderAgent(agentType string) string {
	call := func(id, thought, tool, arguments string) string {
		return fmt.Sprintf(`{"id":"message-%s","role":"assistant","content":[{"type":"text","text":%q}],"tool_calls":[{
			"id":%[1]q,"type":"function","function":{"name":%[3]q,"arguments":%[4]q}}]}`, id, thought, tool, arguments)
	}
	result := func(id, status, message string) string {
		return fmt.Sprintf(`{"id":"message-%s-r","role":"tool","content":[],"tool_call_id":%[1]q,"tool_returns":[{
			"tool_call_id":%[1]q,"status":"success","func_response":%[2]s}],"created_at":"2026-11-30T12:15:46Z"}`, id,
			envelopeOf(status, message))
	}
	user := func(id, text string) string {
		return fmt.Sprintf(`{"id":"message-%s","role":"user","content":[{"type":"text","text":%q}]}`, id, text)
	}
	messages := []string{`{"id":"message-s","role":"system","content":[{"type":"text","text":"You are Ada."}]}`,
		user("u1", `{"type": "user_message", "message": "Hi", "time": "x"}`),
		call("c1", "Greet.", "send_message", `{"message": "Hello."}`), result("c1", "OK", "null"),
		user("u2", "Tea?"), call("c2", "Look.", "conversation_search", `{"query": "tea", "thinking": "Tea."}`),
		result("c2", "OK", `{"results": [1, null, true], "it's": "xzz"}`),
		call("c3", "Note.", "core_memory_append", `{"label": "human"}`), result("c3", "Failed", `"no content"`)}
	return fmt.Sprintf(`{"agents":[{"id":"agent-0","name":"Ada","agent_type":%q,"system":"You are Ada.",
		"timezone":"Europe/Berlin","llm_config":{"model":"gpt-4o-mini","model_endpoint_type":"openai",
		"handle":"openai-proxy/gpt-4o-mini","context_window":128000,"temperature":0.25,"max_tokens":777,
		"reasoning_effort":"high"},"tool_ids":["tool-0","tool-1","tool-2"],
		"tool_rules":[{"type":"exit_loop","tool_name":"send_message"},
			{"type":"continue_loop","tool_name":"conversation_search"}],
		"messages":[%s]}],"tools":[{"id":"tool-0","name":"send_message","tool_type":"letta_core"},
		{"id":"tool-1","name":"conversation_search","tool_type":"letta_core"},
		{"id":"tool-2","name":"core_memory_append","tool_type":"letta_core"}]}`, agentType, strings.Join(messages, ","))
}

// importedRunner returns a runner of the agent of a file.
func importedRunner(t *testing.T, file string) (runner, []string) {
	t.Helper()
	r := newRunner(t, "")
	ids, leftOut := r.imported(file)
	r.agent = ids[0]
	return r, leftOut
}

// What an imported agent thought, what its tools returned and what its user said are listed as Letta lists them.
func TestAnOlderAgentsMessagesAreListedAsInLetta(t *testing.T) {
	t.Parallel()
	for _, agentType := range []string{"memgpt_agent", "memgpt_v2_agent"} {
		r, leftOut := importedRunner(t, olderAgent(agentType))
		if len(leftOut) > 0 {
			t.Errorf("%s: left out is %q", agentType, leftOut)
		}
		want := []string{"user_message Hi", "reasoning_message Greet.", "assistant_message Hello.", "user_message Tea?",
			"reasoning_message Look.", "reasoning_message Tea.", "tool_call_message conversation_search",
			"tool_return_message c2 success", "reasoning_message Note.", "tool_call_message core_memory_append",
			"tool_return_message c3 error"}
		checkSaid(t, agentType, r.log(), want)
		var returned []any
		for _, m := range r.list(r.path() + "?include_return_message_types=tool_return_message") {
			returned = append(returned, m["tool_return"])
		}
		if got := fmt.Sprint(returned); got != `[{'results': [1, None, True], "it's": 'xzz'} no content]` {
			t.Errorf("%s: the results are %s", agentType, got)
		}
	}
	r, _ := importedRunner(t, olderAgent("letta_v1_agent"))
	if got := r.log()[1]; got != "assistant_message Greet." {
		t.Errorf("the text of an agent that speaks with texts is %s", got)
	}
}

// An imported agent speaks with send_message, which ends its turn. Its model reads results in Letta's envelope.
func TestAnOlderAgentSpeaksWithATool(t *testing.T) {
	t.Parallel()
	r, _ := importedRunner(t, olderAgent("memgpt_agent"))
	r.model.Says(modeltest.Answer{Text: "I note it.", Calls: []modeltest.Call{{ID: "i", Name: "core_memory_append",
		Arguments: `{"label":"human","content":"Likes tea.","request_heartbeat":true}`}}},
		modeltest.Answer{Text: "Now I say it.", Calls: []modeltest.Call{{ID: "m", Name: "send_message",
			Arguments: `{"message":"Noted.","inner_thoughts":"Kindly."}`}}})
	got := r.send(`{"input":"I like tea"}`)
	checkSaid(t, "the answer", itemTexts(got.Messages), []string{"reasoning_message I note it.",
		"tool_call_message core_memory_append", "tool_return_message i error", "reasoning_message Now I say it.",
		"reasoning_message Kindly.", "assistant_message Noted."})
	if got.StopReason.StopReason != "end_turn" {
		t.Errorf("the turn ends with %s", got.StopReason.StopReason)
	}
	log := r.log()
	checkSaid(t, "the list", log[len(log)-3:], itemTexts(got.Messages)[3:])
	asked := r.model.Requests()
	if len(asked) != 2 {
		t.Fatalf("the model was asked %d times", len(asked))
	}
	prompt := string(asked[1].Body)
	for _, want := range []string{
		`"{\n  \"status\": \"OK\",\n  \"message\": null,\n  \"time\": \"2026-11-30 01:15:46 PM CET+0100\"\n}"`,
		`\"message\": {\"results\": [1, null, true], \"it's\": \"xzz\"}`, `{\n  \"status\": \"Failed\",\n  \"message\": \"`,
		`"content":"Look.\nTea."`, `"tool_choice":"required"`, `"temperature":0.25`, `"max_tokens":777`} {
		if !strings.Contains(prompt, want) {
			t.Errorf("the prompt lacks %s: %s", want, prompt)
		}
	}
	if strings.Contains(prompt, "reasoning_effort") || strings.Contains(prompt, `\"status\": \"success\"`) {
		t.Errorf("the prompt is %s", prompt)
	}
}

// A stream shows what an agent says with send_message as a text, and what it thinks as a reasoning.
func TestAnOlderAgentsStreamShowsWhatItSays(t *testing.T) {
	t.Parallel()
	for _, options := range []string{``, `,"stream_tokens":true`, `,"background":true,"stream_tokens":true`} {
		r, _ := importedRunner(t, olderAgent("memgpt_agent"))
		r.model.Says(modeltest.Answer{Text: "I say it.", Calls: []modeltest.Call{{ID: "m", Name: "send_message",
			Arguments: `{"message":"Noted."}`}}})
		items, _ := r.stream(r.path(), `{"input":"I like tea","streaming":true`+options+`}`)
		var shown []string
		for _, text := range itemTexts(items) {
			if !strings.HasPrefix(text, "ping") && !strings.HasPrefix(text, "usage") {
				shown = append(shown, text)
			}
		}
		checkSaid(t, "the stream with "+options, shown, []string{"reasoning_message I say it.", "assistant_message Noted.",
			"stop_reason end_turn"})
	}
}
