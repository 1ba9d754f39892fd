package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/agent/subagent"
	"github.com/loci-memory/loci/embed/embedtest"
)

// lastSaid returns the last message of a request in OpenAI's form, without the state.
func lastSaid(t testing.TB, asked modeltest.Asked) string {
	var messages []json.RawMessage
	if err := json.Unmarshal(asked.Fields["messages"], &messages); err != nil {
		t.Error(err)
		return ""
	}
	messages = withoutState(messages)
	return string(messages[len(messages)-1])
}

// answers lets the model answer by the last message of its prompt: with the first answer whose key stands there.
func (r runner) answers(by ...any) {
	r.model.Reply = func(asked modeltest.Asked) modeltest.Answer {
		last := lastSaid(r.t, asked)
		for i := 0; i < len(by); i += 2 {
			if strings.Contains(last, by[i].(string)) {
				return by[i+1].(modeltest.Answer)
			}
		}
		return modeltest.Answer{Text: "No answer fits " + last}
	}
}

// starts is the answer of a model that starts sub-agents, with their arguments by the ids of the calls.
func starts(calls ...string) (a modeltest.Answer) {
	for i, args := range calls {
		a.Calls = append(a.Calls, modeltest.Call{ID: fmt.Sprintf("s%d", i), Name: "start_subagent", Arguments: args})
	}
	return a
}

// newStarter returns a runner with an agent that may start sub-agents.
func newStarter(t *testing.T) runner {
	t.Helper()
	r := newOwnRunner(t, `{"name":"boss","tools":["start_subagent","conversation_search","core_memory_append"],
		"tool_set":"small","memory_blocks":[{"label":"human","value":"Ada."},{"label":"plan","value":"Sail."}]}`)
	r.work()
	r.own().Loop.Ended = r.server.Children.RunEnded
	return r
}

// returns returns the results of an answer's calls, by the ids of the calls.
func (a answer) returns() map[string]string {
	all := map[string]string{}
	for _, m := range a.Messages {
		if m["message_type"] == "tool_return_message" {
			all[fmt.Sprint(m["tool_call_id"])] = fmt.Sprint(m["tool_return"])
		}
	}
	return all
}

// A model starts sub-agents of all modes with one answer, one of which starts another. What they return are the results
// of the calls.
func TestAModelStartsATreeOfSubagents(t *testing.T) {
	t.Parallel()
	r := newStarter(t)
	r.must("PATCH", "/v1/conversations/default/working-memory?agent_id="+r.agent,
		`{"changes":[{"field":"task","text":"Count the ships"}]}`)
	r.answers(
		"Hello", starts(`{"task":"first errand","blocks":["plan"]}`, `{"task":"second errand","mode":"brief","name":"two"}`,
			`{"task":"third errand","mode":"fork"}`),
		"first errand", starts(`{"task":"fourth errand"}`),
		"second errand", modeltest.Answer{Text: "the second is done"},
		"third errand", modeltest.Answer{Text: "the third is done"},
		"fourth errand", modeltest.Answer{Text: "the fourth is done"},
		"the fourth is done", modeltest.Answer{Text: "the first is done"},
		`"role":"tool"`, modeltest.Answer{Text: "All are done."})
	got := r.send(hello)
	if got.StopReason.StopReason != "end_turn" || len(got.Messages) != 5 {
		t.Fatalf("got %s: %q", got.StopReason.StopReason, itemTexts(got.Messages))
	}
	results := got.returns()
	for call, want := range map[string]string{"s0": "the first is done", "s1": "the second is done",
		"s2": "the third is done"} {
		if !strings.Contains(results[call], want) || !strings.Contains(results[call], "The sub-agent child-") {
			t.Errorf("the result of %s is %q, want %q", call, results[call], want)
		}
	}
	if log := r.log(); len(log) != 6 || log[5] != "assistant_message All are done." {
		t.Errorf("the log is %q", log)
	}
	children := r.list("/v1/agents/" + r.agent + "/children")
	if len(children) != 3 {
		t.Fatalf("the sub-agents are %v", children)
	}
	for _, c := range children {
		if c["status"] != subagent.Returned || c["run"] != true || c["depth"] != 1.0 {
			t.Errorf("a sub-agent is %v", c)
		}
		if c["task"] == "first errand" {
			own := r.list(fmt.Sprintf("/v1/agents/%s/children", c["agent_id"]))
			if len(own) != 1 || own[0]["status"] != subagent.Returned || own[0]["depth"] != 2.0 {
				t.Errorf("its own sub-agents are %v", own)
			}
		}
	}
	for _, asked := range r.model.Requests() {
		body := string(asked.Body)
		switch last := lastSaid(t, asked); {
		case strings.Contains(last, "first errand") && (!strings.Contains(body, "Sail.") || strings.Contains(body, "Ada.")):
			t.Errorf("a blank sub-agent with one block is asked %s", body)
		case strings.Contains(last, "second errand") && !strings.Contains(body, "Count the ships"):
			t.Errorf("a brief sub-agent is asked %s", body)
		}
	}
}

// What a model asks for wrongly, or may not ask for, is a result that it reads. No sub-agent is made.
func TestASubagentThatCannotBeStartedIsAResult(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	tools := `{"tools":["start_subagent","conversation_search"],"tool_set":"small"}`
	agent := c.made("/v1/agents", tools)
	run := func(agent, args string) string {
		return c.must("POST", "/v1/agents/"+agent+"/tools/start_subagent/run", `{"args":`+args+`}`)
	}
	for args, want := range map[string]string{
		`{}`:                                        "No task given",
		`{"task":"x","mode":"clone"}`:               "it must be blank, brief or fork",
		`{"task":"x","tools":["no_tool"]}`:          `You have no tool \"no_tool\" to give: you may give`,
		`{"task":"x","blocks":["none"]}`:            "the parent has no block none",
		`{"task":"x","files":["a/b"]}`:              "files are for the mode brief",
		`{"task":"x","mode":"fork","blocks":["a"]}`: "a fork has what its parent has",
		`{"task":"x","job":"y"}`:                    "Unknown argument job",
	} {
		if got := run(agent, args); !strings.Contains(got, want) || !strings.Contains(got, `"status":"error"`) {
			t.Errorf("%s: got %s, want %q", args, got, want)
		}
	}
	if got := c.must("GET", "/v1/agents/"+agent+"/children", ""); strings.TrimSpace(got) != "[]" {
		t.Errorf("the sub-agents are %s", got)
	}
	deep := agent
	for range subagent.MaxDepth {
		deep = c.child(deep, `{"mode":"blank","task":"Go deeper."}`).AgentID
	}
	if got := run(deep, `{"task":"x"}`); !strings.Contains(got, "may be 4 deep") {
		t.Errorf("too deep: got %s", got)
	}
	for range subagent.MaxWorking - 1 {
		c.child(agent, `{"mode":"blank","task":"Work."}`)
	}
	if got := run(agent, `{"task":"x"}`); !strings.Contains(got, "32 sub-agents") {
		t.Errorf("too many: got %s", got)
	}
	without := c.made("/v1/agents", `{"tool_set":"all"}`)
	if got := run(without, `{"task":"x"}`); !strings.Contains(got, "not attached to you") {
		t.Errorf("an agent without the tool: got %s", got)
	}
}

// Where the caller does not wait, the result names the sub-agent, and what it returns comes as a message.
func TestASubagentOfAnotherLoopReturnsAMessage(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"tools":["start_subagent","expand"]}`)
	c.step(agent, `{"messages":[{"role":"user","content":"Go."}]}`)
	got := c.step(agent, `{"response":{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"a","type":"function",
		"function":{"name":"start_subagent","arguments":"{\"task\":\"Count.\"}"}}]}}]}}`)
	if len(got.Results) != 1 || !strings.Contains(got.Results[0].Return, "comes to this conversation as a message") {
		t.Fatalf("the results are %+v", got.Results)
	}
	var children []map[string]any
	c.unmarshal(c.must("GET", "/v1/agents/"+agent+"/children", ""), &children)
	if len(children) != 1 || children[0]["run"] != false || children[0]["tool_call_id"] != nil {
		t.Fatalf("the sub-agents are %v", children)
	}
	child := children[0]
	for _, key := range []string{"id", "agent_id", "conversation_id"} {
		if !strings.Contains(got.Results[0].Return, fmt.Sprint(child[key])) {
			t.Errorf("the result lacks the %s: %s", key, got.Results[0].Return)
		}
	}
	if !strings.Contains(got.Results[0].Return, "expand(id=") {
		t.Errorf("the result lacks the way to its log: %s", got.Results[0].Return)
	}
	c.step(fmt.Sprint(child["agent_id"]), `{"messages":[{"role":"assistant","content":"There are 3."}]}`)
	c.must("POST", fmt.Sprintf("/v1/agents/%s/children/%s/return", agent, child["id"]), `{}`)
	messages, _ := c.nextPrompt(agent, "default")
	if last := messages[len(messages)-1]; !strings.Contains(last, "There are 3.") || !strings.Contains(last, `"user"`) {
		t.Errorf("the last message is %s", last)
	}

	r := newStarter(t)
	r.answers("Count the gulls", modeltest.Answer{Text: "There are 4."})
	ran := r.must("POST", "/v1/agents/"+r.agent+"/tools/start_subagent/run", `{"args":{"task":"Count the gulls"}}`)
	if strings.Contains(ran, "/return") {
		t.Errorf("a sub-agent that the server runs: %s", ran)
	}
	embedtest.Eventually(t, "the result is a message", func() bool {
		log := r.log()
		return len(log) > 0 && strings.Contains(log[len(log)-1], "There are 4.")
	})
}

// A run whose sub-agent was cancelled goes on, and its model reads why. A run that is cancelled cancels the sub-agents
// that it waits for.
func TestRunsAndTheirSubagentsAreCancelled(t *testing.T) {
	t.Parallel()
	r := newStarter(t)
	never := make(chan struct{})
	r.answers("Hello", starts(`{"task":"Take your time."}`), "Take your time", modeltest.Answer{Text: "x", Wait: never},
		"cancelled on request", modeltest.Answer{Text: "Without it, then."})
	working := func() string {
		var id string
		embedtest.Eventually(t, "a sub-agent works", func() bool {
			all := r.list("/v1/agents/" + r.agent + "/children?status=working")
			if len(all) == 1 {
				id = fmt.Sprint(all[0]["id"])
			}
			return id != ""
		})
		return id
	}
	reply := r.begun(hello)
	child := working()
	r.must("POST", "/v1/agents/"+r.agent+"/children/"+child+"/cancel", "")
	got := r.answerOf(<-reply)
	if !slices.Contains(itemTexts(got.Messages), "assistant_message Without it, then.") ||
		!strings.Contains(got.returns()["s0"], child) {
		t.Errorf("after its sub-agent was cancelled: %q", itemTexts(got.Messages))
	}
	reply = r.begun(hello)
	child = working()
	r.must("POST", "/v1/agents/"+r.agent+"/messages/cancel", `{}`)
	if got := r.answerOf(<-reply); got.StopReason.StopReason != "cancelled" {
		t.Errorf("the cancelled run: %+v", got.StopReason)
	}
	r.await(child, subagent.Cancelled)
}

// A server that takes over a run waits for the sub-agent that the run has started, and starts no other.
func TestARunThatGoesOnWaitsForItsSubagent(t *testing.T) {
	t.Parallel()
	r := newStarter(t)
	stop, _ := r.stoppable()
	r.own().Loop.Ended, r.own().Children.Loop = r.server.Children.RunEnded, r.server.Loop
	wait := make(chan struct{})
	r.answers("Hello", starts(`{"task":"Find the ferry."}`), "Find the ferry", modeltest.Answer{Text: "Erna", Wait: wait},
		"Erna", modeltest.Answer{Text: "It is the Erna."})
	reply := r.beginAt(r.path(), hello)
	stop()
	var first answer
	r.unmarshal((<-reply).Text, &first)
	close(wait)
	r.resumes()
	r.own().Children.Loop = r.server.Loop
	embedtest.Eventually(t, "the run is completed", func() bool {
		return fields(t, r.must("GET", "/v1/runs/"+first.RunID, ""))["status"] == "completed"
	})
	checkSaid(t, "the log", r.log(), []string{"user_message Hello", "tool_call_message start_subagent",
		"tool_return_message s0 success", "assistant_message It is the Erna."})
	if all := r.list("/v1/agents/" + r.agent + "/children"); len(all) != 1 {
		t.Errorf("the sub-agents are %v", all)
	}
}

// A call that needs an approval starts its sub-agent once the client has approved it.
func TestASubagentIsStartedOnceApproved(t *testing.T) {
	t.Parallel()
	r := newStarter(t)
	r.must("PATCH", "/v1/agents/"+r.agent, `{"tool_rules":[{"type":"requires_approval","tool_name":"start_subagent"}]}`)
	r.answers("Hello", starts(`{"task":"Find the ferry.","tools":["conversation_search"]}`),
		"Find the ferry", modeltest.Answer{Text: "Erna"}, "Erna", modeltest.Answer{Text: "It is the Erna."})
	if got := r.send(hello); got.StopReason.StopReason != "requires_approval" {
		t.Fatalf("before the approval: %+v", got)
	}
	if all := r.list("/v1/agents/" + r.agent + "/children"); len(all) != 0 {
		t.Errorf("the sub-agents before the approval are %v", all)
	}
	got := r.send(`{"messages":[{"type":"approval",
		"approvals":[{"type":"approval","tool_call_id":"s0","approve":true}]}]}`)
	if got.StopReason.StopReason != "end_turn" || !strings.Contains(got.returns()["s0"], "Erna") {
		t.Errorf("after the approval: %+v", got)
	}
}
