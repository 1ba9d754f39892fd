package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// passing is a report of a failure that the prompt's content did not cause.
const passing = `"refused":{"status":500,"message":"Oh"}`

// failures are reports of failures after which a client gives up.
var failures = map[string]string{"passing": passing, "a key": `"refused":{"status":401,"message":"No"}`,
	"a limit": `"refused":{"status":429}`, "content": reported, "law": `"refused":{"status":451}`,
	"elsewhere": `"refused":{"status":500,"place":"elsewhere"}`,
	"size":      `"refused":{"status":413,"message":"Request too large"}`}

// If a text is sent again after its turn failed, the prompt has it once, at each position of the turn, for steps and
// captured turns. The turn goes on, and the log keeps both.
func TestATextOfALoopOfOnesOwnIsThePromptsOnce(t *testing.T) {
	t.Parallel()
	for name, failure := range failures {
		for rounds := range 3 {
			t.Run(fmt.Sprint(name, " ", rounds), func(t *testing.T) {
				t.Parallel()
				loopers(t, func(l looper) {
					for n, way := range []string{"/step", "/messages/capture"} {
						first, second := fmt.Sprint("Heron ", n), fmt.Sprint("Second ", n)
						l.says(first)
						l.answers()
						l.says(second)
						for round := range rounds {
							l.calls(fmt.Sprint(n, round))
						}
						l.reports(l.agent, way, `{`+failure+`}`)
						l.reports(l.agent, way, `{"messages":[{"role":"user","content":"`+second+`"}]}`)
						l.checkOnce(first, second)
						if got := l.sends(passing); got.Next != "model" {
							l.t.Errorf("%s: the next is the %s", way, got.Next)
						}
						l.reports(l.agent, way, `{"messages":[{"role":"user","content":"`+second+`","otid":"again `+second+`"}]}`)
						l.checkOnce(first, second)
						l.answers()
						l.says(second)
						if prompt := l.promptIn(l.agent, l.format); strings.Count(prompt, second) != 2 {
							l.t.Errorf("%s: what was answered is not said again: %s", way, prompt)
						}
						l.answers()
						if log := fmt.Sprint(l.log(l.agent)); strings.Count(log, second) < 3 {
							l.t.Errorf("%s: the log is %s", way, log)
						}
					}
				})
			})
		}
	}
}

// checkOnce checks that each of some texts is in the prompt once.
func (l looper) checkOnce(texts ...string) {
	l.t.Helper()
	prompt := l.promptIn(l.agent, l.format)
	for _, text := range texts {
		if n := strings.Count(prompt, text); n != 1 {
			l.t.Errorf("%q is %d times in %s", text, n, prompt)
		}
	}
}

// A text is sent again after other texts failed too, or with more text. It is in the prompt once.
func TestAFailedTextWithCallsIsThePromptsOnceBesideOthers(t *testing.T) {
	t.Parallel()
	loopers(t, func(l looper) {
		l.says("Before")
		l.answers()
		l.says("Second")
		l.calls("1")
		l.sends(passing)
		l.says("Other")
		l.sends(passing)
		l.says("Second")
		l.checkOnce("Before", "Second", "Other", "Rain.")
		l.sends(passing)
		got := l.sends(`"messages":[{"role":"user","content":"Second"},{"role":"user","content":"More"}]`)
		l.checkOnce("Before", "Second", "Other", "Rain.", "More")
		if got.Next != "model" {
			l.t.Errorf("the next is the %s", got.Next)
		}
		l.answers()
		l.checkOnce("Before", "Second", "Other", "Rain.", "More")
	})
}

// If a turn is refused again after its text was sent again, only that turn leaves the view.
func TestATurnThatIsSentAgainAndRefusedLeavesAlone(t *testing.T) {
	t.Parallel()
	loopers(t, func(l looper) {
		for n := range 3 {
			l.says(fmt.Sprint("Warm ", n))
			l.answers()
		}
		l.says("Poison")
		l.calls("1")
		l.sends(reported)
		l.says("Poison")
		got := l.sends(reported)
		if prompt := string(got.Prompt.Request); got.Next != "user" || strings.Contains(prompt, "Poison") {
			l.t.Errorf("got %+v %s", got, prompt)
		}
		l.checkOnce("Warm 0", "Warm 1", "Warm 2")
		l.says("Poison")
		l.checkOnce("Warm 0", "Warm 1", "Warm 2", "Poison")
	})
}
