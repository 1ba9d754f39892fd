package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// managed returns a client of a gateway that keeps the window of an agent with a limit in tokens.
func managed(t *testing.T, window int) (g gatewayClient, agent string) {
	t.Helper()
	g = newGateway(t)
	made := g.made("/v1/agents", fmt.Sprintf(
		`{"model":"openai/gpt-4o","context_window_limit":%d,"gateway":{"mode":"manage"}}`, window))
	return g, made
}

// toolTurns are the messages of turns in which a tool is called. Its result says which turn it is of.
func toolTurns(dialect string, from, to, words int) (messages []any) {
	for i := from; i < to; i++ {
		id := fmt.Sprintf("call_%d", i)
		question := fmt.Sprintf("Question %d: what does station %d report?", i, i)
		result := strings.Repeat(fmt.Sprintf("Station %d reports %d degrees. ", i, i*7%40), words/5)
		arguments := fmt.Sprintf(`{"station": %d}`, i)
		answer := fmt.Sprintf("Answer %d: station %d is fine.", i, i)
		switch dialect {
		case messagesPath:
			messages = append(messages, map[string]any{"role": "user", "content": question},
				map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "tool_use", "id": id, "name": "read",
					"input": json.RawMessage(arguments)}}},
				map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": id,
					"content": result}}},
				map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "text", "text": answer}}})
		case responsesPath:
			messages = append(messages, map[string]any{"role": "user", "content": question},
				map[string]any{"type": "function_call", "call_id": id, "name": "read", "arguments": arguments},
				map[string]any{"type": "function_call_output", "call_id": id, "output": result},
				map[string]any{"role": "assistant", "content": answer})
		default:
			messages = append(messages, map[string]any{"role": "user", "content": question},
				map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": id,
					"type": "function", "function": map[string]any{"name": "read", "arguments": arguments}}}},
				map[string]any{"role": "tool", "tool_call_id": id, "content": result},
				map[string]any{"role": "assistant", "content": answer})
		}
	}
	return messages
}

// In the mode manage, a request that is longer than its model's window is answered: the provider gets a prompt that fits,
// in which each result has its call and what is visible is what the client sent. From one request to the next, the
// prompt only grows, until the next compaction.
func TestTheGatewayKeepsTheWindow(t *testing.T) {
	t.Parallel()
	const window = 16_000
	for _, path := range []string{chatPath, responsesPath, messagesPath} {
		g, agent := managed(t, window)
		list := map[string]string{chatPath: "messages", responsesPath: "input", messagesPath: "messages"}[path]
		ofModel, err := g.server.Agents.Agent(t.Context(), g.org, agent)
		if err != nil {
			t.Fatal(err)
		}
		compactions, before, from := 0, "", 0
		var history []any
		for _, n := range []int{1, 30, 31, 32, 33, 34, 36, 40, 60} {
			history = append(history, toolTurns(path, from, n, 500)...)
			from = n
			history = append(history, map[string]any{"role": "user", "content": fmt.Sprintf("And after turn %d?", n)})
			body := string(must(json.Marshal(map[string]any{"model": "gpt-4o", "max_tokens": 500, "system": "Be brief.",
				list: history})))
			history = append(history, map[string]any{"role": "assistant",
				"content": fmt.Sprintf("Answer %d.", g.provider.last().n+1)})
			r := g.send("/agents/"+agent+path, body)
			asked := g.provider.last()
			if r.Code != http.StatusOK {
				t.Fatalf("%s, %d turns: status %d, %s", path, n, r.Code, r.Text)
			}
			if size := g.server.Agents.CountTokens(ofModel, asked.body); size > window {
				t.Errorf("%s, %d turns: the provider gets %d tokens", path, n, size)
			}
			if n > 1 && len(asked.body) < window {
				t.Errorf("%s, %d turns: the provider gets only %d bytes", path, n, len(asked.body))
			}
			checkPrompt(t, path, list, body, asked.body)
			shown := string(must(json.Marshal(itemsOf(t, asked.body, list))))
			if before != "" && !strings.HasPrefix(shown, before) {
				compactions++
			}
			before = strings.TrimSuffix(shown, "]")
		}
		if compactions == 0 || compactions > 5 {
			t.Errorf("%s: %d of 8 prompts do not begin as the one before; want some, and not all", path, compactions)
		}
	}
}

// itemsOf returns the messages of a request.
func itemsOf(t *testing.T, body, list string) (all []json.RawMessage) {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &fields); err != nil {
		t.Fatalf("the request is no JSON: %v: %s", err, body)
	}
	if err := json.Unmarshal(fields[list], &all); err != nil {
		t.Fatal(err)
	}
	return all
}

var recalledNote = regexp.MustCompile(`\\n\\n<recalled_memory>.*?</recalled_memory>`)

// checkPrompt checks that the messages of a prompt are those of the request, except for one summary and shortened
// results, that each call has its result, and that the newest message is there.
func checkPrompt(t *testing.T, path, list, request, prompt string) {
	t.Helper()
	sent := map[string]bool{}
	for _, item := range itemsOf(t, request, list) {
		sent[string(item)] = true
	}
	all, others, calls, results := itemsOf(t, recalledNote.ReplaceAllString(prompt, ""), list), 0, 0, 0
	for _, item := range all {
		text := string(item)
		calls += strings.Count(text, `"arguments"`) + strings.Count(text, `"tool_use"`)
		results += strings.Count(text, `"function_call_output"`) + strings.Count(text, `"role":"tool"`) +
			strings.Count(text, `"tool_result"`)
		if !sent[text] && !strings.Contains(text, "function_call_output") && !strings.Contains(text, `"role":"tool"`) &&
			!strings.Contains(text, "tool_result") {
			others++
		}
	}
	if calls != results || others > 1 || !sent[string(all[len(all)-1])] {
		t.Errorf("%s: %d calls, %d results, %d messages that the client did not send; the last one is %.100s", path, calls,
			results, others, all[len(all)-1])
	}
}
