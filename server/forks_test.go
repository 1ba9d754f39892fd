package server_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/recall"
)

// summaryRange matches the range of messages in a summary.
var summaryRange = regexp.MustCompile(`seq (\d+)–(\d+)`)

// nextMessages returns the messages of a conversation's next prompt, without system prompt and state. It masks clip ids
// and the summary's range, which differ between conversations.
func (c *client) nextMessages(agent, conversation string) []string {
	c.t.Helper()
	var p struct {
		Request struct{ Messages []json.RawMessage }
	}
	body := c.must("GET", "/v1/agents/"+agent+"/prompt?pending=keep&conversation_id="+conversation, "")
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		c.t.Fatal(err)
	}
	var texts []string
	for _, m := range withoutState(p.Request.Messages)[1:] {
		texts = append(texts, summaryRange.ReplaceAllString(clipIDs.ReplaceAllString(string(m), "clip"), "seq"))
	}
	return texts
}

// listedMessage is an item of a list of messages.
type listedMessage struct {
	ID       string
	Type     string `json:"message_type"`
	Date     string
	Text     string `json:"content"`
	Position int
	Seq      int64
}

func (c *client) messages(path string) (all []listedMessage) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.must("GET", path, "")), &all); err != nil {
		c.t.Fatal(err)
	}
	return all
}

// foundIn returns the conversations and texts of the messages that a search finds, in search order.
func (c *client) foundIn(path, body string) []string {
	c.t.Helper()
	var hits []struct {
		ConversationID string `json:"conversation_id"`
		Content        string
	}
	if err := json.Unmarshal([]byte(c.must("POST", path, body)), &hits); err != nil {
		c.t.Fatal(err)
	}
	found := []string{}
	for _, h := range hits {
		found = append(found, h.ConversationID+" "+h.Content)
	}
	slices.Sort(found)
	return found
}

// captured captures messages in a conversation, and returns the last message's id.
func (c *client) captured(agent, conversation, body string) string {
	c.t.Helper()
	body = fmt.Sprintf(`{"conversation_id":%q,%s`, conversation, body[1:])
	got := c.capture(agent, body)
	return got.Messages[len(got.Messages)-1].ID
}

// greet lets the user say something in a conversation, because a prompt without a message is not handed out.
func (c *client) greet(agent, conversation string) {
	c.t.Helper()
	c.captured(agent, conversation, `{"messages":[{"role":"user","content":"Good morning."}]}`)
}

// A fork at a message has the prompt that the conversation had when that message was its last.
func TestAForkHasThePromptOfItsPosition(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"compaction_settings":{"mode":"all"}}`)
	for _, conversation := range []string{"default", c.made("/v1/conversations?agent_id="+agent, `{"summary":"s"}`)} {
		path, query := "/v1/conversations/"+conversation, "?agent_id="+agent
		prompts, order := map[string][]string{}, []string{}
		stage := func(last string) {
			t.Helper()
			prompts[last], order = c.nextMessages(agent, conversation), append(order, last)
		}
		stage(c.captured(agent, conversation, chatter(1, 8, "tea")))
		long, err := json.Marshal(strings.Repeat("a long line\n", recall.MaxResultChars/10))
		if err != nil {
			t.Fatal(err)
		}
		stage(c.captured(agent, conversation, `{"messages":[{"role":"assistant","tool_calls":[{"id":"c1","function":
			{"name":"read","arguments":"{}"}},{"id":"c2","function":{"name":"read","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"c1","content":`+string(long)+`}]}`))
		stage(c.captured(agent, conversation, `{"messages":[{"role":"tool","tool_call_id":"c2","content":"short"}]}`))
		for first := 9; first < 30; first += 10 {
			c.compact(path+"/compact", fmt.Sprintf(`{"agent_id":%q}`, agent))
			c.must("POST", path+"/recompile"+query, "{}")
			stage(c.captured(agent, conversation, chatter(first, 10, "cake")))
		}
		forks := map[string]string{}
		for _, last := range order {
			forks[last] = c.made(path+"/fork"+query+"&message_id="+last, "")
			if diff := cmp.Diff(prompts[last], c.nextMessages(agent, forks[last])); diff != "" {
				t.Errorf("%s: the prompt of a fork (-then +fork):\n%.3000s", conversation, diff)
			}
		}
		copied := c.made(path+"/fork"+query, "")
		current := c.nextMessages(agent, conversation)
		if diff := cmp.Diff(current, c.nextMessages(agent, copied)); diff != "" {
			t.Errorf("%s: the prompt of a copy (-original +copy):\n%.3000s", conversation, diff)
		}
		c.captured(agent, copied, chatter(100, 5, "wine"))
		c.compact("/v1/conversations/"+copied+"/compact", "")
		c.must("DELETE", "/v1/conversations/"+forks[order[0]], "")
		if diff := cmp.Diff(current, c.nextMessages(agent, conversation)); diff != "" {
			t.Errorf("%s: changes of copies changed it (-before +after):\n%.3000s", conversation, diff)
		}
		if conversation != "default" {
			c.must("DELETE", path, "")
			clip := clipIDs.FindString(c.must("GET", "/v1/conversations/"+forks[order[2]]+"/messages", ""))
			if got := c.must("GET", "/v1/agents/"+agent+"/expand/"+clip, ""); !strings.Contains(got, "a long line") {
				t.Errorf("the original is deleted, and a long result of a copy is %.80s", got)
			}
		}
	}
}

func TestForksAreConversationsOfTheirOwn(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	path := "/v1/conversations/" + c.made("/v1/conversations?agent_id="+agent, `{"summary":"s","description":"d",
		"model":"openai/gpt-4o","context_window_limit":9000}`)
	var first string
	for i := range 3 {
		id := c.captured(agent, strings.TrimPrefix(path, "/v1/conversations/"), fmt.Sprintf(`{"messages":[{"role":"user",
			"content":"%d","otid":"o%d"}]}`, i, i))
		if i == 0 {
			first = id
		}
	}
	fork := fields(t, c.must("POST", path+"/fork?hidden=true&message_id="+first, ""))
	if fork["summary"] != nil || fork["description"] != "d" || fork["model"] != "openai/gpt-4o" ||
		fork["agent_id"] != agent || fork["context_window_limit"] != 9000.0 || fork["hidden"] != true ||
		len(fork["in_context_message_ids"].([]any)) != 2 {
		t.Errorf("got %v", fork)
	}
	if list := c.must("GET", "/v1/conversations?agent_id="+agent, ""); strings.Contains(list, fork["id"].(string)) {
		t.Errorf("a hidden copy is listed in %s", list)
	}
	prompt := c.must("GET", "/v1/agents/"+agent+"/prompt?conversation_id="+fork["id"].(string), "")
	if !strings.Contains(prompt, "CONVERSATION_ID: "+fork["id"].(string)) {
		t.Errorf("the prompt names another conversation: %s", prompt)
	}
	c.captured(agent, fork["id"].(string), `{"messages":[{"role":"user","content":"on"}]}`)
	other := c.made("/v1/agents", "")
	foreign := c.captured(other, "default", `{"messages":[{"role":"user","content":"x"}]}`)
	for target, want := range map[string]int{path + "/fork?message_id=" + foreign: 404, path + "/fork?message_id=x": 404,
		"/v1/conversations/default/fork": 422, "/v1/conversations/conv-123e4567-e89b-42d3-8456-426614174000/fork": 404} {
		if got := c.call("POST", target, ""); got.Code != want {
			t.Errorf("%s: got %d %s, want %d", target, got.Code, got.Text, want)
		}
	}
	again := fields(t, c.must("POST", "/v1/conversations/"+fork["id"].(string)+"/fork", ""))
	if n := len(again["in_context_message_ids"].([]any)); n != 3 {
		t.Errorf("a copy of a copy shows %d messages", n)
	}
}

// forkedAgent creates an agent with a conversation of 40 messages and a fork of it. A summary hides the first messages.
func forkedAgent(c *client) (agent, original, fork string) {
	c.t.Helper()
	agent = c.made("/v1/agents", `{"compaction_settings":{"mode":"all"}}`)
	original = c.made("/v1/conversations?agent_id="+agent, "")
	c.captured(agent, original, chatter(1, 15, "the teapot is green"))
	c.compact("/v1/conversations/"+original+"/compact", "")
	c.captured(agent, original, chatter(16, 5, "cake"))
	return agent, original, c.made("/v1/conversations/"+original+"/fork", "")
}

// The messages that a fork's summary names can be read in the fork, by the summary's range and by the cited places,
// even after the original is deleted.
func TestAForksSummaryLeadsToItsMessages(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent, original, fork := forkedAgent(c)
	prompt := func(conversation string) string {
		return c.must("GET", "/v1/agents/"+agent+"/prompt?conversation_id="+conversation, "")
	}
	ownRange, originalRange := summaryRange.FindString(prompt(fork)), summaryRange.FindString(prompt(original))
	var cited string
	for _, m := range c.messages("/v1/conversations/" + original + "/messages?limit=100&order=asc") {
		if m.Text == "Answer 3: the teapot is green" {
			cited = fmt.Sprint(m.Seq)
		}
	}
	expand := func(id, query string) string {
		return c.must("GET", "/v1/agents/"+agent+"/expand/"+url.PathEscape(id)+query, "")
	}
	if ownRange == originalRange {
		t.Fatalf("the fork's summary names %q, the range of the original", ownRange)
	}
	check := func(when string) {
		t.Helper()
		for name, id := range map[string]string{"its range": ownRange, "the original's": originalRange} {
			got := expand(id, "")
			contains(t, when+", "+name, got, "Question 1: the teapot is green", "Answer 15: the teapot is green")
			if strings.Contains(got, "cake") || strings.Count(got, "Question 7:") != 1 {
				t.Errorf("%s, %s: got %s", when, name, got)
			}
		}
		contains(t, when+", a place", expand(cited, ""), "Answer 3: the teapot is green")
		contains(t, when+", a place as a range", expand("seq "+cited, ""), "[seq "+cited+"]", "Answer 3:")
	}
	check("with the original")
	later := c.captured(agent, original, chatter(30, 1, "never copied"))
	c.must("DELETE", "/v1/conversations/"+original, "")
	check("without the original")
	if got := c.call("GET", "/v1/agents/"+agent+"/expand/"+later, ""); got.Code != 404 {
		t.Errorf("a deleted message that was not copied: got %d %s", got.Code, got.Text)
	}
	second := c.made("/v1/conversations/"+fork+"/fork", "")
	c.must("DELETE", "/v1/conversations/"+fork, "")
	check("in a copy of the copy")
	if got := summaryRange.FindString(prompt(second)); got == ownRange || got == originalRange {
		t.Errorf("the summary of a copy's copy names %s", got)
	}
}

// A full file carries forks of deleted conversations, with everything that can be read in them.
func TestAFullFileCarriesForksOfDeletedConversations(t *testing.T) {
	t.Parallel()
	c, other := newClient(t), newElsewhereClient(t)
	agent, original, fork := forkedAgent(c)
	var cited string
	for _, m := range c.messages("/v1/conversations/" + fork + "/messages?limit=100&order=asc") {
		if m.Text == "Answer 3: the teapot is green" {
			cited = fmt.Sprint(m.Seq)
		}
	}
	second := c.made("/v1/conversations/"+fork+"/fork", "")
	c.must("DELETE", "/v1/conversations/"+original, "")
	c.captured(agent, fork, chatter(30, 1, "a word of the fork alone"))
	ids, leftOut := other.imported(c.must("GET", "/v1/agents/"+agent+"/export?full=true", ""))
	if len(ids) != 1 || ids[0] != agent || len(leftOut) > 0 {
		t.Fatalf("got %v, left out %q", ids, leftOut)
	}
	reads := []string{"/v1/conversations?agent_id=" + agent, "/v1/agents/" + agent + "/compactions",
		"/v1/agents/" + agent + "/expand/" + cited}
	for _, id := range []string{fork, second} {
		reads = append(reads, "/v1/conversations/"+id, "/v1/conversations/"+id+"/messages?limit=100")
		for _, server := range []*client{c, other} {
			if said := server.nextMessages(agent, id); len(said) < 11 {
				t.Errorf("the next prompt of %s has %d messages", id, len(said))
			}
		}
		summary := c.must("GET", "/v1/agents/"+agent+"/prompt?pending=keep&conversation_id="+id, "")
		reads = append(reads, "/v1/agents/"+agent+"/expand/"+url.PathEscape(summaryRange.FindString(summary)))
		if diff := cmp.Diff(c.nextMessages(agent, id), other.nextMessages(agent, id)); diff != "" {
			t.Errorf("the next prompt of %s (-exported +imported):\n%s", id, diff)
		}
	}
	for _, path := range reads {
		if diff := cmp.Diff(c.must("GET", path, ""), other.must("GET", path, "")); diff != "" {
			t.Errorf("%s (-exported +imported):\n%.2000s", path, diff)
		}
	}
}

// A fork has the compactions that made its view. Reverting them in the fork does not revert them elsewhere.
func TestAForkInheritsCompactions(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent, original, fork := forkedAgent(c)
	list := func(conversation string) (all []map[string]any) {
		body := c.must("GET", "/v1/agents/"+agent+"/compactions?conversation_id="+conversation, "")
		if err := json.Unmarshal([]byte(body), &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	inherited, copies := list(original), list(fork)
	if len(inherited) != 1 || len(copies) != 1 || copies[0]["summary"] != inherited[0]["summary"] ||
		copies[0]["id"] == inherited[0]["id"] || copies[0]["conversation_id"] != fork ||
		copies[0]["from_seq"] == inherited[0]["from_seq"] ||
		copies[0]["summary_message_id"] == inherited[0]["summary_message_id"] {
		t.Fatalf("got %v, want a copy of %v", copies, inherited)
	}
	first := c.messages("/v1/conversations/" + fork + "/messages?limit=100&order=asc")[1].ID
	early := c.made("/v1/conversations/"+fork+"/fork?message_id="+first, "")
	if got := c.nextMessages(agent, early); len(got) != 1 || !strings.Contains(got[0], "Question 1:") {
		t.Errorf("a copy of a copy before its compaction: got %v", got)
	}
	if got := list(early); len(got) != 0 {
		t.Errorf("a copy before the compaction has the compactions %v", got)
	}
	before := c.nextMessages(agent, original)
	c.captured(agent, fork, chatter(50, 5, "wine"))
	c.compact("/v1/conversations/"+fork+"/compact", "")
	if got := list(fork); len(got) != 2 || got[0]["from_seq"] != copies[0]["from_seq"] {
		t.Errorf("after another compaction: got %v", got)
	}
	for _, k := range list(fork) {
		c.must("POST", fmt.Sprint("/v1/agents/", agent, "/compactions/", k["id"], "/revert"), "")
	}
	if got := c.nextMessages(agent, fork); len(got) != 50 {
		t.Errorf("without its compactions the copy shows %d messages, want 50", len(got))
	}
	if diff := cmp.Diff(before, c.nextMessages(agent, original)); diff != "" || list(original)[0]["reverted_at"] != nil {
		t.Errorf("the reversal changed the original: %s", diff)
	}
}

// A search over several conversations finds a copied message once, and prefers the original. A search in one
// conversation finds that conversation's message.
func TestACopiedMessageIsFoundOnce(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	original := c.made("/v1/conversations?agent_id="+agent, "")
	first := c.captured(agent, original, `{"messages":[{"role":"user","content":"The parrot is named Zeno"}]}`)
	c.captured(agent, original, `{"messages":[{"role":"user","content":"The parrot sleeps"}]}`)
	short := c.made("/v1/conversations/"+original+"/fork?message_id="+first, "")
	long := c.made("/v1/conversations/"+original+"/fork", "")
	nested := c.made("/v1/conversations/"+long+"/fork", "")
	c.captured(agent, short, `{"messages":[{"role":"user","content":"The parrot eats nuts"}]}`)
	c.captured(agent, nested, `{"messages":[{"role":"user","content":"The parrot is blue"}]}`)
	check := func(when string, want ...string) {
		t.Helper()
		slices.Sort(want)
		for _, body := range []string{`{"query":"parrot","agent_id":"` + agent + `"}`, `{"query":"parrot"}`,
			`{"query":"","agent_id":"` + agent + `"}`} {
			if got := c.foundIn("/v1/messages/search", body); !slices.Equal(got, want) {
				t.Errorf("%s, %s: got %q, want %q", when, body, got, want)
			}
		}
	}
	check("all", nested+" The parrot is blue", original+" The parrot is named Zeno", original+" The parrot sleeps",
		short+" The parrot eats nuts")
	for conversation, want := range map[string][]string{
		original: {original + " The parrot is named Zeno", original + " The parrot sleeps"},
		short:    {short + " The parrot eats nuts", short + " The parrot is named Zeno"},
		nested: {nested + " The parrot is blue", nested + " The parrot is named Zeno",
			nested + " The parrot sleeps"},
	} {
		body := `{"query":"parrot","agent_id":"` + agent + `","conversation_id":"` + conversation + `"}`
		slices.Sort(want)
		if got := c.foundIn("/v1/messages/search", body); !slices.Equal(got, want) {
			t.Errorf("in one conversation: got %q, want %q", got, want)
		}
	}
	c.must("DELETE", "/v1/conversations/"+original, "")
	check("without the original", long+" The parrot sleeps", nested+" The parrot is blue", short+" The parrot eats nuts",
		short+" The parrot is named Zeno")
	c.must("DELETE", "/v1/conversations/"+long, "")
	c.must("DELETE", "/v1/conversations/"+short, "")
	check("only the last copy", nested+" The parrot is blue", nested+" The parrot is named Zeno",
		nested+" The parrot sleeps")
}

// A fork's newest message is the last copied one. Its system prompt has the position of the original's system prompt.
func TestAForksNewestMessageIsTheLastCopied(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	c.captured(agent, "default", chatter(1, 2, "tea"))
	c.must("PATCH", "/v1/agents/"+agent, `{"system":"Be brief."}`)
	c.must("POST", "/v1/agents/"+agent+"/recompile", "")
	c.captured(agent, "default", chatter(3, 1, "tea"))
	c.must("PATCH", "/v1/agents/"+agent, `{"system":"Be kind."}`)
	fork := c.made("/v1/conversations/default/fork?agent_id="+agent, "")
	all := c.messages("/v1/conversations/" + fork + "/messages?limit=100&order=asc")
	originals := c.messages("/v1/conversations/default/messages?limit=100&order=asc&agent_id=" + agent)
	if len(all) != len(originals) || all[len(all)-1].Text != "Answer 3: tea" {
		t.Errorf("got %v, want the messages of %v", all, originals)
	}
	for i, m := range all {
		if m.Position != originals[i].Position || m.Type != originals[i].Type || m.Date != originals[i].Date {
			t.Errorf("got %+v, want a copy of %+v", m, originals[i])
		}
	}
	contains(t, "the prompt", c.must("GET", "/v1/agents/"+agent+"/prompt?conversation_id="+fork, ""), "Be kind.", fork)
}
