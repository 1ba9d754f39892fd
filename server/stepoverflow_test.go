package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/compaction/llm/llmtest"
)

var longTalk = strings.Repeat("the heron stands in the reeds ", 20)

// overflowReport returns a report of a provider's answer to a prompt that is too long.
func overflowReport(wording llmtest.Wording) string {
	message, err := json.Marshal(wording.Text(4_000, 9_000))
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"refused":{"status":%d,"message":%s}}`, wording.Status, message)
}

// If a program has its own loop, and its provider finds a prompt too long, in whatever words, the program gets a
// shorter prompt.
func TestAReportedOverflowCompacts(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, wording := range llmtest.Wordings {
		t.Run(wording.Name, func(t *testing.T) {
			t.Parallel()
			c := c.of(t)
			agent := c.made("/v1/agents", `{"name":"a"}`)
			c.capture(agent, chatter(1, 12, longTalk))
			c.step(agent, `{"messages":[{"role":"user","content":"Newest"}]}`)
			before := len(c.requested(agent, "openai"))
			got := c.reports(agent, "/step", overflowReport(wording))
			prompt := string(got.Prompt.Request)
			if !got.Refused.Compacted || !got.Refused.AskAgain || len(got.Refused.Left) > 0 || got.Next != "model" ||
				!strings.Contains(prompt, "Newest") || len(c.requested(agent, "openai")) >= before {
				t.Errorf("got %+v, and after %d messages the prompt %s", got.Refused, before, prompt)
			}
			if n := len(c.list("/v1/agents/" + agent + "/compactions")); n != 1 {
				t.Errorf("%d compactions were made, want 1", n)
			}
		})
	}
}

// If a report of a prompt that was too long comes again under its otid, nothing changes.
func TestAnOverflowIsReportedOnce(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	c.capture(agent, chatter(1, 12, longTalk))
	c.step(agent, `{"messages":[{"role":"user","content":"Newest"}]}`)
	report := strings.Replace(overflowReport(llmtest.Wordings[0]), "{", `{"otid":"o",`, 1)
	if got := c.reports(agent, "/step", report); !got.Refused.Compacted {
		t.Fatalf("got %+v", got)
	}
	prompt := c.promptIn(agent, "openai")
	got := c.reports(agent, "/step", report)
	if again := c.promptIn(agent, "openai"); !got.Refused.Unchanged || got.Refused.Compacted || again != prompt ||
		len(c.list("/v1/agents/"+agent+"/compactions")) != 1 {
		t.Errorf("the report again: got %+v", got.Refused)
	}
}

// If prompts are reported as too long again and again, the prompt is made as short as possible, and then the turn
// leaves the view, so that the loop ends.
func TestAReportedOverflowOfEveryPromptEndsTheTurn(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	c.capture(agent, chatter(1, 12, longTalk))
	c.step(agent, `{"messages":[{"role":"user","content":"Newest"}]}`)
	for n := 1; ; n++ {
		got := c.reports(agent, "/step", overflowReport(llmtest.Wordings[0]))
		if got.Refused.Compacted && n < 5 {
			continue
		}
		if n == 1 || len(got.Refused.Left) != 1 || strings.Contains(string(got.Prompt.Request), "Newest") {
			t.Errorf("report %d: got %+v %s", n, got.Refused, got.Prompt.Request)
		}
		break
	}
	c.step(agent, `{"messages":[{"role":"user","content":"Next"}]}`)
	if prompt := c.promptIn(agent, "openai"); !strings.Contains(prompt, "Next") {
		t.Errorf("the next turn's prompt is %s", prompt)
	}
}

// oneTooLong is OpenAI's answer to a message that exceeds the maximum length of messages.
const oneTooLong = `Invalid 'messages[9].content': string too long. Expected a string with maximum length 1048576, ` +
	`but got a string with length 2000000 instead.`

// If a message is too long for any prompt, only the message leaves the view. Earlier messages are not compacted because
// of it.
func TestAMessageThatIsTooLongAloneCompactsNothing(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"openai", "anthropic", "responses"} {
		for _, way := range []string{"/step", "/messages/capture"} {
			c := newClient(t)
			l := looper{c, c.made("/v1/agents", `{"name":"a"}`), format}
			for n := range 4 {
				l.says(fmt.Sprint("Warm ", n))
				l.answers()
			}
			l.says("Huge")
			got := l.reports(l.agent, way, `{"refused":{"status":400,"message":"`+oneTooLong+`"}}`)
			prompt := l.promptIn(l.agent, format)
			if got.Refused.Compacted || len(got.Refused.Left) != 1 || strings.Contains(prompt, "Huge") {
				t.Errorf("%s, %s: got %+v %s", format, way, got.Refused, prompt)
			}
			l.checkOnce("Warm 0", "Warm 1", "Warm 2", "Warm 3")
		}
	}
	for _, handle := range handles {
		r := newRunner(t, `{"name":"a","model":"`+handle+`"}`)
		for n := range 4 {
			r.says(fmt.Sprint("Warm ", n))
		}
		r.failsAt("Huge", modeltest.Answer{Status: 400, Text: `{"error":{"message":"` + oneTooLong +
			`","type":"invalid_request_error","param":"messages[9].content","code":"string_above_max_length"}}`})
		if got := r.says("Huge"); got.Code != 400 || got.Error == nil ||
			!strings.Contains(got.Error.Detail, "string too long") {
			t.Errorf("%s: got %d %+v", handle, got.Code, got.Error)
		}
		if got := r.says("Next"); got.StopReason.StopReason != "end_turn" {
			t.Errorf("%s: the next turn ends with %+v", handle, got)
		}
		asked := r.asked()
		if strings.Contains(asked, "Huge") || strings.Count(asked, "Warm") != 4 ||
			len(r.list("/v1/agents/"+r.agent+"/compactions")) != 0 {
			t.Errorf("%s: the model was asked %s", handle, asked)
		}
	}
}

// A captured turn that was too long for the provider compacts the conversation, too.
func TestACapturedOverflowCompacts(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	c.capture(agent, chatter(1, 12, longTalk))
	report := strings.TrimPrefix(overflowReport(llmtest.Wordings[0]), "{")
	got := c.reports(agent, "/messages/capture", `{"messages":[{"role":"user","content":"Newest"}],`+report)
	if prompt := c.promptIn(agent, "openai"); !got.Refused.Compacted || !strings.Contains(prompt, "Newest") ||
		len(c.list("/v1/agents/"+agent+"/compactions")) != 1 {
		t.Errorf("got %+v, and the prompt %s", got.Refused, prompt)
	}
}
