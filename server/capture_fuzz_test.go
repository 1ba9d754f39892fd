package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/servertest"
)

// The answer to any input is a success or a refusal, never a server error. Refused messages are not stored.

func FuzzCaptureOpenAI(f *testing.F) {
	fuzzCapture(f, `{"messages":[%s]}`,
		`{"role":"user","content":"hi","name":"Ann"},{"role":"assistant","content":null,"tool_calls":[{"id":"c",`+
			`"type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"x"}`,
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image`+
			`/png;base64,aGk="}}]}`,
		`{"role":"assistant","function_call":{"name":"f","arguments":"{}"},"reasoning_content":"r","refusal":"n"},`+
			`{"role":"function","name":"f","content":[{"type":"refusal","refusal":"x"}]}`,
		`{"role":"robot"}`, `{"role":5,"content":{}}`, `{"role":"tool","content":null}`, `{"role":"user",`+
			`"content":"\ud800\u0000`+"\xff"+`"}`,
		`{"role":"user","content":"x","otid":"o","created_at":"2024-01-01T00:00:00.5+01:00"}`, `{"role":"user","content":`+
			strings.Repeat("[", 200))
}

func FuzzCaptureLetta(f *testing.F) {
	fuzzCapture(f, `{"messages":[%s]}`,
		`{"type":"message","role":"assistant","content":[{"type":"reasoning","reasoning":"r","is_native":true},`+
			`{"type":"tool_call","id":"c","name":"f","input":{"a":1}}]}`,
		`{"role":"assistant","content":[{"type":"summarized_reasoning","id":"x","summary":[{"index":0,"text":"\u0000t"}]},`+
			`{"type":"redacted_reasoning","data":"d"},{"type":"omitted_reasoning"}]}`,
		`{"type":"tool_return","tool_returns":[{"tool_call_id":"c","status":"error","tool_return":[{"type":"text",`+
			`"text":"x"}],"stdout":["a"],"stderr":["\u0000"]}],"otid":"o"}`,
		`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},`+
			`{"type":"tool_return","tool_call_id":"c","content":"x","is_error":5}]}`,
		`{"type":"approval","approvals":[]}`, `{"type":{},"role":[],"content":[[]]}`, `{"type":"tool_return",`+
			`"tool_returns":{"tool_call_id":{}}}`)
}

func FuzzCaptureListed(f *testing.F) {
	fuzzCapture(f, `{"messages":[%s]}`,
		`{"message_type":"user_message","id":"message-1","date":"2024-01-01T00:00:00+00:00","content":"q","otid":"o"}`,
		`{"message_type":"reasoning_message","id":"m","reasoning":"r"},{"message_type":"tool_call_message","id":"m",`+
			`"tool_call":{"tool_call_id":"c","name":"f","arguments":"{}"}},{"message_type":"tool_return_message","id":"n",`+
			`"tool_call_id":"c","tool_return":"x","status":"success"}`,
		`{"message_type":"hidden_reasoning_message","state":"redacted","hidden_reasoning":"h","id":7}`,
		`{"message_type":"summary_message"}`, `{"message_type":[],"id":{}}`, `{"message_type":"tool_call_message",`+
			`"tool_calls":[null]}`)
}

func FuzzCaptureProxied(f *testing.F) {
	fuzzCapture(f, `{"provider":"openai",%s}`,
		`"model":"m","request_messages":[{"role":"user","content":"q"}],`+
			`"response_dict":{"choices":[{"message":{"role":"assistant","content":"a"}}]}`,
		`"request_messages":{},"response_dict":[]`, `"response_dict":{"choices":[{"message":null}]}`,
		`"request_messages":[{"role":"user","content":"q"}],"response_dict":{"choices":{"message":{}}}`,
		`"provider":"anthropic","request_messages":[]`, `"messages":5,"conversation_id":[]`)
}

func fuzzCapture(f *testing.F, body string, seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	pool := dbtest.New(f)
	s := newServer(f, pool)
	handler := s.Handler()
	made := servertest.Send(handler, "POST", "/v1/agents", "{}").Text
	var agent struct{ ID string }
	if err := json.Unmarshal([]byte(made), &agent); err != nil {
		f.Fatal(err)
	}
	stored := func(t *testing.T) (n int) {
		n, err := db.One[int](t.Context(), pool, `SELECT count(*)::integer FROM messages`)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	f.Fuzz(func(t *testing.T, messages string) {
		text := strings.Replace(body, "%s", messages, 1)
		before := stored(t)
		got := servertest.Send(handler, "POST", "/v1/agents/"+agent.ID+"/messages/capture", text)
		if kept := stored(t) - before; got.Code != http.StatusOK && (got.Code < 400 || got.Code >= 500 || kept > 0) {
			t.Errorf("%s: got %d %s, and %d messages were stored", messages, got.Code, got.Text, kept)
		}
		if _, err := s.Recall.Search(t.Context(), 1, recall.Query{AgentID: agent.ID, Text: "hi", Limit: 5}); err != nil {
			t.Errorf("%s: a search afterwards: %v", messages, err)
		}
	})
}

// turns draws messages of all formats, and records the texts in them.
type turns struct {
	*rapid.T
	texts []string
	calls int
}

func (d *turns) text() string {
	s := rapid.StringOfN(rapid.RuneFrom([]rune("ab ñ世\"\\<&\n\u2028🙂")), 1, 30, -1).Draw(d.T, "text")
	s = fmt.Sprintf("%d:%s", len(d.texts), s)
	d.texts = append(d.texts, s)
	return s
}

func (d *turns) call() string {
	d.calls++
	return fmt.Sprintf("call-%d", d.calls)
}

// maybe returns a value or nil.
func (d *turns) maybe(value func() any) any {
	if rapid.Bool().Draw(d.T, "there") {
		return value()
	}
	return nil
}

func (d *turns) content() any {
	if rapid.Bool().Draw(d.T, "plain") {
		return d.text()
	}
	parts := []any{map[string]any{"type": "text", "text": d.text()}}
	for range rapid.IntRange(0, 2).Draw(d.T, "more parts") {
		parts = append(parts, rapid.SampledFrom([]func() any{
			func() any { return map[string]any{"type": "text", "text": d.text()} },
			func() any { return map[string]any{"type": "refusal", "refusal": d.text()} },
			func() any {
				return map[string]any{"type": "image_url", "image_url": map[string]any{"url": "https://x/" + fmt.Sprint(d.calls)}}
			},
		}).Draw(d.T, "part")())
	}
	return parts
}

func (d *turns) message() map[string]any {
	return rapid.SampledFrom([]func() map[string]any{
		func() map[string]any {
			return map[string]any{"role": rapid.SampledFrom([]string{"user", "system", "developer", "assistant"}).Draw(d.T,
				"role"), "content": d.content()}
		},
		func() map[string]any {
			return map[string]any{"role": "assistant", "content": d.maybe(d.content),
				"refusal":           d.maybe(func() any { return d.text() }),
				"reasoning_content": d.maybe(func() any { return d.text() }),
				"tool_calls": []any{map[string]any{"id": d.call(), "type": "function",
					"function": map[string]any{"name": "f", "arguments": d.text()}}}}
		},
		func() map[string]any {
			return map[string]any{"role": "tool", "tool_call_id": d.call(), "content": d.content()}
		},
		func() map[string]any {
			return map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "reasoning",
				"reasoning": d.text(), "is_native": true},
				map[string]any{"type": "tool_call", "id": d.call(), "name": "f", "input": map[string]any{"a": "b"}},
				map[string]any{"type": "summarized_reasoning", "id": "x",
					"summary": []any{map[string]any{"index": 0, "text": d.text()}}}}}
		},
		func() map[string]any {
			return map[string]any{"type": "tool_return",
				"tool_returns": []any{map[string]any{"tool_call_id": d.call(), "status": "success",
					"tool_return": d.content(), "stdout": []any{d.text()}, "stderr": []any{d.text()}}}}
		},
		func() map[string]any {
			return map[string]any{"message_type": "reasoning_message", "id": "message-" + d.call(), "reasoning": d.text()}
		},
		func() map[string]any {
			return map[string]any{"message_type": "assistant_message", "id": "message-1", "content": d.text()}
		},
		func() map[string]any {
			return map[string]any{"message_type": "tool_call_message", "id": "message-1",
				"tool_call": map[string]any{"tool_call_id": d.call(), "name": "f", "arguments": d.text()}}
		},
	}).Draw(d.T, "message")()
}

// Every accepted text can be read back.
func TestCaptureLosesNoText(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "{}")
	rapid.Check(t, func(rt *rapid.T) {
		d := &turns{T: rt}
		var messages []any
		for range rapid.IntRange(1, 6).Draw(rt, "messages") {
			messages = append(messages, d.message())
		}
		body, err := json.Marshal(map[string]any{"messages": messages})
		if err != nil {
			rt.Fatal(err)
		}
		reply := c.call("POST", "/v1/agents/"+agent+"/messages/capture", string(body))
		if strings.Contains(reply.Text, "has a result already") || strings.Contains(reply.Text, "has two results") {
			return // a call has one result
		}
		var got captured
		if err := json.Unmarshal([]byte(reply.Text), &got); err != nil || reply.Code != 200 {
			rt.Fatalf("got %d %s", reply.Code, reply.Text)
		}
		ids := make([]string, len(got.Messages))
		for i, m := range got.Messages {
			ids[i] = m.ID
		}
		var kept strings.Builder
		log, err := c.server.Recall.MessagesByID(c.t.Context(), c.org, ids)
		if err != nil {
			rt.Fatal(err)
		}
		for _, m := range log {
			for _, p := range m.Content {
				kept.WriteString(strings.Join(append(append([]string{p.Text, p.Input}, p.Stdout...), p.Stderr...), "\n") + "\n")
			}
		}
		for _, text := range d.texts {
			if !strings.Contains(kept.String(), text) {
				rt.Errorf("%s: %q is lost; kept is %q", body, text, kept.String())
			}
		}
		if len(log) != len(got.Messages) {
			rt.Errorf("%s: %d messages are kept, and %d were answered", body, len(log), len(got.Messages))
		}
	})
}
