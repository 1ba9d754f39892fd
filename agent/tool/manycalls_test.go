package tool_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/recall"
)

// However many tools a model calls in one answer, and however long its arguments and their results are, a prompt with
// room for an answer can be made: the newest calls stay, each with its result, and a line stands for the others.
func TestManyCallsInOneAnswerLeaveAPrompt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		calls           int
		argument, chars int  // of each call and result
		together        bool // the results are one message
		thought         int
	}{
		{"fifty short results", 50, 10, 40, false, 0},
		{"fifty long results", 50, 10, 3_000, false, 0},
		{"fifty long results in one message", 50, 10, 3_000, true, 0},
		{"long arguments", 50, 2_000, 40, false, 0},
		{"four hundred calls", 400, 40, 400, false, 0},
		{"a long thought", 60, 10, 400, false, 20_000},
	} {
		for _, window := range []int{4_096, 8_192} {
			for _, format := range []agent.Format{agent.OpenAI, agent.Anthropic, agent.Responses} {
				s := newSmall(t, window)
				name := fmt.Sprintf("%s, window %d, %s", c.name, window, format)
				s.say(t, recall.DefaultConversation, draft(recall.User, "2024-03-01T00:00:00Z",
					recall.Part{Type: recall.Text, Text: "Look everything up, please."}))
				answer := recall.Draft{Role: recall.Assistant}
				if c.thought > 0 {
					answer.Content = append(answer.Content, recall.Part{Type: recall.Reasoning, Native: true,
						Kind: recall.ReasoningContent, Text: strings.Repeat("I think. ", c.thought/9)})
				}
				results := []recall.Draft{{Role: recall.Tool}}
				for i := range c.calls {
					id := fmt.Sprintf("call_%d", i)
					answer.Content = append(answer.Content, recall.Part{Type: recall.ToolCall, CallID: id, Name: "look",
						Input: fmt.Sprintf(`{"at":"%d %s"}`, i, strings.Repeat("y ", c.argument/2))})
					part := recall.Part{Type: recall.ToolReturn, CallID: id, Text: fmt.Sprintf("result %d %s", i,
						strings.Repeat("zebra ", c.chars/6))}
					if c.together || i == 0 {
						results[0].Content = append(results[0].Content, part)
					} else {
						results = append(results, recall.Draft{Role: recall.Tool, Content: []recall.Part{part}})
					}
				}
				for _, d := range append([]recall.Draft{answer}, results...) {
					d.CreatedAt = new(time.Date(2024, 3, 1, 0, 0, 1, 0, time.UTC))
					s.say(t, recall.DefaultConversation, d)
				}
				p, err := s.agents.NextPrompt(t.Context(), s.org, agent.PromptTarget{AgentID: s.agent.ID, Format: format})
				if err != nil {
					t.Errorf("%s: no prompt can be made: %v", name, err)
					continue
				}
				request := string(p.Request)
				if p.Tokens.Total > window*95/100 {
					t.Errorf("%s: the prompt has %d tokens", name, p.Tokens.Total)
				}
				last := fmt.Sprintf("call_%d\"", c.calls-1)
				for _, want := range []string{"Look everything up", last} {
					if !strings.Contains(request, want) {
						t.Errorf("%s: the prompt lacks %q", name, want)
					}
				}
				calls, answered := shownCalls(t, p.Request)
				if calls != answered || calls == 0 {
					t.Errorf("%s: %d calls are shown, %d results", name, calls, answered)
				}
				if calls < c.calls && !strings.Contains(request, fmt.Sprintf("no room for %d call", c.calls-calls)) {
					t.Errorf("%s: %d of %d calls are shown, and nothing says so: %.2000s", name, calls, c.calls, request)
				}
			}
		}
	}
}

// shownCalls counts the calls in a request, and their results.
func shownCalls(t *testing.T, request json.RawMessage) (calls, results int) {
	t.Helper()
	for _, form := range []string{`"type":"function_call",`, `"type":"tool_use",`,
		`"type":"function","function":{"name":"look"`} {
		calls += strings.Count(string(request), form)
	}
	for _, form := range []string{`"type":"function_call_output"`, `"type":"tool_result"`, `"role":"tool"`} {
		results += strings.Count(string(request), form)
	}
	return calls, results
}
