package gateway

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/loci-memory/loci/recall"
)

func unitsOf(t *testing.T, list string) []unit {
	t.Helper()
	var items []json.RawMessage
	if err := json.Unmarshal([]byte(list), &items); err != nil {
		t.Fatal(err)
	}
	units, _ := readUnits(items)
	link("start", units)
	return units
}

// The same conversation in another form of a provider, or as another client sends it back, has the same otids.
func TestTheSameConversationInOtherForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, a, b string }{
		{"a text and its parts", `[{"role":"user","content":"a b"}]`,
			`[{"role":"user","content":[{"type":"text","text":"a "},{"type":"text","text":"b"}]}]`},
		{"a cache mark", `[{"role":"user","content":[{"type":"text","text":"a"}]}]`,
			`[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]`},
		{"spaces at the end", `[{"role":"assistant","content":"a "}]`, `[{"role":"assistant","content":"a"}]`},
		{"system prompts", `[{"role":"system","content":"s"},{"role":"user","content":"a"}]`,
			`[{"role":"developer","content":"t"},{"role":"user","content":"a"}]`},
		{"thinking", `[{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},
			{"type":"text","text":"a"}]}]`, `[{"role":"assistant","content":"a"}]`},
		{"keys of arguments and ids of calls", `[{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function",
			"function":{"name":"f","arguments":"{\"a\":1,\"b\": 2}"}}]},{"role":"tool","tool_call_id":"1","content":"r"}]`,
			`[{"role":"assistant","content":"","tool_calls":[{"id":"2","type":"function",
			"function":{"name":"f","arguments":"{\"b\":2,\"a\":1}"}}]},{"role":"tool","tool_call_id":"2","content":"r"}]`},
		{"the providers' forms of calls", `[{"role":"assistant","content":"x","tool_calls":[{"id":"1","type":"function",
			"function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"r"}]`,
			`[{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"1","name":"f","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"r"}]}]`},
		{"items of the Responses API", `[{"role":"assistant","content":"x","tool_calls":[{"id":"1","type":"function",
			"function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"r"}]`,
			`[{"type":"reasoning","id":"rs_1","summary":[]},
			{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x","annotations":[]}]},
			{"type":"function_call","call_id":"9","name":"f","arguments":"{ }"},
			{"type":"function_call_output","call_id":"9","output":"r"}]`},
	} {
		a, b := unitsOf(t, c.a), unitsOf(t, c.b)
		if !slices.Equal(otidsOf(a), otidsOf(b)) {
			t.Errorf("%s: they differ: %v and %v", c.name, a, b)
		}
	}
}

// Another text, role, image, call or result is another message.
func TestOtherConversations(t *testing.T) {
	t.Parallel()
	call := func(name, args, result string) string {
		return fmt.Sprintf(`[{"role":"assistant","content":"x","tool_calls":[{"id":"1","type":"function",
			"function":{"name":%q,"arguments":%q}}]},{"role":"tool","tool_call_id":"1","content":%q}]`, name, args, result)
	}
	image := func(data string) string {
		return fmt.Sprintf(`[{"role":"user","content":[
			{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}]`, data)
	}
	seen := map[string]string{}
	for _, list := range []string{`[{"role":"user","content":"a"}]`, `[{"role":"user","content":"A"}]`,
		`[{"role":"assistant","content":"a"}]`, `[{"role":"user","content":"a"},{"role":"user","content":"a"}]`,
		image("AAAA"), image("AAAB"), call("f", "{}", "r"), call("g", "{}", "r"), call("f", `{"a":1}`, "r"),
		call("f", "{}", "s"), `[{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}]`} {
		units := unitsOf(t, list)
		last := units[len(units)-1].otid
		if other := seen[last]; other != "" {
			t.Errorf("%s is taken for %s", list, other)
		}
		seen[last] = list
	}
}

// What the log has no form for is kept as far as it is text.
func TestItemsWithoutAForm(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"role":"user","content":[{"type":"text","text":"hear"},{"type":"input_audio","input_audio":{}}]}`: "user " +
			"hear\n[input_audio that is not kept]",
		`{"type":"item_reference","id":"x"}`:              "assistant [item_reference that is not kept]",
		`{"role":"user","content":[{"type":"document"}]}`: "user [document that is not kept]",
		`17`: "assistant [something that is not kept]",
	} {
		drafts := draftsOf(json.RawMessage(in))
		if len(drafts) != 1 || string(drafts[0].Role)+" "+textOf(drafts[0]) != want {
			t.Errorf("%s: got %+v, want %s", in, drafts, want)
		}
	}
	units := unitsOf(t,
		`[{"role":"assistant","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]`)
	if len(units) != 2 || units[0].last() != 1 || units[0].Role != recall.Assistant {
		t.Errorf("what a model wrote at one time is not one unit: %+v", units)
	}
}

// Of a user_id with a session only the account counts.
func TestTheUserOfARequest(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"user":"ann"}`:                 "ann",
		`{"metadata":{"user_id":"bob"}}`: "bob",
		`{"metadata":{"user_id":17}}`:    "",
		`{"metadata":{"user_id":"user_1f_account_0a-b_session_77-8"}}`:                                "user_1f_account_0a-b",
		`{"metadata":{"user_id":"{\"device_id\":\"d\",\"account_uuid\":\"\",\"session_id\":\"s\"}"}}`: "d",
		`{"metadata":{"user_id":"{\"device_id\":\"d\",\"account_uuid\":\"u\"}"}}`:                     "u",
		`{}`: "",
	} {
		b, err := readBody([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		d := anthropicDialect
		if b.field("user") != nil {
			d = chatDialect
		}
		if got := d.userOf(b); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}
