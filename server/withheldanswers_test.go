package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// An answer that a content filter stopped does not look complete, and an empty one is not asked for again. A second
// request with a harmless message finds out whether the provider refuses the agent's instructions.
func TestWithheldAnswersEndTheRunWithAnError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ said, kind string }{
		"a piece": {"I can", "content_filter"}, "nothing": {"", "content_filter"},
	} {
		r := newRunner(t, "")
		r.model.Says(modeltest.Answer{Raw: `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"` + c.said +
			`"},"finish_reason":"content_filter"}]}` + "\n\ndata: [DONE]\n\n"})
		got := r.send(hello)
		if got.Code != 400 || got.StopReason.StopReason != "llm_api_error" || got.Error == nil || got.Error.Type != c.kind ||
			!strings.Contains(got.Error.Message, "content filter") || len(r.model.Requests()) != 2 {
			t.Errorf("%s: got %+v with %+v after %d requests", name, got.StopReason, got.Error, len(r.model.Requests()))
		}
		want := []string{"user_message Hello"}
		if c.said != "" {
			want = append(want, "assistant_message "+c.said)
		}
		checkSaid(t, "the log after "+name, r.log(), want)
	}
}

// If a model never answers, or stops in the middle of an answer, the run ends, because the model would time out again.
func TestAModelThatFallsSilentEndsTheRun(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]modeltest.Answer{"from the first": {Text: "Hello", Wait: make(chan struct{})},
		"within an answer": {Text: "Hel", After: make(chan struct{})}} {
		r := newOwnRunner(t, "")
		hasty, err := model.NewOpenAI(model.Config{BaseURL: r.model.BaseURL(), Model: "m", Timeout: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		models := r.server.Loop.Models
		r.own().Loop.Models = func(handle string) (loop.Model, error) {
			if handle == "openai/hasty" {
				return loop.Model{Client: hasty, Name: "hasty"}, nil
			}
			return models(handle)
		}
		r.model.Says(answer)
		got := r.send(`{"input":"Hello","override_model":"openai/hasty"}`)
		if got.StopReason.StopReason != "llm_api_error" || got.Error == nil || len(r.model.Requests()) != 1 {
			t.Errorf("%s: got %+v with %+v after %d requests", name, got.StopReason, got.Error, len(r.model.Requests()))
		}
		r.model.Says(modeltest.Answer{Text: "Here again."})
		if again := r.send(`{"input":"Again"}`); again.StopReason.StopReason != "end_turn" {
			t.Errorf("%s: the next request: %+v", name, again)
		}
	}
}

// A refusal of Anthropic's ends the run in the same way as a filter.
func TestARefusalOfAnthropicEndsTheRunWithAnError(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","model":"anthropic/claude-sonnet-4-5"}`)
	r.model.Says(modeltest.Answer{Text: "I can", Finish: "refusal"})
	got := r.send(hello)
	if got.StopReason.StopReason != "llm_api_error" || got.Error == nil || got.Error.Type != "content_filter" ||
		len(r.model.Requests()) != 2 {
		t.Errorf("got %+v with %+v after %d requests", got.StopReason, got.Error, len(r.model.Requests()))
	}
	checkSaid(t, "the log", r.log(), []string{"user_message Hello", "assistant_message I can"})
}
