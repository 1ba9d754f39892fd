package capture_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/capture"
	"github.com/loci-memory/loci/server/rest"
)

// spooled returns the body of a request.
func spooled(t *testing.T, body string) *rest.Spool {
	t.Helper()
	api := rest.New(rest.Config{Title: "Capture", Log: slog.New(slog.DiscardHandler)})
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)
	c := echo.New().NewContext(request, httptest.NewRecorder())
	s, err := api.SpoolFrom(c, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// drafts describes the messages of a batch: their role, their parts and otid.
func drafts(b *capture.Batch) (all []string, err error) {
	for d, err := range b.Drafts() {
		if err != nil {
			return all, err
		}
		text := string(d.Role)
		for _, p := range d.Content {
			text += " " + string(p.Type)
			if p.Text != "" {
				text += "=" + p.Text
			}
			if p.CallID != "" {
				text += ":" + p.CallID
			}
			if p.Approval != "" {
				text += "/" + string(p.Approval)
			}
		}
		if d.OTID != nil {
			text += " (" + *d.OTID + ")"
		}
		all = append(all, text)
	}
	return all, nil
}

// refusedAt checks that an error is of status 422 and names a place in the request.
func refusedAt(t *testing.T, name string, err error, place string) {
	t.Helper()
	problem, ok := errors.AsType[*rest.Problem](err)
	if !ok || problem.GetStatus() != http.StatusUnprocessableEntity ||
		!strings.HasPrefix(string(problem.Detail), place+":") {
		t.Errorf("%s: got %v, want a refusal of %s", name, err, place)
	}
}

// The messages of a request may stand in any of its fields, in the form of any API.
func TestMessagesOfARequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"a list", `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","otid":"o"}]}`,
			[]string{"user text=a", "assistant text=b (o)"}},
		{"a single message", `{"messages":{"role":"user","content":"a"}}`, []string{"user text=a"}},
		{"an input that is a text", `{"input":"a"}`, []string{"user text=a"}},
		{"an input that is a list of messages", `{"input":[{"role":"user","content":"a"}]}`, []string{"user text=a"}},
		{"messages before input", `{"input":"a","messages":[{"role":"user","content":"b"}]}`, []string{"user text=b"}},
		{"a request to a provider and its answer", `{"provider":"openai","request_messages":[{"role":"user","content":"a"}],
			"response_dict":{"choices":[{"message":{"role":"assistant","content":"b"},"finish_reason":"stop"}]}}`,
			[]string{"user text=a", "assistant text=b"}},
		{"items with one id are one message", `{"messages":[
			{"message_type":"reasoning_message","id":"m","reasoning":"r"},
			{"message_type":"assistant_message","id":"m","content":"a","otid":"o"},
			{"message_type":"tool_call_message","id":"m","tool_call":{"tool_call_id":"c1","name":"f","arguments":"{}"}},
			{"message_type":"tool_return_message","id":"m","tool_call_id":"c1","status":"success","tool_return":"r"},
			{"message_type":"assistant_message","id":"n","content":"b"},
			{"message_type":"assistant_message","content":"c"},
			{"message_type":"assistant_message","content":"d"}]}`,
			[]string{"assistant reasoning=r text=a tool_call:c1 (o)", "tool tool_return=r:c1", "assistant text=b",
				"assistant text=c", "assistant text=d"}},
		{"answers to calls are added to their results", `{"messages":[
			{"message_type":"approval_request_message","id":"m","tool_calls":[
				{"tool_call_id":"c1","name":"f","arguments":"{}"},{"tool_call_id":"c2","name":"f","arguments":"{}"},
				{"tool_call_id":"c3","name":"f","arguments":"{}"}]},
			{"message_type":"approval_response_message","id":"n","approvals":[
				{"type":"approval","tool_call_id":"c1","approve":true},{"type":"approval","tool_call_id":"c2","approve":false},
				{"type":"tool","tool_call_id":"c3"}]},
			{"message_type":"tool_return_message","id":"o","tool_returns":[
				{"tool_call_id":"c1","tool_return":"1"},{"tool_call_id":"c2","tool_return":"2","status":"error"},
				{"tool_call_id":"c3","tool_return":"3"}]}]}`,
			[]string{"assistant tool_call:c1/asked tool_call:c2/asked tool_call:c3/asked",
				"tool tool_return=1:c1/approved tool_return=2:c2/denied tool_return=3:c3/returned"}},
	} {
		b, err := capture.Read(spooled(t, c.body), time.UTC)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for range 2 { // they can be read again
			if got, err := drafts(b); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
			}
		}
		if b.Conversation != recall.DefaultConversation || !b.Stores {
			t.Errorf("%s: it is of %s, and stores %v", c.name, b.Conversation, b.Stores)
		}
	}
}

// A request that is not understood is refused, with the place of the first fault.
func TestRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, body, place string }{
		{"no messages", `{}`, "messages"},
		{"an empty list", `{"messages":[]}`, "messages"},
		{"an empty input", `{"input":[]}`, "input"},
		{"two lists", `{"messages":[{"role":"user","content":"a"}],"request_messages":[]}`, "request_messages"},
		{"an exchange without a provider", `{"request_messages":[{"role":"user","content":"a"}]}`, "provider"},
		{"Google's format", `{"provider":"google_vertex","request_messages":[{"role":"user","content":"a"}]}`, "provider"},
		{"a type of item that is unknown", `{"messages":[{"role":"user","content":"a"},{"message_type":"ping"}]}`,
			"messages[1].message_type"},
		{"a list item without a text", `{"messages":[{"message_type":"user_message","content":[]}]}`,
			"messages[0].content"},
		{"an approval in the form of a message", `{"messages":[{"type":"approval","approve":true}]}`,
			"messages[0].approve"},
		{"an answer without the result of its call", `{"messages":[{"message_type":"approval_response_message",
			"approvals":[{"type":"approval","tool_call_id":"c1","approve":true}]}]}`, "messages[0].approvals"},
		{"no answers", `{"messages":[{"message_type":"approval_response_message","approvals":[]}]}`,
			"messages[0].approvals"},
		{"no results", `{"messages":[{"message_type":"tool_return_message"}]}`, "messages[0].tool_returns"},
		{"a result of an unknown status", `{"messages":[{"message_type":"tool_return_message","tool_call_id":"c",
			"tool_return":"r","status":"odd"}]}`, "messages[0].status"},
		{"a refusal beside an answer", `{"refused":{"status":400,"message":"m"},"provider":"openai","response_dict":{}}`,
			"refused"},
	} {
		b, err := capture.Read(spooled(t, c.body), time.UTC)
		if err == nil {
			_, err = drafts(b)
		}
		refusedAt(t, c.name, err, c.place)
	}
	anthropics := `{"provider":"vertex_anthropic","request_messages":[{"role":"user","content":"a"}],
		"response_dict":{"role":"assistant","content":[{"type":"text","text":"b"}]}}`
	b, err := capture.Read(spooled(t, anthropics), time.UTC)
	if err == nil {
		_, err = drafts(b)
	}
	if err != nil {
		t.Errorf("Anthropic's models at Google: %v", err)
	}
}

// An input is messages, a text of the user, or the parts of such a text.
func TestInput(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`"a"`:                          `{"content":"a","role":"user"}`,
		`[{"type":"text","text":"a"}]`: `{"content":[{"type":"text","text":"a"}],"role":"user"}`,
		`[{"role":"user","type":"message","content":"a"}]`: `[{"role":"user","type":"message","content":"a"}]`,
		`[{"type":"function_call_output","call_id":"c"}]`:  `[{"type":"function_call_output","call_id":"c"}]`,
		`{"role":"user","content":"a"}`:                    `{"role":"user","content":"a"}`,
		`[]`:                                               `[]`,
	} {
		if got := string(capture.Input(json.RawMessage(input))); got != want {
			t.Errorf("%s: got %s, want %s", input, got, want)
		}
	}
}

// A report that a provider refused a prompt has the provider's status, and a short id. It may come without messages.
func TestReportsOfRefusedPrompts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status, otid int
		place        string // that is refused; empty if none is
	}{
		{400, 512, ""}, {599, 0, ""}, {200, 0, ""},
		{399, 0, "refused.status"}, {600, 0, "refused.status"}, {201, 0, "refused.status"}, {400, 513, "refused.otid"},
	} {
		b, err := capture.Read(spooled(t, fmt.Sprintf(`{"refused":{"status":%d,"message":"too long","place":"elsewhere",
			"otid":%q}}`, c.status, strings.Repeat("o", c.otid))), time.UTC)
		name := fmt.Sprintf("status %d, otid of %d bytes", c.status, c.otid)
		if c.place != "" {
			refusedAt(t, name, err, c.place)
			continue
		}
		if err != nil || b.Stores || b.Refused == nil || b.Refused.Status != c.status || !b.Refused.Elsewhere ||
			b.Refused.Message != "too long" || len(b.Refused.OTID) != c.otid {
			t.Errorf("%s: got %+v, %v", name, b, err)
		}
	}
}

// A system message that repeats the agent's prompt is refused; another one is kept.
func TestASystemPromptIsRefused(t *testing.T) {
	t.Parallel()
	read := func(text string) ([]string, error) {
		b := capture.OfMessages(json.RawMessage(fmt.Sprintf(`[{"role":"user","content":"a"},
			{"role":"system","content":%q}]`, text)), time.UTC)
		b.IsSystemPrompt = func(text string) bool { return text == "You are Ada." }
		return drafts(b)
	}
	_, err := read("You are Ada.")
	refusedAt(t, "the agent's prompt", err, "messages[1]")
	if got, err := read("Be brief."); err != nil || len(got) != 2 || got[1] != "system text=Be brief." {
		t.Errorf("another system message: got %q, %v", got, err)
	}
}

// An error of the log for a message names the message's place in the request.
func TestErrorsOfTheLogAreLocated(t *testing.T) {
	t.Parallel()
	b, err := capture.Read(spooled(t, `{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}`),
		time.UTC)
	if err == nil {
		_, err = drafts(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	refusedAt(t, "an invalid message", b.Locate(&recall.DraftError{At: 1, Err: db.Invalid("too long")}), "messages[1]")
	if err := b.Locate(&recall.DraftError{At: 1, Err: db.Conflict("there")}); !errors.Is(err, db.ErrConflict) ||
		!strings.Contains(err.Error(), "messages[1]: ") {
		t.Errorf("a conflict: got %v", err)
	}
	if other := errors.New("other"); b.Locate(other) != other { //nolint:errorlint // it is the same one
		t.Error("another error is changed")
	}
}
