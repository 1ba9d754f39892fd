package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/servertest"
)

// A program with its own loop sends the prompt that it gets, captures the answer, and gets the next prompt. The prompts
// can be read again later.
func TestPromptsAreHandedOut(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"system":"Help.","model":"openai/gpt-4o","memory_blocks":[{"label":"persona",
		"value":"<calm>"}],
		"tool_rules":[{"type":"exit_loop","tool_name":"expand"}]}`)
	target := "/v1/agents/" + agent
	var prompts []map[string]any
	var bodies []string
	for i := range 3 {
		c.capture(agent, fmt.Sprintf(`{"messages":[{"role":"user","content":"question <%d>"},{"role":"assistant",`+
			`"content":"answer %d"}]}`, i, i))
		bodies = append(bodies, c.must("GET", target+"/prompt", ""))
		prompts = append(prompts, fields(t, bodies[i]))
	}
	first := prompts[0]["request"].(map[string]any)
	system := first["messages"].([]any)[0].(map[string]any)
	contains(t, "the system prompt", system["content"].(string), "Help.\n\n<memory_blocks>", "<calm>",
		"<tool_usage_rules>", "</memory_metadata>")
	if n := len(first["messages"].([]any)); n != 4 || first["model"] != "gpt-4o" || len(first["tools"].([]any)) != 14 ||
		prompts[0]["format"] != "openai" {
		t.Errorf("got %d messages, of %v, in format %v", n, first["model"], prompts[0]["format"])
	}
	c.must("PATCH", target, `{"system":"Hinder."}`)
	for i, p := range prompts {
		if got := c.must("GET", fmt.Sprintf("%s/context?at_seq=%.0f", target, p["seq"]), ""); got != bodies[i] {
			t.Errorf("prompt %d is shown as\n%s\nwant\n%s", i, got, bodies[i])
		}
	}
	anthropic := c.must("GET", target+"/prompt?format=anthropic", "")
	contains(t, "Anthropic's format", anthropic,
		`"system":[{"type":"text","text":"Hinder.\n\n<memory_blocks>`, `"input_schema":`,
		`"messages":[{"role":"user","content":[{"type":"text","text":"question <0>"}]}`)

	// The overview counts the same.
	var tokens struct{ Tokens map[string]int }
	if err := json.Unmarshal([]byte(c.must("GET", target+"/prompt", "")), &tokens); err != nil {
		t.Fatal(err)
	}
	overview := fields(t, c.must("GET", target+"/context", ""))
	for field, part := range map[string]string{"context_window_size_current": "total",
		"num_tokens_system": "base_instructions", "num_tokens_core_memory": "core_memory",
		"num_tokens_tool_usage_rules": "tool_usage_rules", "num_tokens_directories": "directories",
		"num_tokens_external_memory_summary": "memory_metadata",
		"num_tokens_functions_definitions":   "tools", "num_tokens_messages": "messages",
		"num_tokens_summary_memory": "summary"} {
		if got := overview[field].(float64); int(got) != tokens.Tokens[part] {
			t.Errorf("%s is %v, and %s of the prompt %d", field, got, part, tokens.Tokens[part])
		}
	}
	conversation := c.made("/v1/conversations?agent_id="+agent, "")
	for query, want := range map[string]string{"/prompt?format=gemini": `422 `, "/prompt?pending=drop": "422 ",
		"/context?at_seq=0": "422 ",
		"/context?at_seq=1": "404 No prompt of this conversation was handed out at position 1 ",
		"/context?at_seq=99&conversation_id=" + conversation:                "404 No prompt of this conversation",
		"/prompt?conversation_id=conv-123e4567-e89b-42d3-8456-426614174000": "404 Conversation with ID"} {
		got := c.call("GET", target+query, "")
		detail, _ := fields(t, got.Text)["detail"].(string)
		if answer := fmt.Sprintf("%d %s", got.Code, detail); !strings.HasPrefix(answer, want) {
			t.Errorf("%s: got %s, want %s…", query, answer, want)
		}
	}
	c.refuses("GET", target+"/prompt?conversation_id="+conversation, "", 409, "no message in view")
	for _, answered := range []string{"/context?conversation_id=" + conversation,
		"/prompt?policy=letta&conversation_id=" + conversation} {
		c.must("GET", target+answered, "")
	}
	c.must("POST", "/v1/conversations/"+conversation+"/messages/preview-raw-payload", hello)
	c.greet(agent, conversation)
	if got := fields(t, c.must("GET", target+"/prompt?conversation_id="+conversation,
		"")); got["conversation_id"] != conversation {
		t.Errorf("of a conversation: got %v", got["conversation_id"])
	}
	servertest.CheckProblem(t, c.call("GET", someAgent+"/prompt", ""), 404, map[string]any{"detail": "Agent with ID " +
		"agent-123e4567-e89b-42d3-8456-426614174000 not found"})
}

// A prompt names the calls that wait for results, in the same way when it is read again later. If requested, it
// contains a placeholder for each missing result.
func TestAPromptNamesPendingCalls(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"system":"Help."}`)
	target := "/v1/agents/" + agent
	c.capture(agent, `{"messages":[{"role":"user","content":"Go."},{"role":"assistant","tool_calls":[`+
		`{"id":"a","type":"function","function":{"name":"look","arguments":"{}"}},`+
		`{"id":"b","type":"function","function":{"name":"find","arguments":"{}"}}]},`+
		`{"role":"tool","tool_call_id":"b","content":"Found."}]}`)
	waiting := c.must("GET", target+"/prompt", "")
	contains(t, "the prompt", waiting, `"pending_tool_calls":[{"tool_call_id":"a","name":"look","position":3}]`)
	if strings.Contains(waiting, "still pending") {
		t.Errorf("a result that nobody asked for: %s", waiting)
	}
	answered := c.must("GET", target+"/prompt?pending=answer", "")
	contains(t, "the answered prompt", answered, `"pending_tool_calls":[{"tool_call_id":"a",`,
		`{"role":"tool","tool_call_id":"a","content":"[No result yet: this call is still pending.]"}`)
	contains(t, "Anthropic's", c.must("GET", target+"/prompt?pending=answer&format=anthropic", ""),
		`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"[No result yet`)
	shownLater := c.must("GET", fmt.Sprintf("%s/context?at_seq=%.0f", target, fields(t, waiting)["seq"]), "")
	contains(t, "what is shown later", shownLater, `"pending_tool_calls":[{"tool_call_id":"a"`)
	c.capture(agent, `{"messages":[{"role":"tool","tool_call_id":"a","content":"Looked."}]}`)
	contains(t, "the next prompt", c.must("GET", target+"/prompt?pending=answer", ""), `"pending_tool_calls":[]`)
}
