package server_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// contents returns the texts of a list's items, without the items that have none.
func contents(items []map[string]any) (texts []string) {
	for _, item := range items {
		if text, ok := item["content"].(string); ok && item["message_type"] != "system_message" {
			texts = append(texts, text)
		}
	}
	return texts
}

func TestConversationsAreApart(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"system":"First."}`)
	one, two := c.made("/v1/conversations/?agent_id="+agent, "{}"), c.made("/v1/conversations/?agent_id="+agent, "")
	c.append(agent, one, draft(recall.User, said("to one")))
	c.append(agent, "default", draft(recall.User, said("to the agent")))
	c.append(agent, two, draft(recall.User, said("to two")))
	c.append(agent, one, draft(recall.Assistant, said("from one")))
	for target, want := range map[string][]string{
		"/v1/conversations/" + one + "/messages":               {"from one", "to one"},
		"/v1/conversations/" + one + "/messages?order=asc":     {"to one", "from one"},
		"/v1/conversations/" + two + "/messages":               {"to two"},
		"/v1/conversations/default/messages?agent_id=" + agent: {"to the agent"},
		"/v1/conversations/" + agent + "/messages":             {"to the agent"},
		"/v1/agents/" + agent + "/messages": {"to one", "to the agent", "to two",
			"from one"},
		"/v1/agents/" + agent + "/messages?conversation_id=default": {"to the agent"},
		"/v1/agents/" + agent + "/messages?conversation_id=" + one:  {"to one", "from one"},
		"/v1/messages/?conversation_id=" + two:                      {"to two"},
		"/v1/messages/": {"to one", "to the agent", "to two",
			"from one"},
		"/v1/messages/?limit=2": {"to two", "from one"},
		"/v1/messages/?include_return_message_types=assistant_message": {"from one"},
		"/v1/agents/" + agent + "/messages?group_id=none":              nil,
		"/v1/agents/" + agent + "/messages?limit=&conversation_id=&order_by=&": {"to one", "to the agent", "to two",
			"from one"},
	} {
		if diff := cmp.Diff(want, contents(c.list(target))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
	c.must("DELETE", "/v1/conversations/"+one, "")
	if diff := cmp.Diff([]string{"to the agent", "to two"},
		contents(c.list("/v1/agents/"+agent+"/messages"))); diff != "" {
		t.Errorf("after one was deleted (-want +got):\n%s", diff)
	}
	c.must("PATCH", "/v1/agents/"+agent+"/reset-messages", "")
	kept := contents(c.list("/v1/agents/" + agent + "/messages?include_reset=false"))
	if diff := cmp.Diff([]string{"to two"}, kept); diff != "" {
		t.Errorf("after a reset (-want +got):\n%s", diff)
	}
}

// first returns a conversation's current system message, and how many messages the model sees.
func (c *client) first(conversation string) (text string, visible int) {
	c.t.Helper()
	ids := fields(c.t, c.must("GET", "/v1/conversations/"+conversation, ""))["in_context_message_ids"].([]any)
	item := c.list("/v1/messages/" + ids[0].(string))[0]
	if item["message_type"] != "system_message" {
		c.t.Fatalf("the first message is %v", item)
	}
	text, _, _ = strings.Cut(item["content"].(string), "\n")
	return text, len(ids)
}

func TestAConversationKeepsItsPromptUntilItIsRecompiled(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"system":"Old.","model":"openai/gpt-4o"}`)
	old := c.made("/v1/conversations/?agent_id="+agent, "")
	c.append(agent, old, draft(recall.User, said("hi")))
	c.must("PATCH", "/v1/agents/"+agent, `{"system":"New."}`)
	fresh := c.made("/v1/conversations/?agent_id="+agent, "")
	for name, step := range map[string]struct{ conversation, want string }{"the old one": {old, "Old."},
		"the default one": {agent, "Old."}, "a new one": {fresh, "New."}} {
		if got, _ := c.first(step.conversation); got != step.want {
			t.Errorf("%s begins with %q, want %q", name, got, step.want)
		}
	}
	compiled := func(target, body string) string {
		t.Helper()
		var text string
		if err := json.Unmarshal([]byte(c.must("POST", target, body)), &text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	dry := compiled("/v1/conversations/"+old+"/recompile?dry_run=true", "{}")
	if got, n := c.first(old); got != "Old." || n != 2 || !strings.HasPrefix(dry, "New.") ||
		!strings.Contains(dry, "- CONVERSATION_ID: "+old+"\n") {
		t.Errorf("after a dry run it begins with %q and has %d messages; it compiled %q", got, n, dry)
	}
	for range 2 { // the second time there is nothing to change
		if text := compiled("/v1/conversations/"+old+"/recompile", "{}"); text != dry {
			t.Errorf("compiled %q, want %q", text, dry)
		}
		if got, n := c.first(old); got != "New." || n != 2 {
			t.Errorf("recompiled, it begins with %q and has %d messages, want New. and 2", got, n)
		}
	}
	if got := len(c.list("/v1/conversations/" + old + "/messages?include_prompts=true")); got != 3 {
		t.Errorf("the log has %d messages, want 3: the old prompt stays in it", got)
	}
	compiled("/v1/agents/"+agent+"/recompile?dry_run=true", "")
	if got, _ := c.first(agent); got != "Old." {
		t.Errorf("after a dry run the default conversation begins with %q", got)
	}
	for _, target := range []string{"/v1/conversations/default/recompile?agent_id=" + agent, "/v1/agents/" + agent +
		"/recompile"} {
		if text := compiled(target, ""); !strings.HasPrefix(text, "New.") ||
			!strings.Contains(text, "- CONVERSATION_ID: default\n") {
			t.Errorf("%s: compiled %q", target, text)
		}
		if got, n := c.first(agent); got != "New." || n != 1 {
			t.Errorf("%s: the default conversation begins with %q and has %d messages", target, got, n)
		}
	}
	var state struct {
		NumMessages     int `json:"num_messages"`
		TokensMessages  int `json:"num_tokens_messages"`
		NumRecallMemory int `json:"num_recall_memory"`
		Messages        []struct{ Role string }
	}
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+agent+"/context?conversation_id="+old, "")),
		&state); err != nil {
		t.Fatal(err)
	}
	if state.NumMessages != 2 || state.TokensMessages != tokens.Estimate("hi")+4 || state.NumRecallMemory != 6 ||
		len(state.Messages) != 2 {
		t.Errorf("the context of the old one: got %+v, want 2 messages, the user's tokens, and 6 messages of the agent",
			state)
	}
}

func TestConversationsAreKeptAndChanged(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	id := c.made("/v1/conversations/?agent_id="+agent, `{"summary":"s","description":"d","model":"openai/gpt-4o",
		"model_settings":{"temperature":1},"context_window_limit":9000,
		"hidden":false,"isolated_block_labels":[]}`)
	all := []string{"id", "agent_id", "summary", "description", "model", "model_settings", "context_window_limit",
		"archived", "created_by_id", "last_updated_by_id",
		"isolated_block_ids"}
	original := pick(t, c.must("GET", "/v1/conversations/"+id, ""), all...)
	if want := fmt.Sprintf(`{"agent_id":%q,"archived":false,"context_window_limit":9000,"created_by_id":null,`+
		`"description":"d","id":%q,"isolated_block_ids":[],`+
		`"last_updated_by_id":null,"model":"openai/gpt-4o","model_settings":{"temperature":1},"summary":"s"}`, agent,
		id); original != want {
		t.Errorf("created: got\n%s, want\n%s", original, want)
	}
	for _, unchanged := range []string{"", "{}", `{"summary":null,"archived":null,"last_message_at":null,"model":null,` +
		`"model_settings":null,"context_window_limit":null,"description":null}`} {
		if got := pick(t, c.must("PATCH", "/v1/conversations/"+id, unchanged), all...); got != original {
			t.Errorf("changed by %q: got\n%s, want\n%s", unchanged, got, original)
		}
	}
	got := c.must("PATCH", "/v1/conversations/"+id, `{"summary":"S","archived":true,`+
		`"last_message_at":"2026-01-31T12:00:00"}`)
	if fields(t, got)["archived_at"] == nil || pick(t, got, "summary", "archived",
		"last_message_at") != `{"archived":true,"last_message_at":"2026-01-31T12:00:00Z","summary":"S"}` {
		t.Errorf("changed: got %s", got)
	}
	if got := c.must("PATCH", "/v1/conversations/"+id, `{"archived":false}`); pick(t, got, "archived",
		"archived_at") != `{"archived":false,"archived_at":null}` {
		t.Errorf("back from the archive: got %s", got)
	}
	byAgent := pick(t, c.must("PATCH", "/v1/conversations/default", fmt.Sprintf(`{"agent_id":%q,"summary":"mine"}`,
		agent)), "id", "summary")
	if got := pick(t, c.must("GET", "/v1/conversations/"+agent, ""), "id", "summary"); got != byAgent ||
		!strings.Contains(got, "mine") {
		t.Errorf("the default one: got %s and %s", byAgent, got)
	}
	if got := c.must("DELETE", "/v1/conversations/"+id, ""); got != "null" {
		t.Errorf("deleted: got %q, want null", got)
	}
	for _, method := range []string{"DELETE", "GET", "PATCH"} {
		if got := c.call(method, "/v1/conversations/"+id, ""); got.Code != 404 {
			t.Errorf("%s what is deleted: got %d %s, want 404", method, got.Code, got.Text)
		}
	}
}

func TestConversationsAreListed(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent, other := c.made("/v1/agents", ""), c.made("/v1/agents", "")
	ids := map[string]string{}
	for _, name := range []string{"ann", "bob", "old", "hid", "gone"} {
		ids[name] = c.made("/v1/conversations?agent_id="+agent, fmt.Sprintf(`{"summary":%q,"hidden":%t}`, name,
			name == "hid"))
	}
	ids["other"] = c.made("/v1/conversations?agent_id="+other, `{"summary":"other"}`)
	c.must("PATCH", "/v1/conversations/"+ids["old"], `{"archived":true}`)
	c.must("DELETE", "/v1/conversations/"+ids["gone"], "")
	c.append(agent, ids["ann"], draft(recall.User, said("again")))
	for _, l := range []struct {
		query string
		want  []string
	}{
		{"", []string{"other", "bob", "ann"}},
		{"agent_id=" + agent, []string{"bob", "ann"}},
		{"agent_id=" + agent + "&order=asc", []string{"ann", "bob"}},
		{"agent_id=" + agent + "&order_by=last_message_at", []string{"ann", "bob"}},
		{"agent_id=" + agent + "&archive_status=archived", []string{"old"}},
		{"agent_id=" + agent + "&archive_status=all", []string{"old", "bob", "ann"}},
		{"summary_search=OT", []string{"other"}},
		{"limit=1", []string{"other"}},
		{"after=" + ids["other"], []string{"bob", "ann"}},
		{"after=" + ids["ann"], nil},
		{"after=" + ids["bob"] + "&limit=5&order=asc", []string{"other"}},
	} {
		var got []string
		for _, item := range c.list("/v1/conversations/?" + l.query) {
			got = append(got, item["summary"].(string))
			if n := len(item["in_context_message_ids"].([]any)); n < 1 {
				t.Errorf("list with %q: %v shows %d messages", l.query, item["summary"], n)
			}
		}
		if !slices.Equal(got, l.want) {
			t.Errorf("list with %q: got %q, want %q", l.query, got, l.want)
		}
	}
}

// A time range includes both ends. A day is a day in the agent's time zone, or in UTC if no agent is named.
func TestMessagesAreFoundByTheirTime(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"timezone":"America/New_York"}`)
	strange := c.made("/v1/agents", "")
	c.exec(`UPDATE agents SET timezone = 'Middle Earth' WHERE id = '` + strange + `'`) // older servers allowed this
	draftAt := func(text, timestamp string) recall.Draft {
		moment, err := time.Parse(time.RFC3339, timestamp)
		if err != nil {
			t.Fatal(err)
		}
		d := draft(recall.User, said(text+" met the dragon"))
		d.CreatedAt = &moment
		return d
	}
	c.append(agent, "default", draftAt("ann", "2026-03-10T03:30:00Z"), draftAt("bob", "2026-03-10T12:00:00.5Z"),
		draftAt("cid", "2026-03-11T03:59:59.999999Z"), draftAt("dan", "2026-03-11T04:00:00Z"))
	for _, q := range []struct{ name, filter, want string }{
		{"all of it", `"limit":10`, "ann bob cid dan"},
		{"a day in UTC", `"start_date":"2026-03-10","end_date":"2026-03-10"`, "ann bob"},
		{"a day of the agent", fmt.Sprintf(`"agent_id":%q,"start_date":"2026-03-10","end_date":"2026-03-10"`, agent),
			"bob cid"},
		{"a time of the agent", fmt.Sprintf(`"agent_id":%q,"start_date":"2026-03-11T00:00"`, agent), "dan"},
		{"with an offset", fmt.Sprintf(`"agent_id":%q,"start_date":"2026-03-10T13:00:00+01:00",`+
			`"end_date":"2026-03-10T12:00:01Z"`, agent), "bob"},
		{"the second that a message shows", `"start_date":"2026-03-10T12:00:00+00:00","end_date":"2026-03-10T12:00:00+00:00"`,
			"bob"},
		{"the very moment", `"start_date":"2026-03-11T04:00:00Z","end_date":"2026-03-11T04:00:00.000000Z"`, "dan"},
		{"nothing between", `"start_date":"2026-03-12","end_date":"2026-03-11"`, ""},
		{"a conversation", fmt.Sprintf(`"conversation_id":%q`, agent), "ann bob cid dan"},
		{"null is no end", `"start_date":"2026-03-11","end_date":null,"agent_id":null,"search_mode":null,"limit":null`,
			"cid dan"},
		{"an agent of no known zone", fmt.Sprintf(`"agent_id":%q,"start_date":"2026-03-11"`, strange), ""},
	} {
		var hits []struct {
			Type    string `json:"message_type"`
			Content string
			ID      string    `json:"message_id"`
			At      time.Time `json:"created_at"`
		}
		if err := json.Unmarshal([]byte(c.must("POST", "/v1/messages/search", `{"query":"dragon",`+q.filter+`}`)),
			&hits); err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for _, f := range hits {
			names = append(names, f.Content[:3])
			if f.Type != "user_message" || f.ID == "" || f.At.IsZero() {
				t.Errorf("%s: got %+v", q.name, f)
			}
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != q.want {
			t.Errorf("%s: %s: got %q, want %q", q.name, q.filter, got, q.want)
		}
	}
	newest := c.must("POST", "/v1/agents/messages/search", `{"limit":2}`)
	if !strings.Contains(newest, "dan met") || !strings.Contains(newest, "cid met") ||
		strings.Contains(newest, "bob met") {
		t.Errorf("without a query: got %s, want the newest two", newest)
	}
	for roles, want := range map[string]bool{`[]`: true, `null`: true, `["user","approval"]`: true, `["assistant"]`: false,
		`["function","summary"]`: false} {
		if got := c.must("POST", "/v1/agents/messages/search",
			`{"query":"dragon","roles":`+roles+`}`); (got != "[]") != want {
			t.Errorf("of the roles %s: got %s", roles, got)
		}
	}
}

// Results of every search over REST can be read page by page, by offset and by the last result's id.
func TestPagesOfSearches(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	for i := range 9 {
		c.append(agent, "default", draft(recall.User, said(fmt.Sprintf("dragon %d", i))))
		c.must("POST", "/v1/agents/"+agent+"/archival-memory", fmt.Sprintf(`{"text":"dragon %d"}`, i))
	}
	var ids = regexp.MustCompile(`"(?:message_)?id":"((?:message|passage)-[0-9a-f-]{36})"`)
	for _, s := range []struct{ method, target string }{
		{"POST", "/v1/messages/search"},
		{"POST", "/v1/agents/messages/search"},
		{"POST", "/v1/passages/search"},
		{"GET", "/v1/agents/" + agent + "/archival-memory/search"},
	} {
		page := func(limit, offset int, last string) (texts []string) {
			var got string
			if s.method == "GET" {
				got = c.must("GET", fmt.Sprintf("%s?query=dragon&top_k=%d&offset=%d&after=%s", s.target, limit, offset, last), "")
			} else {
				got = c.must("POST", s.target, fmt.Sprintf(`{"query":"dragon","limit":%d,"offset":%d,"after":%s}`, limit, offset,
					strconv.Quote(last)))
			}
			for _, id := range ids.FindAllStringSubmatch(got, -1) {
				texts = append(texts, id[1])
			}
			return texts
		}
		all := page(100, 0, "")
		if len(all) != 9 {
			t.Fatalf("%s finds %q", s.target, all)
		}
		if got := page(4, 3, ""); !slices.Equal(got, all[3:7]) {
			t.Errorf("%s at offset 3: got %q, want %q", s.target, got, all[3:7])
		}
		if got := page(4, 0, all[2]); !slices.Equal(got, all[3:7]) {
			t.Errorf("%s after the third: got %q, want %q", s.target, got, all[3:7])
		}
		if got := page(4, 9, ""); len(got) != 0 {
			t.Errorf("%s past the end: got %q", s.target, got)
		}
	}
}

func TestASearchFillsItsLimit(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	for i := range 8 {
		id := fmt.Sprint(i)
		c.append(agent, "default", draft(recall.Assistant, call(id, "draw", `{"what":"dragon"}`)),
			draft(recall.Tool, returned(id, "a dragon")),
			draft(recall.Assistant, recall.Part{Type: recall.Reasoning, Text: "A dragon it is."},
				said("Here is your dragon "+id)))
	}
	for limit, want := range map[int]int{1: 1, 5: 5, 100: 16} {
		body := c.must("POST", "/v1/messages/search", fmt.Sprintf(`{"query":"dragon","limit":%d}`, limit))
		var found []map[string]any
		if err := json.Unmarshal([]byte(body), &found); err != nil || len(found) != want {
			t.Errorf("limit %d: got %d things (%v), want %d", limit, len(found), err, want)
		}
		for _, f := range found {
			if (f["message_type"] == "reasoning_message") != (f["reasoning"] != nil) ||
				(f["message_type"] == "assistant_message") != (f["content"] != nil) {
				t.Errorf("got %v, want a thought or something said", f)
			}
		}
	}
	c.append(agent, "default", draft(recall.User, said("Once I saw a unicorn, and then a lot of other things happened "+
		"that nobody asks for.")))
	for i := range 5 {
		c.append(agent, "default", draft(recall.Assistant, call(fmt.Sprint("u", i), "unicorn", `{"unicorn":"unicorn"}`)))
	}
	if got := c.must("POST", "/v1/messages/search", `{"query":"unicorn","limit":1}`); !strings.Contains(got,
		"Once I saw") {
		t.Errorf("behind calls that find more of it: got %s", got)
	}
	if got := c.call("POST", "/v1/messages/search",
		`{"query":"`+url.QueryEscape(strings.Repeat("dragon ", 2000))+`"}`); got.Code != 200 {
		t.Errorf("a long query: got %d %s", got.Code, got.Text)
	}
}
