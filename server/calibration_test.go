package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/recall/tokens"
)

// promptTokens are the token counts of a prompt that the server returned.
type promptTokens struct{ Total, Estimated int }

// handedOut returns the token counts of an agent's next prompt.
func (c *client) handedOut(agent string) promptTokens {
	c.t.Helper()
	var got struct{ Tokens promptTokens }
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+agent+"/prompt?format=openai", "")), &got); err != nil {
		c.t.Fatal(err)
	}
	return got.Tokens
}

// answer captures the answer to a prompt, with the number of tokens that the provider counted.
func (c *client) answer(agent string, counted int) {
	c.t.Helper()
	c.capture(agent, fmt.Sprintf(`{"messages":[{"role":"assistant","content":"So it is."}],"usage":{"prompt_tokens":%d}}`,
		counted))
}

// A provider counts 1.6 tokens for each of ours. After its first report, no prompt is above 90 % of the window by its
// count, including prompts from another server and prompts of another agent. Another organization's reports do not
// count.
func TestReportsCalibrateTheCountsOfAModel(t *testing.T) {
	t.Parallel()
	c := newServerClient(t).as("home")
	const body = `{"name":"Ada","model":"acme/large","context_window_limit":16000}`
	const most = 14_400
	real := func(n promptTokens) int { return n.Estimated * 8 / 5 }
	live := func(c *client, turns int, told bool) {
		t.Helper()
		agent := c.made("/v1/agents", body)
		for i := range turns {
			c.capture(agent, fmt.Sprintf(`{"messages":[{"role":"user","content":%q}]}`,
				strings.Repeat(fmt.Sprintf("Part %d of the story. ", i), 20+150*(i%3))))
			n := c.handedOut(agent)
			if (told || i > 0) && (n.Total > most || real(n) > most) {
				t.Errorf("turn %d: a prompt of %+v, which the provider counts as %d", i, n, real(n))
			}
			c.answer(agent, real(n))
		}
		if strings.Count(c.must("GET", "/v1/agents/"+agent+"/compactions", ""), `"id":"compaction-`) < turns/10 {
			t.Errorf("fewer than %d compactions in %d turns are too few to tell anything", turns/10, turns)
		}
	}
	live(c, 30, false)
	restarted := *c
	restarted.server = newServer(t, c.pool)
	restarted.server.OpenOrg = openOrg
	restarted.Handler = restarted.server.Handler()
	live(&restarted, 20, true)
	agent := restarted.made("/v1/agents", body)
	restarted.capture(agent, chatter(1, 40, strings.Repeat("and so it goes on ", 20)))
	if n := restarted.handedOut(agent); real(n) > most {
		t.Errorf("with a long history: a prompt of %+v, which the provider counts as %d", n, real(n))
	}

	other := c.as("other")
	agent = other.made("/v1/agents", body)
	other.capture(agent, chatter(1, 3, "hello"))
	if n := other.handedOut(agent); n.Total < n.Estimated*105/100 || n.Total > n.Estimated*106/100 {
		t.Errorf("another organization's prompt has %+v, want 1.05 times the estimate", n)
	}
	other.answer(agent, other.handedOut(agent).Estimated)
	agent = c.made("/v1/agents", body)
	c.capture(agent, chatter(1, 3, "hello"))
	if n := c.handedOut(agent); n.Total < n.Estimated*155/100 {
		t.Errorf("after another organization's report a prompt has %+v, want 1.6 times the estimate", n)
	}
}

// The provider's last report counts in /context and in the tokens of a prompt, and the parts add up to it.
func TestTheNewestReportCountsInContext(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada","system":"Be kind.","model":"acme/large","context_window_limit":32000}`)
	c.capture(agent, chatter(1, 9, strings.Repeat("and so it goes on ", 20)))
	reported := c.handedOut(agent).Estimated * 13 / 10
	c.answer(agent, reported)
	n := c.handedOut(agent)
	if n.Total < reported || n.Total > reported+20 {
		t.Errorf("a prompt has %+v, want the %d that were reported and those of the answer", n, reported)
	}
	var parts map[string]any
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+agent+"/context", "")), &parts); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for name, value := range parts {
		if tokens, ok := value.(float64); ok && strings.HasPrefix(name, "num_tokens_") {
			sum += tokens
		}
	}
	if current := parts["context_window_size_current"]; current != float64(n.Total) || sum != current {
		t.Errorf("the context has %v tokens, %v in its parts, want %d", current, sum, n.Total)
	}
}

// A provider counts less than half as many tokens as Loci in one kind of text, and as many in others. After three
// answers, prompts of both kinds are known to a tenth, and none has more than its window.
func TestReportsCalibrateEachClassOfText(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	const body = `{"name":"Ada","model":"acme/large","context_window_limit":16000}`
	thai := func(text string) int { return strings.Count(text, "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35") }
	count := func(agent string) (counted int, n promptTokens) {
		prompt := c.must("GET", "/v1/agents/"+agent+"/prompt?format=openai", "")
		n = c.handedOut(agent)
		return n.Estimated - thai(prompt)*4, n
	}
	off := func(what string, agent string) {
		t.Helper()
		real, n := count(agent)
		if ratio := float64(n.Total) / float64(real); ratio < 0.9 || ratio > 1.1 || real > 16_000 {
			t.Errorf("%s: a prompt of %+v, which the provider counts as %d", what, n, real)
		}
	}
	say := func(agent, text string) {
		c.capture(agent, fmt.Sprintf(`{"messages":[{"role":"user","content":%q}]}`, text))
	}
	agent := c.made("/v1/agents", body)
	for i := range 20 {
		say(agent, strings.Repeat("สวัสดี ", 200))
		if i > 2 {
			off(fmt.Sprint("Thai ", i), agent)
		}
		real, _ := count(agent)
		c.answer(agent, real)
	}
	english := c.made("/v1/agents", body)
	for i := range 6 {
		say(english, strings.Repeat(fmt.Sprintf("Part %d of the story is long. ", i), 100))
		off(fmt.Sprint("English ", i), english)
		real, _ := count(english)
		c.answer(english, real)
	}
	fresh := c.made("/v1/agents", body)
	say(fresh, strings.Repeat("สวัสดี ", 500))
	off("Thai of a new conversation", fresh)
}

// A recording whose answers carry the provider's counts calibrates the model that it names, though its prompts had
// instructions and tools that nobody recorded. Other models' recordings do not, nor does a repetition.
func TestRecordedCountsCalibrate(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	const made = `{"name":"Ada","model":"acme/large","context_window_limit":64000}`
	recording := func(model string, each float64) string {
		var messages []string
		text, prompt := strings.Repeat("A fact of the story is told here, and more of it. ", 40), 20_000.0
		for i := range 10 {
			prompt += each * float64(tokens.Estimate(text)+tokens.PerMessage)
			messages = append(messages, fmt.Sprintf(`{"role":"user","content":%q,"otid":"%s-u%d"}`, text, model, i),
				fmt.Sprintf(`{"role":"assistant","content":%q,"otid":"%s-a%d","model":%q,"usage":{"prompt_tokens":%d}}`, text,
					model, i, model, int(prompt)))
			prompt += each * float64(tokens.Estimate(text)+tokens.PerMessage)
		}
		return `{"messages":[` + strings.Join(messages, ",") + `]}`
	}
	factor := func() float64 {
		agent := c.made("/v1/agents", made)
		c.capture(agent, `{"messages":[{"role":"user","content":"Hello."}]}`)
		n := c.handedOut(agent)
		return float64(n.Total) / float64(n.Estimated)
	}
	agent := c.made("/v1/agents", made)
	c.capture(agent, recording("other-model", 0.6))
	if got := factor(); got < 1.04 || got > 1.06 {
		t.Errorf("after a recording of another model the factor is %.3f", got)
	}
	for range 2 {
		c.capture(agent, recording("large-2026-03-01", 0.7))
		if got := factor(); got < 0.68 || got > 0.8 {
			t.Errorf("after a recording the factor is %.3f", got)
		}
	}
	c.capture(agent, `{"messages":[{"role":"assistant","content":"So.","model":"large","usage":"many"}]}`)
}
