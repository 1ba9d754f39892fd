package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/embed/embedtest"
)

// refusing returns a provider's refusal that quotes the refused text.
func refusing(words string) modeltest.Answer {
	return modeltest.Answer{Status: 400, Text: `{"error":{"message":"Not allowed: ` + words + `"}}`}
}

// If a provider quotes a refused text, erasing the text also erases the quotation, in the message, the runs and the
// streams.
func TestTheWordsOfARefusalAreErased(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"input":"Buy qzx7741"`, `{"input":"Buy qzx7741","streaming":true,"stream_tokens":true`,
		`{"input":"Buy qzx7741","streaming":true,"background":true`} {
		r := newRunner(t, "")
		r.model.Reply = func(a modeltest.Asked) modeltest.Answer {
			if strings.Contains(string(a.Body), "qzx7741") {
				return refusing("Buy qzx7741")
			}
			return modeltest.Answer{Text: "Here."}
		}
		r.call("POST", r.path(), body+`}`)
		r.call("POST", r.path(), body+`,"max_steps":3}`)
		r.reports(r.agent, "/step", `{"messages":[{"role":"user","content":"Sell qzx7741"}],
			"refused":{"status":400,"message":"No qzx7741"}}`)
		if before := r.stored("qzx7741"); len(before) < 5 {
			t.Fatalf("the words are in %d places only: %q", len(before), before)
		}
		r.erased("qzx7741")
		if left := r.stored("qzx7741"); len(left) > 0 {
			t.Errorf("%s: left: %q", body, left)
		}
		if items := r.refusedItems(); len(items) == 0 || !strings.Contains(items[0], "[…]: 400 Not allowed: Buy […]") {
			t.Errorf("%s: refused are %q", body, items)
		}
		checkSaid(t, "the next turn", itemTexts(r.says("Next").Messages), []string{"assistant_message Here."})
	}
}

// A server stops after a refused message left the view, and before the run ended. The server that takes over the run
// ends it without asking the model again.
func TestARefusedRunEndsOnTheServerThatGoesOnWithIt(t *testing.T) {
	t.Parallel()
	r := newOwnRunner(t, "")
	stop, _ := r.stoppable()
	r.model.Says(callOf("a", "memory_insert", `{"label":"human","new_string":"Tea."}`),
		modeltest.Answer{Wait: make(chan struct{})})
	reply := r.beginAt(r.path(), hello)
	stop()
	var first answer
	r.unmarshal((<-reply).Text, &first)
	const mark = `UPDATE runs SET request = request || $3::jsonb WHERE org = $1 AND id = $2`
	if _, err := r.pool.Exec(t.Context(), mark, r.org, first.RunID, `{
		"refused":{"reason":"llm_api_error","failure":{"type":"llm_api_error","message":"No: a picture",
		"status":400,"detail":"a picture"}}}`); err != nil {
		t.Fatal(err)
	}
	asked := len(r.model.Requests())
	r.resumes()
	var run map[string]any
	embedtest.Eventually(t, "the run has ended", func() bool {
		run = fields(t, r.must("GET", "/v1/runs/"+first.RunID, ""))
		return run["status"] != "running"
	})
	if n := len(r.model.Requests()); n != asked || run["status"] != "failed" || run["stop_reason"] != "llm_api_error" ||
		!strings.Contains(fmt.Sprint(run["error"]), "a picture") {
		t.Errorf("the model was asked %d times more, and the run is %v", n-asked, run)
	}
	if got := r.says("Next"); got.StopReason.StopReason != "end_turn" {
		t.Errorf("the next turn ends with %+v", got)
	}
}

// A sub-agent with its parent's conversation does not have messages that were refused there. Neither does a fork.
func TestChildrenAndForksHaveNotWhatWasRefused(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	r.says("Kept")
	r.model.Says(badRequest, badRequest)
	r.says("Bad picture")
	child := r.child(r.agent, `{"mode":"fork","task":"Count herons."}`)
	messages, _ := r.nextPrompt(r.agent, child.ConversationID)
	prompt := strings.Join(messages, "\n")
	if strings.Contains(prompt, "Bad picture") || !strings.Contains(prompt, "Kept") {
		t.Errorf("the child's prompt is %s", prompt)
	}
	file := r.must("GET", "/v1/agents/"+r.agent+"/export", "")
	if strings.Contains(r.promptIn(r.importedOne(file), "openai"), "Bad picture") {
		t.Errorf("the imported agent's prompt has the message; the file is %s", file)
	}
}

func (r runner) importedOne(file string) string {
	r.t.Helper()
	ids, _ := r.imported(file)
	return ids[0]
}

// The agent's own search finds refused messages, and so do the search and the lists of the API.
func TestRefusedMessagesAreFound(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	r.says("Kept heron")
	r.model.Says(badRequest, badRequest)
	r.says("Refused bittern")
	const query = `{"query":"bittern"}`
	if found := r.tool(r.agent, "conversation_search", query); !strings.Contains(found, "Refused bittern") {
		t.Errorf("conversation_search found %s", found)
	}
	r.says("Kept grebe")
	r.must("POST", "/v1/agents/"+r.agent+"/summarize", `{"compaction_settings":{"mode":"all"}}`)
	if found := r.tool(r.agent, "conversation_search", query); !strings.Contains(found, "Refused bittern") {
		t.Errorf("after a summary, conversation_search found %s", found)
	}
	if found := r.must("POST", "/v1/messages/search", `{"query":"bittern","agent_id":"`+r.agent+`"}`); !strings.Contains(
		found, "Refused bittern") {
		t.Errorf("the API found %s", found)
	}
}

// If a provider refuses something from before a turn, the turn does not fail, however the provider words its refusal.
// Only the refused thing leaves the view: a captured turn, a model's answer, or an old message.
func TestWhatIsRefusedOfBeforeATurnLeavesAlone(t *testing.T) {
	t.Parallel()
	for name, poison := range map[string]func(r runner){
		"a captured turn": func(r runner) { r.capturesPoison() },
		"one of some captured turns": func(r runner) {
			r.capture(r.agent, chatter(1, 3, ""))
			r.capturesPoison()
			r.capture(r.agent, chatter(3, 5, ""))
		},
		"an answer": func(r runner) {
			r.model.Says(modeltest.Answer{Text: "Poison"})
			r.says("Question")
		},
		"an old message": func(r runner) {
			r.says("Poison")
			for n := range 9 {
				r.says(fmt.Sprint("Between ", n))
			}
		},
	} {
		for form, refusal := range map[string]modeltest.Answer{"refused": badRequest,
			"withheld": {Text: "I start", Finish: "content_filter"}, "in a stream": badRequest} {
			t.Run(name+" "+form, func(t *testing.T) {
				t.Parallel()
				r := newRunner(t, "")
				r.says("Warm 0")
				r.says("Warm 1")
				poison(r)
				r.model.Reply = func(a modeltest.Asked) modeltest.Answer {
					if strings.Contains(string(a.Body), "Poison") {
						return refusal
					}
					return modeltest.Answer{Text: "Fine."}
				}
				for n := range 3 {
					text := fmt.Sprintf("Next %d.", n)
					if form == "in a stream" {
						items, _ := r.stream(r.path()+"/stream", `{"input":"`+text+`","stream_tokens":true}`)
						if said := fmt.Sprint(items); !strings.Contains(said, "Fin") {
							t.Errorf("%s: got %v", text, items)
						}
						continue
					}
					checkSaid(t, text, itemTexts(r.says(text).Messages), []string{"assistant_message Fine."})
				}
				asked, refused := r.asked(), r.refusedItems()
				for _, kept := range []string{"Warm 0", "Warm 1", "Next 0.", "Next 1.", "Next 2."} {
					if strings.Count(asked, kept) != 1 {
						t.Errorf("%q is not in the prompt once: %s", kept, asked)
					}
				}
				if len(refused) > 3 {
					t.Errorf("refused are %q", refused)
				}
				r.checkPrompts(r.agent)
			})
		}
	}
}

func (r runner) capturesPoison() {
	r.t.Helper()
	r.capture(r.agent, `{"messages":[{"role":"user","content":"Poison"},{"role":"assistant","content":"Captured."}]}`)
}

// If the provider refuses several turns, each of them leaves the view, and no other turn.
func TestEachTurnThatIsRefusedLeavesAlone(t *testing.T) {
	t.Parallel()
	for _, handle := range handles {
		for poisons := 1; poisons <= 3; poisons++ {
			t.Run(fmt.Sprint(handle, " ", poisons), func(t *testing.T) {
				t.Parallel()
				r := newRunner(t, `{"name":"a","model":"`+handle+`"}`)
				r.says("Warm.")
				kept := []string{"Warm."}
				for n := range poisons {
					r.capturesPoison()
					text := fmt.Sprintf("Warm %d.", n)
					kept = append(kept, text)
					r.says(text)
				}
				r.failsAt("Poison", badRequest)
				before := len(r.model.Requests())
				checkSaid(t, "the next", itemTexts(r.says("Next.").Messages), []string{"assistant_message Fine."})
				if n := len(r.model.Requests()) - before; n > 17 {
					t.Errorf("the model was asked %d times", n)
				}
				r.says("Last.")
				r.hasAsked(append(kept, "Next.", "Last.")...)
				if refused := r.refusedItems(); len(refused) != 2*poisons {
					t.Errorf("refused are %q, want %d captured turns", refused, poisons)
				}
			})
		}
	}
}

// If the allowed requests are not enough to find all refused turns, all turns from the first one not found leave the
// view, and the new turn is answered.
func TestTooManyRefusedTurnsLeaveWithOthers(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a"}`)
	r.says("Warm.")
	for range 12 {
		r.capturesPoison()
	}
	r.failsAt("Poison", badRequest)
	checkSaid(t, "the next", itemTexts(r.says("Next.").Messages), []string{"assistant_message Fine."})
	r.says("Last.")
	r.hasAsked("Warm.", "Next.", "Last.")
	if n := len(r.model.Requests()); n > 20 {
		t.Errorf("the model was asked %d times", n)
	}
}
