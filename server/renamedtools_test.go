package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// renamedAgent creates an agent with rules for the tools weather and roll_dice. It returns the agent's runner and the
// id of weather.
func (r runner) renamedAgent(rules string) (of runner, weather string) {
	r.t.Helper()
	weather, dice := r.made("/v1/tools", weatherTool), r.made("/v1/tools", rollDice)
	r.agent = r.made("/v1/agents", fmt.Sprintf(
		`{"name":"b","tool_set":"standard","tool_ids":[%q,%q],"tool_rules":[%s]}`, weather, dice, rules))
	return r, weather
}

// A call waits while its tool is renamed once, or twice, or back to its old name. The rules apply to the call's result.
func TestRulesHoldForCallsOfRenamedTools(t *testing.T) {
	t.Parallel()
	const weather = `{"type":"%s","tool_name":"weather"%s}`
	for name, test := range map[string]struct {
		rule  string
		names []string
		stop  string
		asked int
	}{
		"the end of a turn":          {fmt.Sprintf(weather, "exit_loop", ""), []string{"rain"}, "tool_rule", 1},
		"after two names":            {fmt.Sprintf(weather, "exit_loop", ""), []string{"rain", "snow"}, "tool_rule", 1},
		"after the old name":         {fmt.Sprintf(weather, "exit_loop", ""), []string{"rain", "weather"}, "tool_rule", 1},
		"a tool that must be called": {fmt.Sprintf(weather, "required_before_exit", ""), []string{"rain"}, "end_turn", 2},
		"how often it may be called": {fmt.Sprintf(weather, "max_count_per_step", `,"max_count_limit":1`),
			[]string{"rain"}, "end_turn", 2},
		"which tool may be called": {fmt.Sprintf(weather, "constrain_child_tools", `,"children":["roll_dice"]`),
			[]string{"rain"}, "end_turn", 2},
		"which tool follows a result": {fmt.Sprintf(weather, "conditional", `,"child_output_mapping":{"Wet":"roll_dice"}`),
			[]string{"rain"}, "end_turn", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, tool := newRunner(t, "").renamedAgent(test.rule)
			r.model.Says(callOf("w", "weather", `{"place":"Oslo"}`))
			if got := r.send(hello); got.StopReason.StopReason != "requires_approval" {
				t.Fatalf("got %+v", got)
			}
			for _, name := range test.names {
				r.must("PATCH", "/v1/tools/"+tool, `{"json_schema":{"name":"`+name+`","description":"d"}}`)
			}
			got := r.send(`{"messages":[` + approvalOf(strings.Replace(resultW, "Rain", "Wet", 1)) + `]}`)
			if asked := r.model.Requests(); got.StopReason.StopReason != test.stop || len(asked) != test.asked {
				t.Errorf("got %+v after %d prompts", got, len(asked))
			}
			if test.asked < 2 {
				return
			}
			var tools []struct{ Function struct{ Name string } }
			if err := json.Unmarshal(r.model.Requests()[1].Fields["tools"], &tools); err != nil {
				t.Fatal(err)
			}
			var given []string
			for _, one := range tools {
				given = append(given, one.Function.Name)
			}
			all := strings.Join(given, " ")
			switch {
			case strings.Contains(test.rule, "max_count") && strings.Contains(all, "rain"),
				strings.Contains(test.rule, "child") && all != "roll_dice":
				t.Errorf("the model was given %s", all)
			}
		})
	}
}

// If a tool is renamed while its call waits, and another call is answered, the call keeps waiting.
func TestACallOfARenamedToolWaitsOn(t *testing.T) {
	t.Parallel()
	r, tool := newRunner(t, "").renamedAgent(`{"type":"exit_loop","tool_name":"weather"}`)
	r.model.Says(modeltest.Answer{Calls: []modeltest.Call{{ID: "d", Name: "roll_dice", Arguments: `{"sides":6}`},
		{ID: "w", Name: "weather", Arguments: `{"place":"Oslo"}`}}})
	r.send(hello)
	r.must("PATCH", "/v1/tools/"+tool, `{"json_schema":{"name":"rain","description":"d"}}`)
	got := r.send(`{"messages":[` + approvalOf(`{"type":"tool","tool_call_id":"d","tool_return":"4","status":"success"}`) +
		`]}`)
	if got.StopReason.StopReason != "requires_approval" || len(got.Messages) != 2 || len(r.model.Requests()) != 1 {
		t.Errorf("one result: got %+v", got)
	}
	got = r.send(`{"messages":[` + approvalOf(resultW) + `]}`)
	if got.StopReason.StopReason != "tool_rule" || len(r.model.Requests()) != 1 {
		t.Errorf("both results: got %+v", got)
	}
}

// If another tool takes the old name of a renamed tool, it takes the tool's calls, too.
func TestAnotherToolTakesTheNameOfARenamedOne(t *testing.T) {
	t.Parallel()
	r, tool := newRunner(t, "").renamedAgent(`{"type":"exit_loop","tool_name":"weather"}`)
	r.model.Says(callOf("w", "weather", `{"place":"Oslo"}`))
	r.send(hello)
	r.must("PATCH", "/v1/tools/"+tool, `{"json_schema":{"name":"rain","description":"d"}}`)
	other := r.made("/v1/tools", weatherTool)
	r.must("PATCH", "/v1/agents/"+r.agent+"/tools/attach/"+other, "")
	got := r.send(`{"messages":[` + approvalOf(resultW) + `]}`)
	if got.StopReason.StopReason != "end_turn" || len(r.model.Requests()) != 2 {
		t.Errorf("got %+v after %d prompts", got, len(r.model.Requests()))
	}
}
