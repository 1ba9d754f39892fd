package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// If a text's turn failed and the text comes again, the prompt has it once, at the end, whatever failed in between and
// however it is sent. The log keeps both.
func TestATextOfAFailedTurnIsThePromptsOnce(t *testing.T) {
	t.Parallel()
	const text, failed = `{"messages":[{"role":"user","content":%q}]}`, `{"refused":{"status":500,"message":"Oh"}}`
	step := func(r runner, message string) { r.step(r.agent, fmt.Sprintf(text, message)) }
	captured := func(r runner, message string) {
		r.must("POST", r.path()+"/capture", strings.TrimSuffix(fmt.Sprintf(text, message), "}")+","+failed[1:])
	}
	failing := func(r runner, message string) {
		r.model.Reply = func(modeltest.Asked) modeltest.Answer { return modeltest.Answer{Status: 500} }
		r.says(message)
		r.model.Reply = nil
	}
	stepping := func(r runner, message string) {
		step(r, message)
		r.reports(r.agent, "/step", failed)
	}
	for first, fails := range map[string]func(runner, string){"a run": failing, "a step": stepping,
		"a captured turn": captured} {
		for resend, says := range map[string]func(runner, string){"a run": func(r runner, message string) { r.says(message) },
			"a step": step, "a failing run": failing} {
			for name, others := range map[string][]string{"nothing": nil, "others": {"Other 1", "Other 2"}} {
				t.Run(first+", "+name+", "+resend, func(t *testing.T) {
					t.Parallel()
					r := newRunner(t, "")
					r.says("Before")
					fails(r, "Caf\u00e9")
					for _, other := range others {
						fails(r, other)
					}
					says(r, "Cafe\u0301 \n")
					prompt := r.promptIn(r.agent, "openai")
					if n := strings.Count(prompt, "Caf"); n != 1 {
						t.Errorf("the text is %d times in %s", n, prompt)
					}
					for _, other := range others {
						if strings.Count(prompt, other) != 1 || strings.Index(prompt, other) > strings.Index(prompt, "Caf") {
							t.Errorf("%q is not before the text in %s", other, prompt)
						}
					}
					for _, message := range r.refusedItems() {
						if !strings.HasPrefix(message, "user_message Caf\u00e9: ") || !strings.Contains(message, "sent again") {
							t.Errorf("%q left the view", message)
						}
					}
					r.checkPrompts(r.agent)
				})
			}
		}
	}
}

// If a client sends all its failed texts again in order, each is in the prompt once.
func TestFailedTextsThatComeAgainInOrderAreThePromptsOnce(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	r.says("Before")
	r.model.Reply = func(modeltest.Asked) modeltest.Answer { return modeltest.Answer{Status: 500} }
	texts := []string{"Aardvark", "Badger", "Capybara"}
	for _, text := range texts {
		r.says(text)
	}
	r.model.Reply = nil
	for _, text := range texts {
		r.says(text)
	}
	prompt := r.promptIn(r.agent, "openai")
	for i, text := range texts {
		if strings.Count(prompt, text) != 1 || i > 0 && strings.Index(prompt, text) < strings.Index(prompt, texts[i-1]) {
			t.Errorf("%q is not once and in its place in %s", text, prompt)
		}
	}
	r.checkPrompts(r.agent)
}

// If a request's run failed, and newer messages came since, the client is told so. The text can be sent under another
// otid.
func TestARequestThatFailedBeforeNewerMessagesIsToldSo(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	const body = `{"messages":[{"role":"user","content":%q,"otid":%q}]}`
	r.model.Reply = func(modeltest.Asked) modeltest.Answer { return modeltest.Answer{Status: 500} }
	for _, said := range []string{"Aardvark", "Badger"} {
		if got := r.call("POST", r.path(), fmt.Sprintf(body, said, said)); got.Code != 500 {
			t.Fatalf("got %d %s", got.Code, got.Text)
		}
	}
	r.model.Reply = nil
	got := r.call("POST", r.path(), fmt.Sprintf(body, "Aardvark", "Aardvark"))
	if got.Code != 409 || !strings.Contains(got.Text, "newer messages") || got.Header().Get("X-Should-Retry") != "false" {
		t.Errorf("got %d %v %s", got.Code, got.Header(), got.Text)
	}
	r.must("POST", r.path(), fmt.Sprintf(body, "Aardvark", "another"))
	if prompt := r.promptIn(r.agent, "openai"); strings.Count(prompt, "Aardvark") != 1 {
		t.Errorf("the prompt is %s", prompt)
	}
}

// If a text is said again after an answer, or without a failed turn, it is in the prompt twice.
func TestATextThatIsSaidTwiceIsThePromptsTwice(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	r.says("Twice")
	r.model.Says(modeltest.Answer{Status: 500}, modeltest.Answer{Status: 500}, modeltest.Answer{Status: 500})
	r.says("Other")
	r.says("Twice")
	const two = `{"messages":[{"role":"user","content":"Aardvark"},{"role":"user","content":"Aardvark"}]}`
	for n := range 2 {
		r.step(r.agent, two)
		prompt := r.promptIn(r.agent, "openai")
		if strings.Count(prompt, "Twice") != 2 || strings.Count(prompt, "Aardvark") != 2*(n+1) {
			t.Errorf("the prompt is %s", prompt)
		}
	}
}
