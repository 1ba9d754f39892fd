package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// badRequest is a provider's refusal because of the prompt's content.
var badRequest = modeltest.Answer{Status: 400, Text: `{"error":{"message":"The image cannot be read",
	"type":"invalid_request_error"}}`}

// handles are the models of both dialects in which the server asks.
var handles = []string{"openai/m", "anthropic/claude-sonnet-4-5"}

// asked returns the last request to the model.
func (r runner) asked() string {
	all := r.model.Requests()
	return string(all[len(all)-1].Body)
}

// refusedItems returns the messages that a provider refused, as lists show them.
func (r runner) refusedItems() (texts []string) {
	for _, m := range r.list(r.path() + "?limit=1000&order=asc") {
		if refusal, ok := m["refused"].(map[string]any); ok {
			texts = append(texts, fmt.Sprintf("%s: %v %v", itemTexts([]map[string]any{m})[0], refusal["status"],
				refusal["message"]))
		}
	}
	return texts
}

func (r runner) says(text string) answer {
	r.t.Helper()
	return r.send(fmt.Sprintf(`{"input":%q}`, text))
}

// If the provider refuses a message, the message leaves the view and stays in the log. The next message is answered.
func TestARefusedMessageLeavesTheView(t *testing.T) {
	t.Parallel()
	for _, handle := range handles {
		t.Run(handle, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, `{"name":"a","model":"`+handle+`"}`)
			r.says("First")
			r.model.Says(badRequest, badRequest) // refused even without the earlier messages
			got := r.says("Bad picture")
			if got.Code != 400 || got.StopReason.StopReason != "llm_api_error" || got.Error == nil ||
				got.Error.Detail != "The image cannot be read" || !strings.Contains(got.Error.Message, got.Error.Detail) {
				t.Errorf("got %d %+v", got.Code, got.Error)
			}
			if got := r.says("Next"); got.StopReason.StopReason != "end_turn" {
				t.Errorf("the next turn ends with %+v", got)
			}
			if asked := r.asked(); strings.Contains(asked, "Bad picture") || !strings.Contains(asked, "First") ||
				!strings.Contains(asked, "Next") {
				t.Errorf("the model was asked %s", asked)
			}
			checkSaid(t, "refused", r.refusedItems(), []string{"user_message Bad picture: 400 The image cannot be read"})
			checkSaid(t, "the log", r.log(), []string{"user_message First", "assistant_message Done.",
				"user_message Bad picture", "user_message Next", "assistant_message Done."})
		})
	}
}

// If a later prompt of a turn is refused, the view is cut back to the last accepted prompt, and the model reads why.
func TestARefusalAfterACallCutsTheView(t *testing.T) {
	t.Parallel()
	for _, handle := range handles {
		t.Run(handle, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, `{"name":"a","model":"`+handle+`","tool_set":"standard",
				"memory_blocks":[{"label":"human","value":"Ada."}]}`)
			r.model.Says(callOf("callOne", "memory_insert", `{"label":"human","new_string":"Tea."}`), badRequest)
			got := r.says("Remember tea")
			if got.Code != 400 || got.StopReason.StopReason != "llm_api_error" {
				t.Errorf("got %d %+v", got.Code, got.StopReason)
			}
			r.says("Next")
			asked := r.asked()
			if strings.Contains(asked, "callOne") || !strings.Contains(asked, "Remember tea") ||
				!strings.Contains(asked, "what they changed stays: memory_insert") || strings.Contains(asked, "cannot be read") {
				t.Errorf("the model was asked %s", asked)
			}
			checkSaid(t, "refused", r.refusedItems(), []string{
				"tool_call_message memory_insert: 400 The image cannot be read",
				"tool_return_message callOne success: 400 The image cannot be read"})
		})
	}
}

// A provider may refuse its own earlier answer, or a message that another model accepted. These leave the view, and no
// turn fails, because the provider is asked without them.
func TestARefusedHistoryLeavesTheView(t *testing.T) {
	t.Parallel()
	for _, handle := range handles {
		for bad, want := range map[string]string{"Poison": "Question", "Photo": "Poison"} {
			t.Run(handle+" "+bad, func(t *testing.T) {
				t.Parallel()
				r := newRunner(t, `{"name":"a","model":"`+handle+`"}`)
				r.says("Photo")
				r.model.Says(modeltest.Answer{Text: "Poison"})
				r.says("Question")
				r.model.Reply = func(a modeltest.Asked) modeltest.Answer {
					if strings.Contains(string(a.Body), bad) {
						return badRequest
					}
					return modeltest.Answer{Text: "Fine."}
				}
				for _, text := range []string{"One", "Two", "Three"} {
					got := r.says(text)
					checkSaid(t, text, itemTexts(got.Messages), []string{"assistant_message Fine."})
				}
				asked := r.asked()
				if strings.Contains(asked, bad) || !strings.Contains(asked, "Two") || !strings.Contains(asked, "left your view") {
					t.Errorf("the model was asked %s", asked)
				}
				if !strings.Contains(asked, want) || !strings.Contains(asked, "One") {
					t.Errorf("%q left the view, too: %s", want, asked)
				}
			})
		}
	}
}

// A provider that refuses everything does not hide any message. When it accepts prompts again, all messages are in
// them.
func TestAProviderThatRefusesEverythingHidesNothing(t *testing.T) {
	t.Parallel()
	for _, handle := range handles {
		t.Run(handle, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, `{"name":"a","model":"`+handle+`"}`)
			for i := range 3 {
				r.says(fmt.Sprint("Kept ", i))
			}
			r.model.Reply = func(modeltest.Asked) modeltest.Answer { return badRequest }
			for i := range 5 {
				if got := r.says(fmt.Sprint("Lost ", i)); got.Code != 400 {
					t.Errorf("got %d %+v", got.Code, got)
				}
			}
			r.model.Reply = nil
			if got := r.says("Here again"); got.StopReason.StopReason != "end_turn" {
				t.Errorf("got %+v", got)
			}
			asked := r.asked()
			if strings.Contains(asked, "left your view") || len(r.refusedItems()) > 0 {
				t.Errorf("refused are %q; the model was asked %s", r.refusedItems(), asked)
			}
			r.hasAsked("Kept 0", "Kept 1", "Kept 2", "Lost 0", "Lost 1", "Lost 2", "Lost 3", "Lost 4")
		})
	}
}

// Failures that are not caused by the prompt's content leave the view unchanged, and the error contains the provider's
// words.
func TestOtherFailuresLeaveTheView(t *testing.T) {
	t.Parallel()
	words := func(text string) string { return `{"error":{"message":"` + text + `"}}` }
	for name, c := range map[string]struct {
		status, want int
		said, kind   string
	}{
		"a key":            {401, 401, "No such key", "llm_authentication"},
		"a permission":     {403, 401, "Not yours", "llm_authentication"},
		"a path":           {404, 400, "No such path", "llm_bad_request"},
		"a limit":          {429, 429, "Slow down", "llm_rate_limit"},
		"no credit":        {402, 402, "Pay", "llm_insufficient_credits"},
		"a fault":          {500, 500, "Out of memory", "llm_error"},
		"a bad gateway":    {502, 500, "Nobody there", "llm_error"},
		"a key of Google":  {400, 401, "API key not valid. Please pass a valid API key.", "llm_authentication"},
		"an unknown model": {400, 400, "The model m does not exist", "llm_bad_request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, "")
			r.model.Reply = func(modeltest.Asked) modeltest.Answer {
				return modeltest.Answer{Status: c.status, Text: words(c.said)}
			}
			got := r.call("POST", r.path(), hello)
			var p struct {
				Detail string
				RunID  string `json:"run_id"`
				Error  struct{ Type, Message, Detail string }
			}
			if err := json.Unmarshal([]byte(got.Text), &p); err != nil || got.Code != c.want || p.Error.Type != c.kind ||
				p.Error.Detail != c.said || !strings.Contains(p.Detail, c.said) {
				t.Errorf("got %d %s (%v), want %d, %s", got.Code, got.Text, err, c.want, c.kind)
			}
			if run := r.must("GET", "/v1/runs/"+p.RunID, ""); !strings.Contains(run, c.said) {
				t.Errorf("the run has no word of it: %s", run)
			}
			items, _ := r.stream(r.path()+"/stream", `{"input":"Other"}`)
			if last := items[len(items)-1]; last["detail"] != c.said || !strings.Contains(fmt.Sprint(last["message"]), c.said) {
				t.Errorf("the stream ends with %v", last)
			}
			r.model.Reply = nil
			r.says("Next")
			if asked := r.asked(); !strings.Contains(asked, "Hello") || !strings.Contains(asked, "Other") {
				t.Errorf("the model was asked %s", asked)
			}
			if refused := r.refusedItems(); len(refused) > 0 {
				t.Errorf("refused are %q", refused)
			}
		})
	}
}

// If a text is sent again after its turn failed, it is in the prompt once, with or without otids, whatever the failure
// was.
func TestATextThatIsSentAgainIsThePromptsOnce(t *testing.T) {
	t.Parallel()
	const plain, other = `{"messages":[{"role":"user","content":"Say it"}]}`,
		`{"messages":[{"role":"user","content":"Say it","otid":"two"}]}`
	for name, fault := range map[string]modeltest.Answer{"refused": badRequest, "failed": {Status: 500}} {
		for way, bodies := range map[string][2]string{"without otids": {plain, plain}, "with another otid": {
			`{"messages":[{"role":"user","content":"Say it","otid":"one"}]}`, other}, "with a first otid": {plain, other}} {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				r := newRunner(t, "")
				r.says("Before")
				if r.model.Says(fault, fault); name == "failed" {
					r.model.Says(fault)
				}
				r.model.Reply = func(modeltest.Asked) modeltest.Answer { return modeltest.Answer{Text: "Said."} }
				first := r.send(bodies[0])
				if first.Code == 200 {
					t.Fatalf("the first is answered: %+v", first)
				}
				second := r.send(bodies[1])
				checkSaid(t, "the answer", itemTexts(second.Messages), []string{"assistant_message Said."})
				if asked := r.asked(); strings.Count(asked, "Say it") != 1 {
					t.Errorf("the model was asked %s", asked)
				}
				checkSaid(t, "the log", r.log(), []string{"user_message Before", "assistant_message Done.", "user_message Say it",
					"assistant_message Said."})
				if strings.Contains(bodies[1], "otid") {
					n := len(r.model.Requests())
					if third := r.send(bodies[1]); third.RunID != second.RunID || len(r.model.Requests()) != n {
						t.Errorf("a third time it has the run %s, not %s", third.RunID, second.RunID)
					}
					wrong := strings.Replace(bodies[1], "Say it", "Say more", 1)
					if got := r.call("POST", r.path(), wrong); got.Code != 409 {
						t.Errorf("another text of the otid: got %d %s", got.Code, got.Text)
					}
				}
				if after := r.send(plain); after.Code != 200 || !slices.Contains(r.log()[4:], "user_message Say it") {
					t.Errorf("after its answer the text is a new message; the log is %q", r.log())
				}
			})
		}
	}
}

// If a failed text is sent again with more text, it is in the prompt once, however often the rest fails.
func TestATextThatIsSentAgainWithMoreIsThePromptsOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]modeltest.Answer{"refused": badRequest, "failed": {Status: 500}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, "")
			r.says("Before")
			sent := ""
			for n, text := range []string{"Aardvark", "Bittern", "Bittern", "Cormorant"} {
				r.model.Reply = func(modeltest.Asked) modeltest.Answer { return fault }
				if sent += `,{"role":"user","content":"` + text + `"}`; n == 2 {
					sent = strings.TrimSuffix(sent, `,{"role":"user","content":"Bittern"}`)
				}
				if got := r.call("POST", r.path(), `{"messages":[`+sent[1:]+`]}`); got.Code < 400 {
					t.Errorf("%s: got %d %s", sent, got.Code, got.Text)
				}
			}
			r.model.Reply = nil
			r.send(`{"messages":[` + sent[1:] + `]}`)
			asked := r.asked()
			for _, text := range []string{"Aardvark", "Bittern", "Cormorant"} {
				if strings.Count(asked, text) != 1 {
					t.Errorf("%q is not in the prompt once: %s", text, asked)
				}
			}
			checkSaid(t, "the log", r.log(), []string{"user_message Before", "assistant_message Done.", "user_message Aardvark",
				"user_message Bittern", "user_message Cormorant", "assistant_message Done."})
		})
	}
}
