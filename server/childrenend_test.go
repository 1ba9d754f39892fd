package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/agent/subagent"
	"github.com/loci-memory/loci/embed/embedtest"
)

// childState returns a sub-agent as the API shows it.
func (c *client) childState(agent, id string) map[string]any {
	c.t.Helper()
	return fields(c.t, c.must("GET", "/v1/agents/"+agent+"/children/"+id, ""))
}

// If a sub-agent's conversation or its parent's conversation is gone, the sub-agent is cancelled. It says why, no
// longer counts as working, and accepts no result.
func TestChildrenEndWithTheirConversations(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for name, end := range map[string]func(agent, conversation string, made wireChild) string{
		"reset": func(agent, _ string, _ wireChild) string {
			c.must("PATCH", "/v1/agents/"+agent+"/reset-messages", "{}")
			return "deleted or reset"
		},
		"deleted": func(_, conversation string, _ wireChild) string {
			c.must("DELETE", "/v1/conversations/"+conversation, "")
			return "deleted or reset"
		},
		"its agent deleted": func(_, _ string, made wireChild) string {
			c.must("DELETE", "/v1/agents/"+made.AgentID, "")
			return "Its own"
		},
	} {
		agent := c.made("/v1/agents", "")
		conversation := "default"
		if name == "deleted" {
			conversation = c.made("/v1/conversations?agent_id="+agent, `{}`)
		}
		c.captured(agent, conversation, openCall)
		var made []wireChild
		for i := range subagent.MaxWorking {
			body := fmt.Sprintf(`{"mode":"blank","task":"t","conversation_id":%q}`, conversation)
			if i == 0 {
				body = strings.Replace(body, `"task"`, `"tool_call_id":"c9","task"`, 1)
			}
			made = append(made, c.child(agent, body))
		}
		grandchild := c.child(made[0].AgentID, `{"mode":"fork","task":"of the first"}`)
		reason := end(agent, conversation, made[0])
		if got := c.childState(agent, made[0].ID); got["status"] != subagent.Cancelled ||
			!strings.Contains(fmt.Sprint(got["result"]), reason) || got["returned_at"] == nil {
			t.Errorf("%s: the sub-agent is %v", name, got)
		}
		if name != "its agent deleted" {
			if got := c.childState(made[0].AgentID, grandchild.ID); got["status"] != subagent.Cancelled {
				t.Errorf("%s: the sub-agent of the sub-agent is %v", name, got)
			}
		}
		got := c.call("POST", "/v1/agents/"+agent+"/children/"+made[0].ID+"/return", `{"result":"late"}`)
		if got.Code != 409 || !strings.Contains(got.Text, "cancelled") {
			t.Errorf("%s: a late result: %d %s", name, got.Code, got.Text)
		}
		c.child(agent, `{"mode":"blank","task":"one more"}`)
	}
}

// If a fork's conversation is deleted, the fork is cancelled, too.
func TestAForkEndsWithItsConversation(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	child := c.child(agent, `{"mode":"fork","task":"t"}`)
	c.must("DELETE", "/v1/conversations/"+child.ConversationID, "")
	if got := c.childState(agent, child.ID); got["status"] != subagent.Cancelled {
		t.Errorf("the sub-agent is %v", got)
	}
}

// Cancelling a sub-agent ends its run and cancels its own sub-agents. Its parent's log gets nothing.
func TestAChildIsCancelled(t *testing.T) {
	t.Parallel()
	r := newOwnRunner(t, "")
	r.work()
	r.own().Loop.Ended = r.server.Children.RunEnded
	r.greet(r.agent, "default")
	before, _ := r.nextPrompt(r.agent, "default")
	r.model.Says(modeltest.Answer{Text: "Never.", Wait: make(chan struct{})})
	child := r.child(r.agent, `{"mode":"blank","task":"Take your time.","run":true}`)
	grandchild := r.child(child.AgentID, `{"mode":"fork","task":"of the first"}`)
	path := "/v1/agents/" + r.agent + "/children/" + child.ID
	for range 2 {
		if got := fields(t, r.must("POST", path+"/cancel", "")); got["status"] != subagent.Cancelled {
			t.Fatalf("the sub-agent is %v", got)
		}
	}
	embedtest.Eventually(t, "the run is cancelled", func() bool { return r.list("/v1/runs")[0]["status"] == "cancelled" })
	if got := r.childState(child.AgentID, grandchild.ID); got["status"] != subagent.Cancelled {
		t.Errorf("the sub-agent of the sub-agent is %v", got)
	}
	if got := r.childState(r.agent, child.ID); got["status"] != subagent.Cancelled || got["message_id"] != nil {
		t.Errorf("the sub-agent is %v", got)
	}
	if after, _ := r.nextPrompt(r.agent, "default"); len(after) != len(before) {
		t.Errorf("the parent's prompt has %d messages, want %d: %s", len(after), len(before), after)
	}
	returning := r.child(r.agent, `{"mode":"blank","task":"Return."}`)
	r.must("POST", "/v1/agents/"+r.agent+"/children/"+returning.ID+"/return", `{"result":"done"}`)
	if got := fields(t, r.must("POST", "/v1/agents/"+r.agent+"/children/"+returning.ID+"/cancel",
		"")); got["result"] != "done" {
		t.Errorf("a sub-agent that had returned is %v", got)
	}
}

// A result for a call that was already answered is delivered as a message. Two sub-agents cannot work on one call.
func TestAResultOfAnAnsweredCallIsAMessage(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	c.captured(agent, "default", openCall)
	child := c.child(agent, `{"mode":"blank","task":"t","tool_call_id":"c9"}`)
	got := c.call("POST", "/v1/agents/"+agent+"/children", `{"mode":"blank","task":"u","tool_call_id":"c9"}`)
	if got.Code != 409 || !strings.Contains(got.Text, child.ID) {
		t.Errorf("a second sub-agent for the call: %d %s", got.Code, got.Text)
	}
	c.captured(agent, "default", `{"messages":[{"role":"tool","tool_call_id":"c9","content":"answered by hand"}]}`)
	returned := fields(t, c.must("POST", "/v1/agents/"+agent+"/children/"+child.ID+"/return", `{"result":"late"}`))
	messages, _ := c.nextPrompt(agent, "default")
	if last := messages[len(messages)-1]; returned["message_id"] == nil || !strings.Contains(last, "late") {
		t.Errorf("returned %v, the last message is %s", returned, last)
	}
}

// If several results come at the same time, one is taken, and all requests get it as the answer.
func TestResultsAtTheSameTime(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	child := c.child(agent, `{"mode":"blank","task":"t"}`)
	results := make([]any, 8)
	var wait sync.WaitGroup
	for i := range results {
		wait.Go(func() {
			got := c.call("POST", "/v1/agents/"+agent+"/children/"+child.ID+"/return", fmt.Sprintf(`{"result":"r%d"}`, i))
			if results[i] = got.Text; got.Code == 200 {
				results[i] = fields(t, got.Text)["result"]
			}
		})
	}
	wait.Wait()
	for _, got := range results {
		if got != results[0] || !strings.HasPrefix(fmt.Sprint(got), "r") {
			t.Errorf("the requests were answered with %v", results)
			break
		}
	}
}

// A sub-agent returns once: another result is not taken, and the answer says so.
func TestASecondResultIsNotTakenInSilence(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	child := c.child(agent, `{"mode":"blank","task":"t"}`)
	path := "/v1/agents/" + agent + "/children/" + child.ID + "/return"
	for _, step := range []struct {
		body   string
		warned bool
	}{{`{"result":"one"}`, false}, {`{"result":"one"}`, false}, {`{}`, false}, {`{"result":"two"}`, true}} {
		got := fields(t, c.must("POST", path, step.body))
		if got["result"] != "one" || (got["warnings"] != nil) != step.warned {
			t.Errorf("%s: %v, %v", step.body, got["result"], got["warnings"])
		}
	}
}
