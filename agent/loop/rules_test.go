package loop_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/recall"
)

// Tools of the agents whose rules are tested, and arguments for them.
const (
	insert  = "archival_memory_insert"
	look    = "archival_memory_search"
	content = `{"content":"Blue."}`
	query   = `{"query":"blue"}`
)

// newRuled returns an agent with both tools, conversation_search, and these rules.
func newRuled(t *testing.T, rules string) *fixture {
	t.Helper()
	return newFixture(t, &agent.Settings{Tools: []string{insert, look, "conversation_search"}, ToolRules: []byte(rules)})
}

// Each answer of the model is offered the tools that the rules allow after the calls before it.
func TestRulesNarrowTheToolsOfEachAnswer(t *testing.T) {
	t.Parallel()
	all := []string{insert, look, "conversation_search"}
	required := `"required"`
	for _, c := range []struct {
		name, rules string
		answers     []modeltest.Answer
		offered     [][]string // for each request to the model
		must        []string   // what its tool_choice is
	}{
		{"none", `[]`, []modeltest.Answer{callOf("c1", insert, content)}, [][]string{all, all}, []string{"", ""}},
		{"run_first", `[{"type":"run_first","tool_name":"` + look + `"}]`,
			[]modeltest.Answer{callOf("c1", look, query)}, [][]string{{look}, all},
			[]string{`{"function":{"name":"` + look + `"},"type":"function"}`, ""}},
		{"run_first of two", `[{"type":"run_first","tool_name":"` + look + `"},
			{"type":"run_first","tool_name":"` + insert + `"}]`,
			[]modeltest.Answer{callOf("c1", look, query)}, [][]string{{insert, look}, all}, []string{required, ""}},
		{"run_first of a tool that it lacks", `[{"type":"run_first","tool_name":"memory_replace"}]`, nil,
			[][]string{all}, []string{""}},
		{"children", `[{"type":"constrain_child_tools","tool_name":"` + look + `","children":["` + insert + `"]}]`,
			[]modeltest.Answer{callOf("c1", look, query), callOf("c2", insert, content)},
			[][]string{all, {insert}, all}, []string{"", `{"function":{"name":"` + insert + `"},"type":"function"}`, ""}},
		{"parent_last_tool", `[{"type":"parent_last_tool","tool_name":"` + look + `","children":["` + insert + `"]}]`,
			[]modeltest.Answer{callOf("c1", look, query)},
			[][]string{{look, "conversation_search"}, all}, []string{"", ""}},
		{"max_count_per_step", `[{"type":"max_count_per_step","tool_name":"` + insert + `","max_count_limit":2}]`,
			[]modeltest.Answer{callOf("c1", insert, content), callOf("c2", insert, content)},
			[][]string{all, all, {look, "conversation_search"}}, []string{"", "", ""}},
		{"a count of zero is no bound", `[{"type":"max_count_per_step","tool_name":"` + insert + `"}]`,
			[]modeltest.Answer{callOf("c1", insert, content)}, [][]string{all, all}, []string{"", ""}},
		{"a condition by default", `[{"type":"conditional","tool_name":"` + look + `","default_child":"` + insert +
			`","child_output_mapping":{"nothing":"conversation_search"}}]`,
			[]modeltest.Answer{callOf("c1", look, query), callOf("c2", insert, content)},
			[][]string{all, {insert}, all}, []string{"", `{"function":{"name":"` + insert + `"},"type":"function"}`, ""}},
		{"a condition without a default", `[{"type":"conditional","tool_name":"` + look +
			`","child_output_mapping":{"nothing":"conversation_search"}}]`,
			[]modeltest.Answer{callOf("c1", look, query)}, [][]string{all, all}, []string{"", ""}},
		{"a condition whose outputs are all mapped", `[{"type":"conditional","tool_name":"` + look +
			`","require_output_mapping":true,"child_output_mapping":{"nothing":"conversation_search"}}]`,
			[]modeltest.Answer{callOf("c1", look, query)}, [][]string{all, nil}, []string{"", ""}},
		{"not a rule", `[7, {"type":"run_first"}, {"tool_name":3}]`, nil, [][]string{all}, []string{""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newRuled(t, c.rules)
			f.model.Says(c.answers...)
			f.checkEnd(f.do(f.request("Hello")), loop.Completed, loop.EndTurn)
			var offered [][]string
			var must []string
			for n := range f.model.Requests() {
				names, choice := f.offered(n)
				slices.Sort(names)
				offered, must = append(offered, names), append(must, choice)
			}
			if diff := cmp.Diff(c.offered, offered); diff != "" {
				t.Errorf("the tools offered (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.must, must); diff != "" {
				t.Errorf("the calls required (-want +got):\n%s", diff)
			}
		})
	}
}

// A call that the rules do not allow gets a result that says so, and does not count for the rules.
func TestCallsAgainstTheRulesAreRefused(t *testing.T) {
	t.Parallel()
	const stored = "c1 = "
	for _, c := range []struct {
		name, rules string
		answers     []modeltest.Answer
		want        []string // beginnings of the results
		reason      string
	}{
		{"too many in one answer", `[{"type":"max_count_per_step","tool_name":"` + look + `","max_count_limit":1}]`,
			[]modeltest.Answer{{Calls: []modeltest.Call{{ID: "c1", Name: look, Arguments: query},
				{ID: "c2", Name: look, Arguments: query}}}},
			[]string{stored, "c2 = The rules of your tools do not allow " + look + " now. You may call "}, loop.EndTurn},
		{"not the first", `[{"type":"run_first","tool_name":"` + look + `"}]`,
			[]modeltest.Answer{callOf("c1", insert, content), callOf("c2", look, query)},
			[]string{"c1 = The rules of your tools do not allow " + insert + " now. You may call " + look + ".", "c2 = "},
			loop.EndTurn},
		{"after the end", `[{"type":"exit_loop","tool_name":"` + look + `"}]`,
			[]modeltest.Answer{{Calls: []modeltest.Call{{ID: "c1", Name: look, Arguments: query},
				{ID: "c2", Name: insert, Arguments: content}}}},
			[]string{stored, "c2 = The rules of your tools do not allow " + insert + " now. You may call no tool."},
			loop.ToolRule},
		{"a failed call that would end", `[{"type":"exit_loop","tool_name":"` + insert + `"}]`,
			[]modeltest.Answer{callOf("c1", insert, `{}`)}, []string{stored}, loop.EndTurn},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newRuled(t, c.rules)
			f.model.Says(c.answers...)
			f.checkEnd(f.do(f.request("Hello")), loop.Completed, c.reason)
			var got []string
			for _, m := range f.messages() {
				if l, is := strings.CutPrefix(line(m), "tool: "); is {
					got = append(got, l)
				}
			}
			begins := func(result, want string) bool { return strings.HasPrefix(result, want) }
			if !slices.EqualFunc(got, c.want, begins) {
				t.Errorf("got %q, want results that begin %q", got, c.want)
			}
		})
	}
}

// A model that ends its turn without a required call is told so, then made to call the tool, and at last given up.
func TestARequiredCallIsRemindedOf(t *testing.T) {
	t.Parallel()
	const rule = `[{"type":"required_before_exit","tool_name":"` + look + `"}]`
	const reminder = frame.System + " Before your response ends, you must call " + look + "."
	text := modeltest.Answer{Text: "I am done."}
	f := newRuled(t, rule)
	f.model.Says(text, callOf("c1", insert, content), text, callOf("c2", look, query))
	f.checkEnd(f.do(f.request("Hello")), loop.Completed, loop.EndTurn)
	var choices []string
	for n := range f.model.Requests() {
		_, must := f.offered(n)
		choices = append(choices, must)
	}
	forced := `{"function":{"name":"` + look + `"},"type":"function"}`
	if diff := cmp.Diff([]string{"", forced, forced, forced, ""}, choices); diff != "" {
		t.Errorf("the calls required (-want +got):\n%s", diff)
	}
	var notices []string
	for _, m := range f.messages() {
		if m.Role == recall.System {
			notices = append(notices, m.Text())
		}
	}
	if diff := cmp.Diff([]string{reminder, reminder}, notices); diff != "" {
		t.Errorf("what the model was told (-want +got):\n%s", diff)
	}

	f = newRuled(t, rule)
	f.model.Says(text, text, text, text)
	run := f.do(f.request("Hello"))
	f.checkEnd(run, loop.Failed, loop.NoToolCall)
	if run.Failure == nil || !strings.Contains(run.Failure.Text, "told so 3 times") {
		t.Errorf("got %+v, want the number of reminders", run.Failure)
	}
}

// An answer with only calls that end the turn ends it, unless a required call is missing.
func TestTheRulesSayWhatEndsATurn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, rules, reason string
		answers             []modeltest.Answer
	}{
		{"a call that ends", `[{"type":"exit_loop","tool_name":"` + look + `"}]`, loop.ToolRule,
			[]modeltest.Answer{callOf("c1", look, query)}},
		{"a call that does not", `[{"type":"continue_loop","tool_name":"` + look + `"}]`, loop.EndTurn,
			[]modeltest.Answer{callOf("c1", look, query), {Text: "Done."}}},
		{"a required call before it", `[{"type":"exit_loop","tool_name":"` + look +
			`"},{"type":"required_before_exit","tool_name":"` + insert + `"}]`, loop.ToolRule,
			[]modeltest.Answer{callOf("c1", look, query), callOf("c2", insert, content), callOf("c3", look, query)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newRuled(t, c.rules)
			f.model.Says(c.answers...)
			f.checkEnd(f.do(f.request("Hello")), loop.Completed, c.reason)
			if n := len(f.model.Requests()); n != len(c.answers) {
				t.Errorf("the model was asked %d times, want %d", n, len(c.answers))
			}
		})
	}
}
