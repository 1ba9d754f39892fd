package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/db/dbtest/scale"
)

const userAgain = `{"messages":[{"role":"user","content":"And now?"}]}`

// checkRefused checks that a request gets a 409 with some words, and that it changes nothing in a conversation.
func (r runner) checkRefused(conversation, path, body string, words ...string) {
	r.t.Helper()
	messages := "/v1/conversations/" + conversation + "/messages?limit=1000&agent_id=" + r.agent
	before := r.must("GET", messages, "")
	got := r.call("POST", path, body)
	if got.Code != 409 || got.Header().Get("X-Should-Retry") != "false" {
		r.t.Errorf("%s %s: got %d %s", path, body, got.Code, got.Text)
	}
	contains(r.t, path, got.Text, words...)
	if after := r.must("GET", messages, ""); after != before {
		r.t.Errorf("%s %s: the conversation has changed to %s", path, body, after)
	}
}

// While a run works in a conversation, no messages are added from outside, because the run makes all calls of its
// model.
func TestNothingIsCapturedOrSteppedWhereARunWorks(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	free := r.made("/v1/conversations?agent_id="+r.agent, "")
	r.must("POST", r.path()+"/capture", `{"messages":[{"role":"user","content":"Before","otid":"o1"}]}`)
	asked, answers := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(answers) })
	defer goOn()
	var calls []modeltest.Call
	for i := range 10 {
		calls = append(calls, modeltest.Call{ID: fmt.Sprint("c", i), Name: "memory_insert",
			Arguments: fmt.Sprintf(`{"label":"human","new_string":"Fact %d."}`, i)})
	}
	var first sync.Once
	r.model.Reply = func(modeltest.Asked) modeltest.Answer {
		a := modeltest.Answer{Text: "Noted."}
		first.Do(func() {
			close(asked)
			a = modeltest.Answer{Calls: calls, Wait: answers}
		})
		return a
	}
	done := make(chan string, 1)
	go func() { done <- r.call("POST", r.path(), hello).Text }()
	<-asked
	step := "/v1/agents/" + r.agent + "/step"
	for path, bodies := range map[string][]string{
		r.path() + "/capture": {userAgain, `{"messages":[{"role":"assistant","content":"Well."}]}`},
		step: {userAgain, answering("s", ownCall("w")),
			`{"approvals":[{"tool_call_id":"x","approve":true}]}`},
	} {
		for _, body := range bodies {
			r.checkRefused("default", path, body, `"run_id":"run-`)
		}
	}
	r.must("POST", r.path()+"/capture", `{"messages":[{"role":"user","content":"Before","otid":"o1"}]}`)
	r.must("POST", step, `{"conversation_id":"`+free+`",`+userAgain[1:])
	goOn()
	var got answer
	if err := json.Unmarshal([]byte(<-done), &got); err != nil {
		t.Fatal(err)
	}
	block := r.must("GET", "/v1/agents/"+r.agent+"/core-memory/blocks/human", "")
	if n := strings.Count(block, "Fact"); got.StopReason.StopReason != "end_turn" || n != len(calls) {
		t.Errorf("the run ended with %+v, and %d of %d facts", got, n, len(calls))
	}
	r.must("POST", r.path()+"/capture", userAgain)
	r.must("POST", step, userAgain)
}

// pendingIn returns a conversation that waits for the approval of memory_insert and for the result of weather. way says
// how the calls got there.
func (r runner) pendingIn(way string) string {
	r.t.Helper()
	call := `{"id":"i","type":"function","function":{"name":"memory_insert","arguments":` +
		`"{\"label\":\"human\",\"new_string\":\"Tea.\"}"}}`
	switch way {
	case "fork":
		r.asks()
		fork := r.must("POST", "/v1/conversations/default/fork?agent_id="+r.agent, "")
		return fmt.Sprint(fields(r.t, fork)["id"])
	case "step":
		id := r.made("/v1/conversations?agent_id="+r.agent, "")
		r.step(r.agent, `{"conversation_id":"`+id+`",`+answering("s", call, ownCall("w"))[1:])
		return id
	case "capture":
		id := r.made("/v1/conversations?agent_id="+r.agent, "")
		r.must("POST", r.path()+"/capture", `{"conversation_id":"`+id+`","messages":[{"role":"user","content":"Hello"},
			{"role":"assistant","tool_calls":[`+call+`,`+ownCall("w")+`]}]}`)
		return id
	}
	r.asks()
	return "default"
}

var ways = []string{"run", "fork", "step", "capture"}

// The log decides which calls are waiting, whoever made them. The model is asked only when all have results.
func TestSomeAnswersDoNotGoOnWherever(t *testing.T) {
	t.Parallel()
	for _, way := range ways[:scale.Of(1, 4)] {
		for name, first := range map[string]string{"approved": approveI, "denied": denyI, "result": resultW} {
			r := newRunner(t, askingAgent)
			path := "/v1/conversations/" + r.pendingIn(way) + "/messages"
			asked := len(r.model.Requests())
			send := func(answers string) (got answer) {
				body := strings.Replace(approvals("o"+fmt.Sprint(len(answers)), answers), "{", `{"streaming":false,"agent_id":"`+
					r.agent+`",`, 1)
				if err := json.Unmarshal([]byte(r.must("POST", path, body)), &got); err != nil {
					t.Fatal(err)
				}
				return got
			}
			got := send(first)
			if n := len(r.model.Requests()); got.StopReason.StopReason != "requires_approval" || n != asked {
				t.Errorf("%s, %s: got %+v, and the model was asked %d times more", way, name, got, n-asked)
				continue
			}
			second := resultW
			if first == resultW {
				second = approveI
			}
			got = send(second)
			if n := len(r.model.Requests()); got.StopReason.StopReason != "end_turn" || n != asked+1 {
				t.Errorf("%s, %s: then got %+v, and the model was asked %d times more", way, name, got, n-asked)
				continue
			}
			if last := string(r.model.Requests()[asked].Body); strings.Contains(last, "not recorded") {
				t.Errorf("%s, %s: the model was sent %s", way, name, last)
			}
		}
	}
}

// Calls that wait for the client are not lost silently. Other messages are refused, and a capture says which calls it
// leaves without a result.
func TestCallsThatWaitAreNotLostSilently(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		r := newRunner(t, askingAgent)
		id := r.pendingIn(way)
		toAgent := `{"agent_id":"` + r.agent + `",` + userAgain[1:]
		step, toConversation := "/v1/agents/"+r.agent+"/step", `{"conversation_id":"`+id+`",`
		r.checkRefused(id, "/v1/conversations/"+id+"/messages", toAgent, "pending_approval", "pending_request_id")
		r.checkRefused(id, step, toConversation+userAgain[1:], "pending_approval", "pending_request_id")
		r.checkRefused(id, step, toConversation+answering("s2", ownCall("x"))[1:], "pending_approval")
		r.checkRefused(id, step, toConversation+`"messages":[{"role":"tool","tool_call_id":"w","content":"Rain"},`+
			`{"role":"user","content":"And now?"}]}`, "pending_approval")
		r.checkRefused(id, step, toConversation+`"messages":[{"role":"system","content":"A note."}]}`, "pending_approval")
		r.checkRefused(id, "/v1/conversations/"+id+"/messages", strings.Replace(toAgent, `"messages":[`,
			`"messages":[`+approvalOf(resultW)+`,`, 1), "pending_approval", "pending_request_id")
		r.checkRefused(id, "/v1/conversations/"+id+"/messages", strings.Replace(toAgent, `}]}`,
			`},`+approvalOf(approveI)+`]}`, 1), "pending_approval", "pending_request_id")
		var got struct {
			Left []struct {
				ID   string `json:"tool_call_id"`
				Name string
			} `json:"pending_tool_calls"`
		}
		result := toConversation + `"messages":[{"role":"tool","tool_call_id":"w","content":"Rain"}]}`
		if r.unmarshal(r.must("POST", r.path()+"/capture", result), &got); len(got.Left) != 0 {
			t.Errorf("%s: a result leaves %v", way, got.Left)
		}
		r.unmarshal(r.must("POST", r.path()+"/capture", toConversation+userAgain[1:]), &got)
		if fmt.Sprint(got.Left) != "[{i memory_insert}]" {
			t.Errorf("%s: a message leaves %v, want the call i", way, got.Left)
		}
		got.Left = nil
		r.unmarshal(r.must("POST", r.path()+"/capture", toConversation+userAgain[1:]), &got)
		if len(got.Left) != 0 {
			t.Errorf("%s: a later message leaves %v", way, got.Left)
		}
	}
}

// A step may leave calls without a result if it says so, but not the calls in its own answer.
func TestAStepLeavesCallsOnlyIfItSaysSo(t *testing.T) {
	t.Parallel()
	r := newRunner(t, askingAgent)
	id := r.pendingIn("step")
	step, toConversation := "/v1/agents/"+r.agent+"/step", `{"conversation_id":"`+id+`",`
	r.step(r.agent, toConversation+`"pending":"answer",`+userAgain[1:])
	answerAndMessage := strings.TrimSuffix(answering("s3", ownCall("x")), "}") + `,` + userAgain[1:]
	r.checkRefused(id, step, toConversation+answerAndMessage[1:], "pending_approval")
}

func (c *client) unmarshal(text string, into any) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		c.t.Fatal(err)
	}
}
