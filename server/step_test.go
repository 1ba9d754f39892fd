package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat/chattest"
	"github.com/loci-memory/loci/server/servertest"
)

// stepped is the answer to a step.
type stepped struct {
	ConversationID *string `json:"conversation_id"`
	Messages       []recall.Appended
	Results        []struct {
		ToolCallID string `json:"tool_call_id"`
		Name       string
		Status     string
		Return     string `json:"tool_return"`
	} `json:"tool_results"`
	Calls []struct {
		ToolCallID string `json:"tool_call_id"`
		Name       string
		Arguments  string
		Reason     string
	}
	Reason string `json:"stop_reason"`
	Next   string
	Prompt struct {
		Format  string
		Request map[string]json.RawMessage
		Tokens  promptTokens
	}
}

func (c *client) step(agent, body string) stepped {
	c.t.Helper()
	var got stepped
	if err := json.Unmarshal([]byte(c.must("POST", "/v1/agents/"+agent+"/step", body)), &got); err != nil {
		c.t.Fatal(err)
	}
	return got
}

// dialects are the same answer in each provider's form: a text, a call of a memory tool, and a call of the caller's
// tool.
var dialects = map[string]struct{ answer, result, end, text string }{
	"openai": {
		answer: `{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-4o-2024-08-06","choices":[{"index":0,
			"finish_reason":"tool_calls","logprobs":null,"message":{"role":"assistant","content":"One moment.","refusal":null,
			"annotations":[],"tool_calls":[{"id":"a","type":"function","function":{"name":"core_memory_append",
			"arguments":"{\"label\": \"notes\", \"content\": \"tea\"}"}},{"id":"b","type":"function","function":{"name":
			"weather","arguments":"{\"place\": \"Oslo\"}"}}]}}],
			"usage":{"prompt_tokens":%d,"completion_tokens":20,"total_tokens":9}}`,
		result: `{"role":"tool","tool_call_id":"b","content":"Rain."}`,
		end: `{"id":"chatcmpl-2","object":"chat.completion","model":"gpt-4o-2024-08-06","choices":[{"index":0,
			"finish_reason":"stop","message":{"role":"assistant","content":"It rains."}}],"usage":{"prompt_tokens":%d}}`,
		text: `"content":"It rains."`},
	"anthropic": {
		answer: `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[
			{"type":"thinking","thinking":"Hm <b>.","signature":"c2ln"},{"type":"text","text":"One moment.","citations":null},
			{"type":"tool_use","id":"a","name":"core_memory_append","input":{"label":"notes","content":"tea"}},
			{"type":"tool_use","id":"b","name":"weather","input":{"place":"Oslo"}}],"stop_reason":"tool_use",
			"stop_sequence":null,"usage":{"input_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":%d,
			"output_tokens":20}}`,
		result: `{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"Rain."}]}`,
		end: `{"id":"msg_2","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[
			{"type":"text","text":"It rains."}],"stop_reason":"end_turn","usage":{"input_tokens":%d,"output_tokens":3}}`,
		text: `{"type":"text","text":"It rains."}`},
	"responses": {
		answer: `{"id":"resp_1","object":"response","status":"completed","error":null,"model":"gpt-5-2025-08-07","output":[
			{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Tea."}],"encrypted_content":"gAAAAB=="},
			{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text",
			"text":"One moment.","annotations":[]}]},
			{"id":"fc_1","type":"function_call","call_id":"a","name":"core_memory_append","status":"completed",
			"arguments":"{\"label\": \"notes\", \"content\": \"tea\"}"},
			{"id":"fc_2","type":"function_call","call_id":"b","name":"weather","arguments":"{\"place\": \"Oslo\"}"}],
			"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":0},"output_tokens":20}}`,
		result: `{"type":"function_call_output","call_id":"b","output":"Rain."}`,
		end: `{"id":"resp_2","object":"response","model":"gpt-5-2025-08-07","output":[{"type":"message","role":"assistant",
			"content":[{"type":"output_text","text":"It rains."}]}],"usage":{"input_tokens":%d}}`,
		text: `{"type":"output_text","text":"It rains."}`},
}

// stepper creates an agent with notes, and returns its id.
func (c *client) stepper() string {
	return c.made("/v1/agents", `{"memory_blocks":[{"label":"notes","value":"milk"}],"tool_set":"all"}`)
}

// notes returns the value of the agent's block notes.
func (c *client) notes(agent string) string {
	c.t.Helper()
	return fields(c.t, c.must("GET", "/v1/agents/"+agent+"/core-memory/blocks/notes", ""))["value"].(string)
}

// A program with its own loop needs one request for each step. It sends the model's answer as the provider returned it.
// The server runs the calls of memory tools, and returns the next prompt and the remaining calls.
func TestAStepStoresRunsAndPrompts(t *testing.T) {
	t.Parallel()
	for format, d := range dialects {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			c := newClient(t)
			agent := c.stepper()
			first := c.step(agent, `{"messages":[{"role":"user","content":"Weather? And note tea."}],"format":"`+format+`"}`)
			if first.Next != "model" || first.Prompt.Format != format || len(first.Calls) > 0 {
				t.Fatalf("after a question: %+v", first)
			}
			got := c.step(agent, fmt.Sprintf(`{"otid":"s1","format":%q,"response":`+d.answer+`}`, format,
				first.Prompt.Tokens.Estimated*3/2))
			if len(got.Results) != 1 || got.Results[0].Name != "core_memory_append" || got.Results[0].Status != "success" ||
				len(got.Calls) != 1 || got.Calls[0].Name != "weather" || got.Calls[0].ToolCallID != "b" ||
				!strings.Contains(got.Calls[0].Arguments, "Oslo") || got.Next != "calls" {
				t.Errorf("after the calls: %+v", got)
			}
			if notes := c.notes(agent); notes != "milk\ntea" {
				t.Errorf("the notes are %q", notes)
			}
			if n := got.Prompt.Tokens; n.Total < n.Estimated*14/10 {
				t.Errorf("the provider counts 1.5 times our tokens, and the prompt has %+v", n)
			}
			got = c.step(agent, `{"messages":[`+d.result+`],"otid":"s2","format":"`+format+`"}`)
			if got.Next != "model" || len(got.Calls) > 0 {
				t.Errorf("after the result: %+v", got)
			}
			checkSendable(t, format, got)
			got = c.step(agent, fmt.Sprintf(`{"otid":"s3","format":%q,"response":`+d.end+`}`, format, 0))
			if got.Next != "user" || len(got.Calls)+len(got.Results) > 0 {
				t.Errorf("after the answer: %+v", got)
			}
			sent := string(got.Prompt.Request["messages"]) + string(got.Prompt.Request["input"])
			contains(t, "the last prompt", sent, d.text, "Rain.", "One moment.")
			if format == "anthropic" {
				contains(t, "the thought", sent, `{"type":"thinking","thinking":"Hm <b>.","signature":"c2ln"}`)
			}
			if format == "responses" {
				contains(t, "the thought", sent, `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text",`+
					`"text":"Tea."}],"encrypted_content":"gAAAAB=="}`)
			}
		})
	}
}

func checkSendable(t *testing.T, format string, got stepped) {
	t.Helper()
	check, list := chattest.OpenAI, "messages"
	switch format {
	case "anthropic":
		check = chattest.Anthropic
	case "responses":
		check, list = chattest.Responses, "input"
	}
	var messages []json.RawMessage
	if err := json.Unmarshal(got.Prompt.Request[list], &messages); err != nil {
		t.Fatal(err)
	}
	if err := check(messages); err != nil {
		t.Errorf("%s: %v\n%s", format, err, got.Prompt.Request[list])
	}
}

// If a step comes again, even while it is still running, nothing more changes, and the answer is the same.
func TestARepeatedStepRunsNoToolTwice(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.stepper()
	body := fmt.Sprintf(`{"otid":"s1","response":`+dialects["openai"].answer+`,"messages":[`+dialects["openai"].result+
		`,{"role":"user","content":"And now?"}]}`, 0)
	const times = 6
	answers := make([]servertest.Reply, times)
	var all sync.WaitGroup
	for i := range times {
		all.Go(func() { answers[i] = c.call("POST", "/v1/agents/"+agent+"/step", body) })
	}
	all.Wait()
	again := c.step(agent, body)
	for _, a := range answers {
		var got stepped
		if err := json.Unmarshal([]byte(a.Text), &got); err != nil || a.Code != 200 {
			t.Fatalf("got %d %s", a.Code, a.Text)
		}
		if got.Messages[0].ID != again.Messages[0].ID || len(got.Results) != 1 || got.Results[0] != again.Results[0] ||
			got.Next != "model" || len(got.Calls) > 0 {
			t.Errorf("got %+v, and later %+v", got, again)
		}
	}
	if notes := c.notes(agent); notes != "milk\ntea" {
		t.Errorf("the notes are %q, want one tea", notes)
	}
	if n := len(c.log(agent)); n != 4 {
		t.Errorf("%d messages are stored, want the answer, two results and a question:\n%s", n,
			strings.Join(c.said(agent), "\n"))
	}
	if got := c.call("POST", "/v1/agents/"+agent+"/step", strings.Replace(body, "One moment", "Two", 1)); got.Code != 409 {
		t.Errorf("another answer of the same otid: got %d %s", got.Code, got.Text)
	}
	checkSendable(t, "openai", again)
}

// Calls of memory tools may be left, because a server stopped or their answer was captured. The next step runs them,
// whatever it contains.
func TestAStepCatchesUp(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.stepper()
	c.capture(agent, `{"messages":[{"role":"user","content":"Note tea."},{"role":"assistant","tool_calls":[
		{"id":"a","type":"function","function":{"name":"core_memory_append",
		"arguments":"{\"label\":\"notes\",\"content\":\"tea\"}"}},
		{"id":"b","type":"function","function":{"name":"weather","arguments":"{}"}},
		{"id":"c","type":"function","function":{"name":"core_memory_append","arguments":"{\"label\":\"not"}}]}]}`)
	got := c.step(agent, `{"messages":{"role":"tool","tool_call_id":"b","content":"Rain."}}`)
	if got.Next != "model" || c.notes(agent) != "milk\ntea" {
		t.Errorf("got %+v, and the notes %q", got, c.notes(agent))
	}
	said := c.said(agent)
	if last := said[len(said)-1]; len(said) != 5 || !strings.Contains(last, `"is_error":true`) {
		t.Errorf("a call with broken arguments has no result that says so:\n%s", strings.Join(said, "\n"))
	}
	checkSendable(t, "openai", got)
}

// A step in a conversation stays there, and its tools know the conversation in which they are called.
func TestAStepInAConversation(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.stepper()
	id := c.made("/v1/conversations?agent_id="+agent, "")
	c.capture(agent, `{"messages":[{"role":"user","content":"The walrus is upstairs."}]}`)
	c.must("PATCH", "/v1/agents/"+agent, `{"recall_scope":"conversation"}`)
	got := c.step(agent, `{"conversation_id":"`+id+`","response":{"role":"assistant","content":null,"tool_calls":[{
		"id":"a","type":"function","function":{"name":"conversation_search","arguments":"{\"query\":\"walrus\"}"}}]}}`)
	if got.ConversationID == nil || *got.ConversationID != id || len(got.Results) != 1 ||
		strings.Contains(got.Results[0].Return, "upstairs") ||
		strings.Contains(string(got.Prompt.Request["messages"]), "upstairs") {
		t.Errorf("got %v, %+v", got.ConversationID, got.Results)
	}
	if n := len(c.log(agent)); n != 1+1+2 { // includes the conversation's own system prompt
		t.Errorf("%d messages are stored", n)
	}
}

// An invalid step is refused, the error names the field, and nothing of the step is stored.
func TestAStepRefusesAndStoresNothing(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.stepper()
	for body, want := range map[string]string{
		`{}`:                                         "messages: expected at least one message",
		`{"messages":[]}`:                            "messages: expected at least one message",
		`{"response":"hi"}`:                          "response: expected an object",
		`{"response":{}}`:                            "response: expected what the provider returned",
		`{"response":{"choices":[]}}`:                "response.choices: expected one",
		`{"response":{"choices":"no"}}`:              "response.choices: expected a list of choices",
		`{"response":{"choices":[{}]}}`:              "response.choices[0].message: expected an object",
		`{"response":{"error":{"a":1}}}`:             "response.error: expected an answer of the model",
		`{"response":{"role":"user","content":"x"}}`: "response.role: expected one of assistant",
		`{"response":{"choices":[{"message":{"role":"user","content":"x"}}]}}`: "response.choices[0].message.role: " +
			"expected one of assistant",
		`{"response":{"output":[{"type":"message","role":"user","content":"x"}]}}`: "response.output[0].role: expected " +
			"one of assistant",
		`{"response":{"choices":[{"message":{"tool_calls":[{"id":"c","function":{}}]}}]}}`: "response.choices[0].message." +
			"tool_calls[0].function.name: expected a text",
		`{"response":{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"x","input":{}}]}}`: "" +
			"response.content[0].name: expected a text",
		`{"response":{"output":[{"type":"function_call","call_id":"c"}]}}`: "response.output[0].name: expected a text",
		`{"response":{"output":[{"type":"function_call_output","call_id":"c","output":"x"}]}}`: "response.output[0].type: " +
			"expected what the model wrote",
		`{"response":{"output":[{"type":"novel"}]}}`: "" +
			"response.output[0].type: expected message, function_call",
		`{"response":{"role":"assistant","content":"x"},"messages":[{"role":"robot"}]}`: "messages[0].role: expected one of",
		`{"response":{"role":"assistant","content":"x"},"messages":[{"role":"user","content":[{"type":"reasoning",` +
			`"reasoning":"x"}]}]}`: "messages[0]: a message of role user cannot have",
		`{"response":{"role":"assistant","content":"x"},"otid":5}`:          "otid: expected a text. Got: 5",
		`{"response":{"role":"assistant","content":"x"},"format":"gemini"}`: "format: expected one of openai, anthropic",
		`{"messages":[{"role":"user","content":"x"}],"policy":"none"}`:      `policy: There is no policy "none". The presets`,
		`{"response":{"role":"assistant","content":"x"},"pending":"drop"}`:  "pending: expected one of keep, answer",
		`{"response":{"choices":[{"message":{"content":"x"}},{"message":{"content":"y"}}]}}`: "response.choices: expected " +
			"one, with the message that the model answered. Got: 2.",
	} {
		got := c.call("POST", "/v1/agents/"+agent+"/step", body)
		if detail, _ := fields(t, got.Text)["detail"].(string); got.Code != 422 || !strings.HasPrefix(detail, want) {
			t.Errorf("%s: got %d %s, want 422 %q…", body, got.Code, got.Text, want)
		}
	}
	if said := c.said(agent); len(said) > 0 {
		t.Errorf("stored %q, want nothing", said)
	}
	servertest.CheckProblem(t, c.call("POST", someAgent+"/step", `{"messages":{"role":"user","content":"x"}}`), 404,
		map[string]any{"detail": "Agent with ID agent-123e4567-e89b-42d3-8456-426614174000 not found"})
}

// Models sometimes return nothing, and providers report this as an answer. The model is asked again, as in the server's
// own loop. An answer that was cut because of its length is stored.
func TestAStepRefusesAnEmptyAnswer(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.stepper()
	for _, answer := range []string{`{"choices":[{"message":{"role":"assistant","content":null}}]}`,
		`{"choices":[{"message":{"role":"assistant","content":"","reasoning_content":"Hm."}}]}`,
		`{"type":"message","role":"assistant","content":[],"stop_reason":"end_turn"}`, `{"object":"response","output":[]}`,
		`{"object":"response","status":"completed","output":[{"type":"reasoning","id":"r","summary":[]}]}`} {
		got := c.call("POST", "/v1/agents/"+agent+"/step", `{"response":`+answer+`}`)
		if got.Code != 422 || !strings.Contains(got.Text, "ask it again") {
			t.Errorf("%s: got %d %s", answer, got.Code, got.Text)
		}
	}
	if said := c.said(agent); len(said) > 0 {
		t.Errorf("stored %q, want nothing", said)
	}
	got := c.step(agent, `{"response":{"choices":[{"finish_reason":"length","message":{"role":"assistant",
		"content":""}}]}}`)
	if got.Next != "user" || len(c.log(agent)) != 1 {
		t.Errorf("an answer that was cut: got %+v and %q", got, c.said(agent))
	}
}

// appends returns a call of core_memory_append with an id, in OpenAI's form.
func appends(id, text string) string {
	return fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"core_memory_append",
		"arguments":"{\"label\": \"notes\", \"content\": \"%s\"}"}}`, id, text)
}

func ownCall(id string) string {
	return fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"weather","arguments":"{}"}}`, id)
}

// answering returns a step with an answer that calls tools.
func answering(otid string, calls ...string) string {
	return fmt.Sprintf(`{"otid":%q,"response":{"choices":[{"message":{"role":"assistant","content":null,
		"tool_calls":[%s]}}]}}`,
		otid, strings.Join(calls, ","))
}

// Two calls with one id are two calls. The later one gets a new id, the same each time the step is repeated.
func TestAStepNamesCallsWithOneID(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.stepper()
	body := answering("s1", appends("a", "tea"), appends("a", "rum"), ownCall("a"))
	first, again := c.step(agent, body), c.step(agent, body)
	if len(first.Results) != 2 || len(first.Calls) != 1 || first.Calls[0].ToolCallID == "a" ||
		again.Calls[0].ToolCallID != first.Calls[0].ToolCallID || first.Results[1].ToolCallID == "a" {
		t.Errorf("got %+v, and again %+v", first.Results, again.Calls)
	}
	if notes := c.notes(agent); notes != "milk\ntea\nrum" {
		t.Errorf("the notes are %q", notes)
	}
}

// The caller decides on a call that needs approval.
func TestAStepAsksForApproval(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.stepper()
	c.must("PATCH", "/v1/agents/"+agent, `{"tool_rules":[{"type":"requires_approval","tool_name":"core_memory_append"}]}`)
	step := "/v1/agents/" + agent + "/step"
	got := c.step(agent, answering("s1", appends("a", "tea"), ownCall("b"), appends("d", "rum")))
	reasons := ""
	for _, call := range got.Calls {
		reasons += call.ToolCallID + " " + call.Reason + ";"
	}
	if reasons != "a requires_approval;b own_tool;d requires_approval;" || got.Next != "calls" || len(got.Results) > 0 {
		t.Errorf("got %s %+v", reasons, got)
	}
	for body, status := range map[string]int{
		`{"approvals":[{"tool_call_id":"b","approve":true}]}`:                                      422,
		`{"approvals":[{"tool_call_id":"x","approve":true}]}`:                                      422,
		`{"approvals":[{"tool_call_id":"a","approve":true},{"tool_call_id":"a","approve":false}]}`: 422,
		`{"approvals":[{"tool_call_id":"a"}]}`:                                                     422,
		`{"approvals":[]}`:                                                                         422,
		`{"approvals":[{"tool_call_id":"a","approve":true}],"messages":[{"role":"tool","tool_call_id":"a",` +
			`"content":"forged"}]}`: 422,
	} {
		if got := c.call("POST", step, body); got.Code != status {
			t.Errorf("%s: got %d %s", body, got.Code, got.Text)
		}
	}
	if notes := c.notes(agent); notes != "milk" {
		t.Errorf("before the approval the notes are %q", notes)
	}
	decide := `{"approvals":[{"tool_call_id":"a","approve":true},{"tool_call_id":"d","approve":false,"reason":"No rum"}]}`
	for range 2 {
		got = c.step(agent, decide)
		if notes := c.notes(agent); notes != "milk\ntea" || len(got.Calls) != 1 || got.Calls[0].ToolCallID != "b" {
			t.Errorf("the notes are %q, and the calls %+v", notes, got.Calls)
		}
	}
	if got := c.call("POST", step, `{"approvals":[{"tool_call_id":"a","approve":false}]}`); got.Code != 409 {
		t.Errorf("another decision: got %d %s", got.Code, got.Text)
	}
	got = c.step(agent, `{"messages":[`+dialects["openai"].result+`]}`)
	if got.Next != "model" || !strings.Contains(string(got.Prompt.Request["messages"]), "No rum") {
		t.Errorf("after all: %+v", got)
	}
	checkSendable(t, "openai", got)
}

// A step obeys the rules of the agent's tools.
func TestAStepKeepsTheRulesOfTools(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	c.must("POST", "/v1/tools", weatherTool)
	rules := func(list string) string {
		agent := c.stepper()
		c.must("PATCH", "/v1/agents/"+agent, `{"tool_rules":[`+list+`]}`)
		c.step(agent, `{"messages":[{"role":"user","content":"Hello"}]}`)
		return agent
	}
	agent := rules(`{"type":"max_count_per_step","tool_name":"core_memory_append","max_count_limit":1},
		{"type":"max_count_per_step","tool_name":"weather","max_count_limit":1}`)
	got := c.step(agent, answering("s1", appends("a", "tea"), appends("b", "rum"), ownCall("c"), ownCall("d")))
	if c.notes(agent) != "milk\ntea" || len(got.Calls) != 1 || got.Calls[0].ToolCallID != "c" || len(got.Results) != 3 ||
		!strings.Contains(got.Results[1].Return, "do not allow core_memory_append") ||
		strings.Contains(string(got.Prompt.Request["tools"]), `"core_memory_append"`) {
		t.Errorf("at most one: got %+v, %+v", got.Results, got.Calls)
	}
	got = c.step(agent, `{"messages":[{"role":"tool","tool_call_id":"c","content":"Rain."},
		{"role":"user","content":"Again"}]}`)
	if !strings.Contains(string(got.Prompt.Request["tools"]), `"core_memory_append"`) {
		t.Error("the count goes on after the next message of the user")
	}
	agent = rules(`{"type":"constrain_child_tools","tool_name":"core_memory_append","children":["weather"]}`)
	got = c.step(agent, answering("s2", appends("a", "tea"), appends("b", "rum"), ownCall("c")))
	if c.notes(agent) != "milk\ntea" || len(got.Calls) != 1 || len(got.Results) != 2 || got.Results[1].Status != "error" {
		t.Errorf("children: got %+v, %+v", got.Results, got.Calls)
	}
	agent = rules(`{"type":"exit_loop","tool_name":"core_memory_append"}`)
	if got = c.step(agent, answering("s3", appends("a", "tea"))); got.Next != "user" || got.Reason != "tool_rule" {
		t.Errorf("the end: got %+v", got)
	}
	agent = rules(`{"type":"required_before_exit","tool_name":"core_memory_append"}`)
	bye := `{"otid":"s4","response":{"choices":[{"message":{"role":"assistant","content":"Bye"}}]}}`
	for range 2 {
		got = c.step(agent, bye)
		if got.Next != "model" || len(c.log(agent)) != 3 ||
			!strings.Contains(string(got.Prompt.Request["messages"]), "you must call core_memory_append") {
			t.Errorf("before the end: got %s %q", got.Next, c.said(agent))
		}
	}
	c.step(agent, answering("s5", appends("a", "tea")))
	if got = c.step(agent, strings.Replace(bye, "s4", "s6", 1)); got.Next != "user" {
		t.Errorf("at the end: got %s", got.Next)
	}
}
