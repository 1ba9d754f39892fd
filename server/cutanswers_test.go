package server_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// If a client sends a text again after each failed end, the text is in the prompt once, even after an answer that was
// cut for its length. The prompt does not end with that answer.
func TestATextAfterACutAnswerIsInThePromptOnce(t *testing.T) {
	t.Parallel()
	for _, handle := range handles {
		for _, options := range []string{``, `,"streaming":true`, `,"streaming":true,"stream_tokens":true`,
			`,"streaming":true,"background":true`} {
			for _, said := range []string{"Half", ""} {
				t.Run(handle+options+said, func(t *testing.T) {
					t.Parallel()
					r := newRunner(t, `{"name":"a","model":"`+handle+`"}`)
					r.says("Before")
					r.model.Says(modeltest.Answer{Text: said, Finish: "length"})
					r.call("POST", r.path(), `{"input":"Say it"`+options+`}`)
					r.filters(handle, "", "nothing of this")
					if got := r.call("POST", r.path(), `{"input":"Say it"`+options+`}`); got.Code != 200 ||
						!strings.Contains(got.Text, "Fine") && !strings.Contains(options, "stream_tokens") {
						t.Errorf("got %d %s", got.Code, got.Text)
					}
					all := r.model.Requests()
					if last := all[len(all)-1]; strings.Count(string(last.Body), "Say it") != 1 || endsWithAnswer(last) {
						t.Errorf("the model was asked %s", last.Body)
					}
					if next := r.says("Next"); next.StopReason.StopReason != "end_turn" {
						t.Errorf("the next turn: %+v", next)
					}
				})
			}
		}
	}
}
