package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/recall"
)

// nextMessages are the messages of the next prompt of a conversation, without the system prompt. Ids of clips are the
// conversation's own.
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
	for _, m := range p.Request.Messages[1:] {
		texts = append(texts, clipIDs.ReplaceAllString(string(m), "clip"))
	}
	return texts
}

// captured captures messages in a conversation, and returns the id of the last.
func (c *client) captured(agent, conversation, body string) string {
	c.t.Helper()
	body = fmt.Sprintf(`{"conversation_id":%q,%s`, conversation, body[1:])
	got := c.capture(agent, body)
	return got.Messages[len(got.Messages)-1].ID
}

// A fork at a message has the prompt that the conversation had when that message was its last.
func TestAForkHasThePromptOfItsPosition(t *testing.T) {
	t.Parallel()
	c := newIdleClient(t)
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
		whole := c.made(path+"/fork"+query, "")
		now := c.nextMessages(agent, conversation)
		if diff := cmp.Diff(now, c.nextMessages(agent, whole)); diff != "" {
			t.Errorf("%s: the prompt of a copy (-original +copy):\n%.3000s", conversation, diff)
		}
		c.captured(agent, whole, chatter(100, 5, "wine"))
		c.compact("/v1/conversations/"+whole+"/compact", "")
		c.must("DELETE", "/v1/conversations/"+forks[order[0]], "")
		if diff := cmp.Diff(now, c.nextMessages(agent, conversation)); diff != "" {
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
	c := newIdleClient(t)
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
