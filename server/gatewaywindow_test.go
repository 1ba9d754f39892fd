package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/servertest"
	"github.com/loci-memory/loci/tenant/apikey"
	"github.com/loci-memory/loci/tenant/quota"
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

// In the mode manage, a request that is longer than its model's window is answered: the provider gets a prompt that
// fits, in which each result has its call and what is visible is what the client sent. From one request to the next,
// the prompt only grows, until the next compaction.
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

// The mode of a request is the one that it names, else its key's, its agent's, or the server's.
func TestModesOfTheGateway(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	agent := g.made("/v1/agents", `{"gateway":{"mode":"observe"}}`)
	key := g.keyOf(apikey.NewKey{Scopes: []string{apikey.Write}, GatewayMode: "manage"})
	for _, c := range []struct {
		headers []string
		want    string
	}{
		{nil, "remember"},
		{[]string{"X-Loci-Agent", agent}, "observe"},
		{[]string{"X-Loci-Agent", agent, "X-Loci-Key", key}, "manage"},
		{[]string{"X-Loci-Agent", agent, "X-Loci-Key", key, "X-Loci-Mode", "remember"}, "remember"},
	} {
		r := g.send(chatPath, chatOf("a"), c.headers...)
		if got := r.Header().Get("X-Loci-Memory"); r.Code != http.StatusOK || got != c.want {
			t.Errorf("%v: status %d, the mode is %q, want %q", c.headers, r.Code, got, c.want)
		}
	}
	if r := g.send(chatPath, chatOf("a"), "X-Loci-Mode", "all"); r.Code != http.StatusUnprocessableEntity {
		t.Errorf("an unknown mode: status %d, %s", r.Code, r.Text)
	}
	for body, want := range map[string]string{`{"gateway":{"mode":"all"}}`: "mode",
		`{"gateway":{"tools":["archival_memory_serch"]}}`: "the nearest is archival_memory_search"} {
		if r := servertest.Send(g.client, "PATCH", "/v1/agents/"+agent, body); r.Code < 400 || r.Code >= 500 ||
			!strings.Contains(r.Text, want) {
			t.Errorf("%s: status %d, %s", body, r.Code, r.Text)
		}
	}
}

// An organization may have only so many requests and tokens a day paid by the server. A request with a credential of
// its own is not counted.
func TestQuotasOfTheGateway(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.provider.answer = func(w http.ResponseWriter, _ sentRequest) {
		_, _ = io.WriteString(w,
			`{"choices":[{"index":0,"message":{"role":"assistant","content":"b"},
			"finish_reason":"stop"}],
			"usage":{"prompt_tokens":70,"completion_tokens":30,"total_tokens":100}}`)
	}
	secret := g.keyOf(apikey.NewKey{Scopes: []string{apikey.Write}})
	quotas := func(requests, tokens *int64) {
		t.Helper()
		_, err := g.server.Quotas.Update(t.Context(), g.org, func(l *quota.Limits) {
			l.GatewayRequests, l.GatewayTokens = requests, tokens
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what string, status int, headers ...string) {
		t.Helper()
		if r := g.send(chatPath, chatOf("a"), headers...); r.Code != status ||
			status != http.StatusOK && (r.Header().Get("Retry-After") == "" || !strings.Contains(r.Text, "today")) {
			t.Errorf("%s: status %d, want %d: %s, %v", what, r.Code, status, r.Text, r.Header())
		}
	}
	quotas(new(int64(2)), nil)
	expect("the first request", http.StatusOK)
	expect("the second", http.StatusOK)
	expect("one beyond the quota", http.StatusTooManyRequests)
	expect("one with a credential", http.StatusOK, "X-Loci-Key", secret, "Authorization", "Bearer sk-own")
	quotas(nil, new(int64(250)))
	expect("with 200 of 250 tokens", http.StatusOK)
	expect("with 300", http.StatusTooManyRequests)
	quotas(nil, nil)
	expect("without quotas", http.StatusOK)
}
