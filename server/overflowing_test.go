package server_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/recall"
)

// tooLong is a provider's answer to a prompt that exceeds its window.
var tooLong = modeltest.Answer{Status: 400, Text: "This model's maximum context length is 4000 tokens"}

// If a conversation exceeds the provider's window, but not the window that Loci knows, it is compacted, and the model
// is asked again.
func TestAConversationThatOverflowsItsProviderIsCompacted(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","tool_set":"small"}`)
	for range 6 {
		r.append(r.agent, "default", draft(recall.User, said(strings.Repeat("word ", 300))),
			draft(recall.Assistant, said(strings.Repeat("word ", 300))))
	}
	r.model.Reply = func(asked modeltest.Asked) modeltest.Answer {
		if strings.Count(string(asked.Body), "word ") > 2000 {
			return tooLong
		}
		return modeltest.Answer{Text: "Here."}
	}
	got := r.send(hello)
	if got.StopReason.StopReason != "end_turn" || len(r.model.Requests()) < 2 {
		t.Errorf("got %+v with %+v after %d requests", got.StopReason, got.Error, len(r.model.Requests()))
	}
	if list := r.list("/v1/agents/" + r.agent + "/compactions"); len(list) == 0 {
		t.Error("no compaction was made")
	}
}

// If a prompt is too long even after all compactions, the run ends, and the error has the prompt's numbers.
func TestAPromptThatIsAlwaysTooLongSaysItsNumbers(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","tool_set":"small","context_window_limit":30000}`)
	r.model.Reply = func(modeltest.Asked) modeltest.Answer { return tooLong }
	got := r.send(hello)
	if got.StopReason.StopReason != "context_window_overflow_in_system_prompt" || got.Error == nil ||
		!regexp.MustCompile(`has [1-9]\d* tokens of a window of 30000: [1-9]\d* of the system prompt, [1-9]\d* of tools, `+
			`and [1-9]\d* of the conversation`).MatchString(got.Error.Message) {
		t.Errorf("got %+v with %+v", got.StopReason, got.Error)
	}
}

// If a provider reports an impossible count, neither the calibration nor the trigger of compactions changes.
func TestACountThatNoPromptCanHaveIsNotBelieved(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.stepper()
	first := c.step(agent, `{"messages":[{"role":"user","content":"Hello"}]}`)
	for n, counted := range []int{1_000_000_000, 400_000} {
		got := c.step(agent, fmt.Sprintf(`{"response":{"choices":[{"message":{"role":"assistant","content":"Hi."}}],
			"usage":{"prompt_tokens":%d}},"messages":[{"role":"user","content":"Again %d"}]}`, counted, n))
		if got.Prompt.Tokens.Total > 2*first.Prompt.Tokens.Estimated {
			t.Errorf("after a count of %d the prompt has %+v, before %+v", counted, got.Prompt.Tokens, first.Prompt.Tokens)
		}
	}
	if list := c.list("/v1/agents/" + agent + "/compactions"); len(list) > 0 {
		t.Errorf("%d compactions were made", len(list))
	}
}

// If a conversation is still too long for its provider after a compaction, it gets a short summary, and loses no turn.
func TestASummaryThatIsTooLongIsMadeShorter(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","tool_set":"small"}`)
	for n := range 12 {
		text := fmt.Sprintf("Fact %d: %s", n, strings.Repeat(fmt.Sprintf("heron %d stands in the reeds. ", n), 40))
		r.append(r.agent, "default", draft(recall.User, said(text)), draft(recall.Assistant, said(text)))
	}
	r.model.Reply = func(asked modeltest.Asked) modeltest.Answer {
		var messages []struct{ Role, Content string }
		_ = json.Unmarshal(asked.Fields["messages"], &messages)
		length := 0
		for _, m := range messages[1:] {
			length += len(m.Content)
		}
		if length > 5000 {
			return tooLong
		}
		return modeltest.Answer{Text: "Here."}
	}
	for n := range 3 {
		checkSaid(t, "the answer", itemTexts(r.says(fmt.Sprint("Next ", n)).Messages), []string{"assistant_message Here."})
	}
	if asked := r.asked(); !strings.Contains(asked, "heron") || !strings.Contains(asked, "Next 0") {
		t.Errorf("the model was asked %s", asked)
	}
}
