package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// noPrefill is Anthropic's refusal of a prompt that ends with an answer.
var noPrefill = modeltest.Answer{Status: 400, Text: `{"type":"error","error":{"type":"invalid_request_error",
	"message":"This model does not support assistant message prefill. The conversation must end with a user message."}}`}

// endsWithAnswer reports whether the last message of a prompt is an answer without calls.
func endsWithAnswer(a modeltest.Asked) bool {
	var messages []struct {
		Role  string
		Calls []any `json:"tool_calls"`
	}
	err := json.Unmarshal(a.Fields["messages"], &messages)
	last := len(messages) - 1
	return err == nil && messages[last].Role == "assistant" && len(messages[last].Calls) == 0
}

// withheld returns an answer that a content filter stops after a text, in one of three forms.
func withheld(handle, form string) modeltest.Answer {
	switch {
	case strings.HasPrefix(handle, "anthropic/"):
		return modeltest.Answer{Text: "I start to say", Finish: "refusal"}
	case form == "whole":
		return modeltest.Answer{Raw: `{"choices":[{"index":0,"message":{"role":"assistant","content":"I start to say"},
			"finish_reason":"content_filter"}]}`}
	case form == "a refusal":
		return modeltest.Answer{Raw: `data: {"choices":[{"index":0,"delta":{"refusal":"I start to say"},` +
			`"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"}
	}
	return modeltest.Answer{Text: "I start to say", Finish: "content_filter"}
}

// filters lets the runner's model withhold the rest of an answer to each prompt that contains a text.
func (r runner) filters(handle, form, text string) {
	r.model.Reply = func(a modeltest.Asked) modeltest.Answer {
		switch {
		case strings.HasPrefix(handle, "anthropic/") && endsWithAnswer(a):
			return noPrefill
		case strings.Contains(string(a.Body), text):
			return withheld(handle, form)
		}
		return modeltest.Answer{Text: "Fine."}
	}
}

// If a content filter stops an answer after some text, the turn leaves the view, with this text. The log has both. The
// next messages are answered, even if they repeat the same text.
func TestATurnWithAWithheldAnswerLeavesTheView(t *testing.T) {
	t.Parallel()
	for _, handle := range handles {
		for _, form := range []string{"pieces", "whole", "a refusal"} {
			t.Run(handle+" "+form, func(t *testing.T) {
				t.Parallel()
				r := newRunner(t, `{"name":"a","model":"`+handle+`"}`)
				r.filters(handle, form, "POISON")
				r.says("Hello")
				for range 2 {
					got := r.says("POISON text")
					if got.Code != 400 || got.StopReason.StopReason != "llm_api_error" || got.Error == nil {
						t.Errorf("the refused turn: got %d %+v", got.Code, got)
					}
				}
				for _, text := range []string{"2+2?", "Other topic", "Hi"} {
					if got := r.says(text); got.StopReason.StopReason != "end_turn" {
						t.Fatalf("%s: got %d %+v; the model was asked %s", text, got.Code, got, r.asked())
					}
				}
				asked := r.asked()
				if strings.Contains(asked, "POISON") || strings.Contains(asked, "I start") || !strings.Contains(asked, "2+2?") ||
					!strings.Contains(asked, "Hello") {
					t.Errorf("the model was asked %s", asked)
				}
				if refused := fmt.Sprint(r.refusedItems()); strings.Count(refused, "POISON text: 200") != 1 ||
					strings.Count(refused, "I start to say: 200") < 2 {
					t.Errorf("refused are %s", refused)
				}
			})
		}
	}
}

// However a message is sent, the turn after a withheld answer is answered. Clients of streams see the text up to there,
// and the reason for the end.
func TestAWithheldAnswerInAStream(t *testing.T) {
	t.Parallel()
	for _, handle := range handles {
		for _, options := range []string{``, `,"stream_tokens":true`, `,"background":true`,
			`,"background":true,"stream_tokens":true`} {
			t.Run(handle+options, func(t *testing.T) {
				t.Parallel()
				r := newRunner(t, `{"name":"a","model":"`+handle+`"}`)
				r.filters(handle, "", "POISON")
				items, _ := r.stream(r.path()+"/stream", `{"input":"POISON"`+options+`}`)
				said := fmt.Sprint(itemTexts(items))
				if last := items[len(items)-1]; last["error_type"] != "content_filter" || !strings.Contains(said, "I start") {
					t.Errorf("the stream is %v", items)
				}
				items, _ = r.stream(r.path()+"/stream", `{"input":"Next"`+options+`}`)
				if said := fmt.Sprint(items); !strings.Contains(said, "Fi") || strings.Contains(said, "error_message") {
					t.Errorf("the next stream is %v", items)
				}
			})
		}
	}
}

// The withheld text may be in a call's arguments, in a call's result, or in an earlier answer.
func TestAWithheldAnswerAfterEachPartOfATurn(t *testing.T) {
	t.Parallel()
	insert := func(messages string) modeltest.Answer {
		return callOf("callOne", "memory_insert", `{"label":"human","new_string":"`+messages+`"}`)
	}
	for _, handle := range handles {
		for name, c := range map[string]struct {
			script modeltest.Answer
			poison string
		}{
			"arguments": {insert("POISON"), `POISON`}, "a result": {insert("Tea."), "was edited"},
			"an answer": {modeltest.Answer{Text: "POISON"}, "POISON"},
		} {
			t.Run(handle+" "+name, func(t *testing.T) {
				t.Parallel()
				r := newRunner(t, `{"name":"a","model":"`+handle+`","tool_set":"standard",
					"memory_blocks":[{"label":"human","value":"Ada."}]}`)
				r.model.Says(modeltest.Answer{Text: "Good day."}, c.script)
				r.says("Hello")
				if c.script.Text != "" {
					r.says("Question")
				}
				r.model.Reply = func(a modeltest.Asked) modeltest.Answer {
					var prompt struct{ Messages json.RawMessage }
					_ = json.Unmarshal(a.Body, &prompt) // the blocks in the system prompt do not count
					messages := string(prompt.Messages)
					if handle == handles[0] {
						_, messages, _ = strings.Cut(messages, "Hello")
					}
					if strings.Contains(messages, c.poison) {
						return withheld(handle, "")
					}
					return modeltest.Answer{Text: "Fine."}
				}
				if got := r.says("One"); (got.Code == 200) != (name == "an answer") {
					t.Errorf("the first: got %d %+v", got.Code, got)
				}
				for _, text := range []string{"Two", "Three"} {
					checkSaid(t, text, itemTexts(r.says(text).Messages), []string{"assistant_message Fine."})
				}
				if log := fmt.Sprint(r.log()); !strings.Contains(log, "I start to say") && name != "an answer" {
					t.Errorf("the log is %s", log)
				}
				r.checkPrompts(r.agent)
			})
		}
	}
}

// The calls of a withheld answer are not run, and their results say so.
func TestCallsOfAWithheldAnswerAreNotRun(t *testing.T) {
	t.Parallel()
	for _, handle := range handles {
		r := newRunner(t, `{"name":"a","model":"`+handle+`","tool_set":"standard",
			"memory_blocks":[{"label":"human","value":"Ada."}]}`)
		finish := map[bool]string{true: "content_filter", false: "refusal"}[handle == handles[0]]
		r.model.Says(modeltest.Answer{Finish: finish, Calls: []modeltest.Call{{ID: "c", Name: "memory_insert",
			Arguments: `{"label":"human","new_string":"Tea."}`}}})
		if got := r.says("Hello"); got.Code != 400 {
			t.Errorf("got %d %+v", got.Code, got)
		}
		checkSaid(t, "the next turn", itemTexts(r.says("Next").Messages), []string{"assistant_message Done."})
		if asked := r.asked(); strings.Contains(asked, "Tea.") || strings.Contains(asked, "Hello") {
			t.Errorf("the call was run or is in the prompt: %s", asked)
		}
		r.checkPrompts(r.agent)
	}
}

// If a turn is tried again, its prompt never ends with an answer of the first try, however that one failed.
func TestNoPromptEndsWithAnAnswer(t *testing.T) {
	t.Parallel()
	for _, handle := range handles {
		for name, fault := range map[string]modeltest.Answer{"a cut stream": {Text: "He", Cut: true},
			"no end": {Text: "He", Ends: true}, "an empty answer": {Finish: "length"},
			"withheld": withheld(handle, ""), "a fault": {Status: 500}} {
			for _, options := range []string{``, `,"streaming":true,"stream_tokens":true`} {
				t.Run(handle+" "+name+options, func(t *testing.T) {
					t.Parallel()
					r := newRunner(t, `{"name":"a","model":"`+handle+`"}`)
					r.model.Says(fault, fault, fault)
					r.call("POST", r.path(), `{"input":"Say it"`+options+`}`)
					r.model.Forget()
					r.filters(handle, "", "nothing of this")
					n := len(r.model.Requests())
					if got := r.call("POST", r.path(), `{"input":"Say it"}`); got.Code != 200 {
						t.Errorf("got %d %s", got.Code, got.Text)
					}
					for _, asked := range r.model.Requests()[n:] {
						if endsWithAnswer(asked) {
							t.Errorf("the model was asked %s", asked.Body)
						}
					}
				})
			}
		}
	}
}
