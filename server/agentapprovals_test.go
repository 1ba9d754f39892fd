package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// askingAgent is an agent that needs approval to change its notes.
const askingAgent = `{"name":"a","tool_set":"standard","memory_blocks":[{"label":"human","value":"Ada."}],
	"tool_rules":[{"type":"requires_approval","tool_name":"memory_insert"}]}`

const clientWeather = `"client_tools":[{"name":"weather","parameters":{"type":"object","properties":{}}}]`

// noteCall returns a call of memory_insert with the id i.
func noteCall() modeltest.Call {
	return modeltest.Call{ID: "i", Name: "memory_insert", Arguments: `{"label":"human","new_string":"Tea."}`}
}

// approvals returns a request that answers calls.
func approvals(otid string, answers ...string) string {
	return `{"messages":[` + strings.Replace(approvalOf(answers...), `{`, `{"otid":"`+otid+`",`, 1) + `]}`
}

func approvalOf(answers ...string) string {
	return `{"type":"approval","approvals":[` + strings.Join(answers, ",") + `]}`
}

const (
	approveI = `{"type":"approval","approve":true,"tool_call_id":"i"}`
	denyI    = `{"type":"approval","approve":false,"tool_call_id":"i","reason":"No"}`
	resultI  = `{"type":"tool","tool_call_id":"i","tool_return":"Done","status":"success"}`
	approveW = `{"type":"approval","approve":true,"tool_call_id":"w"}`
	resultW  = `{"type":"tool","tool_call_id":"w","tool_return":"Rain","status":"success"}`
)

// asks lets the agent's model call memory_insert and weather, and returns the id of the message with these calls.
func (r runner) asks() string {
	r.t.Helper()
	r.model.Says(modeltest.Answer{Calls: []modeltest.Call{noteCall(), {ID: "w", Name: "weather", Arguments: `{}`}}})
	got := r.send(`{"input":"Hello",` + clientWeather + `}`)
	if got.StopReason.StopReason != "requires_approval" {
		r.t.Fatalf("got %+v", got)
	}
	return fmt.Sprint(got.Messages[0]["id"])
}

// A request answers a call once, and approves only calls that the server runs. A refused request changes nothing.
func TestContradictoryAnswersToCallsAreRefused(t *testing.T) {
	t.Parallel()
	r := newRunner(t, askingAgent)
	message := r.asks()
	before := r.log()
	for name, body := range map[string]string{
		"approved and denied":    approvals("o", approveI, denyI),
		"denied and approved":    approvals("o", denyI, approveI),
		"approved with a result": approvals("o", approveI, resultI),
		"two results":            approvals("o", resultW, strings.Replace(resultW, "Rain", "Sun", 1)),
		"in two messages": `{"messages":[{"type":"approval","approvals":[` + approveI + `]},
			{"type":"tool_return","tool_returns":[` + resultI + `]}]}`,
		"a client's tool": approvals("o", approveI, approveW),
		"a client's tool with its definition": strings.TrimSuffix(approvals("o", approveW), "}") + `,` + clientWeather +
			`}`,
		"all, with a client's tool": `{"messages":[{"type":"approval","approve":true,"approval_request_id":"` + message +
			`"}]}`,
		"a result of nothing": approvals("o", strings.Replace(resultW, `"w"`, `"x"`, 1)),
	} {
		got := r.call("POST", r.path(), body)
		if detail, _ := fields(t, got.Text)["detail"].(string); got.Code != 400 || !strings.Contains(detail, " ") {
			t.Errorf("%s: got %d %s", name, got.Code, got.Text)
		}
	}
	checkSaid(t, "the log", r.log(), before)
	r.model.Says(modeltest.Answer{Text: "Noted."})
	got := r.send(approvals("o", approveI, approveI, resultW))
	checkSaid(t, "the same answer twice", itemTexts(got.Messages), []string{"tool_return_message w success",
		"tool_return_message i success",
		"assistant_message Noted."})
	for name, body := range map[string]string{"later, denied": approvals("p", denyI),
		"later, approved": approvals("q", approveI), "later, a result": approvals("r", resultW)} {
		if got := r.call("POST", r.path(), body); got.Code != 400 {
			t.Errorf("%s: got %d %s", name, got.Code, got.Text)
		}
	}
}

// An error names the place of the mistake: an approval without an id, or a field.
func TestRefusedAnswersNameWhatIsWrong(t *testing.T) {
	t.Parallel()
	r := newRunner(t, askingAgent)
	for body, want := range map[string]string{
		`{"messages":[{"type":"approval","approve":true}]}`: "Cannot process approval response: No tool call is " +
			"currently awaiting approval",
		`{"messages":[{"type":"approval","approve":true,"approval_request_id":"message-1"}]}`: "Cannot process approval " +
			"response: No tool call is currently awaiting approval",
		`{"messages":[{"role":"user","content":"x"}],"messages":[]}`:               "body.messages: the field is there twice",
		`{"messages":[{"role":"user","content":"x","content":"y"}],"messages":[]}`: "body.messages[0].content: the field is",
	} {
		got := r.call("POST", r.path(), body)
		if detail, _ := fields(t, got.Text)["detail"].(string); !strings.HasPrefix(detail, want) {
			t.Errorf("%s: got %d %s, want %s", body, got.Code, got.Text, want)
		}
	}
}

// A client can switch whether a tool's calls need approval. The agent must have the tool.
func TestApprovalOfAToolIsSwitched(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","tools":["memory_insert","memory_replace"],"include_base_tools":false,
		"memory_blocks":[{"label":"human","value":"Ada."}],"tool_rules":[{"type":"exit_loop","tool_name":"memory_replace"}]}`)
	weather := r.made("/v1/tools", weatherTool)
	r.must("PATCH", "/v1/agents/"+r.agent+"/tools/attach/"+weather, "")
	path := "/v1/agents/" + r.agent + "/tools/approval/"
	const own = "exit_loop memory_replace"
	for _, c := range []struct {
		target, body string
		code         int
		rules        []string
	}{
		{"memory_insert", `{"requires_approval":true}`, 200, []string{own, "requires_approval memory_insert"}},
		{"memory_insert", `{"requires_approval":true}`, 200, []string{own, "requires_approval memory_insert"}},
		{"weather?requires_approval=true", ``, 200, []string{own, "requires_approval memory_insert",
			"requires_approval weather"}},
		{"weather?requires_approval=true", `{"body_requires_approval":false}`, 200, []string{own,
			"requires_approval memory_insert"}},
		{"memory_insert", `{}`, 422, []string{own, "requires_approval memory_insert"}},
		{"memory_insert", `{"requires_approval":null}`, 422, []string{own, "requires_approval memory_insert"}},
		{"memory_insert", `{"requires_approval":"perhaps"}`, 422, []string{own, "requires_approval memory_insert"}},
		{"archival_memory_insert", `{"requires_approval":true}`, 404, []string{own, "requires_approval memory_insert"}},
		{"nothing", `{"requires_approval":true}`, 404, []string{own, "requires_approval memory_insert"}},
	} {
		if got := r.call("PATCH", path+c.target, c.body); got.Code != c.code || got.Code == 200 && got.Text != "null" {
			t.Errorf("%s %s: got %d %s, want %d", c.target, c.body, got.Code, got.Text, c.code)
		}
		rules, _ := fields(t, r.must("GET", "/v1/agents/"+r.agent, ""))["tool_rules"].([]any)
		got := []string{}
		for _, rule := range rules {
			got = append(got, fmt.Sprint(rule.(map[string]any)["type"], " ", rule.(map[string]any)["tool_name"]))
		}
		checkSaid(t, "the rules after "+c.target+" "+c.body, got, c.rules)
	}
	r.model.Says(modeltest.Answer{Calls: []modeltest.Call{noteCall()}})
	if got := r.send(hello); got.StopReason.StopReason != "requires_approval" {
		t.Errorf("with the rule: got %+v", got.StopReason)
	}
	r.model.Says(modeltest.Answer{Text: "Well."})
	r.send(approvals("o", denyI))
	r.must("PATCH", path+"memory_insert", `{"requires_approval":false}`)
	r.model.Says(modeltest.Answer{Calls: []modeltest.Call{noteCall()}}, modeltest.Answer{Text: "Noted."})
	if got := r.send(hello); got.StopReason.StopReason != "end_turn" {
		t.Errorf("without the rule: got %+v", got.StopReason)
	}
}

// An otid of approvals belongs to one request. Sending it again with another decision is a conflict.
func TestARepeatedApprovalDecidesTheSame(t *testing.T) {
	t.Parallel()
	r := newRunner(t, askingAgent)
	for i, c := range []struct{ first, other string }{{approveI, denyI}, {denyI, approveI},
		{denyI, strings.Replace(denyI, `"No"`, `"Never"`, 1)}, {approveI, approveI + `,` + resultW}} {
		otid := fmt.Sprint("o", i)
		r.model.Says(modeltest.Answer{Calls: []modeltest.Call{noteCall()}}, modeltest.Answer{Text: "Noted."})
		r.send(hello)
		first := r.send(approvals(otid, c.first))
		if again := r.send(approvals(otid, c.first)); again.RunID != first.RunID {
			t.Errorf("%s again: got the run %s, want %s", c.first, again.RunID, first.RunID)
		}
		got := r.call("POST", r.path(), approvals(otid, c.other))
		if got.Code != 409 || !strings.Contains(got.Text, otid) || got.Header().Get("X-Should-Retry") != "false" {
			t.Errorf("%s and then %s: got %d %s", c.first, c.other, got.Code, got.Text)
		}
		// A provider may give a later call the same id. The otid still belongs to the earlier answer.
		r.model.Says(modeltest.Answer{Calls: []modeltest.Call{noteCall()}})
		r.send(hello)
		if again := r.send(approvals(otid, c.first)); again.RunID != first.RunID {
			t.Errorf("%s for a later call: got the run %s, want %s", c.first, again.RunID, first.RunID)
		}
		r.model.Says(modeltest.Answer{Text: "Well."})
		r.send(approvals(otid+"-later", denyI))
	}
}

func TestFieldsOfRequestsToAgentsAreHonouredOrRefused(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	for body, word := range map[string]string{
		`"client_tools":[{"name":"a"},{"name":"b"},{"name":"a"}]`:              "client_tools[2].name",
		`"callback_url":"https://example.com"`:                                 "callback_url",
		`"enable_thinking":"true"`:                                             "enable_thinking",
		`"return_logprobs":true`:                                               "return_logprobs",
		`"top_logprobs":3`:                                                     "top_logprobs",
		`"return_token_ids":true`:                                              "return_token_ids",
		`"client_skills":[{"description":"d","location":"l"}]`:                 "name",
		`"agent_id":"agent-123e4567-e89b-42d3-8456-426614174000"`:              "agent_id",
		`"messages":[{"role":"user","content":"x","batch_item_id":"b"}],"x":1`: "batch_item_id",
	} {
		body = `{"input":"Hello",` + body + `}`
		if strings.Contains(body, "batch") {
			body = strings.Replace(body, `"input":"Hello",`, "", 1)
		}
		for _, path := range []string{"", "/stream", "/async"} {
			if got := r.call("POST", r.path()+path, body); got.Code != 422 || !strings.Contains(got.Text, word) {
				t.Errorf("%s: got %d %s, want a 422 with %s", body, got.Code, got.Text, word)
			}
		}
	}
	if n := len(r.model.Requests()); n > 0 {
		t.Errorf("the model was asked %d times", n)
	}
	// The published clients send these fields.
	r.send(`{"input":"Hello","messages":null,"callback_url":null,"enable_thinking":"","return_logprobs":false,
		"top_logprobs":null,"return_token_ids":false,"client_skills":[],"client_tools":null,"override_model":null,
		"include_compaction_messages":false,"max_steps":50,"use_assistant_message":true,"streaming":false,"agent_id":"` +
		r.agent + `"}`)
	r.send(`{"input":"Hello","system":"Be brief.","client_skills":[{"name":"paint","description":"Paints a picture",
		"location":"skills/paint.md"}]}`)
	asked := r.model.Requests()
	for _, word := range []string{"Be brief.", "paint", "Paints a picture", "skills/paint.md"} {
		if strings.Contains(string(asked[0].Body), word) || !strings.Contains(string(asked[1].Body), word) {
			t.Errorf("the model was told %q in the first prompt, or not in the second", word)
		}
	}
}

// A client sees the summaries that its run makes only if it asks for them.
func TestSummariesOfARunAreShownToThoseWhoAsk(t *testing.T) {
	t.Parallel()
	for _, asks := range []bool{false, true} {
		r := newRunner(t, `{"name":"a","system":"Be kind.","tool_set":"small","context_window_limit":8000}`)
		r.capture(r.agent, chatter(1, 200, strings.Repeat("and so it goes on ", 10)))
		body := fmt.Sprintf(`{"input":"Hello","include_compaction_messages":%v}`, asks)
		want := []string{"assistant_message Done."}
		got := r.send(body)
		if asks && len(got.Messages) > 0 && got.Messages[0]["message_type"] == "summary_message" {
			got.Messages = got.Messages[1:]
		} else if asks {
			t.Errorf("no summary is shown: %v", itemTexts(got.Messages))
		}
		checkSaid(t, fmt.Sprint("asks: ", asks), itemTexts(got.Messages), want)
	}
}

// The older form of an approval names a call by the id that lists have in approval_request_id.
func TestAnApprovalNamesItsRequestByTheCall(t *testing.T) {
	t.Parallel()
	r := newRunner(t, askingAgent)
	r.model.Says(modeltest.Answer{Calls: []modeltest.Call{noteCall()}}, modeltest.Answer{Text: "Noted."})
	r.send(hello)
	got := r.send(`{"messages":[{"type":"approval","approve":true,"approval_request_id":"i"}]}`)
	checkSaid(t, "the answer", itemTexts(got.Messages), []string{"tool_return_message i success",
		"assistant_message Noted."})
}
