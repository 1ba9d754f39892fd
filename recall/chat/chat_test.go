package chat_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/recall/tokens"
)

func text(role recall.Role, s string) recall.Message {
	return recall.Message{Role: role, Content: []recall.Part{{Type: recall.Text, Text: s}}}
}

// visit is a conversation with an image, parallel calls, one of them without a result, and an answer.
func visit() []recall.Message {
	image := recall.Part{Type: recall.Image,
		Source: json.RawMessage(`{"type":"base64","media_type":"image/png","data":"aGk="}`)}
	ask := text(recall.User, "What is this?")
	ask.Name, ask.Content = new("Ann B"), append(ask.Content, image)
	call := recall.Message{Role: recall.Assistant, Position: 2, Content: []recall.Part{
		{Type: recall.Reasoning, Text: "Hm.", Signature: "sig"},
		{Type: recall.ToolCall, CallID: "a", Name: "look up", Input: `{ "q": 1 }`},
		{Type: recall.ToolCall, CallID: "b", Name: "f", Input: ""}}}
	result := recall.Message{Role: recall.Tool, Content: []recall.Part{
		{Type: recall.ToolReturn, CallID: "a", Text: "Found.\n"},
		{Type: recall.ToolReturn, CallID: "z", Text: "lost", Orphan: true}}}
	return []recall.Message{text(recall.Summary, "Before."), ask, call, result, text(recall.Assistant, "A cat. ")}
}

func joined(messages []json.RawMessage) string {
	lines := make([]string, len(messages))
	for i, m := range messages {
		lines[i] = string(m)
	}
	return strings.Join(lines, "\n")
}

func TestOpenAI(t *testing.T) {
	t.Parallel()
	want := strings.Join([]string{
		`{"role":"user","content":"Before."}`,
		`{"role":"user","name":"Ann_B","content":[{"type":"text","text":"What is this?"},` +
			`{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]}`,
		`{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"look_up",` +
			`"arguments":"{ \"q\": 1 }"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"a","content":"Found.\n"}`,
		`{"role":"tool","tool_call_id":"b","content":"[The result of this call was not recorded.]"}`,
		`{"role":"assistant","content":"A cat. "}`}, "\n")
	got, n := chat.OpenAI(visit(), tokens.Estimate)
	if diff := cmp.Diff(want, joined(got)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if least := tokens.PerImage + 6*tokens.PerMessage; n < least || n > least+60 {
		t.Errorf("got %d tokens, want %d and those of the texts", n, least)
	}
}

func TestAnthropic(t *testing.T) {
	t.Parallel()
	want := strings.Join([]string{
		`{"role":"user","content":[{"type":"text","text":"Before."},{"type":"text","text":"Ann B: What is this?"},` +
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}]}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"sig"},` +
			`{"type":"tool_use","id":"a","name":"look_up","input":{"q":1}},{"type":"tool_use","id":"b","name":"f","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"Found.\n"}]},` +
			`{"type":"tool_result","tool_use_id":"b","content":[{"type":"text",` +
			`"text":"[The result of this call was not recorded.]"}],"is_error":true}]}`,
		`{"role":"assistant","content":[{"type":"text","text":"A cat."}]}`}, "\n")
	got, _ := chat.Anthropic(visit(), tokens.Estimate)
	if diff := cmp.Diff(want, joined(got)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	first, _ := chat.Anthropic(visit()[4:], tokens.Estimate)
	if len(first) != 2 || !strings.HasPrefix(string(first[0]), `{"role":"user"`) {
		t.Errorf("a conversation that the assistant begins: got %s", joined(first))
	}
}

func TestResponses(t *testing.T) {
	t.Parallel()
	want := strings.Join([]string{
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"Before."}]}`,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"Ann B: What is this?"},` +
			`{"type":"input_image","image_url":"data:image/png;base64,aGk="}]}`,
		`{"type":"function_call","call_id":"a","name":"look_up","arguments":"{ \"q\": 1 }"}`,
		`{"type":"function_call","call_id":"b","name":"f","arguments":"{}"}`,
		`{"type":"function_call_output","call_id":"a","output":"Found.\n"}`,
		`{"type":"function_call_output","call_id":"b","output":"[The result of this call was not recorded.]"}`,
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"A cat. "}]}`}, "\n")
	got, n := chat.Responses(visit(), tokens.Estimate)
	if diff := cmp.Diff(want, joined(got)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if least := tokens.PerImage + 7*tokens.PerMessage; n < least || n > least+60 {
		t.Errorf("got %d tokens, want %d and those of the texts", n, least)
	}
}

// Parts that only one provider can read are sent to no other. They keep their place among the other parts. Null fields,
// which some clients add and providers refuse, are dropped.
func TestSealedPartsGoToTheirProvider(t *testing.T) {
	t.Parallel()
	m := recall.Message{Role: recall.Assistant, Content: []recall.Part{
		{Type: recall.Reasoning, Text: "Hm.", Signature: "sig"},
		{Type: recall.AnthropicBlock, Item: `{"type":"server_tool_use","id":"s","caller":null}`},
		{Type: recall.SummarizedReasoning, CallID: "rs", Text: "Hm.", Data: "enc",
			Item: `{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"enc","status":null}`},
		{Type: recall.Text, Text: "So."},
		{Type: recall.SummarizedReasoning, CallID: "old", Text: "Hm.", Data: "enc"},
		{Type: recall.SummarizedReasoning, Item: `{"type":"reasoning","id":"unencrypted","summary":[]}`},
		{Type: recall.ResponsesItem, Item: `{"type":"compaction","encrypted_content":"enc"}`}}}
	view := []recall.Message{text(recall.User, "Go."), m}
	anthropic, _ := chat.Anthropic(view, tokens.Estimate)
	want := `{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"sig"},` +
		`{"id":"s","type":"server_tool_use"},{"type":"text","text":"So."}]}`
	if got := joined(anthropic[1:]); got != want {
		t.Errorf("Anthropic's: got %s, want %s", got, want)
	}
	responses, _ := chat.Responses(view, tokens.Estimate)
	want = `{"encrypted_content":"enc","id":"rs","summary":[],"type":"reasoning"}
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"So."}]}
{"type":"reasoning","id":"old","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"enc"}
{"type":"compaction","encrypted_content":"enc"}`
	if diff := cmp.Diff(want, joined(responses[1:])); diff != "" {
		t.Errorf("Responses: -want +got\n%s", diff)
	}
	for model, format := range map[string]func([]recall.Message, chat.Counter) ([]json.RawMessage, int){
		"gpt-5": chat.Anthropic, "claude-opus-4-1": chat.Responses} {
		view[1].Model = new(model)
		if got, _ := format(view, tokens.Estimate); strings.Contains(joined(got), "enc") ||
			strings.Contains(joined(got), "sig") {
			t.Errorf("what %s thought goes to another provider: %s", model, joined(got))
		}
	}
}

// Texts returns for the agent's own model what OpenAI returns as messages.
func TestTexts(t *testing.T) {
	t.Parallel()
	want := []chat.Message{
		{Role: "user", Content: "Before."},
		{Role: "user", Content: "What is this?\n[image]"},
		{Role: "assistant", Calls: []chat.Call{{ID: "a", Name: "look_up", Arguments: `{ "q": 1 }`},
			{ID: "b", Name: "f", Arguments: "{}"}}},
		{Role: "tool", Content: "Found.\n", CallID: "a"},
		{Role: "tool", Content: "[The result of this call was not recorded.]", CallID: "b"},
		{Role: "assistant", Content: "A cat. "}}
	if diff := cmp.Diff(want, chat.Texts(visit())); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Ids occur several times in long conversations, but a provider accepts each only once.
func TestCallsHaveIDsOfTheirOwn(t *testing.T) {
	t.Parallel()
	var view []recall.Message
	for position := range 2 {
		view = append(view, recall.Message{Role: recall.Assistant, Position: position,
			Content: []recall.Part{{Type: recall.ToolCall, CallID: "a", Name: "f"}}},
			recall.Message{Role: recall.Tool, Content: []recall.Part{{Type: recall.ToolReturn, CallID: "a", Text: "x"}}})
	}
	got := chat.Texts(view)
	if len(got) != 4 || got[0].Calls[0].ID != "a" || got[2].Calls[0].ID == "a" || got[2].Calls[0].ID != got[3].CallID {
		t.Errorf("got %+v", got)
	}
}

// Arguments that are no JSON object and empty texts are sent in a form that all servers accept.
func TestWhatServersRefuseIsShownInAnotherForm(t *testing.T) {
	t.Parallel()
	view := []recall.Message{
		{Role: recall.User, Position: 1},
		{Role: recall.User, Position: 2, Content: []recall.Part{{Type: recall.Text, Text: " \n"}}},
		{Role: recall.Assistant, Position: 3},
		{Role: recall.Assistant, Position: 4, Content: []recall.Part{
			{Type: recall.ToolCall, CallID: "a", Name: "f", Input: `{"path": "x`},
			{Type: recall.ToolCall, CallID: "b", Name: "f", Input: `["x"]`},
			{Type: recall.ToolCall, CallID: "c", Name: "f", Input: ` { "x" : 1 }`}}},
		{Role: recall.Tool, Position: 5, Content: []recall.Part{{Type: recall.ToolReturn, CallID: "a"}}},
	}
	count := func(string) int { return 0 }
	openAI, _ := chat.OpenAI(view, count)
	anthropic, _ := chat.Anthropic(view, count)
	for format, messages := range map[string][]json.RawMessage{"openai": openAI, "anthropic": anthropic} {
		text := string(chat.Encode(messages))
		for part, want := range map[string]int{"[The message is empty.]": 2, "[The result is empty.]": 1,
			`\"arguments\"`: 0} {
			if format == "openai" && want == 0 {
				want = 2
			}
			if got := strings.Count(text, part); got != want {
				t.Errorf("%s has %s %d times, want %d:\n%s", format, part, got, want, text)
			}
		}
	}
	for i, want := range []string{`{"arguments":"{\"path\": \"x"}`, `{"arguments":"[\"x\"]"}`, ` { "x" : 1 }`} {
		if got := chat.Texts(view)[2].Calls[i].Arguments; got != want {
			t.Errorf("the arguments of call %d are %s, want %s", i, got, want)
		}
	}
}
