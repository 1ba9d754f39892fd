package server_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/recall"
)

// append stores messages in a conversation of an agent, and returns their ids.
func (c *client) append(agent, conversation string, drafts ...recall.Draft) []string {
	c.t.Helper()
	appended, err := c.server.Recall.Append(c.t.Context(), c.org, agent, conversation, drafts)
	if err != nil {
		c.t.Fatalf("append: %v", err)
	}
	ids := make([]string, len(appended))
	for i, a := range appended {
		ids[i] = a.ID
	}
	return ids
}

func draft(role recall.Role, parts ...recall.Part) recall.Draft {
	return recall.Draft{Role: role, Content: parts}
}

func said(text string) recall.Part { return recall.Part{Type: recall.Text, Text: text} }

func call(id, tool, input string) recall.Part {
	return recall.Part{Type: recall.ToolCall, CallID: id, Name: tool, Input: input}
}

func returned(id, text string) recall.Part {
	return recall.Part{Type: recall.ToolReturn, CallID: id, Text: text}
}

// kinds returns messages of every kind, at fractions of a second.
func kinds() []recall.Draft {
	picture := json.RawMessage(`{"type":"url","url":"https://example.com/a.png"}`)
	all := []recall.Draft{
		draft(recall.System, said("Be brief."), said("Be kind.")),
		{Role: recall.User, Name: new("Ann"), OTID: new("turn-1"), SenderID: new("identity-1"),
			Content: []recall.Part{said("Hello?")}},
		draft(recall.User, said("What is this?"), recall.Part{Type: recall.Image, Source: picture}),
		draft(recall.User, recall.Part{Type: recall.Image, Source: picture}),
		draft(recall.User),
		{Role: recall.Assistant, StepID: new("step-1"), RunID: new("run-1"), Content: []recall.Part{
			call("c1", "look", `{"at":"sky"}`),
			said("I will look."),
			{Type: recall.Reasoning, Text: "A picture.", Native: true, Signature: "sig"},
			{Type: recall.Reasoning, Text: "Or not."},
			{Type: recall.RedactedReasoning, Data: "xyz"},
			{Type: recall.OmittedReasoning},
			{Type: recall.SummarizedReasoning, CallID: "rs_1", Summary: json.RawMessage(`[{"index":0,"text":"First."},` +
				`{"index":1,"text":"Then."}]`), Data: "sealed"},
			said("Twice."),
			call("c2", "look", `{"at":"sea"}`),
		}},
		draft(recall.Tool, recall.Part{Type: recall.ToolReturn, CallID: "c1", Text: "blue", Stdout: []string{"looked"},
			Images: []json.RawMessage{picture}},
			recall.Part{Type: recall.ToolReturn, CallID: "c2", Text: "no sea here", IsError: true, Stderr: []string{"lost"}}),
		draft(recall.Tool, returned("c9", "whose?")),
		draft(recall.Assistant, call("c3", "look", "{}"), call("c4", "send_message", `{"message":"It is blue."}`),
			call("c5", "look", "{}")),
		draft(recall.Tool, returned("c4", "sent")),
		draft(recall.Assistant, call("c6", "send_message", `{"message":`)),
		{Role: recall.Assistant, IsErr: true, Content: []recall.Part{said("The model broke.")}},
		draft(recall.Assistant),
	}
	for i := range all {
		all[i].CreatedAt = new(time.Date(2026, 1, 31, 23, 59, i, 987_654_000, time.FixedZone("", 3600)))
	}
	return all
}

// The test stores how the API shows every kind of message. Clients see any change of it, so review each.
func TestMessagesAreShownAsItems(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a","system":"Help."}`)
	conversation := c.made("/v1/conversations?agent_id="+agent, "")
	ids := c.append(agent, conversation, kinds()...)
	w := &transcript{client: c, ids: map[string]string{}}
	for _, target := range []string{"/v1/agents/" + agent + "/messages?conversation_id=" + conversation,
		"/v1/agents/" + agent + "/messages?use_assistant_message=false&include_return_message_types=tool_call_message" +
			"&include_return_message_types=tool_return_message",
		"/v1/agents/" + agent + "/messages?assistant_message_tool_name=look&assistant_message_tool_kwarg=at" +
			"&include_return_message_types=assistant_message",
		"/v1/agents/" + agent + "/messages?include_err=true&limit=2&order=desc",
		"/v1/messages/" + ids[9], "/v1/messages/" + ids[11], "/v1/conversations/" + conversation,
		"/v1/agents/" + agent + "/context?conversation_id=" + conversation} {
		w.step("GET", target, "")
	}
	w.step("POST", "/v1/messages/search", `{"query":"blue picture"}`)
	w.step("POST", "/v1/agents/messages/search", `{"query":"blue sea","roles":["tool"],"search_mode":"fts"}`)
	checkGolden(t, "testdata/messages.txt", w.String())
}

// Clients that validate messages accept every item: all required fields are there, and have the right form.
func TestItemsAreWhatStrictClientsTake(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	c.append(agent, "default", kinds()...)
	payload := map[string][]string{"system_message": {"content"}, "user_message": {"content"},
		"assistant_message": {"content"}, "reasoning_message": {"reasoning", "source"},
		"hidden_reasoning_message": {"state"}, "tool_call_message": {"tool_call", "tool_calls"},
		"tool_return_message": {"tool_return", "status", "tool_call_id", "tool_returns"}}
	seen, otids := map[string]bool{}, map[string]bool{}
	for _, query := range []string{"", "&use_assistant_message=false"} {
		for _, item := range c.list("/v1/agents/" + agent + "/messages?include_err=true" + query) {
			kind, _ := item["message_type"].(string)
			seen[kind] = true
			if len(payload[kind]) == 0 {
				t.Errorf("an item has the type %q", kind)
			}
			for _, name := range append([]string{"id", "date", "position", "seq"}, payload[kind]...) {
				if item[name] == nil {
					t.Errorf("a %s has no %s: %v", kind, name, item)
				}
			}
			for _, name := range []string{"name", "otid", "sender_id", "step_id", "run_id", "seq_id", "is_err",
				"conversation_id"} {
				if _, there := item[name]; !there {
					t.Errorf("a %s does not say %s: %v", kind, name, item)
				}
			}
			if date := item["date"].(string); !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$`).MatchString(date) {
				t.Errorf("a %s is of %s", kind, date)
			}
			if otid, ok := item["otid"].(string); ok && query == "" {
				if otids[otid] {
					t.Errorf("two items have the otid %s", otid)
				}
				otids[otid] = true
			}
		}
	}
	if len(seen) != len(payload) {
		t.Errorf("only %v were seen", seen)
	}
	first := c.list("/v1/agents/" + agent + "/messages?order=asc&include_return_message_types=user_message&limit=1")[0]
	if first["date"] != "2026-01-31T22:59:01+00:00" || first["otid"] != "turn-1" || first["content"] != "Hello?" {
		t.Errorf("got %v", first)
	}
}

// list returns the objects in a list.
func (c *client) list(target string) []map[string]any {
	c.t.Helper()
	var list []map[string]any
	if err := json.Unmarshal([]byte(c.must("GET", target, "")), &list); err != nil {
		c.t.Fatal(err)
	}
	return list
}

// pages reads a list page by page, as clients do, until a page is empty. It continues after the last item, or, if
// before is given, before the first. It returns the ids in the order in which they came, and counts several items of
// one message once.
func (c *client) pages(target, start string) (ids []string) {
	c.t.Helper()
	cursor := ""
	if start != "" {
		cursor = "&before=" + start
	}
	for range 500 {
		page := c.list(target + cursor)
		if len(page) == 0 {
			return ids
		}
		for _, item := range page {
			if id := item["id"].(string); len(ids) == 0 || ids[len(ids)-1] != id {
				ids = append(ids, id)
			}
		}
		if cursor = "&after=" + page[len(page)-1]["id"].(string); start != "" {
			cursor = "&before=" + page[0]["id"].(string)
		}
	}
	c.t.Fatalf("%s: the pages do not end", target)
	return nil
}

func TestPagesOfMessagesFollowOneAnother(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	conversation := c.made("/v1/conversations?agent_id="+agent, "")
	idsOf := func(conversation string) []string {
		ids := []string{fields(t, c.must("GET", "/v1/conversations/"+conversation+"?agent_id="+agent,
			""))["in_context_message_ids"].([]any)[0].(string)}
		for i := range 4 {
			ids = append(ids, c.append(agent, conversation, draft(recall.User, said(fmt.Sprint(i))),
				draft(recall.Assistant, recall.Part{Type: recall.Reasoning, Text: "hm"},
					call(fmt.Sprint(i), "look", "{}")), draft(recall.Tool, returned(fmt.Sprint(i), "seen")))...)
		}
		return ids
	}
	inDefault, inOther := idsOf("default"), idsOf(conversation)
	var all, users []string
	for _, item := range c.list("/v1/agents/" + agent + "/messages?order=asc&limit=1000") {
		if id := item["id"].(string); len(all) == 0 || all[len(all)-1] != id {
			all = append(all, id)
		}
	}
	for _, item := range c.list("/v1/agents/" + agent + "/messages?order=asc&include_return_message_types=user_message") {
		users = append(users, item["id"].(string))
	}
	if len(all) != 26 || len(users) != 8 {
		t.Fatalf("the agent has %d messages, %d of users; want 26 and 8", len(all), len(users))
	}
	for _, l := range []struct {
		target string
		want   []string // oldest first
		newest bool     // in descending order, newest first
	}{
		{"/v1/agents/" + agent + "/messages?", all, false},
		{"/v1/agents/" + agent + "/messages?conversation_id=default", inDefault, false},
		{"/v1/agents/" + agent + "/messages?conversation_id=" + conversation, inOther, false},
		{"/v1/agents/" + agent + "/messages?include_return_message_types=user_message", users, false},
		{"/v1/conversations/default/messages?agent_id=" + agent, inDefault, false},
		{"/v1/conversations/" + agent + "/messages?", inDefault, false},
		{"/v1/conversations/" + conversation + "/messages?", inOther, true},
		{"/v1/messages?", all, false},
		{"/v1/messages?conversation_id=" + conversation, inOther, false},
	} {
		for limit := 1; limit <= 30; limit += 4 {
			target := fmt.Sprintf("%s&limit=%d", l.target, limit)
			if got := c.pages(target+"&order=asc", ""); !slices.Equal(got, l.want) {
				t.Errorf("%s ascending: got %d\n%v, want\n%v", target, len(got), got, l.want)
			}
			want := slices.Clone(l.want[max(len(l.want)-limit, 0):]) // the newest page, and then nothing newer
			if l.newest {
				want = slices.Clone(l.want)
				slices.Reverse(want)
			}
			if got := c.pages(target, ""); !slices.Equal(got, want) {
				t.Errorf("%s descending: got\n%v, want\n%v", target, got, want)
			}
			if !l.newest { // an order says at which end a page begins; without one it begins next to the given message
				last := len(l.want) - 1
				newest := l.want[max(last+1-limit, 1)]
				for query, first := range map[string]string{
					"&after=" + l.want[0]: l.want[1], "&order=asc&after=" + l.want[0]: l.want[1],
					"&order=desc&after=" + l.want[0]: newest, "&order=asc&before=" + l.want[last]: l.want[0],
					"&order=desc&before=" + l.want[last]: l.want[max(last-limit, 0)],
				} {
					if got := c.list(target + query); got[0]["id"] != first {
						t.Errorf("%s%s begins with %v, want %s", target, query, got[0]["id"], first)
					}
				}
				for _, order := range []string{"", "&order=desc"} {
					back := c.pages(target+order, l.want[last])
					slices.Sort(back)
					want := slices.Clone(l.want[:len(l.want)-1])
					slices.Sort(want)
					if !slices.Equal(back, want) {
						t.Errorf("%s %s back: got\n%v, want\n%v", target, order, back, want)
					}
				}
			}
		}
		if !l.newest { // clients also read backwards between two messages
			between := c.pages(l.target+"&limit=2&after="+l.want[1], l.want[6])
			slices.Sort(between)
			want := slices.Clone(l.want[2:6])
			slices.Sort(want)
			if !slices.Equal(between, want) {
				t.Errorf("%s between two: got\n%v, want\n%v", l.target, between, want)
			}
		}
		for _, cursor := range []string{"after", "before"} {
			if got := c.must("GET", l.target+"&"+cursor+"=message-123e4567-e89b-42d3-8456-426614174000", ""); got != "[]" {
				t.Errorf("%s %s an unknown message: got %s, want nothing", l.target, cursor, got)
			}
		}
	}
}

// A client that follows a growing list gets every message once, in order.
func TestPagesFollowAListThatGrows(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	conversation := c.made("/v1/conversations?agent_id="+agent, "")
	const writers, each = 4, 25
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				target := []string{"default", conversation}[(w+i)%2]
				if _, err := c.server.Recall.Append(t.Context(), c.org, agent, target,
					[]recall.Draft{draft(recall.User, said("one")),
						draft(recall.Assistant, said("two"))}); err != nil {
					t.Errorf("append: %v", err)
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		writing.Wait()
		close(ended)
	}()
	var seqs []float64
	after := ""
	for done := false; ; {
		page := c.list("/v1/agents/" + agent + "/messages?order=asc&limit=7" + after)
		for _, item := range page {
			seqs = append(seqs, item["seq"].(float64))
			after = "&after=" + item["id"].(string)
		}
		if len(page) == 0 && done {
			break
		}
		select {
		case <-ended:
			done = true
		default:
		}
	}
	if want := 2 + 2*writers*each; len(seqs) != want || !slices.IsSorted(seqs) ||
		len(slices.Compact(slices.Clone(seqs))) != want {
		t.Errorf("met %d messages in the order %v, want each of %d once", len(seqs), seqs, want)
	}
}

// Some messages have no items. They are skipped, because an empty page would end a client's loop.
func TestAPageIsEmptyOnlyAtTheEnd(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	for i := range 9 {
		c.append(agent, "default", draft(recall.Assistant, call(fmt.Sprint(i), "send_message", `{"message":"hi"}`)),
			draft(recall.Tool, returned(fmt.Sprint(i), "sent")))
	}
	c.append(agent, "default", draft(recall.Assistant, recall.Part{Type: recall.Reasoning, Text: "at last"}))
	for query, want := range map[string]int{"": 11, "include_return_message_types=assistant_message": 9,
		"include_return_message_types=reasoning_message":   1,
		"include_return_message_types=tool_return_message": 0, "use_assistant_message=false" +
			"&include_return_message_types=tool_return_message": 9,
		"include_return_message_types=approval_request_message": 0, "include_return_message_types=system_message" +
			"&include_return_message_types=reasoning_message": 2} {
		for limit := 1; limit < 4; limit++ {
			target := fmt.Sprintf("/v1/agents/%s/messages?%s&limit=%d", agent, query, limit)
			if got := c.pages(target+"&order=asc", ""); len(got) != want {
				t.Errorf("%s: got %d messages, want %d", target, len(got), want)
			}
		}
	}
}

func TestMessagesRefuse(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	other := c.made("/v1/agents", "")
	conversation := c.made("/v1/conversations?agent_id="+agent, "")
	message := c.append(agent, "default", draft(recall.User, said("hi")))[0]
	const uuid = "123e4567-e89b-42d3-8456-426614174000"
	for _, r := range []struct {
		name, method, target, body string
		status                     int
		detail                     string
	}{
		{"an unknown message", "GET", "/v1/messages/message-" + uuid, "", 404, "Message with ID message-" + uuid +
			" not found"},
		{"an id of another kind", "GET", "/v1/messages/agent-" + uuid, "", 422, "path.message_id: expected string to be " +
			"message- and"},
		{"to change a message", "PATCH", "/v1/agents/" + agent + "/messages/" + message, `{"content":"no"}`, 405,
			"Messages are never changed"},
		{"to change another agent's message", "PATCH", "/v1/agents/" + other + "/messages/" + message, "", 405,
			"Messages are never changed"},
		{"to change an unknown message", "PATCH", "/v1/agents/" + other + "/messages/message-" + uuid, "", 405,
			"Messages are never changed"},
		{"to change a message of an unknown agent", "PATCH", someAgent + "/messages/" + message, "", 404, "Agent with ID"},
		{"messages of an agent that is not there", "GET", someAgent + "/messages", "", 404, "Agent with ID"},
		{"messages of another agent's conversation", "GET", "/v1/agents/" + other + "/messages?conversation_id=" +
			conversation, "", 404, "Conversation with ID"},
		{"an unknown order", "GET", "/v1/agents/" + agent + "/messages?order=up", "", 422,
			"query.order: expected value to be one of"},
		{"an unknown type", "GET", "/v1/agents/" + agent + "/messages?include_return_message_types=note", "", 422,
			"query.include_return_message_types[0]: expected value to be one of"},
		{"to reset an agent that is not there", "PATCH", someAgent + "/reset-messages", "{}", 404, "Agent with ID"},
		{"a conversation without an agent", "POST", "/v1/conversations/", "{}", 422,
			"query.agent_id: required query parameter is missing"},
		{"a conversation of an agent that is not there", "POST", "/v1/conversations/?agent_id=agent-" + uuid, "{}", 404,
			"Agent with ID"},
		{"a window below nothing", "POST", "/v1/conversations/?agent_id=" + agent, `{"context_window_limit":-1}`, 400,
			"context_window_limit must be between"},
		{"an unknown conversation", "GET", "/v1/conversations/conv-" + uuid, "", 404, "Conversation with ID conv-" + uuid +
			" not found"},
		{"messages of an unknown conversation", "GET", "/v1/conversations/conv-" + uuid + "/messages", "", 404,
			"Conversation with ID"},
		{"an id that is none", "GET", "/v1/conversations/conv-1", "", 422, "path.conversation_id: expected string to be " +
			"conv- and"},
		{"the default one of nobody", "GET", "/v1/conversations/default", "", 422,
			"agent_id: required where the conversation is named 'default'"},
		{"a conversation of another agent", "GET", "/v1/conversations/" + conversation + "?agent_id=" + other, "", 404,
			"Conversation with ID"},
		{"a time that is none", "PATCH", "/v1/conversations/" + conversation, `{"last_message_at":"soon"}`, 422,
			"body.last_message_at: expected a time"},
		{"to delete the default one", "DELETE", "/v1/conversations/default?agent_id=" + agent, "", 409, "conv-"},
		{"to delete the default one by its agent", "DELETE", "/v1/conversations/" + agent, "", 409, "conv-"},
		{"an unknown status", "GET", "/v1/conversations?archive_status=lost", "", 422,
			"query.archive_status: expected value to be one of"},
		{"no query", "POST", "/v1/messages/search", "{}", 422, "body: expected required property query to be present"},
		{"an unknown way to search", "POST", "/v1/messages/search", `{"query":"x","search_mode":"psychic"}`, 422,
			"body.search_mode: expected value to be one of"},
		{"to find too many", "POST", "/v1/messages/search", `{"query":"x","limit":101}`, 422,
			"body.limit: expected number <= 100"},
		{"to find none", "POST", "/v1/messages/search", `{"query":"x","limit":0}`, 422, "body.limit: expected number >= 1"},
		{"a start that is none", "POST", "/v1/messages/search", `{"query":"x","start_date":"soon"}`, 422,
			"body.start_date: Invalid start_date format: soon. Use ISO 8601 format (YYYY-MM-DD or YYYY-MM-DDTHH:MM)"},
		{"an end that is none", "POST", "/v1/agents/messages/search", `{"end_date":"2026-02-30"}`, 422,
			"body.end_date: Invalid end_date format: 2026-02-30. Use ISO 8601"},
		{"an unknown role", "POST", "/v1/agents/messages/search", `{"roles":["king"]}`, 422,
			"body.roles[0]: expected value to be one of"},
		{"to search an agent that is not there", "POST", "/v1/messages/search", `{"query":"x","agent_id":"agent-` + uuid +
			`"}`, 404, "Agent with ID"},
		{"to search a conversation of another agent", "POST", "/v1/messages/search",
			fmt.Sprintf(`{"query":"x","agent_id":%q,"conversation_id":%q}`, other, conversation), 404,
			"Conversation with ID"},
	} {
		got := c.call(r.method, r.target, r.body)
		if detail, _ := fields(t, got.Text)["detail"].(string); got.Code != r.status || !strings.HasPrefix(detail, r.detail) {
			t.Errorf("%s: %s %s %s: got %d %s, want %d %q…", r.name, r.method, r.target, r.body, got.Code, got.Text, r.status,
				r.detail)
		}
		if (got.Code == 405 || got.Code == 409) && got.Header().Get("X-Should-Retry") != "false" {
			t.Errorf("%s: the client would try again", r.name)
		}
	}
	for _, target := range []string{"/v1/conversations/default/messages", "/v1/messages?conversation_id=default"} {
		if got := c.must("GET", target, ""); got != "[]" {
			t.Errorf("%s: got %s, want []", target, got)
		}
	}
}

func TestAnAgentBeginsWithWhatItIsGiven(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := fields(t, c.must("POST", "/v1/agents", `{"initial_message_sequence":[{"role":"assistant","content":"Hi."},
		{"role":"user","name":"Ann","content":[{"type":"text","text":"See?"},{"type":"image","source":{"type":"url",
		"url":"https://x/u"}}]}]}`))
	items := c.list("/v1/agents/" + agent["id"].(string) + "/messages")
	var got []string
	for _, item := range items {
		got = append(got, fmt.Sprint(item["message_type"], item["name"]))
	}
	if diff := cmp.Diff([]string{"system_message<nil>", "assistant_message<nil>", "user_messageAnn"}, got); diff != "" ||
		len(agent["message_ids"].([]any)) != 3 {
		t.Errorf("message_ids %v (-want +got):\n%s", agent["message_ids"], diff)
	}
	reset := fields(t, c.must("PATCH", "/v1/agents/"+agent["id"].(string)+"/reset-messages", "{}"))
	items = c.list("/v1/agents/" + agent["id"].(string) + "/messages?include_reset=false")
	if len(items) != 1 || items[0]["message_type"] != "system_message" ||
		!cmp.Equal(reset["message_ids"], []any{items[0]["id"]}) {
		t.Errorf("after a reset: got %v, in context %v, want a new system message", items, reset["message_ids"])
	}
}

// A reset hides messages from prompts and searches, and from lists that ask for that. The new
// system message does not count messages that can no longer be searched.
func TestAResetKeepsMessagesInTheLog(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{}`)
	target := "/v1/agents/" + agent
	c.capture(agent, `{"messages":[{"role":"user","content":"The walrus sleeps."}]}`)
	c.must("PATCH", target+"/reset-messages", "{}")
	for what, text := range map[string]string{
		"the list":   c.must("GET", target+"/messages?include_reset=false", ""),
		"the prompt": c.call("GET", target+"/prompt", "").Text,
		"the search": c.tool(agent, "conversation_search", `{"query":"walrus"}`),
	} {
		if strings.Contains(text, "walrus sleeps") || strings.Contains(text, "previous messages are stored") {
			t.Errorf("%s still speaks of what was said: %s", what, text)
		}
	}
	for _, query := range []string{"", "?include_reset=true", "?conversation_id=default"} {
		contains(t, "the whole list"+query, c.must("GET", target+"/messages"+query, ""), "The walrus sleeps.")
	}
}

// After a reset, no tool of the agent reads hidden messages, neither by any search nor by seqs, ids or long results
// that the model may remember.
func TestToolsReadNothingThatAResetHid(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{}`)
	long := strings.Repeat("The walrus sleeps in the cellar.\\n", 2000)
	c.capture(agent, `{"messages":[{"role":"user","content":"Where is the walrus?"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"look","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"c","content":"`+long+`"},{"role":"assistant","content":"Walrus found."}]}`)
	log := c.log(agent)
	calls := []string{"conversation_search", `{"query":"walrus"}`, "conversation_search", `{}`,
		"conversation_search", `{"query":"walrus","roles":["tool","user"]}`, "expand", `{"id":"seq 1-99"}`,
		"expand", `{"id":"seq 1-99","pattern":"(?i)walrus"}`}
	for _, m := range log[1:] { // without the system message
		calls = append(calls, "expand", `{"id":"`+m.ID+`"}`, "expand", fmt.Sprintf(`{"id":"%d"}`, m.Seq),
			"conversation_search", `{"around":"`+m.ID+`"}`)
		for _, p := range m.Content {
			if p.Clip != nil {
				calls = append(calls, "expand", `{"id":"`+p.Clip.ID+`","pattern":"walrus"}`)
			}
		}
	}
	reads := func() (n int) {
		for i := 0; i < len(calls); i += 2 {
			got := c.must("POST", "/v1/agents/"+agent+"/tools/"+calls[i]+"/run", `{"args":`+calls[i+1]+`}`)
			for _, hidden := range []string{"Where is the", "walrus sleeps", "Walrus found", `look({})`} {
				if strings.Contains(got, hidden) {
					n++
					break
				}
			}
		}
		return n
	}
	if n := reads(); n != len(calls)/2 {
		t.Errorf("before the reset, %d of %d calls read something", n, len(calls)/2)
	}
	c.must("PATCH", "/v1/agents/"+agent+"/reset-messages", "{}")
	if n := reads(); n > 0 {
		t.Errorf("%d of %d calls read what is hidden", n, len(calls)/2)
	}
}

// A search finds messages that a reset hid if it asks for them, by words and as the newest, in both routes. A search in
// an agent's conversation or in a deleted conversation does not.
func TestASearchFindsWhatAResetHidIfAsked(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{}`)
	c.capture(agent, `{"messages":[{"role":"user","content":"The walrus sleeps."}]}`)
	deleted := c.made("/v1/conversations/?agent_id="+agent, `{}`)
	c.capture(agent, `{"messages":[{"role":"user","content":"The walrus dances."}],"conversation_id":"`+deleted+`"}`)
	c.must("DELETE", "/v1/conversations/"+deleted, "")
	c.must("PATCH", "/v1/agents/"+agent+"/reset-messages", "{}")
	for _, route := range []string{"/v1/messages/search", "/v1/agents/messages/search"} {
		for body, isFound := range map[string]bool{
			`"agent_id":"` + agent + `","query":"walrus"`:                                                  false,
			`"agent_id":"` + agent + `","query":"walrus","include_reset":false`:                            false,
			`"agent_id":"` + agent + `","query":"walrus","include_reset":true`:                             true,
			`"agent_id":"` + agent + `","query":"","include_reset":true`:                                   true,
			`"query":"walrus","include_reset":true`:                                                        true,
			`"agent_id":"` + agent + `","conversation_id":"default","query":"walrus","include_reset":true`: false,
			`"agent_id":"` + agent + `","query":"walrus","roles":["assistant"],"include_reset":true`:       false,
		} {
			got := c.must("POST", route, "{"+body+"}")
			if strings.Contains(got, "walrus sleeps") != isFound || strings.Contains(got, "walrus dances") {
				t.Errorf("%s {%s}: got %s, want it found: %v", route, body, got, isFound)
			}
		}
	}
}
