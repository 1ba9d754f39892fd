package model_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/recall"
)

// A request to Anthropic carries the API version and the key in Anthropic's own header fields.
func TestAnthropicIsAskedInItsOwnForm(t *testing.T) {
	t.Parallel()
	m := modeltest.New(t)
	c, err := model.NewAnthropic(model.Config{BaseURL: m.URL + "/", APIKey: "sk-ant-1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Answer(t.Context(), model.Request{Model: "m", Prompt: json.RawMessage(prompt)},
		func(model.Delta) {}); err != nil {
		t.Fatal(err)
	}
	m.Says(modeltest.Answer{Raw: "event: ping\n\n"})
	_, err = c.Answer(t.Context(), model.Request{Model: "m", Prompt: json.RawMessage(prompt)}, func(model.Delta) {})
	if err == nil || !strings.Contains(err.Error(), "LOCI_ANTHROPIC_BASE_URL and the agent's model (m)") {
		t.Errorf("the error of a stream that is cut: %v", err)
	}
	request := m.Requests()[0]
	got := []string{request.Path, request.Header.Get("X-Api-Key"), request.Header.Get("Anthropic-Version"),
		request.Header.Get("Authorization"), string(request.Fields["stream"]), string(request.Fields["max_tokens"])}
	want := []string{"/v1/messages", "sk-ant-1", "2023-06-01", "", "true", "8192"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the request (-want +got):\n%s", diff)
	}
	if beta := request.Header.Get("Anthropic-Beta"); beta != "" {
		t.Errorf("a prompt without context_management names the feature %q", beta)
	}
	m.Says(modeltest.Answer{Text: "Well."})
	if _, err := c.Answer(t.Context(), model.Request{Model: "m",
		Prompt: json.RawMessage(strings.Replace(prompt, "{", `{"context_management":{"edits":[]},`, 1))},
		func(model.Delta) {}); err != nil {
		t.Fatal(err)
	}
	managed := m.Requests()[2]
	if beta := managed.Header.Get("Anthropic-Beta"); beta != "context-management-2025-06-27" {
		t.Errorf("a prompt with context_management names the feature %q", beta)
	}
}

// The answer keeps the calls of Anthropic's own tools, with input that came in pieces, and citations. If a call's whole
// input comes at the start of its block, the answer has that input, unless pieces follow.
func TestBlocksOfAnthropicAreKept(t *testing.T) {
	t.Parallel()
	m := modeltest.New(t)
	m.Says(modeltest.Answer{Raw: anthropicEvents(
		`{"type":"message_start","message":{"content":[],"usage":{"input_tokens":7,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search",`+
			`"input":{}}}`,
		`{"type":"ping"}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"\"Oslo\"}"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result", "z":1, "a":[]}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"","citations":[]}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"url":"u"}}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Cold"}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"some_new_delta","text":"x"}}`,
		`{"type":"content_block_stop","index":2}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"a","name":"f","input":{"x": 1}}}`,
		`{"type":"content_block_stop","index":3}`,
		`{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"b","name":"f","input":{"x":1}}}`,
		`{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"x\":2}"}}`,
		`{"type":"content_block_stop","index":4}`,
		`{"type":"some_new_event"}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}`,
		`{"type":"message_stop"}`)})
	shown := map[string]string{}
	got, err := clients(t, m)[model.FormatAnthropic].Answer(t.Context(),
		model.Request{Model: "m", Prompt: json.RawMessage(prompt)},
		func(d model.Delta) { shown[string(d.Kind)+d.CallID] += d.Name + d.Text })
	if err != nil {
		t.Fatal(err)
	}
	want := []recall.Part{
		{Type: recall.AnthropicBlock,
			Item: `{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"Oslo"}}`},
		{Type: recall.AnthropicBlock, Item: `{"type":"web_search_tool_result","z":1,"a":[]}`},
		{Type: recall.Text, Text: "Cold", Extra: `{"anthropic":{"citations":[{"url":"u"}]}}`},
		{Type: recall.ToolCall, CallID: "a", Name: "f", Input: `{"x":1}`},
		{Type: recall.ToolCall, CallID: "b", Name: "f", Input: `{"x":2}`},
	}
	if diff := cmp.Diff(want, got.Content); diff != "" {
		t.Errorf("the answer (-want +got):\n%s", diff)
	}
	deltas := map[string]string{"text": "Cold", "tool_calla": `f{"x":1}`, "tool_callb": `f{"x":2}`}
	if diff := cmp.Diff(deltas, shown); diff != "" {
		t.Errorf("what was shown (-want +got):\n%s", diff)
	}
	if got.Usage != (model.Usage{Prompt: 7, Completion: 9}) {
		t.Errorf("the usage: %+v", got.Usage)
	}
}

// An answer is complete when its stream says so, even if the server keeps the connection open.
func TestAStreamOfAnthropicEndsWithItsMessage(t *testing.T) {
	t.Parallel()
	m := modeltest.New(t)
	m.Says(modeltest.Answer{After: t.Context().Done(), Raw: anthropicEvents(
		`{"type":"message_start","message":{"content":[]}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hello"}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`)})
	got, err := clients(t, m)[model.FormatAnthropic].Answer(t.Context(),
		model.Request{Model: "m", Prompt: json.RawMessage(prompt)}, func(model.Delta) {})
	if err != nil || len(got.Content) != 1 || got.Content[0].Text != "Hello" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// The caller gets the text of an error within a stream, both in Anthropic's form and in the form of similar servers.
func TestAnErrorInAStreamOfAnthropicHasItsWords(t *testing.T) {
	t.Parallel()
	m := modeltest.New(t)
	for _, event := range []string{`{"type":"error","error":{"type":"overloaded_error","message":"too busy"}}`,
		`{"type":"error","message":"too busy"}`, `{"error":"too busy"}`} {
		m.Says(modeltest.Answer{Raw: anthropicEvents(`{"type":"message_start","message":{"content":[]}}`, event)})
		_, err := clients(t, m)[model.FormatAnthropic].Answer(t.Context(),
			model.Request{Model: "m", Prompt: json.RawMessage(prompt)}, func(model.Delta) {})
		if f, failed := errors.AsType[*model.Fault](err); !failed || f.Words != "too busy" || !f.Again {
			t.Errorf("%s: got %+v", event, err)
		}
	}
}
