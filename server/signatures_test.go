package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

const (
	signedCall = `{"id":"a","type":"function","function":{"name":"conversation_search",` +
		`"arguments":"{\"query\":\"tea\"}"},` +
		`"extra_content":{"google":{"thought_signature":"Ab+/=="}}}`
	signature = `"extra_content":{"google":{"thought_signature":"Ab+/=="}}`
)

// Gemini refuses a call without the signature that Gemini attached to it. Prompts to Gemini contain the signature.
func TestSignaturesOfCallsAreSentBack(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","tool_set":"standard"}`) // the agent's model, named m, answers
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

// OpenRouter streams a model's reasoning and its signature in pieces, and requires them whole.
func TestStreamedReasoningDetailsAreSentBackWhole(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","tool_set":"standard"}`)
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

// The results of Anthropic's own tools are sent back unchanged. Without them, the provider cannot go on after a pause.
func TestWhatAnthropicsToolsDidIsSentBack(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","model":"anthropic/claude-sonnet-4-5"}`)
	const searched = `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[` +
		`{"type":"web_search_result","url":"https://a.example","title":"<t>","encrypted_content":"Ab+/==","page_age":null}]}`
	const cited = `[{"type":"web_search_result_location","url":"https://a.example","encrypted_index":"Cd=="}]`
	var events strings.Builder
	event := func(kind, fields string) {
		fmt.Fprintf(&events, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, fields)
	}
	block := func(index int, start string, deltas ...string) {
		event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, index, start))
		for _, d := range deltas {
			event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":%s`, index, d))
		}
		event("content_block_stop", fmt.Sprintf(`,"index":%d`, index))
	}
	event("message_start", `,"message":{"id":"m","type":"message","role":"assistant","model":"c","content":[],`+
		`"usage":{"input_tokens":7,"output_tokens":1}}`)
	block(0, `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`,
		`{"type":"input_json_delta","partial_json":"{\"query\":"}`, `{"type":"input_json_delta","partial_json":" \"x\"}"}`)
	block(1, searched)
	block(2, `{"type":"text","text":""}`, `{"type":"text_delta","text":"Found."}`,
		`{"type":"citations_delta","citation":`+strings.Trim(cited, "[]")+`}`)
	event("message_delta", `,"delta":{"stop_reason":"pause_turn"},"usage":{"output_tokens":5}`)
	event("message_stop", "")
	r.model.Says(modeltest.Answer{Raw: events.String()}, modeltest.Answer{Text: "Done."})
	got := r.send(hello)
	asked := r.model.Requests()
	if got.StopReason.StopReason != "end_turn" || len(asked) != 2 {
		t.Fatalf("got %+v after %d requests", got, len(asked))
	}
	for _, want := range []string{`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}`,
		searched, `"citations":` + cited} {
		if body := string(asked[1].Body); !strings.Contains(body, want) {
			t.Errorf("the second request has no %s: %s", want, body)
		}
	}
	if shown := fmt.Sprint(itemTexts(got.Messages)); strings.Contains(shown, "web_search") {
		t.Errorf("Anthropic's own tool is shown as a call: %s", shown)
	}
}
