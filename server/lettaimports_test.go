package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// envelopeOf returns a result of a tool as Letta stores it: JSON within JSON.
func envelopeOf(status, message string) string {
	const form = `"{\n  \"status\": \"%s\",\n  \"message\": %s,\n  \"time\": \"2026-11-30 01:15:46 PM CET+0100\"\n}"`
	return fmt.Sprintf(form, status, strings.ReplaceAll(message, `"`, `\"`))
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

// A search leaves out the turn that asks, and what the model sees, unless the model names its own conversation.
func TestASearchLeavesOutWhatTheModelSees(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","agent_type":"letta_v1_agent","include_base_tools":true}`)
	other := r.made("/v1/conversations?agent_id="+r.agent, "")
	r.append(r.agent, other, spokenBy("user", "The kettle is for tea.", "assistant", "I noted the weather.")...)
	r.append(r.agent, "default", spokenBy("user", "I love tea.", "assistant", "So do I.")...)
	for n, test := range []struct {
		args       string
		has, lacks []string
	}{
		{`{"query":"tea"}`, []string{"The kettle is for tea."}, []string{"I love tea.", "noted the weather", "Question"}},
		{`{"query":"tea","conversation_id":"default"}`, []string{"I love tea."}, []string{"kettle", "So do I", "Question 1"}},
		{`{"query":"zebra"}`, []string{"No messages found"}, []string{"Question 2"}},
	} {
		r.model.Says(callOf("s", "conversation_search", test.args), modeltest.Answer{Text: "Found."})
		got := r.send(fmt.Sprintf(`{"input":"Question %d is about tea or a zebra."}`, n))
		text := fmt.Sprint(got.Messages[1]["tool_return"])
		for _, want := range test.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the result lacks %q: %s", test.args, want, text)
			}
		}
		for _, other := range test.lacks {
			if strings.Contains(text, other) {
				t.Errorf("%s: the result has %q: %s", test.args, other, text)
			}
		}
	}
}

// An answer to approvals and results begins with what these make of the calls, in Letta's words.
func TestAnAnswerHasTheResultsOfItsRequest(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ answer, want string }{
		{`{"type":"approval","tool_call_id":"i","approve":false,"reason":"Not now."}`,
			"Error: request to call tool denied. User reason: Not now."},
		{`{"type":"approval","tool_call_id":"i","approve":false}`,
			"Error: request to call tool denied. User reason: None"},
		{`{"type":"tool","tool_call_id":"i","tool_return":"Mine.","status":"success"}`, "Mine."},
	} {
		r := newRunner(t, askingAgent)
		r.model.Says(modeltest.Answer{Calls: []modeltest.Call{noteCall()}}, modeltest.Answer{Text: "Well."})
		r.send(hello)
		body := approvals("o", test.answer)
		for _, again := range []bool{false, true} {
			got := r.send(body)
			if len(got.Messages) != 2 || got.Messages[0]["message_type"] != "tool_return_message" ||
				got.Messages[0]["tool_return"] != test.want || got.Messages[1]["content"] != "Well." {
				t.Errorf("%s, again %t: got %v", test.answer, again, got.Messages)
			}
		}
	}
}

// Tools that edit memory answer an agent made for Letta with the block's new value. A value that is too long is a 422.
func TestMemoryToolsAnswerAsInLetta(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"agent_type":"letta_v1_agent","memory_blocks":[{"label":"human","value":"Bob",
		"limit":20}],"tools":["core_memory_append","core_memory_replace","memory_insert","memory_replace",
		"memory_rethink"]}`)
	run := func(tool, args string) (int, map[string]any) {
		got := c.call("POST", "/v1/agents/"+agent+"/tools/"+tool+"/run", `{"args":`+args+`}`)
		return got.Code, fields(t, got.Text)
	}
	for _, test := range []struct{ tool, args, want string }{
		{"core_memory_append", `{"label":"human","content":"a"}`, "Bob\na"},
		{"core_memory_replace", `{"label":"human","old_content":"a","new_content":"b"}`, "Bob\nb"},
		{"memory_insert", `{"label":"human","new_string":"c"}`, "Bob\nb\nc"},
		{"memory_replace", `{"label":"human","old_string":"c","new_string":"d"}`, "Bob\nb\nd"},
		{"memory_rethink", `{"label":"human","new_memory":"Ann"}`, "Ann"},
	} {
		if code, got := run(test.tool, test.args); code != 200 || got["func_return"] != test.want {
			t.Errorf("%s %s: got %d %v, want %q", test.tool, test.args, code, got, test.want)
		}
	}
	if code, got := run("memory_insert", `{"label":"human","new_string":"twenty characters and more"}`); code != 422 ||
		!strings.Contains(fmt.Sprint(got["detail"]), "Exceeds 20 character limit") {
		t.Errorf("a value that is too long: got %d %v", code, got)
	}
	if code, got := run("memory_rethink", `{"label":"pets","new_memory":"Cats"}`); code != 200 ||
		got["status"] != "error" || !strings.Contains(fmt.Sprint(got["func_return"]), "Block field pets does not exist") {
		t.Errorf("a block that is not there: got %d %v", code, got)
	}
}

// The prompt of an agent made for Letta counts what recall memory has, and says the time in the agent's timezone.
func TestMetadataIsLettas(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"agent_type":"letta_v1_agent","timezone":"Asia/Kolkata"}`)
	prompt := c.must("GET", "/v1/agents/"+agent+"/messages", "")
	for _, want := range []string{"last recompiled: ", " IST+0530",
		"- 0 previous messages between you and the user are stored in recall memory"} {
		if !strings.Contains(prompt, want) {
			t.Errorf("the prompt lacks %q: %s", want, prompt)
		}
	}
}

// A file of Letta's older format, that of a single agent, is imported as one of the newer format.
func TestAFileOfTheOlderFormatIsImported(t *testing.T) {
	t.Parallel()
	const file = `{"agent_type":"memgpt_agent","name":"Ada","system":"You are Ada.","description":null,"version":"0.6.47",
		"llm_config":{"model":"gpt-4o-mini","model_endpoint_type":"openai","context_window":32000,"temperature":0.5},
		"embedding_config":{},"message_buffer_autoclear":false,"metadata_":{"k":1},"multi_agent_group":null,
		"tags":[{"tag":"math"}],"tool_exec_environment_variables":[{"key":"K","value":""}],
		"tool_rules":[{"type":"conditional","tool_name":""},{"type":"max_count_per_step","tool_name":"weather",
			"max_count_limit":2}],
		"core_memory":[{"label":"human","value":"Bob","limit":99,"is_template":false,"metadata_":{}}],
		"tools":[{"name":"send_message","tool_type":"letta_core","json_schema":{},"tags":[]},
			{"name":"weather","tool_type":"custom","source_type":"python","source_code":"def weather(): pass",
			"json_schema":{"name":"weather","description":"Tells.","parameters":{"type":"object","properties":{}},
			"type":"object","required":[]}}],
		"in_context_message_indices":[0,2,3,4],"messages":[
		{"role":"system","content":[{"type":"text","text":"You are Ada."}],"created_at":"2025-04-01T03:47:27.492924"},
		{"role":"user","content":[{"type":"text","text":"long ago"}],"tool_calls":[],"tool_returns":[]},
		{"role":"user","content":[{"type":"text","text":"hi"}],"tool_calls":[],"tool_returns":[]},
		{"role":"assistant","content":[{"type":"text","text":"Greet."}],"tool_calls":[{"id":"c","type":"function",
			"function":{"name":"send_message","arguments":"{\"message\": \"yo\"}"}}],"tool_returns":[]},
		{"role":"tool","content":[{"type":"text","text":"{\n  \"status\": \"OK\",\n  \"message\": null,\n  \"time\": ` +
		`\"2025-03-31 08:47:27 PM PDT-0700\"\n}"}],"tool_call_id":"c","tool_calls":[],"tool_returns":[]}]}`
	r, leftOut := importedRunner(t, file)
	if got := strings.Join(leftOut, " "); len(leftOut) != 2 ||
		!strings.Contains(got, "agents[0].tool_exec_environment_variables: left out") ||
		!strings.Contains(got, "agents[0].tool_rules[0]: left out, as it names no tool.") {
		t.Errorf("left out is %q", leftOut)
	}
	checkSaid(t, "the list", r.log(), []string{"user_message long ago", "user_message hi", "reasoning_message Greet.",
		"assistant_message yo"})
	a := pick(t, r.must("GET", "/v1/agents/"+r.agent, ""), "name", "agent_type", "tags", "metadata", "tool_rules")
	if want := `{"agent_type":"memgpt_agent","metadata":{"k":1},"name":"Ada","tags":["math"],"tool_rules":[{` +
		`"max_count_limit":2,"tool_name":"weather","type":"max_count_per_step"}]}`; a != want {
		t.Errorf("the agent is %s, want %s", a, want)
	}
	r.model.Says(callOf("m", "send_message", `{"message":"Well."}`))
	got := r.send(hello)
	checkSaid(t, "the answer", itemTexts(got.Messages), []string{"assistant_message Well."})
	if asked := len(r.model.Requests()); asked != 1 || got.StopReason.StopReason != "end_turn" {
		t.Errorf("the turn ends with %s after %d requests", got.StopReason.StopReason, asked)
	}
	prompt := string(r.model.Requests()[0].Body)
	if !strings.Contains(prompt, `"hi"`) || strings.Contains(prompt, "long ago") || !strings.Contains(prompt, "weather") {
		t.Errorf("the prompt is %s", prompt)
	}
}

// A file has a tool under the type that it has in Letta: there an import changes the type of the server's own tool. An
// agent that ends its turn with memory_finish_edits keeps it.
func TestToolsAreExportedUnderLettasTypes(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"agent_type":"sleeptime_agent","tools":["conversation_search"]}`)
	var file struct {
		Tools []struct {
			Name     string
			ToolType string `json:"tool_type"`
		}
	}
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+agent+"/export", "")), &file); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, tool := range file.Tools {
		got[tool.Name] = tool.ToolType
	}
	if diff := cmp.Diff(map[string]string{"conversation_search": "letta_core", "memory_insert": "letta_sleeptime_core",
		"memory_replace": "letta_sleeptime_core", "memory_rethink": "letta_sleeptime_core",
		"memory_finish_edits": "letta_sleeptime_core"}, got); diff != "" {
		t.Errorf("the tools of the file (-want +got):\n%s", diff)
	}
}
