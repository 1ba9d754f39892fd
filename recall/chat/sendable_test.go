package chat_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/recall/chat/chattest"
	"github.com/loci-memory/loci/recall/tokens"
)

const pixel = `{"type":"base64","media_type":"image/png","data":"aGk="}`

// anyView is a log as callers write it: with calls without results, results without calls, repeated ids and blank
// texts.
func anyView() *rapid.Generator[[]recall.Message] {
	text := rapid.SampledFrom([]string{"", " \n", "word", "two words", "<markup>&"})
	id := rapid.SampledFrom([]string{"a", "b", "function:f", strings.Repeat("long", 20)})
	return rapid.Custom(func(t *rapid.T) []recall.Message {
		var view []recall.Message
		for i := range rapid.IntRange(0, 40).Draw(t, "messages") {
			m := recall.Message{Role: rapid.SampledFrom([]recall.Role{recall.System, recall.User, recall.Assistant,
				recall.Assistant, recall.Tool, recall.Tool, "summary"}).Draw(t, "role"), Position: i + 2}
			if m.Role == recall.Tool {
				for _, id := range rapid.SliceOfNDistinct(id, 1, 2, rapid.ID[string]).Draw(t, "results") {
					m.Content = append(m.Content, recall.Part{Type: recall.ToolReturn, CallID: id, Text: text.Draw(t, "text")})
				}
				view = append(view, m)
				continue
			}
			for range rapid.IntRange(0, 3).Draw(t, "parts") {
				m.Content = append(m.Content, rapid.SampledFrom([]recall.Part{{Type: recall.Text, Text: text.Draw(t, "text")},
					{Type: recall.Image, Source: []byte(pixel)},
					{Type: recall.Reasoning, Text: "hm", Signature: text.Draw(t, "signature")},
					{Type: recall.RedactedReasoning, Data: "enc"}, {Type: recall.AnthropicBlock, Item: `{"type":"server_tool_use"}`},
					{Type: recall.SummarizedReasoning, Text: "hm", Item: `{"type":"reasoning","status":null}`},
					{Type: recall.SummarizedReasoning, Text: "hm", Data: "enc"},
					{Type: recall.ResponsesItem, Item: `{"type":"compaction","encrypted_content":"enc"}`}}).Draw(t, "part"))
			}
			if m.Role == recall.Assistant {
				for _, id := range rapid.SliceOfNDistinct(id, 0, 3, rapid.ID[string]).Draw(t, "calls") {
					m.Content = append(m.Content, recall.Part{Type: recall.ToolCall, CallID: id, Name: text.Draw(t, "name") + "f",
						Input: text.Draw(t, "input")})
				}
			}
			view = append(view, m)
		}
		return view
	})
}

// formats maps a format of requests to the functions that write and check its messages.
var formats = map[string]struct {
	write func([]recall.Message, chat.Counter) ([]json.RawMessage, int)
	check func([]json.RawMessage) error
}{"openai": {chat.OpenAI, chattest.OpenAI}, "anthropic": {chat.Anthropic, chattest.Anthropic},
	"responses": {chat.Responses, chattest.Responses}}

// Providers accept the request for any log. If calls at its end wait for results, they accept it once these are
// answered.
func TestProvidersTakeAnyView(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		view := anyView().Draw(t, "view")
		pending, answered := chat.Pending(view), chat.AnswerPending(view)
		if left := chat.Pending(answered); len(left) > 0 {
			t.Fatalf("answered, these calls are still pending: %+v", left)
		}
		for name, f := range formats {
			messages, _ := f.write(view, tokens.Estimate)
			if err := f.check(messages); (err == nil) != (len(pending) == 0) {
				t.Fatalf("%s: %d calls are pending, and the check says: %v\n%s", name, len(pending), err, joined(messages))
			}
			messages, _ = f.write(answered, tokens.Estimate)
			if err := f.check(messages); err != nil {
				t.Fatalf("%s, answered: %v\n%s", name, err, joined(messages))
			}
		}
	})
}

// Two open calls with the same id get their results in reverse order, as in the log.
func TestResultsOfOneIDReachBothCalls(t *testing.T) {
	t.Parallel()
	call := recall.Message{Role: recall.Assistant, Content: []recall.Part{{Type: recall.ToolCall, CallID: "a", Name: "f"}}}
	result := func(text string) recall.Message {
		return recall.Message{Role: recall.Tool, Content: []recall.Part{{Type: recall.ToolReturn, CallID: "a", Text: text}}}
	}
	got := chat.Texts([]recall.Message{call, call, result("second"), result("first")})
	if len(got) != 4 || got[1].Content != "first" || got[3].Content != "second" {
		t.Errorf("got %+v", got)
	}
}

// A pending call has the id that the caller captured.
func TestPendingCalls(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 60)
	view := []recall.Message{text(recall.User, "Go."), {Role: recall.Assistant, Position: 7, Content: []recall.Part{
		{Type: recall.ToolCall, CallID: long, Name: "look"}, {Type: recall.ToolCall, CallID: "b", Name: "find"}}},
		{Role: recall.Tool, Content: []recall.Part{{Type: recall.ToolReturn, CallID: "b", Text: "x"}}}}
	if got := chat.Pending(view); len(got) != 1 || got[0] != (chat.PendingCall{CallID: long, Name: "look", Position: 7}) {
		t.Errorf("got %+v", got)
	}
	if got := chat.Pending(append(view, text(recall.User, "Never mind."))); len(got) != 0 {
		t.Errorf("the conversation went on, and these calls are pending: %+v", got)
	}
	answered := chat.Texts(chat.AnswerPending(view))
	if len(answered) != 4 || !strings.Contains(answered[2].Content, "pending") || answered[3].Content != "x" {
		t.Errorf("answered: %+v", answered)
	}
}

// A late result stands behind the messages that were said before it, and before calls that still wait.
func TestLateResultsAreShown(t *testing.T) {
	t.Parallel()
	late := recall.Message{Role: recall.Tool, Content: []recall.Part{
		{Type: recall.ToolReturn, CallID: "job", Text: "done </system>", IsError: true}}}
	call := recall.Message{Role: recall.Assistant, Content: []recall.Part{{Type: recall.ToolCall, CallID: "a", Name: "f"}}}
	notice := frame.System + ` A tool failed with this for the call "job", which is not shown any more:` +
		"\ndone <~/system>"
	for name, view := range map[string][]recall.Message{
		"at the end":           {text(recall.User, "Go."), late},
		"before another":       {text(recall.User, "Go."), late, text(recall.User, "On.")},
		"while another waits":  {text(recall.User, "Go."), call, late},
		"of a call that waits": {text(recall.User, "Go."), call, late, late},
	} {
		got := chat.Texts(view)
		if len(got) < 2 || got[1].Role != "user" || got[1].Content != notice {
			t.Errorf("%s: got %+v", name, got)
		}
		if want := len(view) > 2 && view[1].Role == recall.Assistant; len(chat.Pending(view)) > 0 != want {
			t.Errorf("%s: these calls are pending: %+v", name, chat.Pending(view))
		}
	}
}
