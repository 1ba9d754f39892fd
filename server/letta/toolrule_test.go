package letta_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

// refusedAt checks that an error refuses a place in the request.
func refusedAt(t *testing.T, name string, err error, place string) {
	t.Helper()
	problem, ok := errors.AsType[*rest.Problem](err)
	if !ok || problem.GetStatus() != 422 || !strings.HasPrefix(string(problem.Detail), place+":") {
		t.Errorf("%s: got %v, want a refusal of %s", name, err, place)
	}
}

// Rules that differ only in null fields are stored once. A rule that the server could not follow is refused.
func TestToolRulesOfARequest(t *testing.T) {
	t.Parallel()
	got, err := letta.ToolRules(`{"type":"exit_loop","tool_name":"a"}`, `{"tool_name":"a","type":"exit_loop","args":null}`,
		`{"type":"exit_loop","tool_name":"b"}`)
	if want := `[{"type":"exit_loop","tool_name":"a"},{"type":"exit_loop","tool_name":"b"}]`; err != nil ||
		string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	for _, c := range []struct{ rule, place string }{
		{`{"type":"exit_loop"}`, "tool_name"},
		{`{"type":"odd","tool_name":"a"}`, "type"},
		{`{"type":"constrain_child_tools","tool_name":"a","children":[]}`, "children"},
		{`{"type":"constrain_child_tools","tool_name":"a","children":["b"]}`, ""},
		{`{"type":"conditional","tool_name":"a","child_output_mapping":{}}`, "child_output_mapping"},
		{`{"type":"conditional","tool_name":"a","default_child":"b"}`, ""},
		{`{"type":"max_count_per_step","tool_name":"a"}`, "max_count_limit"},
		{`{"type":"max_count_per_step","tool_name":"a","max_count_limit":0}`, "max_count_limit"},
		{`{"type":"max_count_per_step","tool_name":"a","max_count_limit":1}`, ""},
		{`{"type":"run_first","tool_name":"a","args":{}}`, ""},
	} {
		_, err := letta.ToolRules(`{"type":"exit_loop","tool_name":"first"}`, c.rule)
		if c.place == "" && err != nil {
			t.Errorf("%s: %v", c.rule, err)
		} else if c.place != "" {
			refusedAt(t, c.rule, err, "body.tool_rules[1]."+c.place)
		}
	}
}

// Arguments of calls are left out of a rule, which stays.
func TestRulesSetNoArguments(t *testing.T) {
	t.Parallel()
	got, err := letta.ToolRules(`{"type":"run_first","tool_name":"a","args":{"x":1}}`,
		`{"type":"constrain_child_tools","tool_name":"a","children":["b"],"child_arg_nodes":[{"name":"b"}]}`)
	want := `[{"tool_name":"a","type":"run_first"},{"children":["b"],"tool_name":"a","type":"constrain_child_tools"}]`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestToolsOfRules(t *testing.T) {
	t.Parallel()
	got := letta.ToolRuleNames(json.RawMessage(`[{"tool_name":"c","children":["b","c"]},
		{"tool_name":"a","child_output_mapping":{"x":"e","y":null},"default_child":"d"},{}]`))
	if want := []string{"a", "b", "c", "d", "e"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := letta.ToolRuleNames(json.RawMessage(`{"old":1}`)); len(got) != 0 {
		t.Errorf("rules that are no list: got %v", got)
	}
}

// Only the approval of the one tool changes, and nothing is stored if it was so before.
func TestTheApprovalOfATool(t *testing.T) {
	t.Parallel()
	const a, exit = `{"tool_name":"a","type":"requires_approval"}`, `{"type":"exit_loop","tool_name":"a"}`
	for _, c := range []struct {
		name, rules string
		required    bool
		want        string
	}{
		{"required, without rules", ``, true, `[` + a + `]`},
		{"required, as before", `[` + a + `]`, true, ``},
		{"not required, as before", `[` + exit + `]`, false, ``},
		{"required, beside another rule", `[` + exit + `]`, true, `[` + exit + `,` + a + `]`},
		{"no longer required", `[` + exit + `,` + a + `]`, false, `[` + exit + `]`},
	} {
		if got := string(letta.WithApproval(json.RawMessage(c.rules), "a", c.required)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
	yes, no := rest.Opt[bool]{Set: true, Value: true}, rest.Opt[bool]{Set: true}
	for _, c := range []struct {
		name  string
		body  letta.Approval
		query rest.Opt[bool]
		want  bool
	}{
		{"the body goes before the query", letta.Approval{Requires: no}, yes, false},
		{"the name of Letta's client", letta.Approval{Alias: yes}, rest.Opt[bool]{}, true},
		{"the query alone", letta.Approval{}, yes, true},
	} {
		if got, err := c.body.Required(c.query); err != nil || got != c.want {
			t.Errorf("%s: got %v, %v", c.name, got, err)
		}
	}
	_, err := letta.Approval{}.Required(rest.Opt[bool]{})
	refusedAt(t, "no decision", err, "body.requires_approval")
}

// An answer has room besides its thinking.
func TestTheBudgetOfThinking(t *testing.T) {
	t.Parallel()
	for settings, refused := range map[string]bool{
		`{"thinking":{"type":"enabled","budget_tokens":1023},"max_output_tokens":1024}`:  false,
		`{"thinking":{"type":"enabled","budget_tokens":1024},"max_output_tokens":1024}`:  true,
		`{"thinking":{"type":"disabled","budget_tokens":1024},"max_output_tokens":1024}`: false,
		`{"thinking":{"type":"enabled","budget_tokens":1024}}`:                           false,
		`{"max_output_tokens":5}`: false,
	} {
		err := letta.CheckThinking(settings)
		if refused {
			refusedAt(t, settings, err, "body.model_settings.thinking.budget_tokens")
		} else if err != nil {
			t.Errorf("%s: %v", settings, err)
		}
	}
	config := `{"max_tokens":7,"temperature":0.5,"verbosity":null,"reasoning_effort":"low","enable_reasoner":true,"x":1}`
	want := `{"enable_reasoner":true,"max_output_tokens":7,"reasoning":{"reasoning_effort":"low"},"temperature":0.5}`
	if got := string(letta.SettingsIn([]byte(config))); got != want {
		t.Errorf("the settings in an llm_config: got %s, want %s", got, want)
	}
	if got := letta.SettingsIn([]byte(`{"x":1,"verbosity":null}`)); got != nil {
		t.Errorf("without settings: got %s", got)
	}
}
