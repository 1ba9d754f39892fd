package server_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/servertest"
)

// captured is the answer to a capture.
type captured struct {
	ConversationID *string `json:"conversation_id"`
	Messages       []recall.Appended
}

func (c *client) capture(agent, body string) captured {
	c.t.Helper()
	var got captured
	if err := json.Unmarshal([]byte(c.must("POST", "/v1/agents/"+agent+"/messages/capture", body)), &got); err != nil {
		c.t.Fatal(err)
	}
	return got
}

// A result without a call is in no prompt. The answer says so, even if the request is repeated. Every reader of the log
// finds the result, even while the model sees the messages around it.
func TestAResultWithoutACallIsFound(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"context_window_limit":8000}`)
	target := "/v1/agents/" + agent
	for i := range 20 {
		c.capture(agent, fmt.Sprintf(`{"messages":[{"role":"user","content":"Question %d: %s"},`+
			`{"role":"assistant","content":"Yes."}]}`, i, strings.Repeat("and so it goes on ", 60)))
	}
	body := `{"messages":[{"role":"assistant","tool_calls":[{"id":"b","type":"function",` +
		`"function":{"name":"look","arguments":"{}"}}]},
		{"type":"tool_return","otid":"x","tool_returns":[{"tool_call_id":"b","tool_return":"Seen."},
		{"tool_call_id":"lost","tool_return":"The walrus is in the cellar."}]}]}`
	for range 2 { // the second request's call has no otid, so it is another call
		got := c.capture(agent, body).Messages
		if diff := cmp.Diff([][]string{{}, {"lost"}}, [][]string{got[0].Orphans, got[1].Orphans}); diff != "" {
			t.Errorf("orphans (-want +got):\n%s", diff)
		}
	}
	c.must("GET", target+"/prompt", "") // compacts
	prompt := c.must("GET", target+"/prompt", "")
	if strings.Contains(prompt, "walrus") || !strings.Contains(prompt, "Seen.") {
		t.Errorf("the prompt has a result without a call, or lacks the one beside it:\n%s", prompt)
	}
	found := c.tool(agent, "conversation_search", `{"query":"Where is the walrus?"}`)
	contains(t, "the search", found, "walrus is in the cellar", "the call that this is the result of is not in")
	id := regexp.MustCompile(`message-[0-9a-f-]+`).FindString(found)
	contains(t, "expand", c.tool(agent, "expand", `{"id":"`+id+`"}`), "walrus is in")
	contains(t, "expand with a pattern", c.tool(agent, "expand", `{"id":"`+id+`","pattern":"w.lrus"}`), "walrus is in")
	contains(t, "expand of a range", c.tool(agent, "expand", `{"id":"seq 1-99","pattern":"w.lrus"}`), "walrus is in")
	contains(t, "the list", c.must("GET", target+"/messages", ""), "walrus is in", `"orphan":true`)
	all := c.must("POST", "/v1/agents/messages/search", `{"query":"walrus"}`)
	contains(t, "a search of the organization", all, "walrus is in")
}

// The messages of a list are counted before they are read, and none is read after a mistake.
func TestALongListIsRefusedEarly(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	c := newClient(t)
	target := "/v1/agents/" + c.made("/v1/agents", `{}`) + "/messages/capture"
	for _, tt := range []struct {
		item  string
		times int
		want  string
	}{
		{`{}`, 30_000, "messages[0].role: expected one of"},
		{`{}`, 100_000, "messages: the list has more than 40000 items. Send at most 10000 messages at a time"},
		{`{"role":"user","content":"x"}`, 39_000,
			"more than 10000 messages are given. Send at most 10000 messages at a time"},
	} {
		got := c.call("POST", target, `{"messages":[`+strings.Repeat(tt.item+",", tt.times-1)+tt.item+`]}`)
		if got.Code/100 != 4 || !strings.Contains(got.Text, tt.want) {
			t.Errorf("%d times %s: got %d %.200s, want %s", tt.times, tt.item, got.Code, got.Text, tt.want)
		}
	}
	// A client that sends as many messages as each of these errors names succeeds.
	const item = `{"role":"user","content":"x"}`
	if got := c.capture(strings.Split(target, "/")[3], `{"messages":[`+strings.Repeat(item+",", 9_999)+item+`]}`); len(
		got.Messages) != 10_000 {
		t.Errorf("of 10,000 messages, %d are stored", len(got.Messages))
	}
}

// A long body is stored in chunks. Calls find their results, and repeated otids the first message, in other chunks.
// Fields may come after the messages. If the end of a body is refused, nothing is stored.
func TestALongBodyIsStoredWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "{}")
	conversation, err := c.server.Recall.CreateConversation(t.Context(), c.org, agent, recall.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	between := strings.Repeat(`{"role":"user","content":"and on"},`, 1200)
	const call = `{"role":"assistant","otid":"o","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]},`
	body := func(last, id string) string {
		return `{"messages":[` + call + between + last + `],"conversation_id":"` + id + `"}`
	}
	for last, want := range map[string]string{
		`{"role":"robot"}`:                            "messages[1201].role: expected one of",
		`{"role":"user","content":"x","otid":"o"}`:    `messages[1201]: the otid \"o\" is that of two messages`,
		`{"role":"user","content":"x","date":"2999"}`: "messages[1201]",
	} {
		got := c.call("POST", "/v1/agents/"+agent+"/messages/capture", body(last, conversation.ID))
		if got.Code != 422 || !strings.Contains(got.Text, want) {
			t.Errorf("%s: got %d %.200s, want %s", last, got.Code, got.Text, want)
		}
	}
	const result = `{"role":"tool","tool_call_id":"c","content":"done"}`
	got := c.capture(agent, body(result, conversation.ID))
	if n := len(got.Messages); n != 1202 || got.ConversationID == nil || *got.ConversationID != conversation.ID ||
		got.Messages[n-1].Position != 1203 || len(got.Messages[n-1].Orphans) > 0 {
		t.Fatalf("%d messages, the last %+v; want 1202 after the instructions alone, and none an orphan", n,
			got.Messages[n-1])
	}
	again := c.capture(agent, body(result, conversation.ID)).Messages
	if !again[0].Repeated || again[1].Position != 1204 || !again[1201].Repeated ||
		again[1201].ID != got.Messages[1201].ID {
		t.Errorf("again: %+v, %+v, %+v; want the call and its result repeated", again[0], again[1], again[1201])
	}
	other := c.call("POST", "/v1/agents/"+agent+"/messages/capture",
		body(`{"role":"tool","tool_call_id":"c","content":"again"}`, conversation.ID))
	if other.Code != 409 || !strings.Contains(other.Text, `messages[1201]: the call \"c\" has a result already`) {
		t.Errorf("another result: got %d %.200s", other.Code, other.Text)
	}
}

// said returns an agent's messages after its system prompt, one per line.
func (c *client) said(agent string) (lines []string) {
	c.t.Helper()
	for _, m := range c.log(agent) {
		lines = append(lines, shownMessage(c.t, m))
	}
	return lines
}

// log returns an agent's messages after its system prompt.
func (c *client) log(agent string) []recall.Message {
	c.t.Helper()
	all, err := c.server.Recall.Messages(c.t.Context(), c.org, recall.MessageFilter{AgentID: agent, WithErrors: true},
		db.Page{Ascending: true, Limit: 1000})
	if err != nil {
		c.t.Fatal(err)
	}
	return all[1:]
}

// shownMessage returns what was stored of a message: its role, its name, and its parts as JSON.
func shownMessage(t *testing.T, m recall.Message) string {
	t.Helper()
	parts, err := json.Marshal(m.Content)
	if err != nil {
		t.Fatal(err)
	}
	name := ""
	if m.Name != nil {
		name = "(" + *m.Name + ")"
	}
	return string(m.Role) + name + " " + string(parts)
}

func TestCaptureUnderstands(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, tt := range []struct {
		name, messages string
		want           []string
	}{
		{"a text", `[{"role":"user","content":"hi"}]`, []string{`user [{"type":"text","text":"hi"}]`}},
		{"one message without a list", `{"role":"user","content":"hi","name":"Ann"}`,
			[]string{`user(Ann) [{"type":"text","text":"hi"}]`}},
		{"instructions, also those of developers", `[{"role":"system","content":"a"},{"role":"developer",` +
			`"content":[{"type":"text","text":"b"}]}]`,
			[]string{`system [{"type":"text","text":"a"}]`, `system [{"type":"text","text":"b"}]`}},
		{"images by address and in the message", `[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url",
			"image_url":{"url":"https://x/a.png","detail":"low"}},
			{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk=","detail":"high"}},{"type":"image_url",
			"image_url":"https://x/b.png"}]}]`,
			[]string{`user [{"type":"text","text":"see"},{"type":"image","source":{"type":"url","url":"https://x/a.png"}},` +
				`{"type":"image","source":{"data":"aGk=","detail":"high","media_type":"image/png","type":"base64"}},` +
				`{"type":"image","source":{"type":"url","url":"https://x/b.png"}}]`}},
		{"calls of tools and their results", `[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",
			"function":{"name":"f","arguments":"{\"a\": 1}"}},
			{"id":"c2","type":"custom","custom":{"name":"g","input":"free"}}]},{"role":"tool","tool_call_id":"c1",
			"content":"one"},
			{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"two"},{"type":"text","text":"three"},
			{"type":"image_url","image_url":{"url":"https://x/a.png"}}]}]`,
			[]string{`assistant [{"type":"tool_call","call_id":"c1","name":"f","input":"{\"a\": 1}"},{"type":"tool_call",` +
				`"call_id":"c2","name":"g","input":"free","kind":"custom"}]`,
				`tool [{"type":"tool_return","text":"one","call_id":"c1"}]`,
				`tool [{"type":"tool_return","text":"two\nthree","call_id":"c2",` +
					`"images":[{"type":"url","url":"https://x/a.png"}]}]`}},
		{"arguments that are an object, and an empty text beside calls", `[{"role":"assistant","content":"",` +
			`"tool_calls":[{"id":"c3","function":{"name":"f","arguments":{"a": [1]}}}]}]`,
			[]string{`assistant [{"type":"tool_call","call_id":"c3","name":"f","input":"{\"a\":[1]}"}]`}},
		{"an empty answer", `[{"role":"assistant","content":""}]`, []string{`assistant [{"type":"text"}]`}},
		{"thoughts, words, refusals", `[{"role":"assistant","reasoning_content":"hm","content":"yes","refusal":"but no"},
			{"role":"assistant","reasoning":"hm","content":[{"type":"refusal","refusal":"no"}]},
			{"role":"assistant","reasoning":{"effort":"high"},"content":"ok"}]`,
			[]string{`assistant [{"type":"reasoning","text":"hm","native":true,"kind":"reasoning_content"},` +
				`{"type":"text","text":"yes"},{"type":"text","text":"but no","kind":"refusal"}]`,
				`assistant [{"type":"reasoning","text":"hm","native":true,"kind":"reasoning"},` +
					`{"type":"text","text":"no","kind":"refusal"}]`,
				`assistant [{"type":"text","text":"ok"}]`}},
		{"functions, which tools once were", `[{"role":"assistant","content":null,"function_call":{"name":"f",` +
			`"arguments":"{}"}},{"role":"function","name":"f","content":"done"}]`,
			[]string{`assistant [{"type":"tool_call","call_id":"function:f","name":"f","input":"{}"}]`,
				`tool(f) [{"type":"tool_return","text":"done","call_id":"function:f"}]`}},
		{"a result that no call waits for", `[{"role":"tool","tool_call_id":"lost","content":"x"}]`,
			[]string{`tool [{"type":"tool_return","text":"x","call_id":"lost","orphan":true}]`}},
		{"Letta's message with all its parts", `[{"type":"message","role":"assistant","content":[{"type":"reasoning",
			"reasoning":"r","is_native":true,"signature":"s"},
			{"type":"redacted_reasoning","data":"d"},{"type":"omitted_reasoning","signature":"o"},{"type":"summarized_reasoning",
			"id":"rs","summary":[{"index": 0, "text": "t"}],"encrypted_content":"e"},
			{"type":"text","text":"x","signature":"q"},{"type":"image","source":{"type":"letta","file_id":"file-1",
			"media_type":null}},{"type":"tool_call","id":"c4","name":"f","input":{"a": "b"}}]},
			{"role":"user","content":[{"type":"tool_return","tool_call_id":"c4","content":"r","is_error":true}]}]`,
			[]string{`assistant [{"type":"reasoning","text":"r","native":true,"signature":"s"},{"type":"redacted_reasoning",` +
				`"data":"d"},{"type":"omitted_reasoning","signature":"o"},` +
				`{"type":"summarized_reasoning","text":"t","call_id":"rs","data":"e","summary":[{"index":0,"text":"t"}]},` +
				`{"type":"text","text":"x","signature":"q"},` +
				`{"type":"image","source":{"file_id":"file-1","type":"letta"}},{"type":"tool_call","call_id":"c4","name":"f",` +
				`"input":"{\"a\":\"b\"}"}]`,
				`tool [{"type":"tool_return","text":"r","call_id":"c4","is_error":true}]`}},
		{"Letta's results of tools", `[{"role":"assistant","tool_calls":[{"id":"c5","function":{"name":"f"}},{"id":"c6",
			"function":{"name":"f"}}]},
			{"type":"tool_return","tool_returns":[{"type":"tool","tool_call_id":"c5","status":"success","tool_return":"a",
			"stdout":["o"],"stderr":null},
			{"tool_call_id":"c6","status":"error","tool_return":[{"type":"text","text":"b"}],"stderr":["e"]}]}]`,
			[]string{`assistant [{"type":"tool_call","call_id":"c5","name":"f"},{"type":"tool_call","call_id":"c6","name":"f"}]`,
				`tool [{"type":"tool_return","text":"a","call_id":"c5","stdout":["o"]},{"type":"tool_return","text":"b",` +
					`"call_id":"c6","is_error":true,"stderr":["e"]}]`}},
		{"a list of Letta's, its items joined by their id", `[{"message_type":"system_message","id":"message-0",
			"content":"s"},{"message_type":"user_message","id":"message-1","content":"q"},
			{"message_type":"reasoning_message","id":"message-2","reasoning":"r","source":"reasoner_model"},
			{"message_type":"hidden_reasoning_message","id":"message-2","state":"redacted","hidden_reasoning":"h"},
			{"message_type":"assistant_message","id":"message-2","content":[{"type":"text","text":"w"}]},
			{"message_type":"tool_call_message","id":"message-2","tool_call":{"name":"f","arguments":"{}","tool_call_id":"c7"},
			"tool_calls":null},
			{"message_type":"tool_return_message","id":"message-3","tool_return":"ok","status":"success","tool_call_id":"c7"},
			{"message_type":"assistant_message","id":"message-4","content":"a"},{"message_type":"assistant_message",
			"id":"message-5","content":"b"}]`,
			[]string{`system [{"type":"text","text":"s"}]`, `user [{"type":"text","text":"q"}]`,
				`assistant [{"type":"reasoning","text":"r","native":true},{"type":"redacted_reasoning","data":"h"},` +
					`{"type":"text","text":"w"},{"type":"tool_call","call_id":"c7","name":"f","input":"{}"}]`,
				`tool [{"type":"tool_return","text":"ok","call_id":"c7"}]`,
				`assistant [{"type":"text","text":"a"}]`, `assistant [{"type":"text","text":"b"}]`}},
		{"fields that are unknown or null", `[{"role":"user","content":"x","name":null,"otid":null,"created_at":null,` +
			`"audio":null,"tool_calls":[],"cache_control":{"a":1}}]`,
			[]string{`user [{"type":"text","text":"x"}]`}},
		{"texts that are no UTF-8, and NUL", "[{\"role\":\"user\",\"content\":\"a\xffb\\u0000c\\ud800\"}]",
			[]string{"user [{\"type\":\"text\",\"text\":\"a\uFFFDb␀c\uFFFD\"}]"}},
	} {
		agent := c.made("/v1/agents", "{}")
		got := c.capture(agent, `{"messages":`+tt.messages+`}`)
		if diff := cmp.Diff(tt.want, c.said(agent)); diff != "" || len(got.Messages) != len(tt.want) {
			t.Errorf("%s: %d messages (-want +got):\n%s", tt.name, len(got.Messages), diff)
		}
	}
}

func TestCaptureKeepsWhatComesWithAMessage(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "{}")
	got := c.capture(agent, `{"conversation_id":"default","messages":[
		{"role":"user","content":"a","otid":"o1","created_at":"2024-01-31T12:30:00+02:00","step_id":"step-1","run_id":"run-1",
		"sender_id":"id-1","group_id":"g-1","model":"m"},
		{"message_type":"assistant_message","id":"message-1","date":"2024-02-01T00:00:00+00:00","otid":"o2","content":"b",
		"is_err":true},
		{"message_type":"assistant_message","id":"message-1","date":"2024-02-01T00:00:09+00:00","otid":"o3","content":"c"},
		{"role":"user","content":"d","date":"2024-02-02"}]}`)
	if got.ConversationID != nil || len(got.Messages) != 3 || got.Messages[0].Position != 2 ||
		*got.Messages[1].OTID != "o2" || got.Messages[2].OTID != nil {
		t.Errorf("answered %+v", got)
	}
	log := c.log(agent)
	if m := log[0]; *m.StepID != "step-1" || *m.RunID != "run-1" || *m.SenderID != "id-1" || *m.GroupID != "g-1" ||
		*m.Model != "m" || *m.OTID != "o1" {
		t.Errorf("kept %+v", m)
	}
	for i, want := range []string{"2024-01-31T10:30:00Z", "2024-02-01T00:00:00Z", "2024-02-02T00:00:00Z"} {
		if createdAt := log[i].CreatedAt.UTC().Format("2006-01-02T15:04:05Z"); createdAt != want || log[i].IsErr != (i == 1) {
			t.Errorf("message %d was said at %s, error %t; want %s", i, createdAt, log[i].IsErr, want)
		}
	}
}

func TestCaptureTakesWhatAProxySaw(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "{}")
	c.capture(agent, `{"provider":"openrouter","model":"m1","request_messages":[{"role":"system","content":"s"},
		{"role":"user","content":"q"}],
		"response_dict":{"id":"x","choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}],"usage":{}}}`)
	want := []string{`system [{"type":"text","text":"s"}]`, `user [{"type":"text","text":"q"}]`,
		`assistant [{"type":"text","text":"a"}]`}
	if diff := cmp.Diff(want, c.said(agent)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if log := c.log(agent); log[1].Model != nil || log[2].Model == nil || *log[2].Model != "m1" {
		t.Errorf("models are %v and %v, want that of the answer alone", log[1].Model, log[2].Model)
	}
}

func TestCaptureAppendsToAConversation(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "{}")
	conversation, err := c.server.Recall.CreateConversation(t.Context(), c.org, agent, recall.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	got := c.capture(agent, fmt.Sprintf(`{"conversation_id":%q,"messages":{"role":"user","content":"a"}}`,
		conversation.ID))
	if got.ConversationID == nil || *got.ConversationID != conversation.ID || got.Messages[0].Position != 2 {
		t.Errorf("answered %+v, want position 2 of %s", got, conversation.ID)
	}
	usual, err := c.server.Recall.Conversation(t.Context(), c.org, agent, recall.DefaultConversation)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.capture(agent, fmt.Sprintf(`{"conversation_id":%q,"messages":{"role":"user","content":"a"}}`,
		usual.ID)); got.ConversationID != nil {
		t.Errorf("the default conversation by its id: answered %s, want null", *got.ConversationID)
	}
	other := c.made("/v1/agents", "{}")
	for _, id := range []string{conversation.ID, "conv-123e4567-e89b-42d3-8456-426614174000", "x"} {
		body := fmt.Sprintf(`{"conversation_id":%q,"messages":{"role":"user","content":"a"}}`, id)
		servertest.CheckProblem(t, c.call("POST", "/v1/agents/"+other+"/messages/capture", body), 404,
			map[string]any{"detail": "Conversation with ID " + id + " not found"})
	}
}

// refusals are invalid requests, and the beginnings of their answers.
var refusals = []struct {
	name, body string
	status     int
	detail     string
}{
	{"nothing", `{}`, 422, "messages: expected at least one message"},
	{"no body", ``, 422, "messages: expected at least one message"},
	{"an empty list", `{"messages":[]}`, 422, "messages: expected at least one message"},
	{"a list for a body", `[{"role":"user","content":"x"}]`, 422, "body: expected an object with messages"},
	{"null for a body", `null`, 422, "body: expected an object with messages"},
	{"what is no JSON", `{"messages":[`, 400, "body: "},
	{"a text for messages", `{"messages":"hi"}`, 422, "messages: expected a message, or a list of them. Got: \"hi\""},
	{"a text for a message", `{"messages":["hi"]}`, 422, "messages[0]: expected an object"},
	{"null for a message", `{"messages":[{"role":"user","content":"x"},null]}`, 422, "messages[1]: expected an object"},
	{"no role", `{"messages":[{"content":"x"}]}`, 422, "messages[0].role: expected one of system, developer, user, " +
		"assistant, tool, function"},
	{"an unknown role", `{"messages":[{"role":"user","content":"x"},{"role":"robot","content":"x"}]}`, 422,
		"messages[1].role: expected one of system, developer, user, assistant, tool, function. Got: \"robot\""},
	{"a number for a role", `{"messages":[{"role":5,"content":"x"}]}`, 422, "messages[0].role: expected a text. Got: 5"},
	{"no content", `{"messages":[{"role":"user"}]}`, 422, "messages[0].content: expected a text, or a list of parts"},
	{"content without parts", `{"messages":[{"role":"user","content":[]}]}`, 422,
		"messages[0].content: expected a text, or a list of parts"},
	{"an answer of nothing", `{"messages":[{"role":"assistant","content":null}]}`, 422,
		"messages[0].content: expected a text, or a list of parts, in a message without tool_calls"},
	{"a number for content", `{"messages":[{"role":"user","content":7}]}`, 422,
		"messages[0].content: expected a text, or a list of parts. Got: 7"},
	{"an object for content", `{"messages":[{"role":"user","content":{"type":"text","text":"x"}}]}`, 422,
		"messages[0].content: expected a text, or a list of parts"},
	{"a part without a type", `{"messages":[{"role":"user","content":[{"text":"x"}]}]}`, 422,
		"messages[0].content[0].type: expected a text that is not empty"},
	{"a part without its text", `{"messages":[{"role":"user","content":[{"type":"text"}]}]}`, 422,
		"messages[0].content[0].text: expected a text"},
	{"an unknown part", `{"messages":[{"role":"user","content":[{"type":"video"}]}]}`, 422,
		"messages[0].content[0].type: expected one of bash_code_execution_tool_result, code_execution_tool_result"},
	{"sound", `{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}]}`, 422,
		"messages[0].content[0].type: sound is not kept"},
	{"a document", `{"messages":[{"role":"user","content":[{"type":"document","source":{}}]}]}`, 422,
		"messages[0].content[0].type: files are not kept in messages"},
	{"Anthropic's call without a name", `{"messages":[{"role":"assistant","content":[{"type":"text","text":"x"},` +
		`{"type":"tool_use","id":"t","input":{}}]}]}`, 422,
		"messages[0].content[1].name: expected a text"},
	{"Anthropic's result of no call", `{"messages":[{"role":"user","content":[{"type":"tool_result","content":"x"}]}]}`,
		422, "messages[0].content[0].tool_use_id: expected a text that is not empty"},
	{"Anthropic's thought that is none", `{"messages":[{"role":"assistant","content":[{"type":"thinking",` +
		`"signature":"s"}]}]}`, 422, "messages[0].content[0].thinking: expected a text"},
	{"a call of the Responses API without its id", `{"messages":[{"type":"function_call","name":"f","arguments":"{}"}]}`,
		422, "messages[0].call_id: expected a text that is not empty"},
	{"what the Responses API names by an id", `{"input":[{"type":"item_reference","id":"msg_1"}]}`, 422,
		"input[0].type: what an id of OpenAI's names is not known here"},
	{"an image of the Responses API without address", `{"messages":[{"role":"user","content":[{"type":"input_image",` +
		`"file_id":"file-1"}]}]}`, 422, "messages[0].content[0].image_url: expected a text that is not empty"},
	{"an image that is not one", `{"messages":[{"role":"user","content":[{"type":"image_url",` +
		`"image_url":{"url":"data:text/plain,x"}}]}]}`, 422,
		"messages[0].content[0].image_url.url: expected the address of an image"},
	{"an image of broken base64", `{"messages":[{"role":"user","content":[{"type":"image_url",` +
		`"image_url":{"url":"data:image/png;base64,#"}}]}]}`, 422,
		"messages[0].content[0].image_url.url: expected the address of an image"},
	{"an image without a source", `{"messages":[{"role":"user","content":[{"type":"image"}]}]}`, 422,
		"messages[0].content[0].source: expected an object"},
	{"an image of base64 without its type", `{"messages":[{"role":"user","content":[{"type":"image",` +
		`"source":{"type":"base64","data":"aGk="}}]}]}`, 422,
		"messages[0].content[0].source.media_type: expected a text that is not empty"},
	{"calls of a user", `{"messages":[{"role":"user","content":"x","tool_calls":[{"id":"c","function":{"name":"f"}}]}]}`,
		422, "messages[0].tool_calls: only a message of role assistant"},
	{"a call without an id", `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]}]}`, 422,
		"messages[0].tool_calls[0].id: expected a text that is not empty"},
	{"a call without a function", `{"messages":[{"role":"assistant","tool_calls":[{"id":"c"}]}]}`, 422,
		"messages[0].tool_calls[0].function: expected an object"},
	{"a call without a name", `{"messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{}}]}]}`, 422,
		"messages[0].tool_calls[0].function.name: expected a text"},
	{"calls that are a text", `{"messages":[{"role":"assistant","tool_calls":"x"}]}`, 422,
		"messages[0].tool_calls: expected a list of calls. Got: \"x\""},
	{"two calls of one id", `{"messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f"}},` +
		`{"id":"c","function":{"name":"f"}}]}]}`, 422,
		"messages[0]: two calls of a tool have the id \"c\""},
	{"a result without an id", `{"messages":[{"role":"tool","content":"x"}]}`, 422,
		"messages[0].tool_call_id: expected the id of the call"},
	{"a result without content", `{"messages":[{"role":"tool","tool_call_id":"c"}]}`, 422,
		"messages[0].content: expected what the tool returned"},
	{"a result that calls", `{"messages":[{"role":"tool","tool_call_id":"c","content":[{"type":"tool_call","id":"x",` +
		`"name":"f"}]}]}`, 422,
		"messages[0].content[0].type: expected one of image, image_url, input_image, input_text, output_text, refusal, text"},
	{"a thought of a user", `{"messages":[{"role":"user","content":[{"type":"reasoning","reasoning":"x"}]}]}`, 422,
		"messages[0]: a message of role user cannot have a part of type \"reasoning\""},
	{"an approval", `{"messages":[{"type":"approval","approve":true,"approval_request_id":"x"}]}`, 422,
		"messages[0].approve: approvals are not turns"},
	{"an approval without a type", `{"messages":[{"approval_request_id":"x"}]}`, 422,
		"messages[0].approval_request_id: approvals are not turns"},
	{"a listed approval of nothing", `{"messages":[{"message_type":"approval_response_message","id":"x"}]}`, 422,
		"messages[0].approvals: expected at least one"},
	{"a listed approval without its result", `{"messages":[{"message_type":"approval_response_message","id":"x",` +
		`"approvals":[{"type":"approval","approve":true,"tool_call_id":"c"}]}]}`, 422,
		"messages[0].approvals: the result of the call c does not follow"},
	{"results that are none", `{"messages":[{"type":"tool_return","tool_returns":[]}]}`, 422,
		"messages[0].tool_returns: expected at least one"},
	{"a result of an unknown status", `{"messages":[{"type":"tool_return","tool_returns":[{"tool_call_id":"c",` +
		`"status":"maybe","tool_return":"x"}]}]}`, 422,
		"messages[0].tool_returns[0].status: expected one of success, error. Got: \"maybe\""},
	{"a summary in a list", `{"messages":[{"message_type":"summary_message","id":"x","summary":"s"}]}`, 422,
		"messages[0].message_type: expected one of system_message"},
	{"a time that is none", `{"messages":[{"role":"user","content":"x","created_at":"yesterday"}]}`, 422,
		"messages[0].created_at: expected a time in ISO 8601"},
	{"a time to come", `{"messages":[{"role":"user","content":"x","date":"2999-01-01"}]}`, 422,
		"messages[0]: created_at is 2999-01-01T00:00:00Z: a message cannot be from the future"},
	{"a number for an otid", `{"messages":[{"role":"user","content":"x","otid":1}]}`, 422,
		"messages[0].otid: expected a text. Got: 1"},
	{"an otid twice", `{"messages":[{"role":"user","content":"x","otid":"o"},{"role":"user","content":"x","otid":"o"}]}`,
		422, "messages[1]: the otid \"o\" is that of two messages"},
	{"a fault behind joined items", `{"messages":[{"message_type":"assistant_message","id":"a","content":"x"},
		{"message_type":"assistant_message","id":"a","content":"x"},
		{"role":"user","content":[{"type":"reasoning","reasoning":"x"}]}]}`, 422, "messages[2]: a message of role user"},
	{"a number for a conversation", `{"conversation_id":5,"messages":[{"role":"user","content":"x"}]}`, 422,
		"conversation_id: expected a text. Got: 5"},
	{"a NUL in a conversation's id", `{"conversation_id":"a\u0000","messages":[{"role":"user","content":"x"}]}`, 422,
		"body.conversation_id: the text has a NUL"},
	{"Google's calls", `{"provider":"google_vertex","model":"m","request_messages":[],"response_dict":{}}`, 422,
		"provider: Google's format is not understood"},
	{"a proxy that does not say what it saw", `{"request_messages":[{"role":"user","content":"x"}],"response_dict":{}}`,
		422, "provider: expected a text that is not empty"},
	{"an answer without choices", `{"provider":"openai","request_messages":[{"role":"user","content":"x"}],` +
		`"response_dict":{}}`, 422, "response_dict: expected what the provider returned: choices"},
	{"no answer", `{"provider":"openai","request_messages":[{"role":"user","content":"x"}]}`, 422,
		"response_dict: expected an object"},
	{"an answer that is none", `{"provider":"openai","request_messages":[{"role":"user","content":"x"}],` +
		`"response_dict":{"choices":[{"message":{"role":"assistant","content":3}}]}}`, 422,
		"response_dict.choices[0].message.content: expected a text, or a list of parts. Got: 3"},
	{"both ways at once", `{"messages":[],"provider":"openai","request_messages":[]}`, 422,
		"request_messages: cannot stand beside messages"},
	{"what nests too deep", `{"messages":[{"role":"user","content":"x","extra":` + strings.Repeat("[", 100) +
		strings.Repeat("]", 100) + `}]}`, 422,
		"body: expected at most 100 levels of nesting"},
}

func TestCaptureRefusesAndStoresNothing(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "{}")
	for _, r := range refusals {
		got := c.call("POST", "/v1/agents/"+agent+"/messages/capture", r.body)
		if detail, _ := fields(t, got.Text)["detail"].(string); got.Code != r.status || !strings.HasPrefix(detail, r.detail) {
			t.Errorf("%s: %s: got %d %s, want %d %q…", r.name, r.body, got.Code, got.Text, r.status, r.detail)
		}
	}
	if said := c.said(agent); len(said) > 0 {
		t.Errorf("stored %q, want nothing", said)
	}
	got := c.call("POST", someAgent+"/messages/capture", `{"messages":{"role":"user","content":"x"}}`)
	servertest.CheckProblem(t, got, 404, map[string]any{"detail": "Agent with ID " +
		"agent-123e4567-e89b-42d3-8456-426614174000 not found"})
}

func TestCaptureTakesLargeBodies(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "{}")
	target := "/v1/agents/" + agent + "/messages/capture"
	text := strings.Repeat("word ", 1<<20)
	body := fmt.Sprintf(`{"messages":[{"role":"user","content":%q},{"role":"user","content":%q}]}`, text, text)
	c.must("POST", target, body)
	if got := c.log(agent); len(got) != 2 || got[1].Content[0].Text != text {
		t.Errorf("%d messages were kept, want two of 5 MiB", len(got))
	}
	long := `{"messages":{"role":"user","content":"` + strings.Repeat("a", 17<<20) + `"}}`
	if got := c.call("POST", target, long); got.Code != 422 ||
		!strings.Contains(got.Text, "messages: a text in it may have at most 16777216 bytes") {
		t.Errorf("a text of 17 MiB: got %d %.200s", got.Code, got.Text)
	}
	const two = `{"messages":[{"role":"user","content":"a"},{"role":"user","content":"`
	for long, want := range map[string]string{
		strings.Repeat("a", 17<<20): "messages[1]: a text in it may have at most 16777216 bytes",
		strings.Repeat(`\n`, 11<<20) + `x"},{"role":"user","content":"` + strings.Repeat(`\u0061`, 3<<20): "",
	} {
		got := c.call("POST", target, two+long+`"}]}`)
		if want == "" && got.Code != 200 || want != "" && (got.Code != 422 || !strings.Contains(got.Text, want)) {
			t.Errorf("a text of %.10s…: got %d %.200s, want %s", long, got.Code, got.Text, want)
		}
	}
	part := `{"type":"text","text":"` + strings.Repeat("a", 12<<20) + `"}`
	parts := `{"messages":[{"role":"user","content":[` + part + "," + part + "," + part + `]}]}`
	if got := c.call("POST", target, parts); got.Code != 413 || !strings.Contains(got.Text, "larger than 25165824 bytes") {
		t.Errorf("a message of 36 MiB: got %d %.200s", got.Code, got.Text)
	}
	got := c.call("POST", target, `{"messages":[],"x":"`+strings.Repeat("a", 64<<20)+`"}`)
	servertest.CheckProblem(t, got, 413, map[string]any{"detail": "The request's body is larger than 67108864 bytes"})
	servertest.CheckProblem(t, c.call("POST", "/v1/agents", `{"x":"`+strings.Repeat("a", 1<<20)+`"}`), 413,
		map[string]any{"detail": "The request's body is larger than 1048576 bytes"})
}

func TestCaptureStoresAnOtidOnce(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "{}")
	const body = `{"messages":[{"role":"user","content":"q","otid":"o1"},{"role":"assistant","content":"a","otid":"o2"}]}`
	first, again := c.capture(agent, body), c.capture(agent, body)
	for i := range first.Messages {
		if !again.Messages[i].Repeated || first.Messages[i].Repeated || again.Messages[i].ID != first.Messages[i].ID {
			t.Errorf("message %d: first %+v, again %+v", i, first.Messages[i], again.Messages[i])
		}
	}
	more := c.capture(agent, `{"messages":[{"role":"assistant","content":"a","otid":"o2"},{"role":"user",`+
		`"content":"next","otid":"o3"}]}`)
	if !more.Messages[0].Repeated || more.Messages[1].Repeated || more.Messages[1].Position != 4 {
		t.Errorf("a turn more: got %+v, want the second at position 4", more.Messages)
	}
	got := c.call("POST", "/v1/agents/"+agent+"/messages/capture", `{"messages":[{"role":"user","content":"new"},`+
		`{"role":"user","content":"else","otid":"o1"}]}`)
	if detail, _ := fields(t, got.Text)["detail"].(string); got.Code != 409 ||
		!strings.HasPrefix(detail, `messages[1]: the otid "o1" belongs to `+first.Messages[0].ID) {
		t.Errorf("an otid of another text: got %d %s", got.Code, got.Text)
	}
	if n := len(c.log(agent)); n != 3 {
		t.Errorf("%d messages are stored, want 3", n)
	}
}

func TestIdenticalCapturesAtOnceStoreOnce(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "{}")
	other, err := c.server.Recall.CreateConversation(t.Context(), c.org, agent, recall.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	const twins = 12
	answers := make([]servertest.Reply, twins)
	var calls sync.WaitGroup
	for i := range twins { // half of them go to another conversation, which has another lock
		conversation := []string{"default", other.ID}[i%2]
		body := fmt.Sprintf(`{"conversation_id":%q,"messages":[{"role":"user","content":"q","otid":"o1"},`+
			`{"role":"assistant","content":"a","otid":"o2"}]}`, conversation)
		calls.Go(func() { answers[i] = c.call("POST", "/v1/agents/"+agent+"/messages/capture", body) })
	}
	calls.Wait()
	ids, fresh := map[string]bool{}, 0
	for _, a := range answers {
		var got captured
		if err := json.Unmarshal([]byte(a.Text), &got); err != nil || a.Code != 200 {
			t.Fatalf("got %d %s", a.Code, a.Text)
		}
		ids[got.Messages[0].ID+" "+got.Messages[1].ID] = true
		if !got.Messages[0].Repeated {
			fresh++
		}
	}
	if len(ids) != 1 || fresh != 1 {
		t.Errorf("%d calls were told of %d pairs of ids, %d that theirs is new; want one of each", twins, len(ids), fresh)
	}
}
