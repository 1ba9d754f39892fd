package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A step understands answers of servers with an API like OpenAI's.
func TestAStepTakesAnswersOfOtherServers(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	const call = `"function":{"name":"core_memory_append","arguments":{"label":"notes","content":"tea"}}`
	for _, x := range []struct{ name, response, next, said, stop string }{
		{"arguments that are an object", `{"choices":[{"message":{"content":"","tool_calls":[{"id":"a",` + call + `}]}}]}`,
			"model", "tool_call_message core_memory_append;tool_return_message a success", ""},
		{"an id that is null", `{"choices":[{"message":{"content":null,"tool_calls":[{"id":null,` + call + `}]}}]}`, "model",
			"tool_call_message core_memory_append;tool_return_message call_", ""},
		{"two calls without ids", `{"choices":[{"message":{"tool_calls":[{` + call + `},{` + call + `}]}}]}`, "model",
			"tool_call_message core_memory_append core_memory_append;tool_return_message call_", ""},
		{"the older call", `{"choices":[{"message":{"function_call":{"name":"core_memory_append","arguments":` +
			`{"label":"notes","content":"tea"}}}}]}`, "model", "tool_call_message core_memory_append;tool_return_message", ""},
		{"thoughts in tags", `{"choices":[{"message":{"content":"<think>Hm.</think>\n\nYes."}}]}`, "user",
			"reasoning_message Hm.;assistant_message Yes.", ""},
		{"thoughts in tags of the message alone", `{"role":"assistant","content":"<think>Hm.</think>Yes."}`, "user",
			"reasoning_message Hm.;assistant_message Yes.", ""},
		{"Mistral's thoughts", `{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":` +
			`"Hm."}]},{"type":"text","text":"Yes."}]}}]}`, "user", "reasoning_message Hm.;assistant_message Yes.", ""},
		{"a reason that is a number", `{"choices":[{"message":{"content":"Yes."},"finish_reason":7}]}`, "user",
			"assistant_message Yes.", ""},
		{"a length", `{"choices":[{"message":{"content":"Ye"},"finish_reason":"length"}]}`, "user", "assistant_message Ye",
			"max_tokens_exceeded"},
		{"a length within a call", `{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a","function":{"name":` +
			`"weather","arguments":"{\"pl"}}]},"finish_reason":"length"}]}`, "user",
			"assistant_message [This answer was cut off within a call of weather, which was not made.]", "max_tokens_exceeded"},
		{"a length after a call", `{"choices":[{"message":{"tool_calls":[{"id":"a",` + call + `},{"id":"b","function":` +
			`{"name":"weather","arguments":"{\"pl"}}]},"finish_reason":"length"}]}`, "model",
			"tool_call_message core_memory_append;tool_return_message a success", ""},
		{"Anthropic's length", `{"type":"message","role":"assistant","content":[{"type":"thinking","thinking":"Hm.",` +
			`"signature":"c2ln"}],"stop_reason":"max_tokens"}`, "user",
			"reasoning_message Hm.;assistant_message [This answer was cut off before", "max_tokens_exceeded"},
		{"Anthropic's pause", `{"type":"message","role":"assistant","content":[{"type":"text","text":"Wait."},` +
			`{"type":"server_tool_use","id":"s","name":"web_search","input":{}}],"stop_reason":"pause_turn"}`, "model",
			"hidden_reasoning_message;assistant_message Wait.", ""},
		{"a response that is not complete", `{"object":"response","status":"incomplete","incomplete_details":{"reason":` +
			`"max_output_tokens"},"output":[{"type":"reasoning","id":"r","summary":[]}]}`, "user",
			"reasoning_message ;assistant_message [This answer was cut off before", "max_tokens_exceeded"},
		{"a response that was cut within a call", `{"object":"response","status":"incomplete","output":[{"type":` +
			`"function_call","call_id":"a","name":"weather","arguments":"{\"pl","status":"incomplete"}]}`, "user",
			"assistant_message [This answer was cut off within a call of weather", "max_tokens_exceeded"},
		{"a response that was filtered", `{"object":"response","status":"incomplete","incomplete_details":{"reason":` +
			`"content_filter"},"output":[]}`, "user", "assistant_message [This answer was cut off before", ""},
	} {
		agent := c.stepper()
		c.step(agent, `{"messages":[{"role":"user","content":"Hello"}]}`)
		for range 2 {
			got := c.step(agent, `{"otid":"s","response":`+x.response+`}`)
			if got.Next != x.next || got.Reason != x.stop {
				t.Errorf("%s: got the next %q and the reason %q, want %q and %q", x.name, got.Next, got.Reason, x.next, x.stop)
			}
			checkSendable(t, "openai", got)
		}
		said := strings.Join(itemTexts(runner{client: c, agent: agent}.items())[2:], ";")
		if !strings.HasPrefix(said, x.said) {
			t.Errorf("%s: the log has %q, want %q", x.name, said, x.said)
		}
	}
}

// items returns the agent's messages.
func (r runner) items() []map[string]any { return r.list(r.path() + "?limit=1000") }

// An impossible usage is ignored, and a warning says so. The answer is stored.
func TestAnImpossibleUsageIsIgnoredWithASentence(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.stepper()
	for _, usage := range []string{`{"prompt_tokens":-5}`, `{"prompt_tokens":"many"}`, `{"input_tokens":1e300}`, `"none"`,
		`[7]`, `{"cache_read_input_tokens":5000000000}`} {
		for path, body := range map[string]string{
			"step":                    `{"response":{"choices":[{"message":{"content":"Yes."}}],"usage":` + usage + `}}`,
			"step with its own usage": `{"response":{"choices":[{"message":{"content":"Yes."}}]},"usage":` + usage + `}`,
			"messages/capture of an exchange": `{"provider":"openai","request_messages":[{"role":"user","content":"Hm"}],` +
				`"response_dict":{"choices":[{"message":{"content":"Yes."}}],"usage":` + usage + `}}`,
		} {
			path, _, _ = strings.Cut(path, " ")
			before := len(c.log(agent))
			got := fields(t, c.must("POST", "/v1/agents/"+agent+"/"+path, body))
			if warnings := fmt.Sprint(got["warnings"]); !strings.Contains(warnings, "ignored") ||
				!strings.Contains(warnings, "usage") || len(c.log(agent)) == before {
				t.Errorf("%s %s: got the warnings %s", path, body, warnings)
			}
		}
	}
	got := fields(t, c.must("POST", "/v1/agents/"+agent+"/step", `{"response":{"choices":[{"message":{"content":"Yes."}}],
		"usage":{"prompt_tokens":7.0,"completion_tokens":null}}}`))
	if got["warnings"] != nil {
		t.Errorf("a usage that can be: got %v", got["warnings"])
	}
}

// A refused step runs no tool, whatever the reason for the refusal is.
func TestAStepThatIsRefusedRunsNothing(t *testing.T) {
	t.Parallel()
	r := newRunner(t, askingAgent)
	step := "/v1/agents/" + r.agent + "/step"
	r.must("POST", step, `{"messages":[{"role":"user","content":"Hello"}],"otid":"first"}`)
	call := `{"id":"%s","type":"function","function":{"name":"memory_insert",
		"arguments":"{\"label\":\"human\",\"new_string\":\"%s\"}"}}`
	r.must("POST", step, `{"response":{"choices":[{"message":{"role":"assistant","tool_calls":[`+
		fmt.Sprintf(call, "p", "Tea.")+`,`+fmt.Sprintf(call, "q", "Rum.")+`]}}]}}`)
	log := r.log()
	approve := func(ids, options string) string {
		var all []string
		for _, id := range ids {
			all = append(all, fmt.Sprintf(`{"tool_call_id":"%c","approve":true}`, id))
		}
		return `{"approvals":[` + strings.Join(all, ",") + `],` + options + `}`
	}
	const message = `"messages":[{"role":"user","content":"And"}]`
	for body, code := range map[string]int{
		approve("p", message):                                                409,
		approve("pq", message+`,"otid":"first"`):                             409,
		approve("pq", `"messages":[{"role":"user","content":[{"type":1}]}]`): 422,
		approve("px", message):                                               422,
	} {
		if got := r.call("POST", step, body); got.Code != code {
			t.Errorf("%s: got %d %s, want %d", body, got.Code, got.Text, code)
		}
		checkSaid(t, "the log after "+body, r.log(), log)
		if value := r.human(); value != "Ada." {
			t.Errorf("after %s the block is %s", body, value)
		}
	}
	last := approve("pq", message+`,"otid":"second"`)
	first := r.step(r.agent, last)
	log = r.log()
	again := r.step(r.agent, last)
	checkSaid(t, "the log after a repetition", r.log(), log)
	if diff := cmp.Diff(first.Results, again.Results); diff != "" || len(first.Results) != 2 {
		t.Errorf("the results of a repetition (-first +again):\n%s", diff)
	}
	for body, code := range map[string]int{
		strings.Replace(last, "true", "false", 1):  409,
		strings.Replace(last, `"And"`, `"Or"`, 1):  409,
		approve("pq", `"messages":[]`):             422,
		approve("p", `"otid":"third"`):             200,
		strings.Replace(last, `"p"`, `"other"`, 1): 422,
	} {
		if got := r.call("POST", step, body); got.Code != code {
			t.Errorf("%s afterwards: got %d %s, want %d", body, got.Code, got.Text, code)
		}
		checkSaid(t, "the log after "+body, r.log(), log)
	}
	if value := r.human(); strings.Count(value, "Tea.") != 1 || strings.Count(value, "Rum.") != 1 {
		t.Errorf("the block is %s", value)
	}
}

// If a provider returns something besides texts and calls, it is sent back to the provider, or refused. The agent's own
// system prompt is not a message.
func TestFormsOfAnswersGoBackOrAreRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, s := range []struct{ name, format, response, results, want string }{
		{"a custom call of chat completions", "openai", `{"model":"gpt-5","choices":[{"message":{"role":"assistant",
			"content":null,"tool_calls":[{"id":"x","type":"custom","custom":{"name":"patch","input":"+ a"}}]}}]}`,
			`{"role":"tool","tool_call_id":"x","content":"done"}`,
			`{"id":"x","type":"custom","custom":{"name":"patch","input":"+ a"}}`},
		{"a custom call of Responses", "responses", `{"model":"gpt-5","output":[{"type":"custom_tool_call","id":"ctc_1",
			"call_id":"x","name":"patch","input":"+ a"}]}`,
			`{"type":"custom_tool_call_output","call_id":"x","output":"done"}`,
			`{"type":"custom_tool_call","call_id":"x","name":"patch","input":"+ a"},` +
				`{"type":"custom_tool_call_output","call_id":"x","output":"done"}`},
		{"a thought of DeepSeek's before a call", "openai", `{"model":"deepseek-chat","choices":[{"message":{"role":
			"assistant","content":"","reasoning_content":"Hm. ","tool_calls":[{"id":"x","type":"function","function":{
			"name":"look","arguments":"{}"}}]}}]}`, `{"role":"tool","tool_call_id":"x","content":"done"}`,
			`"reasoning_content":"Hm. "`},
		{"a refusal of chat completions", "openai", `{"model":"gpt-5","choices":[{"message":{"role":"assistant",
			"content":null,"refusal":"I cannot."}}]}`, `{"role":"user","content":"Why?"}`,
			`"content":[{"type":"refusal","refusal":"I cannot."}]`},
		{"a phase and annotations of Responses", "responses", `{"model":"gpt-5","output":[{"type":"message","role":
			"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look.","annotations":[]}]},
			{"type":"message","role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":"It is.",
			"annotations":[{"type":"url_citation","url":"https://a","title":"A","start_index":0,"end_index":2}]}]}]}`,
			`{"role":"user","content":"Why?"}`,
			`{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look."}]},` +
				`{"type":"message","role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":"It is.",` +
				`"annotations":[{"type":"url_citation","url":"https://a","title":"A","start_index":0,"end_index":2}]}]}`},
		{"citations of Anthropic's", "anthropic", `{"model":"claude-sonnet-4-5","role":"assistant","content":[{"type":"text",
			"text":"It is.","citations":[{"type":"char_location","cited_text":"is","document_index":0}]}]}`,
			`{"role":"user","content":"Why?"}`,
			`{"type":"text","text":"It is.","citations":[{"type":"char_location","cited_text":"is","document_index":0}]}`},
	} {
		agent := c.made("/v1/agents", roomy)
		c.capture(agent, `{"messages":[{"role":"user","content":"Edit it."}]}`)
		got := c.step(agent, fmt.Sprintf(`{"format":%q,"response":%s,"messages":[%s]}`, s.format, s.response, s.results))
		checkSendable(t, s.format, got)
		if sent := string(got.Prompt.Request["messages"]) + string(got.Prompt.Request["input"]); !strings.Contains(sent,
			s.want) {
			t.Errorf("%s: the next prompt lacks %s:\n%s", s.name, s.want, sent)
		}
	}
	agent := c.made("/v1/agents", `{"tool_set":"small","system":"Be brief."}`)
	sound := `{"role":"assistant","content":"Hi.","audio":{"id":"a","data":"UklG","transcript":"Hi."}}`
	prompt := c.requestedSystem(agent)
	for field, body := range map[string]string{
		"response.choices[0].message.audio": `{"response":{"choices":[{"message":` + sound + `}]}}`,
		"messages[0].audio":                 `{"messages":[` + sound + `]}`,
		"messages[0]":                       `{"messages":[` + prompt + `,{"role":"user","content":"Hi."}]}`,
		"messages[1]": `{"messages":[{"role":"user","content":"Hi."},
			{"role":"system","content":"Be brief."}]}`,
	} {
		for _, path := range []string{"/step", "/messages/capture"} {
			if path != "/step" && strings.HasPrefix(field, "response") {
				continue
			}
			got := c.call("POST", "/v1/agents/"+agent+path, body)
			if detail, _ := fields(t, got.Text)["detail"].(string); got.Code != 422 || !strings.HasPrefix(detail, field+": ") {
				t.Errorf("%s with %s: got %d %s", path, body, got.Code, got.Text)
			}
		}
	}
	if said := c.said(agent); len(said) > 0 {
		t.Errorf("the log has %q", said)
	}
	c.capture(agent, `{"messages":[{"role":"system","content":"Be brief today."}]}`)
}

// requestedSystem is the first message of an agent's next prompt.
func (c *client) requestedSystem(agent string) string {
	c.t.Helper()
	var got struct {
		Request struct{ Messages []json.RawMessage }
	}
	preview := c.must("GET", "/v1/agents/"+agent+"/prompt?format=openai&policy=letta", "")
	if err := json.Unmarshal([]byte(preview), &got); err != nil {
		c.t.Fatal(err)
	}
	return string(got.Request.Messages[0])
}

// What a model writes in place of arguments, or of a tool's name, is stored, and the model is told what is wrong with
// it. The step is not refused, in any form.
func TestWrongCallsAreAnswered(t *testing.T) {
	t.Parallel()
	chat := func(name, input string) string {
		return `{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function",
			"function":{"name":` + name + `,"arguments":` + input + `}}]}}]}`
	}
	responses := func(name, input string) string {
		return `{"output":[{"type":"function_call","call_id":"a","name":` + name + `,"arguments":` + input + `}]}`
	}
	anthropic := func(name, input string) string {
		return `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":` + name + `,"input":` + input + `}]}`
	}
	for form, answer := range map[string]func(name, input string) string{"openai": chat, "responses": responses,
		"anthropic": anthropic} {
		for _, tt := range []struct{ name, input, want string }{
			{`"memory"`, `[]`, "must be a JSON object of: command"}, {`"memory"`, `5`, "must be a JSON object of: command"},
			{`"memory"`, `"view human"`, "must be a JSON object of: command"},
			{`"memory"`, `"{\"command\":\"view"`, "end too early"}, {`"memory"`, `true`, "must be a JSON object"},
			{`""`, `{}`, "The call names no tool. Your tools are "}, {`" "`, `"{}"`, "The call names no tool."},
		} {
			c := newClient(t)
			agent := c.made("/v1/agents", `{"name":"a","tools":["memory"],"memory_blocks":[{"label":"human","value":"x"}]}`)
			got := c.call("POST", "/v1/agents/"+agent+"/step", `{"messages":[{"role":"user","content":"Look."}]}`)
			if got.Code == 200 {
				got = c.call("POST", "/v1/agents/"+agent+"/step", `{"format":"`+form+`","response":`+answer(tt.name, tt.input)+`}`)
			}
			if got.Code != 200 || !strings.Contains(got.Text, `"next":"model"`) || !strings.Contains(got.Text, tt.want) {
				t.Errorf("%s: %s with %s: %d %s", form, tt.name, tt.input, got.Code, got.Text)
			}
		}
	}
}
