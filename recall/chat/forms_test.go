package chat_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/recall/tokens"
)

// A model gets its own answers back in the form that it returned; other models get a form that all of them read.
func TestFormsOfOneModelGoBackToIt(t *testing.T) {
	t.Parallel()
	view := []recall.Message{
		{Role: recall.User, Position: 1, Content: []recall.Part{{Type: recall.Text, Text: "Edit it."}}},
		{Role: recall.Assistant, Position: 2, Model: new("kimi-k2"), Content: []recall.Part{
			{Type: recall.Reasoning, Text: "A patch.", Kind: recall.ReasoningContent},
			{Type: recall.ToolCall, CallID: "a", Name: "patch", Input: "*** Begin", Kind: recall.CustomCall}}},
		{Role: recall.Tool, Position: 3, Content: []recall.Part{{Type: recall.ToolReturn, CallID: "a", Text: "done"}}},
		{Role: recall.Assistant, Position: 4, Model: new("kimi-k2"), Content: []recall.Part{
			{Type: recall.Reasoning, Text: "No more.", Kind: recall.ReasoningContent},
			{Type: recall.Text, Text: "I cannot go on.", Kind: recall.Refusal}}},
	}
	for _, c := range []struct {
		model     string
		has, lack []string
	}{
		{"", []string{`"reasoning_content":"A patch."`, `"custom":{"name":"patch","input":"*** Begin"}`,
			`{"type":"refusal","refusal":"I cannot go on."}`}, []string{"No more.", `"function"`}},
		{"moonshot/kimi-k2", []string{`"reasoning_content":"A patch."`, `"type":"custom"`, `"type":"refusal"`},
			[]string{"No more."}},
		{"openai/gpt-4o", []string{`"function":{"name":"patch","arguments":"{\"arguments\":\"*** Begin\"}"}`,
			`"content":"I cannot go on."`}, []string{"A patch.", "No more.", "custom", `"refusal"`}},
	} {
		messages, n := chat.OpenAI(chat.ReadableBy(c.model, view), tokens.Estimate)
		sent := joined(messages)
		for _, text := range c.has {
			if !strings.Contains(sent, text) {
				t.Errorf("the prompt of %q lacks %s: %s", c.model, text, sent)
			}
		}
		for _, text := range c.lack {
			if strings.Contains(sent, text) {
				t.Errorf("the prompt of %q has %s: %s", c.model, text, sent)
			}
		}
		if n == 0 {
			t.Error("no tokens are counted")
		}
	}
	items, _ := chat.Responses(view, tokens.Estimate)
	for _, text := range []string{`"type":"custom_tool_call","call_id":"a","name":"patch","input":"*** Begin"`,
		`"type":"custom_tool_call_output","call_id":"a","output":"done"`, `{"type":"refusal","refusal":"I cannot go on."}`} {
		if !strings.Contains(joined(items), text) {
			t.Errorf("the items lack %s: %s", text, joined(items))
		}
	}
}
