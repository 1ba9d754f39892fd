package agentfile_test

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
	"github.com/loci-memory/loci/server/agentfile"
	"github.com/loci-memory/loci/server/rest"
)

// A file without agents, of another version, or with fields of Loci's that this server does not know is refused.
func TestFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	api := rest.New(rest.Config{Title: "Files", Log: slog.New(slog.DiscardHandler)})
	for _, c := range []struct{ name, file, want string }{
		{"an agent", `{"agents":[{}]}`, ""},
		{"of this version", `{"agents":[{}],"loci":{"version":1}}`, ""},
		{"no agents", `{"agents":[]}`, "no list of agents"},
		{"no list of agents", `{"name":"a"}`, "no list of agents"},
		{"no object", `[1]`, "Corrupted agent file format"},
		{"cut off", `{"agents":[{`, "Corrupted agent file format"},
		{"of a later version", `{"agents":[{}],"loci":{"version":2}}`, "reads version 1"},
		{"an unknown field of Loci's", `{"agents":[{}],"loci":{"version":1,"odd":1}}`, `unknown field "odd"`},
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)
		spool, err := api.SpoolFrom(echo.New().NewContext(request, httptest.NewRecorder()), strings.NewReader(c.file))
		if err != nil {
			t.Fatal(err)
		}
		err = agentfile.Opens(spool)
		spool.Close()
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, db.ErrInvalid) ||
			!strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// Fields that Loci does not know are named by their path, at most 20 of them. Fields of Letta's that say nothing to
// Loci are not.
func TestUnknownFieldsAreNamed(t *testing.T) {
	t.Parallel()
	got := agentfile.UnknownFields(`{"id":"m","role":"user","type":"message","batch_item_id":null,"odd":1,
		"content":[{"type":"text","text":"a","strange":1},{"type":"text","strange":2}],
		"tool_calls":[{"id":"c","type":"function","function":{"name":"f","new":1}}]}`)
	if want := []string{"content.strange", "odd", "tool_calls.function.new"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	fields := map[string]int{}
	for n := range 30 {
		fields[fmt.Sprint("odd", n)] = n
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	if got := agentfile.UnknownFields(string(raw)); len(got) != 20 {
		t.Errorf("of 30 unknown fields %d are named, want 20", len(got))
	}
}

// describe returns a draft in a line.
func describe(d recall.Draft) string {
	line := string(d.Role)
	for _, p := range d.Content {
		line += " " + string(p.Type)
		if p.Kind != "" {
			line += "." + string(p.Kind)
		}
		if p.CallID != "" {
			line += ":" + p.CallID
		}
		if p.Text != "" {
			line += "=" + p.Text
		}
		if p.IsError {
			line += "!"
		}
		if p.Approval != "" {
			line += "/" + string(p.Approval)
		}
	}
	return line
}

// The messages that a model does not see come first, then those that it sees, in their order. The system prompt is left
// out.
func TestTheOrderOfMessages(t *testing.T) {
	t.Parallel()
	const messages = `"messages":[
		{"id":"s","role":"system","content":[{"type":"text","text":"S"}]},
		{"id":"1","role":"user","content":[{"type":"text","text":"1"}]},
		{"id":"2","role":"assistant","content":"2"},
		{"id":"3","role":"user","content":"3"}]`
	for _, c := range []struct {
		name, entry string
		want        []string
		hidden      int
	}{
		{"the model sees some", `{"in_context_message_ids":["s","3","2"],` + messages + `}`,
			[]string{"user text=1", "user text=3", "assistant text=2"}, 1},
		{"the file does not say what it sees", `{` + messages + `}`,
			[]string{"user text=1", "assistant text=2", "user text=3"}, 0},
	} {
		drafts, hidden, leftOut, err := agentfile.MessagesOf(c.entry)
		var got []string
		for _, d := range drafts {
			got = append(got, describe(d))
		}
		if err != nil || !slices.Equal(got, c.want) || hidden != c.hidden || len(leftOut) != 0 {
			t.Errorf("%s: got %q with %d hidden, %v, left out %q, want %q with %d", c.name, got, hidden, err, leftOut, c.want,
				c.hidden)
		}
	}
	for name, entry := range map[string]string{
		"two messages with one id": `{"messages":[{"id":"1","role":"user","content":"a"},{"id":"1","role":"user"}]}`,
		"a message without an id":  `{"messages":[{"role":"user","content":"a"}]}`,
		"a view of other messages": `{"in_context_message_ids":["2"],"messages":[{"id":"1","role":"user","content":"a"}]}`,
		"a part of an unknown type": `{"messages":[{"id":"s","role":"system","content":"S"},
			{"id":"1","role":"user","content":[{"type":"smell"}]}]}`,
	} {
		if _, _, _, err := agentfile.MessagesOf(entry); !errors.Is(err, db.ErrInvalid) ||
			!strings.Contains(err.Error(), "agents[0]") {
			t.Errorf("%s: got %v, want ErrInvalid with its place", name, err)
		}
	}
}

// Calls that wait for a client, and the client's answers, become marks of the calls and of their results.
func TestMessagesOfLetta(t *testing.T) {
	t.Parallel()
	const request = `{"id":"1","role":"approval","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},
		{"id":"b","function":{"name":"f","arguments":"{}"}}]}`
	const results = `{"id":"3","role":"tool","tool_returns":[{"tool_call_id":"a","status":"success","func_response":"A"},
		{"tool_call_id":"b","status":"error","func_response":"B"}]}`
	both := []string{"tool tool_return:a=A/approved tool_return:b=B!/denied"}
	for _, c := range []struct {
		name, agentType string
		messages        []string
		want            []string // of the drafts with content
		leftOut         string
	}{
		{"answers with results that follow", "letta_v1_agent", []string{request, `{"id":"2","role":"approval","approvals":[
			{"type":"approval","tool_call_id":"a","approve":true},
			{"type":"approval","tool_call_id":"b","approve":false}]}`, results},
			append([]string{"assistant tool_call:a/asked tool_call:b/asked"}, both...), ""},
		{"one answer of an older server for all calls", "letta_v1_agent", []string{request,
			`{"id":"2","role":"approval","approve":true,"approval_request_id":"1"}`, results},
			[]string{"assistant tool_call:a/asked tool_call:b/asked",
				"tool tool_return:a=A/approved tool_return:b=B!/approved"}, ""},
		{"the result of the client's own tool", "letta_v1_agent", []string{request, `{"id":"2","role":"approval",
			"approvals":[{"type":"tool","tool_call_id":"a","status":"success","tool_return":"own"}]}`},
			[]string{"assistant tool_call:a/asked tool_call:b/asked", "tool tool_return:a=own/returned"}, ""},
		{"an answer without a result", "letta_v1_agent", []string{request, `{"id":"2","role":"approval","approvals":[
			{"type":"approval","tool_call_id":"a","approve":true}]}`},
			[]string{"assistant tool_call:a/asked tool_call:b/asked"}, "no result of the call"},
		{"the result of no call", "letta_v1_agent", []string{`{"id":"1","role":"tool","tool_returns":[{"status":"success",
			"func_response":"A"}]}`}, nil, "names no call"},
		{"a message without content", "letta_v1_agent", []string{`{"id":"1","role":"user"}`}, nil, "no content"},
		{"a result of an older server", "letta_v1_agent", []string{`{"id":"1","role":"tool","tool_call_id":"a",
			"content":[{"type":"text","text":"A"}]}`}, []string{"tool tool_return:a=A"}, ""},
	} {
		l := agentfile.NewLettaMessages(c.agentType, time.UTC)
		for _, raw := range c.messages {
			if _, err := l.Note(json.RawMessage(raw)); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		var left string
		for n, raw := range c.messages {
			d, leftOut, err := l.Draft(n, json.RawMessage(raw))
			if err != nil {
				t.Fatal(err)
			}
			left += leftOut
			if len(d.Content) > 0 {
				got = append(got, describe(d))
			}
		}
		if !slices.Equal(got, c.want) || (c.leftOut == "") != (left == "") || !strings.Contains(left, c.leftOut) {
			t.Errorf("%s: got %q, left out %q, want %q, %q", c.name, got, left, c.want, c.leftOut)
		}
	}
	if _, err := agentfile.NewLettaMessages("letta_v1_agent", time.UTC).Note(json.RawMessage(`7`)); !errors.Is(err,
		db.ErrInvalid) {
		t.Errorf("no message: got %v, want ErrInvalid", err)
	}
}

// Texts of an older agent's answers are thoughts, because such an agent speaks with a tool.
func TestThoughtsOfOlderAgents(t *testing.T) {
	t.Parallel()
	const answer = `{"id":"1","role":"assistant","content":"I wonder.","created_at":"2024-05-01T12:00:00"}`
	for agentType, want := range map[string]string{"letta_v1_agent": "assistant text=I wonder.",
		"memgpt_agent": "assistant text.inner_thought=I wonder.", "odd": "assistant text=I wonder."} {
		l := agentfile.NewLettaMessages(agentType, time.UTC)
		if _, err := l.Note(json.RawMessage(answer)); err != nil {
			t.Fatal(err)
		}
		d, _, err := l.Draft(0, json.RawMessage(answer))
		if err != nil || describe(d) != want || !d.CreatedAt.Equal(time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)) {
			t.Errorf("%s: got %q at %v, %v, want %q", agentType, describe(d), d.CreatedAt, err, want)
		}
	}
}
