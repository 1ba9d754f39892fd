package chattest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/loci-memory/loci/recall/chat/chattest"
)

func TestRefusedMessages(t *testing.T) {
	t.Parallel()
	const (
		call   = `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`
		reply  = `{"role":"tool","tool_call_id":"a","content":""}`
		user   = `{"role":"user","content":[{"type":"text","text":"hi"}]}`
		use    = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`
		found  = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}`
		late   = `{"role":"user","content":[{"type":"text","text":"hi"},{"type":"tool_result","tool_use_id":"a"}]}`
		ask    = `{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}`
		item   = `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`
		output = `{"type":"function_call_output","call_id":"a","output":"x"}`
	)
	for _, c := range []struct {
		name     string
		check    func([]json.RawMessage) error
		messages string
		ok       bool
	}{
		{"a call with its result", chattest.OpenAI, user + "," + call + "," + reply, true},
		{"a call without its result", chattest.OpenAI, user + "," + call, false},
		{"a call whose result comes late", chattest.OpenAI, call + "," + user + "," + reply, false},
		{"a result twice", chattest.OpenAI, call + "," + reply + "," + reply, false},
		{"an id twice", chattest.OpenAI, call + "," + reply + "," + call + "," + reply, false},
		{"an empty message", chattest.OpenAI, `{"role":"user","content":""}`, false},
		{"an assistant's calls with their results", chattest.Anthropic, user + "," + use + "," + found, true},
		{"calls without their results", chattest.Anthropic, user + "," + use, false},
		{"calls without their results in the message after them", chattest.Anthropic, user + "," + use + "," + user, false},
		{"a result after a text", chattest.Anthropic, user + "," + use + "," + late, false},
		{"a result of no call", chattest.Anthropic, found, false},
		{"an assistant that begins", chattest.Anthropic, use + "," + found, false},
		{"an assistant that ends with a thought", chattest.Anthropic, user + `,{"role":"assistant","content":[` +
			`{"type":"thinking","thinking":"hm","signature":"s"}]}`, false},
		{"a call with its result, as items", chattest.Responses, ask + "," + item + "," + output, true},
		{"a call without its result, as items", chattest.Responses, ask + "," + item, false},
		{"a question before a result", chattest.Responses, item + "," + ask + "," + output, false},
		{"a reasoning that nobody can read", chattest.Responses, `{"type":"reasoning","summary":[]}`, false},
		{"an answer in the form of a question", chattest.Responses, strings.Replace(ask, "user", "assistant", 1), false},
	} {
		var messages []json.RawMessage
		if err := json.Unmarshal([]byte("["+c.messages+"]"), &messages); err != nil {
			t.Fatal(err)
		}
		if err := c.check(messages); (err == nil) != c.ok {
			t.Errorf("%s: %v, want it taken: %v", c.name, err, c.ok)
		}
	}
}
