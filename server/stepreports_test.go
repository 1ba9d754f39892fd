package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// looper is an agent of a program with its own loop, in a dialect.
type looper struct {
	*client
	agent, format string
}

// loopers runs a test with an agent of a program with its own loop, in three dialects.
func loopers(t *testing.T, test func(l looper)) {
	t.Helper()
	for format := range dialects {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			c := newClient(t)
			test(looper{c, c.made("/v1/agents", `{"name":"a","tool_set":"all",
				"memory_blocks":[{"label":"notes","value":"x"}]}`), format})
		})
	}
}

// sends sends a step with some fields.
func (l looper) sends(fields string) refusedStep {
	l.t.Helper()
	return l.reports(l.agent, "/step", `{`+fields+`,"format":"`+l.format+`"}`)
}

// says sends a message of the user.
func (l looper) says(text string) refusedStep {
	l.t.Helper()
	return l.sends(`"messages":[{"role":"user","content":"` + text + `"}]`)
}

// answers sends an answer of the model that ends the turn.
func (l looper) answers() {
	l.t.Helper()
	l.sends(`"response":` + fmt.Sprintf(dialects[l.format].end, 10))
}

// calls sends an answer of the model with tool calls, and the result of the caller's own tool. name is part of the
// calls' ids.
func (l looper) calls(name string) {
	l.t.Helper()
	ids := strings.NewReplacer(`id":"a"`, `id":"a`+name+`"`, `id":"b"`, `id":"b`+name+`"`)
	l.sends(`"response":` + ids.Replace(fmt.Sprintf(dialects[l.format].answer, 10)))
	l.sends(`"messages":[` + ids.Replace(dialects[l.format].result) + `]`)
}

// refusedWhile reports refusals of prompts that contain a word, until the loop ends or the prompt no longer contains
// the word.
func (l looper) refusedWhile(step refusedStep, word string) refusedStep {
	l.t.Helper()
	for n := 0; step.Next == "model" && strings.Contains(string(step.Prompt.Request), word); n++ {
		if step = l.sends(reported); n > 12 {
			l.t.Fatalf("the loop does not end: %+v %s", step, step.Prompt.Request)
		}
		if step.Refused.AskAgain != (step.Next == "model") && len(step.Refused.Left) > 0 {
			l.t.Errorf("ask_again is %v, and the next is the %s", step.Refused.AskAgain, step.Next)
		}
	}
	return step
}

// After a refusal, a loop ends even if the earlier answers are in a summary.
func TestALoopEndsAfterARefusalBehindASummary(t *testing.T) {
	t.Parallel()
	loopers(t, func(l looper) {
		for n := range 4 {
			l.says(fmt.Sprint("Question ", n))
			l.answers()
		}
		l.must("POST", "/v1/agents/"+l.agent+"/summarize", `{"compaction_settings":{"mode":"all"}}`)
		l.says("Bad")
		for n := range 3 {
			got := l.sends(reported)
			if got.Next != "user" || got.Refused.AskAgain || (n == 0) != (len(got.Refused.Left) == 1) ||
				(n > 0) != got.Refused.Unchanged {
				l.t.Errorf("report %d: got %+v %s", n, got, got.Prompt.Request)
			}
		}
		if got := l.says("Next"); got.Next != "model" || !strings.Contains(string(got.Prompt.Request), "Question 3") {
			l.t.Errorf("the next turn: got %+v %s", got, got.Prompt.Request)
		}
	})
}

// If a report of a refusal comes again, and nothing was asked since, nothing changes.
func TestAReportThatComesAgainChangesNothing(t *testing.T) {
	t.Parallel()
	loopers(t, func(l looper) {
		if got := l.call("POST", "/v1/agents/"+l.agent+"/step", `{`+reported+`}`); got.Code != 409 {
			l.t.Errorf("before anything was asked: got %d %s", got.Code, got.Text)
		}
		for n := range 2 {
			l.says(fmt.Sprint("Question ", n))
			l.answers()
		}
		if got := l.sends(reported); !got.Refused.Unchanged || got.Next != "user" {
			l.t.Errorf("after an answer: got %+v", got)
		}
		for _, way := range []string{"/step", "/messages/capture"} {
			l.says("Bad")
			for n := range 4 {
				got := l.reports(l.agent, way, `{`+reported+`}`)
				prompt := l.promptIn(l.agent, l.format)
				if got.Refused.Unchanged != (n > 0) || strings.Contains(prompt, "Bad") || !strings.Contains(prompt, "Question 0") ||
					strings.Count(prompt, "It rains.") != 2 {
					l.t.Errorf("%s %d: got %+v %s", way, n, got.Refused, prompt)
				}
			}
			l.refusedWhile(l.says("Fine"), "nothing of it")
			l.answers()
			l.must("PATCH", "/v1/agents/"+l.agent+"/reset-messages", `{}`)
			for n := range 2 {
				l.says(fmt.Sprint("Question ", n))
				l.answers()
			}
		}
	})
}

// If the provider refuses a captured exchange, only that exchange leaves the view. The turns before it, and the first
// turn that was refused after it, stay.
func TestRefusedCapturesLeaveOtherTurnsInTheView(t *testing.T) {
	t.Parallel()
	for _, exchanges := range []int{1, 3} {
		loopers(t, func(l looper) {
			for n := range 6 {
				l.says(fmt.Sprint("Warm ", n))
				l.answers()
			}
			var captured []string
			for n := range exchanges {
				word := map[bool]string{true: "Poison", false: "Harmless"}[n == 0]
				captured = append(captured, `{"role":"user","content":"`+word+`"},{"role":"assistant","content":"Fine."}`)
			}
			l.must("POST", "/v1/agents/"+l.agent+"/messages/capture", `{"messages":[`+strings.Join(captured, ",")+`]}`)
			first := l.refusedWhile(l.says("First"), "Poison")
			if first.Next == "model" {
				l.answers()
			}
			second := l.refusedWhile(l.says("Second"), "Poison")
			if second.Next != "model" {
				l.t.Fatalf("the second turn is refused: %+v", second)
			}
			l.answers()
			prompt := l.promptIn(l.agent, l.format)
			for _, kept := range []string{"Warm 0", "Warm 3", "Second"} {
				if strings.Count(prompt, kept) != 1 {
					l.t.Errorf("%q is not in the prompt once: %s", kept, prompt)
				}
			}
			if exchanges == 1 && (!strings.Contains(prompt, "Warm 5") || !strings.Contains(prompt, "First")) {
				l.t.Errorf("more than the captured turn left: %s", prompt)
			}
		})
	}
}

// If the provider refuses a turn even without its last answer, the whole turn leaves the view, and no other turn,
// however many answers it had and whatever failed before it.
func TestARefusalOfTheRestOfATurnTakesTheTurn(t *testing.T) {
	t.Parallel()
	for _, rounds := range []int{1, 2} {
		for _, earlier := range []string{"answered", "failed", "cut"} {
			loopers(t, func(l looper) {
				for n := range 4 {
					l.says(fmt.Sprint("Warm ", n))
					l.answers()
				}
				kept := []string{"Warm 0", "Warm 3"}
				if earlier != "answered" {
					l.says("Unanswered")
					if kept = append(kept, "Unanswered"); earlier == "cut" {
						l.calls("0")
					}
					l.sends(passing)
				}
				l.says("Poison")
				for n := range rounds {
					l.calls(fmt.Sprint(n + 1))
				}
				for n := range 2 {
					got := l.sends(reported)
					prompt := string(got.Prompt.Request)
					if (got.Next == "model") != (n == 0) || strings.Contains(prompt, "Poison") != (n == 0) {
						l.t.Errorf("%d rounds, report %d: got %+v %s", rounds, n, got, prompt)
					}
					for _, text := range kept {
						if strings.Count(prompt, text) != 1 {
							l.t.Errorf("%d rounds, report %d: %q is not in the prompt once: %s", rounds, n, text, prompt)
						}
					}
				}
				if prompt := l.promptIn(l.agent, l.format); !strings.Contains(prompt, "what they changed stays") {
					l.t.Errorf("%d rounds: the model is not told what left: %s", rounds, prompt)
				}
				if got := l.sends(reported); !got.Refused.Unchanged || got.Next != "user" {
					l.t.Errorf("the third report: got %+v", got)
				}
			})
		}
	}
}
