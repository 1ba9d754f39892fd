package server_test

import (
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// A model makes one call at a time where several were not asked for: in agents made for Letta whose settings say
// nothing or whose rules order calls, and wherever the settings say so. The provider is told, and calls behind the
// first of an answer are not made, in streams too.
func TestOneCallAtATime(t *testing.T) {
	t.Parallel()
	const rule = `"tool_rules":[{"type":"exit_loop","tool_name":"memory_insert"}]`
	for _, c := range []struct {
		name, agent string
		calls       int    // of an answer with two
		told        string // parallel_tool_calls in the request
	}{
		{"an agent of ours", ``, 2, ""},
		{"an agent of ours that says so", `,"model_settings":{"parallel_tool_calls":false}`, 1, "false"},
		{"an agent made for Letta", `,"agent_type":"letta_v1_agent"`, 1, "false"},
		{"with settings", `,"agent_type":"letta_v1_agent","model_settings":{"provider_type":"openai","temperature":0.5}`, 2,
			""},
		{"that asks for several", `,"agent_type":"letta_v1_agent","model_settings":{"parallel_tool_calls":true}`, 2, "true"},
		{"with a rule", `,"agent_type":"letta_v1_agent","model_settings":{"parallel_tool_calls":true},` + rule, 1, "false"},
	} {
		r := newRunner(t, `{"model":"openai/gpt-4o-mini","memory_blocks":[{"label":"human","value":"Ada."}]`+c.agent+`}`)
		two := modeltest.Answer{Calls: []modeltest.Call{
			{ID: "a", Name: "conversation_search", Arguments: `{"query":"tea"}`},
			{ID: "b", Name: "conversation_search", Arguments: `{"query":"milk"}`}}}
		r.model.Says(two, modeltest.Answer{Text: "Done."}, two, modeltest.Answer{Text: "Done."})
		r.send(`{"messages":[{"role":"user","content":"Tea?"}]}`)
		items, _ := r.stream(r.path()+"/stream", `{"messages":[{"role":"user","content":"Tea?"}],"stream_tokens":true}`)
		withdrawn := 0
		for _, item := range items {
			if dropped, ok := item["withdrawn_tool_call_ids"].([]any); ok {
				withdrawn += len(dropped)
			}
		}
		made := 0
		for _, item := range r.list(r.path() + "?include_return_message_types=tool_call_message") {
			made += len(item["tool_calls"].([]any))
		}
		told := string(r.model.Requests()[0].Fields["parallel_tool_calls"])
		if made != 2*c.calls || withdrawn != 2-c.calls || told != c.told {
			t.Errorf("%s: %d calls were made of 4, want %d; %d were withdrawn; the provider was told %q, want %q", c.name,
				made, 2*c.calls, withdrawn, told, c.told)
		}
	}
}
