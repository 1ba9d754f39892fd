package chat_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/recall/chat/chattest"
	"github.com/loci-memory/loci/recall/tokens"
)

// marked returns the texts of blocks with a mark, and the marks' times, in the order of the request.
func marked(t *testing.T, messages []json.RawMessage, m chat.Marks) (places []string) {
	t.Helper()
	add := func(place string, c *chat.CacheControl) {
		if c != nil {
			places = append(places, place+strings.TrimSuffix(" "+c.TTL, " "))
		}
	}
	add("tools", m.Tools)
	add("system", m.System)
	for _, raw := range messages {
		var of struct {
			Content []struct {
				Type, Text string
				ID         string             `json:"tool_use_id"`
				Cache      *chat.CacheControl `json:"cache_control"`
			}
		}
		if err := json.Unmarshal(raw, &of); err != nil {
			t.Fatal(err)
		}
		for _, b := range of.Content {
			add(b.Text+b.ID, b.Cache)
		}
	}
	return places
}

// cached returns a text of the user that a client has marked.
func cached(s, mark string) recall.Message {
	m := text(recall.User, s)
	m.Content[0].Extra = `{"anthropic":{"cache_control":` + mark + `}}`
	return m
}

func TestMarksForAnthropicsCache(t *testing.T) {
	t.Parallel()
	call := recall.Message{Role: recall.Assistant, Position: 3, Content: []recall.Part{
		{Type: recall.ToolCall, CallID: "a", Name: "f", Input: "{}"}}}
	result := recall.Message{Role: recall.Tool, Content: []recall.Part{{Type: recall.ToolReturn, CallID: "a", Text: "x"}}}
	const short, long = `{"type":"ephemeral"}`, `{"type":"ephemeral","ttl":"1h"}`
	var many []recall.Message
	for i := range 6 {
		many = append(many, cached(fmt.Sprint("q", i), short), text(recall.Assistant, fmt.Sprint("a", i)))
	}
	for name, c := range map[string]struct {
		view  []recall.Message
		tools bool
		want  []string
	}{
		"nothing was said": {nil, true, []string{"tools", "system"}},
		"one message":      {[]recall.Message{text(recall.User, "q")}, true, []string{"tools", "system", "q"}},
		"no tools":         {[]recall.Message{text(recall.User, "q")}, false, []string{"system", "q"}},
		"the results and the request before": {[]recall.Message{text(recall.User, "q"), call, result}, true,
			[]string{"tools", "system", "q", "a"}},
		"an answer is continued": {[]recall.Message{text(recall.User, "q"), text(recall.Assistant, "a"),
			text(recall.User, "r"), text(recall.Assistant, "b")}, true, []string{"tools", "system", "q", "r"}},
		"a client's mark counts": {[]recall.Message{cached("p", short), text(recall.Assistant, "a"),
			text(recall.User, "q"), text(recall.Assistant, "b"), text(recall.User, "r")}, true,
			[]string{"tools", "system", "q", "r"}},
		"a client's mark has room": {[]recall.Message{cached("p", short), text(recall.Assistant, "a"),
			text(recall.User, "q"), text(recall.Assistant, "b"), text(recall.User, "r")}, false,
			[]string{"system", "p", "q", "r"}},
		"the oldest of a client's gives way": {[]recall.Message{cached("o", short), text(recall.Assistant, "a"),
			cached("p", short), text(recall.Assistant, "b"), text(recall.User, "q"), text(recall.Assistant, "c"),
			text(recall.User, "r")}, false, []string{"system", "p", "q", "r"}},
		"a client's mark is at the place": {[]recall.Message{text(recall.User, "q"), text(recall.Assistant, "a"),
			cached("r", short)}, true, []string{"tools", "system", "q", "r"}},
		"a longer mark comes first": {[]recall.Message{text(recall.User, "q"), text(recall.Assistant, "a"),
			cached("r", long), text(recall.User, "s")}, true, []string{"tools 1h", "system 1h", "q 1h", "s"}},
		"a mark that Anthropic refuses": {[]recall.Message{cached("q", `{"type":"x"}`)}, true,
			[]string{"tools", "system", "q"}},
		"a client's old marks keep none of Loci's away": {append(many, text(recall.User, "r")), true,
			[]string{"tools", "system", "q5", "r"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			view := chat.WithState(c.view, recall.User, frame.StateOf("x"))
			messages, n, m := chat.AnthropicMarked(view, c.tools, tokens.Estimate)
			if diff := cmp.Diff(c.want, marked(t, messages, m)); diff != "" {
				t.Errorf("marks (-want +got):\n%s", diff)
			}
			if err := chattest.Anthropic(messages); err != nil {
				t.Errorf("%v in %s", err, messages)
			}
			plain, same := chat.Anthropic(view, tokens.Estimate)
			if n != same || len(marked(t, plain, chat.Marks{})) > 4 {
				t.Errorf("without marks of Loci: %d tokens, want %d, in %s", same, n, plain)
			}
		})
	}
}

// The state stands after everything that was said, but before an answer that goes on, and before calls that wait.
func TestTheStateStandsAtTheEnd(t *testing.T) {
	t.Parallel()
	const state = "<current_state>"
	call := recall.Message{Role: recall.Assistant, Position: 2, Content: []recall.Part{
		{Type: recall.ToolCall, CallID: "a", Name: "f", Input: "{}"},
		{Type: recall.ToolCall, CallID: "b", Name: "f", Input: "{}"}}}
	results := func(ids ...string) recall.Message {
		m := recall.Message{Role: recall.Tool}
		for _, id := range ids {
			m.Content = append(m.Content, recall.Part{Type: recall.ToolReturn, CallID: id, Text: id})
		}
		return m
	}
	ask := text(recall.User, "q")
	for name, c := range map[string]struct {
		view  []recall.Message
		index int // of the state in OpenAI's form
	}{
		"nothing was said": {nil, 0}, "a question": {[]recall.Message{ask}, 1},
		"an answer":       {[]recall.Message{ask, text(recall.Assistant, "a")}, 1},
		"calls that wait": {[]recall.Message{ask, call}, 1}, "one waits": {[]recall.Message{ask, call, results("a")}, 1},
		"results":                 {[]recall.Message{ask, call, results("a", "b")}, 4},
		"a message of the system": {[]recall.Message{ask, call, results("a", "b"), text(recall.System, "s")}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			view := chat.WithState(c.view, recall.User, frame.StateOf("x"))
			openAI, _ := chat.OpenAI(view, tokens.Estimate)
			for i, m := range openAI {
				if strings.Contains(string(m), state) != (i == c.index) {
					t.Errorf("message %d of %s; the state belongs at %d", i, openAI, c.index)
				}
			}
			anthropic, _ := chat.Anthropic(view, tokens.Estimate)
			if n := strings.Count(joined(anthropic), state); n != 1 {
				t.Errorf("Anthropic's messages have it %d times: %s", n, anthropic)
			}
			if len(chat.Pending(c.view)) > 0 {
				return
			}
			if err := chattest.OpenAI(openAI); err != nil {
				t.Errorf("%v in %s", err, openAI)
			}
			if err := chattest.Anthropic(anthropic); err != nil {
				t.Errorf("%v in %s", err, anthropic)
			}
		})
	}
}

// A state that a client sends back is no message, and what stands beside it is one.
func TestAStateThatComesBackIsDropped(t *testing.T) {
	t.Parallel()
	for _, role := range []recall.Role{recall.User, recall.System} {
		state := recall.Part{Type: recall.Text, Text: frame.StateOf("- 1")}
		if role == recall.System {
			state.Text = "<system>\n" + state.Text + "\n</system>"
		}
		alone := recall.Draft{Role: role, Content: []recall.Part{state}}
		beside := recall.Draft{Role: role, Content: []recall.Part{{Type: recall.Text, Text: "Hello"}, state}}
		if !chat.DropState(&alone) || chat.DropState(&beside) || len(beside.Content) != 1 {
			t.Errorf("%s: left %+v and %+v", role, alone, beside)
		}
	}
	quoted := recall.Draft{Role: recall.User, Content: []recall.Part{{Type: recall.Text,
		Text: "What is this? " + frame.StateOf("- 1")}}}
	said := recall.Draft{Role: recall.Assistant, Content: []recall.Part{{Type: recall.Text, Text: frame.StateOf("x")}}}
	if chat.DropState(&quoted) || chat.DropState(&said) || len(quoted.Content)+len(said.Content) != 2 {
		t.Errorf("left %+v and %+v", quoted, said)
	}
}
