package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// A name that differs from a tool's by case, signs or a plural runs the tool, whoever runs the loop. The rules of the
// tool hold, and a tool of the client's with exactly that name has precedence.
func TestANameThatIsNearlyRightRunsItsTool(t *testing.T) {
	t.Parallel()
	const tools = `{"name":"a","tools":["memory_insert","conversation_search"],"include_base_tools":false,
		"memory_blocks":[{"label":"human","value":"Ada."}]`
	args := func(text string) string { return `{"label":"human","new_string":"` + text + `"}` }
	block := func(c *client, agent string) string {
		return c.must("GET", "/v1/agents/"+agent+"/core-memory/blocks/human", "")
	}
	call := func(name, text string) string {
		return fmt.Sprintf(`{"id":"c-%s","type":"function","function":{"name":%q,"arguments":%q}}`, text, name, args(text))
	}
	r := newRunner(t, tools+`}`)
	r.must("POST", "/v1/agents/"+r.agent+"/tools/Memory-Insert/run", `{"args":`+args("REST")+`}`)
	step := r.must("POST", "/v1/agents/"+r.agent+"/step", answering("s", call("Memory-Insert", "step")))
	if !strings.Contains(step, `"calls":[]`) || !strings.Contains(step, `"status":"success"`) {
		t.Errorf("the step left the call to its client: %.600s", step)
	}
	s := r.mcpSession(r.agent)
	s.send(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"memoryInserts","arguments":` + args("MCP") +
		`}}`)
	r.model.Says(callOf("l", "memory-insert", args("loop")), modeltest.Answer{Text: "Noted."})
	if got := r.send(hello); got.StopReason.StopReason != "end_turn" {
		t.Errorf("the run: %+v", got)
	}
	for _, way := range []string{"REST", "step", "MCP", "loop"} {
		if got := block(r.client, r.agent); !strings.Contains(got, way) {
			t.Errorf("over %s the tool did not run: %s", way, got)
		}
	}

	r = newRunner(t, tools+`,"tool_rules":[{"type":"requires_approval","tool_name":"memory_insert"}]}`)
	step = r.must("POST", "/v1/agents/"+r.agent+"/step", answering("s", call("Memory-Insert", "unasked")))
	if !strings.Contains(step, `"reason":"requires_approval"`) {
		t.Errorf("the step did not ask: %.600s", step)
	}
	r.must("POST", "/v1/agents/"+r.agent+"/step", `{"approvals":[{"tool_call_id":"c-unasked","approve":false}]}`)
	r.model.Says(callOf("l", "Memory-Insert", args("unasked")))
	if got := r.send(hello); got.StopReason.StopReason != "requires_approval" {
		t.Errorf("the run did not ask: %+v", got)
	}
	if got := block(r.client, r.agent); strings.Contains(got, "unasked") {
		t.Errorf("a call ran without its approval: %s", got)
	}

	r = newRunner(t, tools+`}`)
	own := `"client_tools":[{"name":"Memory-Insert","description":"Mine.","parameters":{"type":"object"}}]`
	r.model.Says(callOf("w", "Memory-Insert", args("mine")))
	if got := r.send(`{"input":"Hello",` + own + `}`); got.StopReason.StopReason != "requires_approval" {
		t.Errorf("the client's own tool: %+v", got)
	}
	if got := block(r.client, r.agent); strings.Contains(got, "mine") {
		t.Errorf("a call of the client's own tool ran here: %s", got)
	}
}

// Arguments that cannot be stored, or that are there twice, are a result that the model can read.
func TestBrokenArgumentsAreAResult(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a","tool_set":"all","memory_blocks":[{"label":"human","value":"Ada"}]}`)
	s := c.mcpSession(agent)
	for args, want := range map[string]string{
		`{"label":"human","content":"a\u0000b"}`:                "content: the text has a NUL",
		`{"label":"human","content":"a\ud800b"}`:                "content: the text has a NUL, half of a surrogate pair",
		`{"label":"human","content":"a","content":"b"}`:         "content: the field is there twice",
		`{"label":"human","con\u0000tent":"a"}`:                 "the text has a NUL",
		`{"label":"human","content":{"a":[{"b":1,"b":2}]}}`:     "content.a[0].b: the field is there twice",
		`[{"label":"human"}]`:                                   "must be a JSON object",
		`"{\"label\":\"human\",\"content\":\"as a text\"}"`:     "as a text",
		`{"label":"human","content":"x","request_heartbeat":1}`: "x",
	} {
		body := c.must("POST", "/v1/agents/"+agent+"/tools/core_memory_append/run", `{"args":`+args+`,"unknown":1}`)
		got := fields(t, body)
		isError := want != "x" && want != "as a text"
		if text, _ := got["func_return"].(string); (got["status"] == "error") != isError || !strings.Contains(text, want) {
			t.Errorf("REST %s: %s, want %q", args, body, want)
		}
		reply := s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"core_memory_append","arguments":` +
			args + `}}`)
		if strings.HasPrefix(args, "{") && isError != strings.Contains(reply.Text, `"isError":true`) {
			t.Errorf("MCP %s: %s, want isError %t", args, reply.Text, isError)
		}
	}
}
