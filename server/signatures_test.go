package server_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/loop/model/modeltest"
)

const (
	signedCall = `{"id":"a","type":"function","function":{"name":"conversation_search",` +
		`"arguments":"{\"query\":\"tea\"}"},` +
		`"extra_content":{"google":{"thought_signature":"Ab+/=="}}}`
	signature = `"extra_content":{"google":{"thought_signature":"Ab+/=="}}`
)

// Gemini refuses a call without the signature that it attached to it: prompts send it back, to Gemini.
func TestSignaturesOfCallsAreSentBack(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","include_base_tools":true}`) // its model, named m, answers
	r.model.Says(modeltest.Answer{Raw: `data: {"choices":[{"delta":{"tool_calls":[` + signedCall +
		`]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"}, modeltest.Answer{Text: "Done."})
	r.send(hello)
	if asked := r.model.Requests(); len(asked) != 2 || !strings.Contains(string(asked[1].Body), signature) {
		t.Errorf("the model was asked %d times, without the signature in %s", len(asked), asked[len(asked)-1].Body)
	}
	for _, c := range []struct {
		writer, reader string
		want           bool
	}{
		{"gemini-2.5-pro", "google_ai/gemini-2.5-flash", true}, {"mine", "openai/mine", true},
		{"gemini-2.5-pro", "openai/gpt-4o", false}, {"mine", "openai/other", false},
	} {
		agent := r.made("/v1/agents", `{"name":"b","model":"`+c.reader+`"}`)
		r.must("POST", "/v1/agents/"+agent+"/step", `{"response":{"model":"`+c.writer+`","choices":[{"message":{"role":`+
			`"assistant","content":null,"tool_calls":[`+signedCall+`]}}]}}`)
		r.must("POST", "/v1/agents/"+agent+"/messages/capture", `{"messages":[{"role":"user","content":"x"}]}`)
		for _, format := range []string{"openai", "anthropic", "responses"} {
			prompt := r.must("GET", "/v1/agents/"+agent+"/prompt?format="+format, "")
			if got := strings.Contains(prompt, signature); got != (c.want && format == "openai") {
				t.Errorf("a call of %s for %s in the format %s has its signature: %t", c.writer, c.reader, format, got)
			}
		}
	}
}

// OpenRouter streams a model's reasoning and its signature in pieces, and takes them back whole.
func TestStreamedReasoningDetailsAreSentBackWhole(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","include_base_tools":true}`)
	event := func(fields string) string { return `data: {"choices":[{"delta":{` + fields + `}}]}` + "\n\n" }
	r.model.Says(modeltest.Answer{Raw: event(`"reasoning":"I <th","reasoning_details":[{"type":"reasoning.text",`+
		`"index":0,"text":"I <th","signature":null}]`) +
		event(`"reasoning":"ink>.","reasoning_details":[{"type":"reasoning.text","index":0,"text":"ink>."}]`) +
		event(`"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"c2ln"},`+
			`{"type":"reasoning.encrypted","index":1,"data":"Ab+/=="},{"type":"reasoning.encrypted","index":1,"data":"Cd"}]`) +
		event(`"tool_calls":[`+signedCall+`]`) + "data: [DONE]\n\n"}, modeltest.Answer{Text: "Done."})
	r.send(hello)
	const want = `"reasoning_details":[{"index":0,"signature":"c2ln","text":"I <think>.","type":"reasoning.text"},` +
		`{"data":"Ab+/==","index":1,"type":"reasoning.encrypted"},{"data":"Cd","index":1,"type":"reasoning.encrypted"}]`
	if asked := r.model.Requests(); len(asked) != 2 || !strings.Contains(string(asked[1].Body), want) {
		t.Errorf("the model was asked %d times, at last %s, want %s", len(asked), asked[len(asked)-1].Body, want)
	}
}
