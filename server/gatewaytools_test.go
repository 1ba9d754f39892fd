package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/servertest"
	"github.com/loci-memory/loci/tenant/quota"
)

// scriptedCall is a call of a tool in a scripted answer.
type scriptedCall struct{ id, name, arguments string }

// calls answers with a text and calls of tools, in the form of the request's path.
func calls(w http.ResponseWriter, asked sentRequest, text string, calls ...scriptedCall) {
	streams := strings.Contains(asked.body, `"stream":true`)
	var events []any
	usage := map[string]any{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
	if !strings.Contains(asked.target, "/chat/completions") {
		usage = map[string]any{"input_tokens": 10, "output_tokens": 5}
	}
	finish := func(with, without string) string {
		if len(calls) > 0 {
			return with
		}
		return without
	}
	switch {
	case strings.Contains(asked.target, "/chat/completions"):
		var list []any
		events = append(events, map[string]any{"id": "c", "choices": []any{map[string]any{"index": 0,
			"delta": map[string]any{"role": "assistant", "content": text}}}})
		for i, c := range calls {
			call := map[string]any{"id": c.id, "type": "function",
				"function": map[string]any{"name": c.name, "arguments": c.arguments}}
			list = append(list, call)
			begin := map[string]any{"index": i, "id": c.id, "type": "function", "function": map[string]any{"name": c.name,
				"arguments": c.arguments[:1]}}
			more := map[string]any{"index": i, "function": map[string]any{"arguments": c.arguments[1:]}}
			for _, piece := range []any{begin, more} {
				events = append(events, map[string]any{"id": "c", "choices": []any{map[string]any{"index": 0,
					"delta": map[string]any{"tool_calls": []any{piece}}}}})
			}
		}
		events = append(events, map[string]any{"id": "c", "choices": []any{map[string]any{"index": 0,
			"delta": map[string]any{}, "finish_reason": finish("tool_calls", "stop")}}},
			map[string]any{"id": "c", "choices": []any{}, "usage": usage})
		if !streams {
			message := map[string]any{"role": "assistant", "content": text}
			if len(list) > 0 {
				message["tool_calls"] = list
			}
			events = []any{map[string]any{"id": "c", "usage": usage, "choices": []any{map[string]any{"index": 0,
				"message": message, "finish_reason": finish("tool_calls", "stop")}}}}
		}
	case strings.Contains(asked.target, "/responses"):
		output := []any{map[string]any{"type": "message", "role": "assistant",
			"content": []any{map[string]any{"type": "output_text", "text": text, "annotations": []any{}}}}}
		events = append(events, map[string]any{"type": "response.created"},
			map[string]any{"type": "response.output_item.added", "output_index": 0, "item": output[0]})
		for i, c := range calls {
			item := map[string]any{"type": "function_call", "call_id": c.id, "name": c.name, "arguments": c.arguments}
			output = append(output, item)
			events = append(events, map[string]any{"type": "response.output_item.added", "output_index": i + 1, "item": item},
				map[string]any{"type": "response.function_call_arguments.done", "output_index": i + 1,
					"arguments": c.arguments})
		}
		response := map[string]any{"id": fmt.Sprintf("resp_%d", asked.n), "object": "response", "status": "completed",
			"output": output, "usage": usage, "tools": toolsIn(asked.body)}
		events = append(events, map[string]any{"type": "response.completed", "response": response})
		if !streams {
			events = []any{response}
		}
	default:
		content := []any{map[string]any{"type": "text", "text": text}}
		events = append(events, map[string]any{"type": "message_start", "message": map[string]any{"content": []any{},
			"usage": map[string]any{"input_tokens": 10, "output_tokens": 1}}},
			map[string]any{"type": "content_block_start", "index": 0,
				"content_block": map[string]any{"type": "text", "text": ""}},
			map[string]any{"type": "content_block_delta", "index": 0,
				"delta": map[string]any{"type": "text_delta", "text": text}},
			map[string]any{"type": "content_block_stop", "index": 0})
		for i, c := range calls {
			content = append(content, map[string]any{"type": "tool_use", "id": c.id, "name": c.name,
				"input": json.RawMessage(c.arguments)})
			events = append(events, map[string]any{"type": "content_block_start", "index": i + 1,
				"content_block": map[string]any{"type": "tool_use", "id": c.id, "name": c.name, "input": map[string]any{}}},
				map[string]any{"type": "content_block_delta", "index": i + 1,
					"delta": map[string]any{"type": "input_json_delta", "partial_json": c.arguments}},
				map[string]any{"type": "content_block_stop", "index": i + 1})
		}
		events = append(events, map[string]any{"type": "message_delta",
			"delta": map[string]any{"stop_reason": finish("tool_use", "end_turn")},
			"usage": map[string]any{"output_tokens": 5}}, map[string]any{"type": "message_stop"})
		if !streams {
			events = []any{map[string]any{"type": "message", "role": "assistant", "content": content,
				"stop_reason": finish("tool_use", "end_turn"), "usage": usage}}
		}
	}
	var answer strings.Builder
	for _, e := range events {
		text := string(must(json.Marshal(e)))
		if streams {
			kind, _ := e.(map[string]any)["type"].(string)
			text = map[bool]string{true: "event: " + kind + "\n"}[kind != ""] + "data: " + text + "\n\n"
		}
		answer.WriteString(text)
	}
	if streams && strings.Contains(asked.target, "/chat/completions") {
		answer.WriteString("data: [DONE]\n\n")
	}
	w.Header().Set("Content-Type", map[bool]string{true: "text/event-stream", false: "application/json"}[streams])
	w.Header().Set("Content-Length", strconv.Itoa(answer.Len()))
	_, _ = w.Write([]byte(answer.String())) // the client may have left
}

// toolsIn returns the tools of a request, which a response of the Responses API repeats.
func toolsIn(body string) json.RawMessage {
	var r struct {
		Tools json.RawMessage `json:"tools"`
	}
	_ = json.Unmarshal([]byte(body), &r) // another form has none
	return r.Tools
}

// withTool returns a request of a client that has a tool of its own.
func withTool(path string, streams bool, messages ...any) string {
	schema := map[string]any{"type": "object"}
	var tool any
	list := "messages"
	switch path {
	case chatPath:
		tool = map[string]any{"type": "function", "function": map[string]any{"name": "weather", "parameters": schema}}
	case responsesPath:
		tool, list = map[string]any{"type": "function", "name": "weather", "parameters": schema}, "input"
	default:
		tool = map[string]any{"name": "weather", "input_schema": schema}
	}
	r := map[string]any{"model": "m", "tools": []any{tool}, list: messages}
	if streams {
		r["stream"] = true
	}
	if path == messagesPath {
		r["max_tokens"] = 100
	}
	return string(must(json.Marshal(r)))
}

var usageNumber = regexp.MustCompile(`"(prompt_tokens|completion_tokens|input_tokens|output_tokens)":(\d+)`)

// lastUsage returns the last numbers of an answer's usage, by their names.
func lastUsage(text string) map[string]string {
	last := map[string]string{}
	for _, m := range usageNumber.FindAllStringSubmatch(text, -1) {
		last[m[1]] = m[2]
	}
	return last
}

// The agent's tools run in the gateway. Their calls and results are never shown to the client, are counted in the
// usage, and stand in the next request to the provider where they were.
func TestTheGatewayRunsTools(t *testing.T) {
	t.Parallel()
	for _, path := range []string{chatPath, responsesPath, messagesPath} {
		for _, streams := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, streams %v", strings.Trim(path, "/"), streams), func(t *testing.T) {
				t.Parallel()
				g := newGateway(t)
				agent := g.made("/v1/agents",
					`{"tool_set":"all",
					"gateway":{"tools":["archival_memory_insert","archival_memory_search"]}}`)
				send := func(messages ...any) (servertest.Reply, sentRequest) {
					t.Helper()
					r := g.send("/agents/"+agent+path, withTool(path, streams, messages...))
					if n := r.Header().Get("Content-Length"); n != "" && n != strconv.Itoa(r.Body.Len()) {
						t.Errorf("the answer has %d bytes, and says %s", r.Body.Len(), n)
					}
					if r.Code != http.StatusOK {
						t.Fatalf("status %d: %s", r.Code, r.Text)
					}
					if strings.Contains(r.Text, "archival_memory") || strings.Contains(r.Text, "call_inner") {
						t.Errorf("the client sees a call of Loci's: %s", r.Text)
					}
					return r, g.provider.last()
				}
				said := func(role, text string) any { return map[string]any{"role": role, "content": text} }

				g.provider.answer = func(w http.ResponseWriter, asked sentRequest) {
					if !strings.Contains(asked.body, `"weather"`) || !strings.Contains(asked.body, `"archival_memory_insert"`) {
						t.Errorf("the provider is not offered all tools: %s", asked.body)
					}
					if asked.n == 1 {
						calls(w, asked, "", scriptedCall{"call_inner1", "archival_memory_insert", `{"content":"Ada likes tea"}`})
						return
					}
					calls(w, asked, "Noted.")
				}
				r, asked := send(said("user", "Keep that I like tea"))
				if asked.n != 2 || strings.Count(asked.body, `call_inner1`) != 2 {
					t.Errorf("the provider is asked %d times, the last time for %s", asked.n, asked.body)
				}
				usage := lastUsage(r.Text)
				if usage["completion_tokens"] != "10" && usage["output_tokens"] != "10" {
					t.Errorf("the usage is %v; want that of both answers: %s", usage, r.Text)
				}
				if got := g.must("GET", "/v1/agents/"+agent+"/archival-memory", ""); !strings.Contains(got, "Ada likes tea") {
					t.Errorf("the tool did not run: %s", got)
				}
				first := asked.body

				// The client's next message: the provider gets the call and its result where they were.
				g.provider.answer = func(w http.ResponseWriter, asked sentRequest) {
					calls(w, asked, "", scriptedCall{"call_inner2", "archival_memory_search", `{"query":"tea"}`},
						scriptedCall{"call_own", "weather", `{"city":"Rome"}`})
				}
				r, asked = send(said("user", "Keep that I like tea"), said("assistant", "Noted."),
					said("user", "How is it in Rome?"))
				shown := string(must(json.Marshal(itemsOf(t, first, listOf(path)))))
				if now := string(must(json.Marshal(itemsOf(t, asked.body, listOf(path))))); !strings.HasPrefix(now,
					strings.TrimSuffix(shown, "]")) {
					t.Errorf("the prompt does not begin as the one before:\n%s\n%s", shown, now)
				}
				if !strings.Contains(r.Text, "call_own") || !strings.Contains(r.Text, "Rome") ||
					strings.Contains(r.Text, `"index":2`) || strings.Contains(r.Text, `"output_index":2`) {
					t.Errorf("the client does not get its own call alone: %s", r.Text)
				}

				// The client answers its own call: the provider gets both results.
				g.provider.answer = func(w http.ResponseWriter, asked sentRequest) { calls(w, asked, "Sunny.") }
				history := []any{said("user", "Keep that I like tea"), said("assistant", "Noted."),
					said("user", "How is it in Rome?")}
				history = append(history, weatherCall(path)...)
				_, asked = send(history...)
				checkPairs(t, asked.body, path)
				if strings.Count(asked.body, "call_inner2") != 2 || strings.Count(asked.body, "call_own") != 2 ||
					strings.Count(asked.body, "call_inner1") != 2 {
					t.Errorf("the calls do not come back with their results: %s", asked.body)
				}
				_, asked = send(append(history, said("assistant", "Sunny."), said("user", "Thanks"))...)
				checkPairs(t, asked.body, path)
			})
		}
	}
}

func listOf(path string) string {
	if path == responsesPath {
		return "input"
	}
	return "messages"
}

// weatherCall returns what a client sends of its call of the tool weather: the call, and its result.
func weatherCall(path string) []any {
	switch path {
	case chatPath:
		return []any{map[string]any{"role": "assistant", "content": "", "tool_calls": []any{map[string]any{"id": "call_own",
			"type": "function", "function": map[string]any{"name": "weather", "arguments": `{"city":"Rome"}`}}}},
			map[string]any{"role": "tool", "tool_call_id": "call_own", "content": "sun"}}
	case responsesPath:
		return []any{map[string]any{"type": "function_call", "call_id": "call_own", "name": "weather",
			"arguments": `{"city":"Rome"}`},
			map[string]any{"type": "function_call_output", "call_id": "call_own", "output": "sun"}}
	}
	return []any{map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "tool_use", "id": "call_own",
		"name": "weather", "input": map[string]any{"city": "Rome"}}}},
		map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": "call_own",
			"content": "sun"}}}}
}

// checkPairs checks that each call of a prompt has one result behind it.
func checkPairs(t *testing.T, body, path string) {
	t.Helper()
	for _, id := range []string{"call_inner1", "call_inner2", "call_own"} {
		if n := strings.Count(body, id); n != 2 {
			t.Errorf("%s: %s stands %d times in the prompt, want a call and a result: %s", path, id, n, body)
		}
	}
}

// A model that calls the agent's tools without end is asked a bounded number of times, each of which counts.
func TestTheGatewayEndsCallsWithoutEnd(t *testing.T) {
	t.Parallel()
	for _, path := range []string{chatPath, responsesPath, messagesPath} {
		g := newGateway(t)
		agent := g.made("/v1/agents", `{"tool_set":"all","gateway":{"tools":["archival_memory_search"]}}`)
		g.provider.answer = func(w http.ResponseWriter, asked sentRequest) {
			calls(w, asked, "", scriptedCall{fmt.Sprintf("call_%d", asked.n), "archival_memory_search", `{"query":"tea"}`})
		}
		r := g.send("/agents/"+agent+path, withTool(path, false, map[string]any{"role": "user", "content": "Hello"}))
		if n := g.provider.last().n; r.Code != http.StatusOK || n != 9 {
			t.Errorf("%s: status %d after %d requests, want 200 after 9: %s", path, r.Code, n, r.Text)
		}
		if _, err := g.server.Quotas.Update(t.Context(), g.org, func(l *quota.Limits) {
			l.GatewayRequests = new(int64(12))
		}); err != nil {
			t.Fatal(err)
		}
		r = g.send("/agents/"+agent+path, withTool(path, false, map[string]any{"role": "user", "content": "Again"}))
		if n := g.provider.last().n; r.Code != http.StatusTooManyRequests || n != 12 {
			t.Errorf("%s: status %d after %d requests, want 429 after 12: %s", path, r.Code, n, r.Text)
		}
	}
}

// A branch of a user's conversation is the user's, in each mode.
func TestBranchesOfUsersInTheGateway(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	agent := g.made("/v1/agents", `{"recall_scope":"user","context_window_limit":5000}`)
	long := strings.Repeat("The harbour has a light that turns at night. ", 150)
	for _, mode := range []string{"observe", "remember", "manage"} {
		send := func(texts ...string) servertest.Reply {
			return g.send("/agents/"+agent+chatPath, chatOf(texts...), "X-Loci-User", "ann", "X-Loci-Mode", mode)
		}
		first := mode + " " + long
		g.provider.answer = func(w http.ResponseWriter, asked sentRequest) { says(w, asked, "It turns.") }
		send(first)
		g.expectKept(mode, send(first, "It turns.", long), first, "It turns.", long, "It turns.")
		g.expectKept(mode+", a branch", send(first, "It turns.", "Another "+long), first, "It turns.", "Another "+long,
			"It turns.")
	}
}
