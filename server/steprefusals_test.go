package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// refusedStep is what a step or a capture answers to a refusal.
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

// reports sends a step or a capture of a loop of the caller's own.
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

// A loop of the caller's own reports refusals at each position of a turn, in three dialects.
func TestRefusalsOfALoopOfOnesOwn(t *testing.T) {
	t.Parallel()
	for format, said := range dialects {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			c := newClient(t)
			agent := c.made("/v1/agents", `{"name":"a","include_base_tools":true,
				"memory_blocks":[{"label":"notes","value":"x"}]}`)
			in := func(body string) string { return strings.TrimSuffix(body, "}") + `,"format":"` + format + `"}` }
			c.step(agent, in(`{"messages":[{"role":"user","content":"First"}]}`))
			c.step(agent, in(`{"response":`+fmt.Sprintf(said.end, 10)+`}`))
			// The first prompt of a turn.
			c.step(agent, in(`{"messages":[{"role":"user","content":"Bad"}]}`))
			got := c.reports(agent, "/step", in(`{"otid":"r1",`+reported+`}`))
			if prompt := string(got.Prompt.Request); len(got.Refused.Left) != 1 || got.Next != "user" ||
				strings.Contains(prompt, "Bad") || !strings.Contains(prompt, "First") {
				t.Errorf("the first prompt: got %+v", got)
			}
			if again := c.reports(agent, "/step", in(`{"otid":"r1",`+reported+`}`)); !again.Refused.Unchanged {
				t.Errorf("the report again: got %+v", again.Refused)
			}
			// After a result, within the turn.
			c.step(agent, in(`{"messages":[{"role":"user","content":"Weather"}]}`))
			c.step(agent, in(`{"response":`+fmt.Sprintf(said.answer, 10)+`}`))
			c.step(agent, in(`{"messages":[`+said.result+`]}`))
			got = c.reports(agent, "/step", in(`{`+reported+`}`))
			if prompt := string(got.Prompt.Request); got.Next != "model" || strings.Contains(prompt, "Rain.") ||
				strings.Contains(prompt, "One moment.") || !strings.Contains(prompt, "Weather") ||
				!strings.Contains(prompt, "what they changed stays") || strings.Contains(prompt, "cannot be read") {
				t.Errorf("after a result: got %+v %s", got.Refused, prompt)
			}
			// What the provider answers now is stored, and later results of the calls that left are no part of it.
			c.step(agent, in(`{"response":`+fmt.Sprintf(said.end, 10)+`}`))
			if prompt := c.promptIn(agent, format); !strings.Contains(prompt, "It rains.") {
				t.Errorf("the answer is not in %s", prompt)
			}
			// A captured turn.
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
			// Refusals in a row: the provider is asked without more and more of what came before, and then all is back.
			c.step(agent, in(`{"messages":[{"role":"user","content":"Trial"}]}`))
			with := 0 // the captured turn
			for n, without := 0, ""; ; n++ {
				got = c.reports(agent, "/step", in(`{`+reported+`}`))
				prompt := string(got.Prompt.Request)
				if !got.Refused.AskAgain {
					if n < 6 || with != n/2 || strings.Contains(prompt, "Trial") || !strings.Contains(prompt, "First") ||
						strings.Count(prompt, "It rains.") != 2 || len(got.Refused.Returned) == 0 || got.Next != "user" {
						t.Errorf("all is back after %d trials: got %+v %s", n, got.Refused, prompt)
					}
					break
				}
				if strings.Contains(prompt, "Captured") {
					with++
				}
				if got.Next != "model" || prompt == without || !strings.Contains(prompt, "Trial") ||
					n == 0 && !strings.Contains(prompt, "Weather") {
					t.Errorf("trial %d: got %+v %s", n, got.Refused, prompt)
				}
				without = prompt
			}
		})
	}
}

// A loop of the caller's own says that what is refused is none of the messages, as a memory block: none leaves the
// view, and the turn comes back that left it before the caller knew.
func TestWhatIsRefusedElsewhereHidesNoTurnOfALoopOfOnesOwn(t *testing.T) {
	t.Parallel()
	for format, said := range dialects {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			c := newClient(t)
			agent := c.made("/v1/agents", `{"name":"a","memory_blocks":[{"label":"notes","value":"x"}]}`)
			in := func(body string) string { return strings.TrimSuffix(body, "}") + `,"format":"` + format + `"}` }
			elsewhere := `"refused":{"status":500,"message":"Oh","place":"elsewhere"}`
			c.step(agent, in(`{"messages":[{"role":"user","content":"First"}]}`))
			c.step(agent, in(`{"response":`+fmt.Sprintf(said.end, 10)+`}`))
			c.step(agent, in(`{"messages":[{"role":"user","content":"Second"}]}`))
			if got := c.reports(agent, "/step", in(`{`+elsewhere+`}`)); len(got.Refused.Left)+len(got.Refused.Returned) > 0 ||
				got.Next != "model" || !strings.Contains(string(got.Prompt.Request), "Second") {
				t.Errorf("a turn: got %+v", got)
			}
			c.step(agent, in(`{"response":`+fmt.Sprintf(said.end, 10)+`}`))
			c.step(agent, in(`{"messages":[{"role":"user","content":"Third"}]}`))
			if got := c.reports(agent, "/step", in(`{`+reported+`}`)); len(got.Refused.Left) != 1 || got.Next != "user" {
				t.Errorf("the place is not known: got %+v", got)
			}
			if got := c.reports(agent, "/step", in(`{`+elsewhere+`}`)); len(got.Refused.Returned) != 1 || got.Next != "model" ||
				!strings.Contains(string(got.Prompt.Request), "Third") {
				t.Errorf("the place is known: got %+v", got)
			}
			c.step(agent, in(`{"response":`+fmt.Sprintf(said.end, 10)+`}`))
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

// A turn after one that was never answered, and that a compaction took out of the view, leaves the view, too, and then
// nothing is left to ask: in three dialects, whatever the first turn failed of.
func TestATurnAfterAnUnansweredOneEndsItsLoop(t *testing.T) {
	t.Parallel()
	for format, said := range dialects {
		for _, before := range []string{`"refused":{"status":413,"message":"prompt is too long: 9 tokens > 3 maximum"}`,
			`"messages":[{"role":"user","content":"Once more"}]`} {
			c := newClient(t)
			agent := c.made("/v1/agents", `{"name":"a"}`)
			in := func(body string) string { return `{` + body + `,"format":"` + format + `"}` }
			tooLong := in(`"refused":{"status":413,"message":"prompt is too long: 9 tokens > 3 maximum"}`)
			c.reports(agent, "/step", in(`"messages":[{"role":"user","content":"First"}]`))
			c.reports(agent, "/step", in(`"response":`+fmt.Sprintf(said.end, 10)))
			c.reports(agent, "/step", in(`"messages":[{"role":"user","content":"Unanswered"}]`))
			c.reports(agent, "/step", in(before))
			c.reports(agent, "/step", in(`"messages":[{"role":"user","content":"New"}]`))
			got := c.reports(agent, "/step", tooLong)
			for n := 0; got.Next == "model" && n < 10; n++ {
				got = c.reports(agent, "/step", tooLong)
			}
			if got.Next != "user" {
				t.Errorf("%s, %s: ten reports did not end the loop: %+v %s", format, before, got, got.Prompt.Request)
			}
		}
	}
}

// An answer of a caller's own loop that a content filter stopped leaves the view with its turn, in three dialects, and
// stays in the log. The same step again changes nothing.
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
			in := func(body string) string { return body + `,"format":"` + format + `"}` }
			for _, before := range []string{"", "Hello"} {
				if before != "" {
					c.step(agent, in(`{"messages":[{"role":"user","content":"Hello"}]`))
					c.step(agent, in(`{"response":`+fmt.Sprintf(dialects[format].end, 10)))
				}
				c.step(agent, in(`{"messages":[{"role":"user","content":"POISON"}]`))
				for n := range 2 {
					got := c.reports(agent, "/step", in(`{"otid":"o`+before+`","response":`+response))
					prompt := string(got.Prompt.Request)
					if got.Next != "user" || strings.Contains(prompt, "POISON") || strings.Contains(prompt, "I start") ||
						!strings.Contains(prompt, before) || n == 0 && len(got.Refused.Left) != 2 {
						t.Errorf("step %d after %q: got %+v %s", n, before, got, prompt)
					}
				}
			}
			if log := fmt.Sprint(c.log(agent)); strings.Count(log, "I start") != 2 || strings.Count(log, "POISON") != 2 {
				t.Errorf("the log is %s", log)
			}
		})
	}
}

// Reports that are not about what a prompt says change nothing, and reports that cannot be are refused.
func TestOtherReportsOfRefusals(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	c.step(agent, `{"messages":[{"role":"user","content":"Hello"}]}`)
	for _, said := range []string{`{"status":401,"message":"No"}`, `{"status":403}`, `{"status":404}`, `{"status":429}`,
		`{"status":500}`, `{"status":400,"message":"API key not valid"}`} {
		got := c.reports(agent, "/step", `{"refused":`+said+`}`)
		if !got.Refused.Unchanged || !strings.Contains(string(got.Prompt.Request), "Hello") {
			t.Errorf("%s: got %+v", said, got)
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

// A refused message stays refused in a fork, in a file of the agent and in what that file makes; an erasure takes the
// provider's words out of it.
func TestRefusalsAreCarried(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	id := c.made("/v1/conversations/?agent_id="+agent, `{}`)
	in := `,"conversation_id":"` + id + `"}`
	c.step(agent, `{"messages":[{"role":"user","content":"First"}]`+in)
	c.reports(agent, "/step", `{"messages":[{"role":"user","content":"Bad"}],`+
		`"refused":{"status":400,"message":"Wormwood is bad"}`+in)
	fork := c.made("/v1/conversations/"+id+"/fork", `{}`)
	for _, of := range []string{id, fork} {
		items := c.must("GET", "/v1/conversations/"+of+"/messages", "")
		if !strings.Contains(items, `"refused":{"status":400,"message":"Wormwood is bad"}`) {
			t.Errorf("%s has %s", of, items)
		}
		if prompt := c.must("GET", "/v1/agents/"+agent+"/prompt?conversation_id="+of, ""); strings.Contains(prompt, "Bad") {
			t.Errorf("the prompt of %s has the message: %s", of, prompt)
		}
	}
}
