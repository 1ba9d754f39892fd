package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// refusedStep is the answer to a step or a capture that reports a refusal.
type refusedStep struct {
	Refused struct {
		Left, Returned []string
		AskAgain       bool `json:"ask_again"`
		Unchanged      bool
		Compacted      bool
	}
	Next   string
	Prompt struct {
		Request json.RawMessage
	}
}

// reports sends a step or a capture of a program with its own loop.
func (c *client) reports(agent, path, body string) (got refusedStep) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.must("POST", "/v1/agents/"+agent+path, body)), &got); err != nil {
		c.t.Fatal(err)
	}
	return got
}

func (c *client) promptIn(agent, format string) string {
	c.t.Helper()
	return c.must("GET", "/v1/agents/"+agent+"/prompt?format="+format, "")
}

const reported = `"refused":{"status":400,"message":"The image cannot be read"}`

// A program with its own loop reports refusals at each position of a turn, in three dialects.
func TestRefusalsOfALoopOfOnesOwn(t *testing.T) {
	t.Parallel()
	for format, dialect := range dialects {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			c := newClient(t)
			agent := c.made("/v1/agents", `{"name":"a","tool_set":"standard",
				"memory_blocks":[{"label":"notes","value":"x"}]}`)
			withFormat := func(body string) string { return strings.TrimSuffix(body, "}") + `,"format":"` + format + `"}` }
			c.step(agent, withFormat(`{"messages":[{"role":"user","content":"First"}]}`))
			c.step(agent, withFormat(`{"response":`+fmt.Sprintf(dialect.end, 10)+`}`))
			// The first prompt of a turn is refused.
			c.step(agent, withFormat(`{"messages":[{"role":"user","content":"Bad"}]}`))
			got := c.reports(agent, "/step", withFormat(`{"otid":"r1",`+reported+`}`))
			if prompt := string(got.Prompt.Request); len(got.Refused.Left) != 1 || got.Next != "user" ||
				strings.Contains(prompt, "Bad") || !strings.Contains(prompt, "First") {
				t.Errorf("the first prompt: got %+v", got)
			}
			if again := c.reports(agent, "/step", withFormat(`{"otid":"r1",`+reported+`}`)); !again.Refused.Unchanged {
				t.Errorf("the report again: got %+v", again.Refused)
			}
			// A prompt after a result is refused, within the turn.
			c.step(agent, withFormat(`{"messages":[{"role":"user","content":"Weather"}]}`))
			c.step(agent, withFormat(`{"response":`+fmt.Sprintf(dialect.answer, 10)+`}`))
			c.step(agent, withFormat(`{"messages":[`+dialect.result+`]}`))
			got = c.reports(agent, "/step", withFormat(`{`+reported+`}`))
			if prompt := string(got.Prompt.Request); got.Next != "model" || strings.Contains(prompt, "Rain.") ||
				strings.Contains(prompt, "One moment.") || !strings.Contains(prompt, "Weather") ||
				!strings.Contains(prompt, "what they changed stays") || strings.Contains(prompt, "cannot be read") {
				t.Errorf("after a result: got %+v %s", got.Refused, prompt)
			}
			// The provider's next answer is stored. Later results of calls that left the view are not part of it.
			c.step(agent, withFormat(`{"response":`+fmt.Sprintf(dialect.end, 10)+`}`))
			if prompt := c.promptIn(agent, format); !strings.Contains(prompt, "It rains.") {
				t.Errorf("the answer is not in %s", prompt)
			}
			// A captured turn is refused.
			captured := c.reports(agent, "/messages/capture", `{"messages":[{"role":"user","content":"Captured","otid":"c"}],`+
				reported+`}`)
			if prompt := c.promptIn(agent, format); len(captured.Refused.Left) != 1 || strings.Contains(prompt, "Captured") {
				t.Errorf("a captured turn: got %+v", captured.Refused)
			}
			repeated := c.reports(agent, "/messages/capture", `{"messages":[{"role":"user","content":"Captured","otid":"c"}],`+
				reported+`}`)
			if !repeated.Refused.Unchanged {
				t.Errorf("the captured turn again: got %+v", repeated.Refused)
			}
			// Several refusals follow each other. The provider is asked without more and more of the earlier messages, and then
			// all messages return.
			c.step(agent, withFormat(`{"messages":[{"role":"user","content":"Trial"}]}`))
			withCaptured := 0 // prompts with the captured turn
			for n, lastPrompt := 0, ""; ; n++ {
				got = c.reports(agent, "/step", withFormat(`{`+reported+`}`))
				prompt := string(got.Prompt.Request)
				if !got.Refused.AskAgain {
					if n < 6 || withCaptured != n/2 || strings.Contains(prompt, "Trial") || !strings.Contains(prompt, "First") ||
						strings.Count(prompt, "It rains.") != 2 || len(got.Refused.Returned) == 0 || got.Next != "user" {
						t.Errorf("all is back after %d trials: got %+v %s", n, got.Refused, prompt)
					}
					break
				}
				if strings.Contains(prompt, "Captured") {
					withCaptured++
				}
				if got.Next != "model" || prompt == lastPrompt || !strings.Contains(prompt, "Trial") ||
					n == 0 && !strings.Contains(prompt, "Weather") {
					t.Errorf("trial %d: got %+v %s", n, got.Refused, prompt)
				}
				lastPrompt = prompt
			}
		})
	}
}

// A program with its own loop reports that the refused text is not in a message but, for example, in a memory block. No
// turn leaves the view, and a turn that left before the program knew returns.
func TestWhatIsRefusedElsewhereHidesNoTurnOfALoopOfOnesOwn(t *testing.T) {
	t.Parallel()
	for format, dialect := range dialects {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			c := newClient(t)
			agent := c.made("/v1/agents", `{"name":"a","memory_blocks":[{"label":"notes","value":"x"}]}`)
			withFormat := func(body string) string { return strings.TrimSuffix(body, "}") + `,"format":"` + format + `"}` }
			elsewhere := `"refused":{"status":500,"message":"Oh","place":"elsewhere"}`
			c.step(agent, withFormat(`{"messages":[{"role":"user","content":"First"}]}`))
			c.step(agent, withFormat(`{"response":`+fmt.Sprintf(dialect.end, 10)+`}`))
			c.step(agent, withFormat(`{"messages":[{"role":"user","content":"Second"}]}`))
			if got := c.reports(agent, "/step", withFormat(`{`+elsewhere+`}`)); len(got.Refused.Left) > 0 ||
				len(got.Refused.Returned) > 0 ||
				got.Next != "model" || !strings.Contains(string(got.Prompt.Request), "Second") {
				t.Errorf("a turn: got %+v", got)
			}
			c.step(agent, withFormat(`{"response":`+fmt.Sprintf(dialect.end, 10)+`}`))
			c.step(agent, withFormat(`{"messages":[{"role":"user","content":"Third"}]}`))
			if got := c.reports(agent, "/step", withFormat(`{`+reported+`}`)); len(got.Refused.Left) != 1 || got.Next != "user" {
				t.Errorf("the place is not known: got %+v", got)
			}
			if got := c.reports(agent, "/step", withFormat(`{`+elsewhere+`}`)); len(got.Refused.Returned) != 1 ||
				got.Next != "model" ||
				!strings.Contains(string(got.Prompt.Request), "Third") {
				t.Errorf("the place is known: got %+v", got)
			}
			c.step(agent, withFormat(`{"response":`+fmt.Sprintf(dialect.end, 10)+`}`))
			captured := c.reports(agent, "/messages/capture", `{"messages":[{"role":"user","content":"Fourth"}],`+elsewhere+`}`)
			if len(captured.Refused.Left) > 0 {
				t.Errorf("a captured turn: got %+v", captured)
			}
			for _, text := range []string{"First", "Second", "Third", "Fourth"} {
				if prompt := c.promptIn(agent, format); strings.Count(prompt, text) != 1 {
					t.Errorf("%s is not in the prompt once: %s", text, prompt)
				}
			}
			wrong := c.call("POST", "/v1/agents/"+agent+"/step", `{"refused":{"status":400,"place":"there"}}`)
			if wrong.Code != 422 || !strings.Contains(wrong.Text, "place") {
				t.Errorf("another place: got %d %s", wrong.Code, wrong.Text)
			}
		})
	}
}

// A turn was never answered, and a compaction took it out of the view. If the next turn fails, it leaves the view, too,
// and then there is nothing to ask. This holds in three dialects, whatever the first turn's failure was.
func TestATurnAfterAnUnansweredOneEndsItsLoop(t *testing.T) {
	t.Parallel()
	for format, dialect := range dialects {
		for _, failure := range []string{`"refused":{"status":413,"message":"prompt is too long: 9 tokens > 3 maximum"}`,
			`"messages":[{"role":"user","content":"Once more"}]`} {
			c := newClient(t)
			agent := c.made("/v1/agents", `{"name":"a"}`)
			withFormat := func(body string) string { return `{` + body + `,"format":"` + format + `"}` }
			tooLong := withFormat(`"refused":{"status":413,"message":"prompt is too long: 9 tokens > 3 maximum"}`)
			c.reports(agent, "/step", withFormat(`"messages":[{"role":"user","content":"First"}]`))
			c.reports(agent, "/step", withFormat(`"response":`+fmt.Sprintf(dialect.end, 10)))
			c.reports(agent, "/step", withFormat(`"messages":[{"role":"user","content":"Unanswered"}]`))
			c.reports(agent, "/step", withFormat(failure))
			c.reports(agent, "/step", withFormat(`"messages":[{"role":"user","content":"New"}]`))
			got := c.reports(agent, "/step", tooLong)
			for n := 0; got.Next == "model" && n < 10; n++ {
				got = c.reports(agent, "/step", tooLong)
			}
			if got.Next != "user" {
				t.Errorf("%s, %s: ten reports did not end the loop: %+v %s", format, failure, got, got.Prompt.Request)
			}
		}
	}
}

// If a content filter stops an answer in a program's own loop, the answer and its turn leave the view and stay in the
// log, in three dialects. The same step again changes nothing.
func TestAWithheldAnswerOfALoopOfOnesOwn(t *testing.T) {
	t.Parallel()
	for format, response := range map[string]string{
		"openai": `{"choices":[{"message":{"content":"I start"},"finish_reason":"content_filter"}]}`,
		"anthropic": `{"type":"message","role":"assistant","content":[{"type":"text","text":"I start"}],` +
			`"stop_reason":"refusal"}`,
		"responses": `{"object":"response","status":"incomplete","incomplete_details":{"reason":"content_filter"},` +
			`"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I start"}]}]}`,
	} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			c := newClient(t)
			agent := c.made("/v1/agents", `{"name":"a"}`)
			withFormat := func(body string) string { return body + `,"format":"` + format + `"}` }
			for _, earlier := range []string{"", "Hello"} {
				if earlier != "" {
					c.step(agent, withFormat(`{"messages":[{"role":"user","content":"Hello"}]`))
					c.step(agent, withFormat(`{"response":`+fmt.Sprintf(dialects[format].end, 10)))
				}
				c.step(agent, withFormat(`{"messages":[{"role":"user","content":"POISON"}]`))
				for n := range 2 {
					got := c.reports(agent, "/step", withFormat(`{"otid":"o`+earlier+`","response":`+response))
					prompt := string(got.Prompt.Request)
					if got.Next != "user" || strings.Contains(prompt, "POISON") || strings.Contains(prompt, "I start") ||
						!strings.Contains(prompt, earlier) || n == 0 && len(got.Refused.Left) != 2 {
						t.Errorf("step %d after %q: got %+v %s", n, earlier, got, prompt)
					}
				}
			}
			if log := fmt.Sprint(c.log(agent)); strings.Count(log, "I start") != 2 || strings.Count(log, "POISON") != 2 {
				t.Errorf("the log is %s", log)
			}
		})
	}
}

// Reports of failures that the prompt's content did not cause change nothing. Impossible reports are refused.
func TestOtherReportsOfRefusals(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	c.step(agent, `{"messages":[{"role":"user","content":"Hello"}]}`)
	for _, report := range []string{`{"status":401,"message":"No"}`, `{"status":403}`, `{"status":404}`, `{"status":429}`,
		`{"status":500}`, `{"status":400,"message":"API key not valid"}`} {
		got := c.reports(agent, "/step", `{"refused":`+report+`}`)
		if !got.Refused.Unchanged || !strings.Contains(string(got.Prompt.Request), "Hello") {
			t.Errorf("%s: got %+v", report, got)
		}
	}
	for _, wrong := range []string{`"refused":{}`, `"refused":{"status":"400"}`, `"refused":{"status":302}`, `"refused":7`,
		`"refused":{"status":400,"message":7}`, reported + `,"response":{"choices":[{"message":{"content":"x"}}]}`,
		reported + `,"approvals":[]`} {
		if got := c.call("POST", "/v1/agents/"+agent+"/step", "{"+wrong+"}"); got.Code != 422 ||
			!strings.Contains(got.Text, "refused") {
			t.Errorf("%s: got %d %s, want a 422 that names refused", wrong, got.Code, got.Text)
		}
	}
}

// A refused message stays refused in a fork, in an agent's file, and in an agent imported from that file. An erasure
// removes the provider's words from it.
func TestRefusalsAreCarried(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	id := c.made("/v1/conversations/?agent_id="+agent, `{}`)
	toConversation := `,"conversation_id":"` + id + `"}`
	c.step(agent, `{"messages":[{"role":"user","content":"First"}]`+toConversation)
	c.reports(agent, "/step", `{"messages":[{"role":"user","content":"Bad"}],`+
		`"refused":{"status":400,"message":"Wormwood is bad"}`+toConversation)
	fork := c.made("/v1/conversations/"+id+"/fork", `{}`)
	for _, conversation := range []string{id, fork} {
		items := c.must("GET", "/v1/conversations/"+conversation+"/messages", "")
		if !strings.Contains(items, `"refused":{"status":400,"message":"Wormwood is bad"}`) {
			t.Errorf("%s has %s", conversation, items)
		}
		prompt := c.call("GET", "/v1/agents/"+agent+"/prompt?conversation_id="+conversation, "")
		if prompt.Code != 409 || strings.Contains(prompt.Text, "Bad") {
			t.Errorf("the prompt of %s, which has no message left: %d %s", conversation, prompt.Code, prompt.Text)
		}
	}
}
