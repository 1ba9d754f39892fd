package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// failing returns a provider's failure with a status and some words.
func failing(status int, words string) modeltest.Answer {
	return modeltest.Answer{Status: status, Text: `{"error":{"message":"` + words + `"}}`}
}

// unclear are failures that do not say that the prompt's content caused them.
var unclear = map[string]modeltest.Answer{"400": failing(400, "model_not_found"), "403": failing(403, "Forbidden"),
	"404": failing(404, "Not found"), "408": failing(408, "Too slow"), "409": failing(409, "Conflict"),
	"500": failing(500, "Oh"), "502": failing(502, "Bad gateway"), "503": failing(503, "Unavailable"),
	"closed": {Closes: true}, "empty": {Finish: "stop"}}

// failsAt lets the runner's model fail at each prompt that contains a text.
func (r runner) failsAt(text string, fault modeltest.Answer) {
	r.model.Reply = func(a modeltest.Asked) modeltest.Answer {
		if strings.Contains(string(a.Body), text) {
			return fault
		}
		return modeltest.Answer{Text: "Fine."}
	}
}

// A failure that returns as long as a message is in view does not stop the agent, whatever it says. The turn after the
// failed one is answered without the message.
func TestAFailureThatAMessageCausesHoldsNoAgent(t *testing.T) {
	t.Parallel()
	for _, handle := range handles {
		for name, fault := range unclear {
			for _, source := range []string{"a message", "an answer"} {
				t.Run(handle+" "+name+" "+source, func(t *testing.T) {
					t.Parallel()
					r := newRunner(t, `{"name":"a","model":"`+handle+`"}`)
					r.says("Photo")
					first := "POISON"
					if source == "an answer" {
						r.model.Says(modeltest.Answer{Text: "POISON"})
						r.says("Question")
						first = "One"
					}
					r.failsAt("POISON", fault)
					if got := r.says(first); got.StopReason.StopReason == "end_turn" {
						t.Errorf("the first: got %+v", got)
					}
					for _, text := range []string{"Two", "Three"} {
						checkSaid(t, text, itemTexts(r.says(text).Messages), []string{"assistant_message Fine."})
					}
					if asked := r.asked(); strings.Contains(asked, "POISON") || !strings.Contains(asked, "Photo") ||
						!strings.Contains(asked, "left your view") {
						t.Errorf("the model was asked %s", asked)
					}
					if !strings.Contains(fmt.Sprint(r.refusedItems()), "POISON") {
						t.Errorf("refused are %q", r.refusedItems())
					}
					r.checkPrompts(r.agent)
				})
			}
		}
	}
}

// The same holds if the same text comes again and again, and in streams.
func TestAFailureHoldsNoAgentWhoseUserSaysTheSame(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	r.model.Says(modeltest.Answer{Text: "POISON"})
	r.says("Question")
	r.failsAt("POISON", failing(500, "Oh"))
	for range 2 {
		r.says("Hello")
	}
	items, _ := r.stream(r.path()+"/stream", `{"input":"Hello","stream_tokens":true}`)
	if said := fmt.Sprint(itemTexts(items)); !strings.Contains(said, "assistant_message Fine.") {
		t.Errorf("the stream is %s", said)
	}
}

// If a provider works again while it is asked without messages, it hides none of them.
func TestAnOutageHidesNothing(t *testing.T) {
	t.Parallel()
	for _, handle := range handles {
		r := newRunner(t, `{"name":"a","model":"`+handle+`"}`)
		for i := range 3 {
			r.says(fmt.Sprint("Kept ", i))
		}
		fault := failing(500, "Oh")
		r.model.Says(fault, fault, fault, fault, fault, fault) // works again without the messages
		r.says("One")
		if got := r.says("Two"); got.StopReason.StopReason != "end_turn" {
			t.Errorf("got %+v", got)
		}
		asked := r.asked()
		for _, text := range []string{"Kept 0", "Kept 1", "Kept 2", "One", "Two"} {
			if !strings.Contains(asked, text) {
				t.Errorf("%q is not in the prompt %s", text, asked)
			}
		}
		if refused := r.refusedItems(); len(refused) > 0 {
			t.Errorf("refused are %q", refused)
		}
	}
}

// A refusal that names the content counts as such with every status, and the next turn is answered. A refusal of a key
// does not count.
func TestRefusalsOfContentHaveManyStatuses(t *testing.T) {
	t.Parallel()
	for _, handle := range handles {
		for name, fault := range map[string]modeltest.Answer{
			"moderation": {Status: 403, Text: `{"error":{"message":"Your chosen model requires moderation and your input was ` +
				`flagged","code":403,"metadata":{"reasons":["violence"],"flagged_input":"POISON"}}}`},
			"no images":  failing(404, "No endpoints found that support image input"),
			"a law":      failing(451, "Unavailable"),
			"a conflict": failing(409, "The content was flagged by our moderation"),
			"an image":   failing(500, "Failed to decode image"),
		} {
			t.Run(handle+" "+name, func(t *testing.T) {
				t.Parallel()
				r := newRunner(t, `{"name":"a","model":"`+handle+`"}`)
				r.says("Hello")
				r.failsAt("POISON", fault)
				if got := r.says("POISON"); got.Code != 400 || !strings.Contains(got.Error.Message, "refuses the prompt") {
					t.Errorf("got %d %+v", got.Code, got.Error)
				}
				checkSaid(t, "the next", itemTexts(r.says("Two").Messages), []string{"assistant_message Fine."})
				if asked := r.asked(); strings.Contains(asked, "POISON") {
					t.Errorf("the model was asked %s", asked)
				}
			})
		}
	}
}
