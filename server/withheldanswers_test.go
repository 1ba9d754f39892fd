package server_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/loop/model/modeltest"
)

// An answer that a content filter stopped does not look whole, and an empty one is not asked for again.
func TestWithheldAnswersEndTheRunWithAnError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ said, kind string }{
		"a piece": {"I can", "content_filter"}, "nothing": {"", "llm_api_error"},
	} {
		r := newRunner(t, "")
		r.model.Says(modeltest.Answer{Raw: `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"` + c.said +
			`"},"finish_reason":"content_filter"}]}` + "\n\ndata: [DONE]\n\n"})
		got := r.send(hello)
		if got.StopReason.StopReason != "llm_api_error" || got.Error == nil || got.Error.Type != c.kind ||
			!strings.Contains(got.Error.Message, "content filter") || len(r.model.Requests()) != 1 {
			t.Errorf("%s: got %+v with %+v after %d requests", name, got.StopReason, got.Error, len(r.model.Requests()))
		}
		want := []string{"user_message Hello"}
		if c.said != "" {
			want = append(want, "assistant_message "+c.said)
		}
		checkSaid(t, "the log after "+name, r.log(), want)
	}
}

// Anthropic's refusal ends the run as a filter's does.
func TestARefusalOfAnthropicEndsTheRunWithAnError(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","model":"anthropic/claude-sonnet-4-5"}`)
	r.model.Says(modeltest.Answer{Text: "I can", Finish: "refusal"})
	got := r.send(hello)
	if got.StopReason.StopReason != "llm_api_error" || got.Error == nil || got.Error.Type != "content_filter" ||
		len(r.model.Requests()) != 1 {
		t.Errorf("got %+v with %+v after %d requests", got.StopReason, got.Error, len(r.model.Requests()))
	}
	checkSaid(t, "the log", r.log(), []string{"user_message Hello", "assistant_message I can"})
}
