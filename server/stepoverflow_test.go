package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/llm/llmtest"
)

var longTalk = strings.Repeat("the heron stands in the reeds ", 20)

// overflowReport is the report of a provider's answer to a prompt that is too long.
func overflowReport(by llmtest.Wording) string {
	message, err := json.Marshal(by.Text(4_000, 9_000))
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"refused":{"status":%d,"message":%s}}`, by.Status, message)
}

// A loop of the caller's own whose provider finds a prompt too long, in whatever words, gets a shorter one.
func TestAReportedOverflowCompacts(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, by := range llmtest.Wordings {
		t.Run(by.Name, func(t *testing.T) {
			t.Parallel()
			c := c.of(t)
			agent := c.made("/v1/agents", `{"name":"a"}`)
			c.capture(agent, chatter(1, 12, longTalk))
			c.step(agent, `{"messages":[{"role":"user","content":"Newest"}]}`)
			before := len(c.requested(agent, "openai"))
			got := c.reports(agent, "/step", overflowReport(by))
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

// A report of a prompt that was too long changes nothing when it comes again under its otid.
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

// A prompt that is reported as too long again and again is made as short as it can be, and then its turn leaves: the
// loop is not held.
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
