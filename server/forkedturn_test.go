package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// A fork in the middle of a turn has the results of the server's tools that have run, but not the results of the
// client's tools.
func TestAForkInsideATurnRunsNoToolAgain(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","tools":["core_memory_append"],"include_base_tools":false,
		"memory_blocks":[{"label":"human","value":"base"}]}`)
	const cli = `"client_tools":[{"name":"cli_tool","parameters":{"type":"object","properties":{}}}]`
	returns := func(text string) string {
		return `{"messages":[` + approvalOf(`{"type":"tool","tool_call_id":"f1","tool_return":"`+text+
			`","status":"success"}`) + `],` + cli
	}
	block := func() string {
		return fmt.Sprint(fields(t, r.must("GET", "/v1/agents/"+r.agent+"/core-memory/blocks/human", ""))["value"])
	}
	r.model.Says(modeltest.Answer{Calls: []modeltest.Call{{ID: "f1", Name: "cli_tool", Arguments: `{}`},
		{ID: "m1", Name: "core_memory_append", Arguments: `{"label":"human","content":"ONCE"}`}}})
	got := r.send(`{"input":"Hello",` + cli + `}`)
	if got.StopReason.StopReason != "requires_approval" || block() != "base\nONCE" {
		t.Fatalf("got %+v, and the block %q", got.StopReason, block())
	}
	firstMessage := fmt.Sprint(got.Messages[0]["id"])
	r.send(returns("first") + `}`)
	for i, text := range []string{"second", "third"} {
		fork := r.made("/v1/conversations/default/fork?agent_id="+r.agent+"&message_id="+firstMessage, "")
		asked := len(r.model.Requests())
		r.must("POST", "/v1/conversations/"+fork+"/messages", returns(text)+`,"streaming":false,"agent_id":"`+r.agent+`"}`)
		if block() != "base\nONCE" {
			t.Errorf("fork %d: the block is %q", i, block())
		}
		last := string(r.model.Requests()[asked].Body)
		if !strings.Contains(last, text) || strings.Contains(last, "first") || strings.Contains(last, "not recorded") {
			t.Errorf("fork %d: the model was sent %s", i, last)
		}
	}
}
