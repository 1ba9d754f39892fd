package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/agenttest"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/compaction/llm/llmtest"
)

// summarized lets the agent answer some texts, and summarizes all but the newest.
func (r runner) summarized(texts ...string) {
	r.t.Helper()
	for _, text := range texts {
		r.says(text)
	}
	r.must("POST", "/v1/agents/"+r.agent+"/summarize", `{"compaction_settings":{"mode":"all"}}`)
}

// refusesWith lets the model refuse prompts that contain one of some words.
func (r runner) refusesWith(words ...string) {
	r.model.Reply = func(a modeltest.Asked) modeltest.Answer {
		for _, word := range words {
			if strings.Contains(string(a.Body), word) {
				return badRequest
			}
		}
		return modeltest.Answer{Text: "Fine."}
	}
}

// If the provider refuses a summary, only the summary leaves the view. The next compaction replaces it.
func TestARefusedSummaryLeavesTheView(t *testing.T) {
	t.Parallel()
	for _, handle := range handles {
		t.Run(handle, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, `{"name":"a","model":"`+handle+`"}`)
			r.summarized("Please order wormwood", "Newest")
			if r.says("Before"); !strings.Contains(r.asked(), "wormwood") {
				t.Fatalf("the summary has no word of it: %s", r.asked())
			}
			r.refusesWith("wormwood")
			for _, text := range []string{"One", "Two", "Three"} {
				checkSaid(t, text, itemTexts(r.says(text).Messages), []string{"assistant_message Fine."})
			}
			asked := r.asked()
			for _, word := range []string{"Newest", "Before", "Two", "refused the summary of these messages"} {
				if !strings.Contains(asked, word) {
					t.Errorf("%q is not in the prompt %s", word, asked)
				}
			}
			if refused := strings.Join(r.refusedItems(), "\n"); !strings.Contains(refused, "summary_message") ||
				strings.Contains(refused, "Newest") {
				t.Errorf("refused are %q", refused)
			}
			if listed := r.must("GET", "/v1/agents/"+r.agent+"/context", ""); strings.Contains(listed, "wormwood") {
				t.Errorf("the context window has the summary: %s", listed)
			}
			r.must("POST", "/v1/agents/"+r.agent+"/summarize", `{"compaction_settings":{"mode":"all"}}`)
			checkSaid(t, "after a compaction", itemTexts(r.says("Four").Messages), []string{"assistant_message Fine."})
			if asked := r.asked(); strings.Contains(asked, "wormwood") || !strings.Contains(asked, "Before") {
				t.Errorf("the new summary is not of the rest: %s", asked)
			}
		})
	}
}

// A provider that refuses everything does not hide any summary. When it accepts prompts again, they contain the summary
// and all messages.
func TestAProviderThatRefusesEverythingHidesNoSummary(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","model":"openai/m"}`)
	r.summarized("Please order wormwood", "Newest")
	r.says("Before")
	r.model.Reply = func(modeltest.Asked) modeltest.Answer { return badRequest }
	for i := range 3 {
		if got := r.says(fmt.Sprint("Lost ", i)); got.Code != 400 {
			t.Errorf("got %d %+v", got.Code, got)
		}
	}
	r.model.Reply = nil
	r.says("Here again")
	asked := r.asked()
	for _, word := range []string{"wormwood", "Newest", "Before", "Lost 0", "Lost 1", "Lost 2"} {
		if !strings.Contains(asked, word) {
			t.Errorf("%q is not in the prompt %s", word, asked)
		}
	}
	for _, word := range []string{"left your view", "is not shown"} {
		if strings.Contains(asked, word) {
			t.Errorf("%q is in the prompt %s", word, asked)
		}
	}
}

// A refused summary and a refused message are found together. The agent goes on without both.
func TestARefusedSummaryBesideARefusedMessage(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","model":"openai/m"}`)
	r.summarized("Please order wormwood", "Newest nightshade")
	r.says("Before")
	r.refusesWith("wormwood", "nightshade")
	checkSaid(t, "the first", itemTexts(r.says("One").Messages), []string{"assistant_message Fine."})
	checkSaid(t, "the second", itemTexts(r.says("Two").Messages), []string{"assistant_message Fine."})
	checkSaid(t, "the third", itemTexts(r.says("Three").Messages), []string{"assistant_message Fine."})
	if asked := r.asked(); !strings.Contains(asked, "Two") || !strings.Contains(asked, "is not shown") {
		t.Errorf("the model was asked %s", asked)
	}
}

// A program with its own loop reports refusals until its prompt has no summary.
func TestARefusedSummaryOfALoopOfOnesOwn(t *testing.T) {
	t.Parallel()
	for format, dialect := range dialects {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			c := newClient(t)
			agent := c.made("/v1/agents", `{"name":"a","tool_set":"standard",
				"memory_blocks":[{"label":"notes","value":"x"}]}`)
			withFormat := func(body string) string { return strings.TrimSuffix(body, "}") + `,"format":"` + format + `"}` }
			for _, text := range []string{"Please order wormwood", "Newest"} {
				c.step(agent, withFormat(`{"messages":[{"role":"user","content":"`+text+`"}]}`))
				c.step(agent, withFormat(`{"response":`+fmt.Sprintf(dialect.end, 10)+`}`))
			}
			c.must("POST", "/v1/agents/"+agent+"/summarize", `{"compaction_settings":{"mode":"all"}}`)
			c.step(agent, withFormat(`{"messages":[{"role":"user","content":"One"}]}`))
			if got := c.reports(agent, "/step", withFormat(`{`+reported+`}`)); got.Refused.AskAgain ||
				len(got.Refused.Left) != 1 {
				t.Errorf("the first report: got %+v", got.Refused)
			}
			c.step(agent, withFormat(`{"messages":[{"role":"user","content":"Two"}]}`))
			for n := 0; ; n++ {
				got := c.reports(agent, "/step", withFormat(`{`+reported+`}`))
				if prompt := string(got.Prompt.Request); !strings.Contains(prompt, "wormwood") {
					if !got.Refused.AskAgain || !strings.Contains(prompt, "Two") || !strings.Contains(prompt, "Newest") {
						t.Errorf("got %+v %s", got.Refused, prompt)
					}
					break
				}
				if n == 3 {
					t.Fatalf("after %d reports the prompt is %s", n, got.Prompt.Request)
				}
			}
			c.step(agent, withFormat(`{"response":`+fmt.Sprintf(dialect.end, 10)+`}`))
			if prompt := c.promptIn(agent, format); strings.Contains(prompt, "wormwood") || !strings.Contains(prompt, "Newest") {
				t.Errorf("the next prompt is %s", prompt)
			}
		})
	}
}

// If a provider refuses to write a summary, the turn goes on. The summary is extracted, and the compaction says why.
func TestAProviderThatRefusesToSummarizeHoldsNoTurn(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"sliding_window", "all", "self_compact_all", "self_compact_sliding_window"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newOwnRunner(t, `{"name":"a","tool_set":"small","model":"openai/m","context_window_limit":16000,
				"compaction_settings":{"mode":"`+mode+`"}}`)
			p := llmtest.New(t)
			p.Always(llmtest.Says(400, badRequest.Text))
			models, err := agenttest.Models(p, patience)
			if err != nil {
				t.Fatal(err)
			}
			r.own().Agents.Compaction.Models = models
			r.capture(r.agent, chatter(1, 40, strings.Repeat("and so it goes on ", 40)))
			if got := r.says("Next"); got.StopReason.StopReason != "end_turn" {
				t.Errorf("got %d %+v", got.Code, got)
			}
			compactions := r.list("/v1/agents/" + r.agent + "/compactions")
			if len(compactions) == 0 || compactions[0]["how"] != "extracted" ||
				!strings.Contains(fmt.Sprint(compactions[0]["why"]), "status 400") {
				t.Errorf("compactions: %v", compactions)
			}
			if len(p.Requests()) == 0 {
				t.Error("the model that writes summaries was not asked")
			}
		})
	}
}
