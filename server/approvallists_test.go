package server_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// approvalLog is what lists show after approvalStory.
var approvalLog = []string{"user_message Hello", "tool_call_message conversation_search",
	"approval_request_message memory_insert weather", "tool_return_message s success",
	"approval_response_message w=Rain", "tool_return_message w success",
	"approval_response_message i=true", "tool_return_message i success",
	"approval_request_message memory_insert", "approval_response_message i=false", "tool_return_message i error",
	"assistant_message Well."}

// approvalStory lets an agent ask for a result and two approvals. One approval is denied.
func approvalStory(t *testing.T) runner {
	r := newRunner(t, askingAgent)
	search := modeltest.Call{ID: "s", Name: "conversation_search", Arguments: `{"query":"x"}`}
	r.model.Says(modeltest.Answer{Calls: []modeltest.Call{noteCall(), {ID: "w", Name: "weather", Arguments: `{}`},
		search}})
	asked := r.send(`{"input":"Hello",` + clientWeather + `}`)
	checkSaid(t, "asked", itemTexts(asked.Messages), approvalLog[1:4])
	checkSaid(t, "the list while calls wait", r.log(), approvalLog[:4])
	r.send(approvals("o1", resultW))
	r.model.Says(modeltest.Answer{Calls: []modeltest.Call{noteCall()}})
	got := r.send(approvals("o2", approveI))
	checkSaid(t, "approved", itemTexts(got.Messages), approvalLog[7:9])
	again := r.send(approvals("o2", approveI))
	checkSaid(t, "the same answer again", itemTexts(again.Messages), approvalLog[7:9])
	r.model.Says(modeltest.Answer{Text: "Well."})
	checkSaid(t, "denied", itemTexts(r.send(approvals("o3", denyI)).Messages), approvalLog[10:])
	return r
}

func TestListsShowWhatWaitedAndItsAnswers(t *testing.T) {
	t.Parallel()
	r := approvalStory(t)
	checkSaid(t, "the list", r.log(), approvalLog)
	for kind, want := range map[string]int{"approval_request_message": 2, "approval_response_message": 3,
		"tool_call_message": 1, "tool_return_message": 4} {
		got := r.list(r.path() + "?limit=1000&include_return_message_types=" + kind)
		if len(got) != want {
			t.Errorf("%s: got %v, want %d", kind, itemTexts(got), want)
		}
	}
	all := r.list(r.path() + "?limit=1000")
	denial := all[len(all)-3]
	if denial["reason"] != "No" || denial["approve"] != false || denial["approval_request_id"] != "i" ||
		denial["approvals"].([]any)[0].(map[string]any)["reason"] != "No" {
		t.Errorf("the denial is %v", denial)
	}
	otids := map[any]bool{}
	for _, m := range all {
		single := itemTexts(r.list("/v1/messages/" + fmt.Sprint(m["id"])))
		if !strings.Contains(strings.Join(single, ","), itemTexts([]map[string]any{m})[0]) {
			t.Errorf("the single message %v has not the item %v", single, m)
		}
		if m["otid"] != nil && otids[m["otid"]] {
			t.Errorf("two items have the otid of %v", m)
		}
		otids[m["otid"]] = true
	}
	conversation := r.list("/v1/conversations/default/messages?agent_id=" + r.agent + "&limit=1000")
	checkSaid(t, "the conversation's list", itemTexts(conversation)[1:], approvalLog)
	fork := fields(t, r.must("POST", "/v1/conversations/default/fork?agent_id="+r.agent, ""))
	copied := r.list("/v1/conversations/" + fmt.Sprint(fork["id"]) + "/messages?limit=1000&order=asc")
	checkSaid(t, "a fork's list", itemTexts(copied)[1:], approvalLog)
}

// An agent that was imported from a file, and one that captured a list, show the same waiting calls and answers.
func TestApprovalsOutliveTheirAgent(t *testing.T) {
	t.Parallel()
	r := approvalStory(t)
	// The plain file has Letta's format, in which either all calls of a message wait, or none.
	plain := append([]string{approvalLog[0], "tool_call_message memory_insert weather conversation_search"},
		approvalLog[3:]...)
	for query, want := range map[string][]string{"": plain, "?full=true": approvalLog} {
		file := r.must("GET", "/v1/agents/"+r.agent+"/export"+query, "")
		ids, leftOut := r.imported(file)
		imported := runner{r.client, r.model, ids[0]}
		checkSaid(t, "imported "+query, imported.log(), want)
		if text := strings.Join(leftOut, " "); strings.Contains(text, "messages[") {
			t.Errorf("%q: %s", query, text)
		}
	}
	list, err := json.Marshal(r.list(r.path() + "?limit=1000&order=asc"))
	if err != nil {
		t.Fatal(err)
	}
	capturing := runner{r.client, r.model, r.made("/v1/agents", askingAgent)}
	capturing.must("POST", capturing.path()+"/capture", `{"messages":`+string(list)+`}`)
	checkSaid(t, "captured", capturing.log()[1:], approvalLog)
}

// A step marks the calls that the server runs after approval. Calls of the client's own tools are only calls.
func TestAStepShowsWhatItAsksFor(t *testing.T) {
	t.Parallel()
	r := newRunner(t, askingAgent)
	for i, c := range []struct{ approve, want string }{{`true`, "success"}, {`false`, "error"}} {
		r.step(r.agent, fmt.Sprintf(`{"otid":"a%d","response":{"choices":[{"message":{"role":"assistant","tool_calls":[
			{"id":"i%d","type":"function","function":{"name":"memory_insert",
				"arguments":"{\"label\":\"human\",\"new_string\":\"x\"}"}},
			{"id":"w%[1]d","type":"function","function":{"name":"weather","arguments":"{}"}}]}}]}}`, i, i))
		r.step(r.agent, fmt.Sprintf(`{"approvals":[{"tool_call_id":"i%d","approve":%s}],
			"messages":[{"role":"tool","tool_call_id":"w%[1]d","content":"Rain"}]}`, i, c.approve))
		log := r.log()
		checkSaid(t, c.approve, log[len(log)-5:], []string{"tool_call_message weather",
			"approval_request_message memory_insert", fmt.Sprintf("approval_response_message i%d=%s", i, c.approve),
			fmt.Sprintf("tool_return_message i%d %s", i, c.want), fmt.Sprintf("tool_return_message w%d success", i)})
	}
	pending := url.Values{"include_return_message_types": {"approval_response_message"}}
	if got := r.list(r.path() + "?" + pending.Encode()); len(got) != 2 {
		t.Errorf("got %v", itemTexts(got))
	}
}

// Files of Letta's have the answers in separate messages. Older files have one answer for a whole request.
func TestApprovalsOfLettasFilesAreKept(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	request := func(id, call string) string {
		return fmt.Sprintf(`{"role":"approval","id":%q,"content":[],"tool_calls":[{"id":%q,"type":"function","function":{
			"name":"conversation_search","arguments":"{}"}}]}`, id, call)
	}
	result := func(id, call string) string {
		return fmt.Sprintf(`{"role":"tool","id":%q,"content":[],"tool_call_id":%q,"tool_returns":[{"tool_call_id":%[2]q,
			"status":"success","func_response":"OK"}]}`, id, call)
	}
	answer := func(id, fields string) string { return fmt.Sprintf(`{"role":"approval","id":%q,%s}`, id, fields) }
	messages := []string{`{"role":"user","content":"Hello","id":"m0"}`,
		request("m1", "a"), answer("m2", `"approve":true,"approval_request_id":"m1"`), result("m3", "a"),
		request("m4", "b"), answer("m5", `"approvals":[{"type":"approval","approve":false,"tool_call_id":"b"}]`),
		result("m6", "b"), request("m7", "c"), answer("m8", `"approvals":[{"type":"tool","tool_call_id":"c",
			"status":"success","tool_return":"Mine"}]`), result("m9", "c"),
		request("m10", "d"), answer("m11", `"approvals":[{"type":"tool","tool_call_id":"d","status":"success",
			"tool_return":"Mine"}]`),
		request("m12", "e"), answer("m13", `"approve":true,"approval_request_id":"m12"`)}
	ids, leftOut := c.imported(`{"agents":[{"id":"agent-0","name":"a","messages":[` + strings.Join(messages, ",") + `]}]}`)
	got := itemTexts(c.list("/v1/agents/" + ids[0] + "/messages?limit=1000"))[1:]
	search := "approval_request_message conversation_search"
	checkSaid(t, "imported", got, []string{"user_message Hello",
		search, "approval_response_message a=true", "tool_return_message a success",
		search, "approval_response_message b=false", "tool_return_message b success",
		search, "approval_response_message c=OK", "tool_return_message c success",
		search, "approval_response_message d=Mine", "tool_return_message d success", search})
	if text := strings.Join(leftOut, " "); !strings.Contains(text, "messages[13]: left out") ||
		strings.Count(text, "messages[") != 1 {
		t.Errorf("left out: %s", text)
	}
}

// A stream of whole messages begins with the results that its request has brought, as in Letta; one of tokens does not.
func TestAStreamBeginsWithTheResultsOfItsRequest(t *testing.T) {
	t.Parallel()
	for tokens, second := range map[bool]string{false: "tool_return_message i error", true: "assistant_message Wel"} {
		r := newRunner(t, askingAgent)
		r.model.Says(modeltest.Answer{Calls: []modeltest.Call{noteCall()}})
		r.send(`{"input":"Hello"}`)
		r.model.Says(modeltest.Answer{Text: "Well."})
		items, _ := r.stream(r.path()+"/stream", strings.Replace(approvals("o1", denyI), "{",
			fmt.Sprintf(`{"stream_tokens":%t,`, tokens), 1))
		checkSaid(t, fmt.Sprintf("with stream_tokens %t", tokens), itemTexts(items)[:2], []string{"ping", second})
	}
}

// An answer of the client belongs to no step, as in Letta, whatever it answers.
func TestAnApprovalHasNoStep(t *testing.T) {
	t.Parallel()
	r := approvalStory(t)
	for _, item := range r.list(r.path() + "?order=asc") {
		if answer := item["message_type"] == "approval_response_message"; answer && item["step_id"] != nil {
			t.Errorf("%v has a step, want none", item)
		}
	}
}
