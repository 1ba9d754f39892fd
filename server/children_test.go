package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/agent/subagent"
	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/server/servertest"
)

type wireChild struct {
	subagent.Child
}

// child creates a sub-agent.
func (c *client) child(agent, body string) (made wireChild) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.must("POST", "/v1/agents/"+agent+"/children", body)), &made); err != nil {
		c.t.Fatal(err)
	}
	return made
}

// nextPrompt returns the messages and the tools of a conversation's next prompt, without its state.
func (c *client) nextPrompt(agent, conversation string) (messages []string, tools string) {
	c.t.Helper()
	var p struct {
		Request struct {
			Messages []json.RawMessage
			Tools    json.RawMessage
		}
	}
	body := c.must("GET", "/v1/agents/"+agent+"/prompt?pending=keep&conversation_id="+conversation, "")
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		c.t.Fatal(err)
	}
	for _, m := range withoutState(p.Request.Messages) {
		messages = append(messages, string(m))
	}
	return messages, string(p.Request.Tools)
}

// withoutState returns messages in OpenAI's form without the state at the end of a prompt.
func withoutState(messages []json.RawMessage) []json.RawMessage {
	return slices.DeleteFunc(messages, func(m json.RawMessage) bool { return bytes.Contains(m, []byte(frame.State)) })
}

const openCall = `{"messages":[{"role":"user","content":"go on"},{"role":"assistant","tool_calls":[{"id":"c9",
	"function":{"name":"delegate","arguments":"{}"}}]}]}`

// A fork's prompt begins with its parent's prompt, byte for byte, including the summary, cut results and open calls.
// The fork's later messages do not change the parent's prompt.
func TestAForkedChildsPromptBeginsWithItsParents(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"compaction_settings":{"mode":"all"},
		"memory_blocks":[{"label":"human","value":"Ada"}]}`)
	for _, conversation := range []string{"default", c.made("/v1/conversations?agent_id="+agent, `{}`)} {
		c.captured(agent, conversation, chatter(1, 8, "tea"))
		c.compact("/v1/conversations/"+conversation+"/compact", fmt.Sprintf(`{"agent_id":%q}`, agent))
		long, err := json.Marshal(strings.Repeat("a long line\n", 10_000))
		if err != nil {
			t.Fatal(err)
		}
		c.captured(agent, conversation, `{"messages":[{"role":"assistant","tool_calls":[{"id":"c1","function":
			{"name":"read","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":`+string(long)+`}]}`)
		c.captured(agent, conversation, openCall)
		parents, tools := c.nextPrompt(agent, conversation)
		child := c.child(agent, fmt.Sprintf(`{"mode":"fork","task":"Count the lines.","conversation_id":%q}`, conversation))
		childMessages, childTools := c.nextPrompt(agent, child.ConversationID)
		n := len(parents)
		if len(childMessages) != n+2 || !slices.Equal(childMessages[:n], parents) || childTools != tools {
			t.Fatalf("the fork's prompt begins otherwise:\n%.3000s\nthe parent's:\n%.3000s", childMessages, parents)
		}
		if !strings.Contains(childMessages[n], "c9") || !strings.Contains(childMessages[n+1], "Count the lines.") {
			t.Errorf("the fork goes on with %s", childMessages[n:])
		}
		clip := clipIDs.FindString(strings.Join(childMessages, ""))
		c.captured(agent, child.ConversationID, `{"messages":[{"role":"assistant","content":"There are 10,000."}]}`)
		c.captured(agent, conversation, `{"messages":[{"role":"user","content":"a secret of the parent"}]}`)
		parents, _ = c.nextPrompt(agent, conversation)
		if again, _ := c.nextPrompt(agent, conversation); parents[0] != again[0] ||
			!slices.Equal(childMessages[:1], parents[:1]) {
			t.Errorf("the system prompt of the parent changed:\n%s\nwas:\n%s", parents[0], childMessages[0])
		}
		run := func(tool, args string) string {
			return c.must("POST", "/v1/agents/"+agent+"/tools/"+tool+"/run",
				fmt.Sprintf(`{"conversation_id":%q,"args":%s}`, child.ConversationID, args))
		}
		if got := run("expand", `{"id":"`+clip+`"}`); !strings.Contains(got, "a long line") {
			t.Errorf("a cut result of the parent reads %.200s", got)
		}
		if got := run("conversation_search", `{"query":"secret"}`); strings.Contains(got, "of the parent") {
			t.Errorf("the fork finds what was said after it: %s", got)
		}
	}
}

// A forked sub-agent's messages are in its own conversation. No list or search of the parent agent shows them or the
// copies of the parent's messages. The fork itself finds them.
func TestAForkedChildsMessagesAreItsOwn(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{}`)
	c.captured(agent, "default", `{"messages":[{"role":"user","content":"The heron stands."}]}`)
	paths := map[string]string{
		"GET /v1/agents/" + agent + "/messages": "", "GET /v1/messages": "",
		"POST /v1/agents/messages/search":                              `{"query":"heron otter","agent_id":"` + agent + `"}`,
		"POST /v1/messages/search":                                     `{"query":"heron otter"}`,
		"GET /v1/agents/" + agent + "/memory-search?query=heron+otter": "",
		"POST /v1/agents/" + agent + "/tools/conversation_search/run":  `{"args":{"query":"heron otter"}}`,
	}
	herons := func(path string) (int, string) {
		method, url, _ := strings.Cut(path, " ")
		got := c.must(method, url, paths[path])
		return strings.Count(got, "The heron stands"), got
	}
	before := map[string]int{}
	for path := range paths {
		before[path], _ = herons(path)
	}
	fork := c.child(agent, `{"mode":"fork","task":"Find the otter."}`)
	c.captured(agent, fork.ConversationID, `{"messages":[{"role":"assistant","content":"The otter swims."}]}`)
	for path, times := range before {
		n, got := herons(path)
		if n != times || n == 0 || strings.Contains(got, "otter swims") || strings.Contains(got, "Find the") {
			t.Errorf("%s has the fork's messages, or its parent's %d times and not %d: %s", path, n, times, got)
		}
	}
	for path, body := range map[string]string{
		"GET /v1/agents/" + agent + "/messages?conversation_id=" + fork.ConversationID: "",
		"GET /v1/conversations/" + fork.ConversationID + "/messages":                   "",
		"POST /v1/agents/" + agent + "/tools/conversation_search/run": `{"conversation_id":"` + fork.ConversationID +
			`","args":{"query":"otter swims"}}`,
	} {
		method, url, _ := strings.Cut(path, " ")
		if got := c.must(method, url, body); !strings.Contains(got, "The otter swims") {
			t.Errorf("%s lacks the fork's messages: %s", path, got)
		}
	}
}

// A blank sub-agent knows its task and nothing about its parent. A brief one also knows the state of the work and the
// files.
func TestBlankAndBriefChildren(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	folder := c.made("/v1/folders", `{"name":"harbour"}`)
	c.uploaded(folder, "ships.txt", "The Erna is a ferry.")
	agent := c.made("/v1/agents", `{"name":"boss","system":"You are the boss.","folder_ids":["`+folder+`"],
		"memory_blocks":[{"label":"human","value":"Ada"},{"label":"plan","value":"Sail"}]}`)
	c.captured(agent, "default", chatter(1, 3, "transcript"))
	c.must("PATCH", "/v1/conversations/default/working-memory?agent_id="+agent,
		`{"changes":[{"field":"task","text":"Count the ships"}]}`)
	blank := c.child(agent, `{"mode":"blank","task":"Look at the harbour.","blocks":[{"id":"plan"},
		{"id":"human","read_only":false}],"tools":["core_memory_append","conversation_search"]}`)
	messages, tools := c.nextPrompt(blank.AgentID, "default")
	all := strings.Join(messages, "\n")
	if len(messages) != 2 || !strings.Contains(messages[1], "Look at the harbour.") ||
		strings.Contains(all, "transcript") || strings.Contains(all, "Count the ships") || strings.Contains(all, "ferry") {
		t.Errorf("the prompt of a blank sub-agent:\n%s", all)
	}
	if !strings.Contains(tools, "core_memory_append") || strings.Contains(tools, "core_memory_replace") {
		t.Errorf("the tools of a blank sub-agent: %s", tools)
	}
	run := func(label string) string {
		return c.must("POST", "/v1/agents/"+blank.AgentID+"/tools/core_memory_append/run",
			`{"args":{"label":"`+label+`","content":"x"}}`)
	}
	if got := run("plan"); !strings.Contains(got, "read-only") {
		t.Errorf("a block that it may only read: %s", got)
	}
	if got := run("human"); !strings.Contains(got, "success") {
		t.Errorf("a block that it may change: %s", got)
	}
	if got := c.must("GET", "/v1/agents/"+agent+"/core-memory/blocks/plan", ""); strings.Contains(got,
		`"read_only":true`) {
		t.Errorf("the parent's block is %s", got)
	}
	brief := c.child(agent, `{"mode":"brief","task":"Count.","files":["harbour/ships.txt"]}`)
	messages, _ = c.nextPrompt(brief.AgentID, "default")
	messages = append(messages, c.promptOf(brief.AgentID, "openai").state)
	if all := strings.Join(messages, "\n"); !strings.Contains(all, "Count the ships") || !strings.Contains(all, "ferry") ||
		strings.Contains(all, "transcript") || strings.Contains(all, "[seq") {
		t.Errorf("the prompt of a brief sub-agent:\n%s", all)
	}
	if list := c.must("GET", "/v1/agents", ""); strings.Contains(list, blank.AgentID) {
		t.Error("lists of agents have sub-agents")
	}
	c.must("DELETE", "/v1/agents/"+agent, "")
	if got := c.call("GET", "/v1/agents/"+brief.AgentID, ""); got.Code != 404 {
		t.Errorf("a sub-agent of a deleted agent: %d", got.Code)
	}
}

// The default grants are the blocks that say how all agents work, beside those that are named. They are only read.
func TestTheDefaultGrantsOfAChild(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"memory_blocks":[{"label":"AGENTS","value":"Test first."},
		{"label":"tools","value":"Use make."},{"label":"SOUL","value":"Be kind."},{"label":"plan","value":"Sail."},
		{"label":"human","value":"Ada"},{"label":"agents_of_ours","value":"x"}],
		"tools":["start_subagent","memory"]}`)
	labels := func(child string) string {
		var blocks []struct {
			Label    string
			ReadOnly bool `json:"read_only"`
		}
		c.unmarshal(c.must("GET", "/v1/agents/"+child+"/core-memory/blocks", ""), &blocks)
		var all []string
		for _, b := range blocks {
			all = append(all, fmt.Sprintf("%s %t", b.Label, b.ReadOnly))
		}
		slices.Sort(all)
		return strings.Join(all, ", ")
	}
	for body, want := range map[string]string{
		`{"mode":"blank","task":"x"}`:                       "",
		`{"mode":"blank","task":"x","default_grants":true}`: "AGENTS true, SOUL true, tools true",
		`{"mode":"brief","task":"x","default_grants":true,"blocks":[{"id":"plan","read_only":false},
			{"id":"SOUL","read_only":false}]}`: "AGENTS true, SOUL false, plan false, tools true",
	} {
		if got := labels(c.child(agent, body).AgentID); got != want {
			t.Errorf("%s: the blocks are %q, want %q", body, got, want)
		}
	}
	c.refuses("POST", "/v1/agents/"+agent+"/children", `{"mode":"fork","task":"x","default_grants":true}`, 422,
		"a fork has what its parent has")
	c.must("POST", "/v1/agents/"+agent+"/tools/start_subagent/run", `{"args":{"task":"started","blocks":["human"]}}`)
	for _, child := range c.list("/v1/agents/" + agent + "/children") {
		if got := labels(fmt.Sprint(child["agent_id"])); child["task"] == "started" &&
			got != "AGENTS true, SOUL true, human true, tools true" {
			t.Errorf("of a sub-agent that a model started: the blocks are %q", got)
		}
	}
}

// A sub-agent's result is in its parent's log once, and leads to the sub-agent's log.
func TestAChildReturnsOnce(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	child := c.child(agent, `{"mode":"blank","task":"Find the ferry.","otid":"t1"}`)
	if again := c.child(agent, `{"mode":"blank","task":"Find the ferry.","otid":"t1"}`); again.ID != child.ID {
		t.Errorf("the same otid made %s and %s", child.ID, again.ID)
	}
	path := "/v1/agents/" + agent + "/children/"
	create := func(body string) servertest.Reply { return c.call("POST", "/v1/agents/"+agent+"/children", body) }
	if got := create(`{"mode":"blank","task":"Other","otid":"t1"}`); got.Code != 409 {
		t.Errorf("the same otid with another task: %d %s", got.Code, got.Text)
	}
	if got := c.call("POST", path+child.ID+"/return", `{}`); got.Code != 422 {
		t.Errorf("a sub-agent that said nothing returned: %d %s", got.Code, got.Text)
	}
	for _, blank := range []string{"", " \\n"} {
		if got := c.call("POST", path+child.ID+"/return", `{"result":"`+blank+`"}`); got.Code != 422 {
			t.Errorf("the result %q: %d %s", blank, got.Code, got.Text)
		}
	}
	result := strings.Repeat("The ferry is the Erna. ", 1000)
	c.captured(child.AgentID, "default", `{"messages":[{"role":"assistant","content":"`+result+`"}]}`)
	for range 2 {
		c.must("POST", path+child.ID+"/return", `{}`)
	}
	messages, _ := c.nextPrompt(agent, "default")
	all := strings.Join(messages, "\n")
	if len(messages) != 2 || !strings.Contains(all, "ferry is the Erna") || !strings.Contains(all, child.ID) ||
		len(all) > 14_000 {
		t.Errorf("the parent's prompt of %d bytes in %d messages: %.2000s", len(all), len(messages), all)
	}
	expand := func(id string) string {
		return c.must("POST", "/v1/agents/"+agent+"/tools/expand/run", `{"args":{"id":"`+id+`"}}`)
	}
	if got := expand(child.ID); !strings.Contains(got, "Find the ferry.") || !strings.Contains(got, "offset") {
		t.Errorf("the log of the sub-agent: %.500s", got)
	}
	// Another sub-agent answers a call.
	c.captured(agent, "default", openCall)
	answers := c.child(agent, `{"mode":"fork","task":"Answer it.","tool_call_id":"c9"}`)
	c.captured(agent, answers.ConversationID, `{"messages":[{"role":"assistant","content":"42"}]}`)
	if got := c.call("POST", path+answers.ID+"/return", `{"tool_call_id":"c8"}`); got.Code != 422 ||
		!strings.Contains(got.Text, "in the request that starts the sub-agent") {
		t.Errorf("a return for another call: %d %s", got.Code, got.Text)
	}
	c.must("POST", path+answers.ID+"/return", `{"tool_call_id":"c9"}`)
	messages, _ = c.nextPrompt(agent, "default")
	if last := messages[len(messages)-1]; !strings.Contains(last, `"tool"`) || !strings.Contains(last, "42") {
		t.Errorf("the result of the call is %s", last)
	}
	if got := expand(answers.ID); !strings.Contains(got, "Answer it.") || strings.Contains(got, "ferry is") {
		t.Errorf("the log of a fork: %.500s", got)
	}
	if got := create(`{"mode":"blank","task":"x","tool_call_id":"c9"}`); got.Code != 409 {
		t.Errorf("a call with a result: %d %s", got.Code, got.Text)
	}
	c.as("other").refusedChild(agent, child.ID)
}

// refusedChild checks that a client cannot reach an agent's sub-agent.
func (c *client) refusedChild(agent, id string) {
	c.t.Helper()
	for _, target := range []string{"", "/" + id} {
		if got := c.call("GET", "/v1/agents/"+agent+"/children"+target, ""); got.Code != 404 {
			c.t.Errorf("another organization reads %q: %d %s", target, got.Code, got.Text)
		}
	}
}

// The server runs a sub-agent and delivers its result, or the reason why it stopped.
func TestTheServerRunsChildren(t *testing.T) {
	t.Parallel()
	r := newOwnRunner(t, "")
	r.work()
	r.own().Loop.Ended = r.server.Children.RunEnded
	r.model.Says(modeltest.Answer{Text: "It is the Erna."})
	child := r.child(r.agent, `{"mode":"fork","task":"Find the ferry.","run":true,"tools":["conversation_search"]}`)
	r.await(child.ID, subagent.Returned)
	messages, _ := r.nextPrompt(r.agent, "default")
	if last := messages[len(messages)-1]; !strings.Contains(last, "It is the Erna.") {
		t.Errorf("the parent's last message is %s", last)
	}
	r.model.Says(callOf("c1", "core_memory_append", `{"label":"human","content":"x"}`), modeltest.Answer{Text: "Not."})
	child = r.child(r.agent, `{"mode":"fork","task":"Change the block.","run":true,"tools":["conversation_search"]}`)
	r.await(child.ID, subagent.Returned)
	if got := r.must("GET", "/v1/agents/"+r.agent+"/core-memory/blocks/human", ""); strings.Contains(got, "Ada.x") {
		t.Errorf("a tool that the sub-agent may not call changed the block: %s", got)
	}
	r.model.Says(modeltest.Answer{Status: 400})
	child = r.child(r.agent, `{"mode":"blank","task":"Fail.","run":true}`)
	r.await(child.ID, subagent.Failed)
}

// If a sub-agent's run cannot start, the sub-agent is not created. It would count as working for ever.
func TestAChildThatCannotRunIsNotMade(t *testing.T) {
	t.Parallel()
	r := newOwnRunner(t, "")
	r.work()
	l := *r.server.Loop
	l.MaxRuns, l.Ended = 1, r.server.Children.RunEnded
	r.own().Loop = loop.New(l)
	r.own().Children.Loop = r.server.Loop
	t.Cleanup(runLoop(r.server.Loop))
	wait := make(chan struct{})
	r.model.Says(modeltest.Answer{Text: "Hello", Wait: wait})
	first := r.begun(hello)
	path := "/v1/agents/" + r.agent + "/children"
	for _, body := range []string{`{"mode":"fork","task":"x","run":true}`, `{"mode":"blank","task":"x","run":true}`,
		`{"mode":"blank","task":"x","run":true,"otid":"t1"}`} {
		if got := r.call("POST", path, body); got.Code != 429 || got.Header().Get("Retry-After") == "" {
			t.Errorf("%s: got %d %s", body, got.Code, got.Text)
		}
	}
	if got := r.must("GET", path, ""); strings.TrimSpace(got) != "[]" {
		t.Errorf("sub-agents that do not run: %s", got)
	}
	child, err := db.One[int](t.Context(), r.pool, `
		SELECT ((SELECT count(*) FROM agents WHERE org = $1 AND hidden) +
		        (SELECT count(*) FROM conversations WHERE org = $1 AND delegated))::integer`, r.org)
	if err != nil || child != 0 {
		t.Errorf("%d agents and forks are left of sub-agents that were not made (%v)", child, err)
	}
	close(wait)
	<-first
	r.model.Says(modeltest.Answer{Text: "Found."})
	for range 2 { // the second request finds the first one's sub-agent
		child := r.child(r.agent, `{"mode":"blank","task":"x","run":true,"otid":"t1"}`)
		r.await(child.ID, subagent.Returned)
	}
	if asked := len(r.model.Requests()); asked != 2 {
		t.Errorf("the model was asked %d times, want once for the agent and once for its sub-agent", asked)
	}
}

// await waits until a sub-agent has a status.
func (r runner) await(id, status string) {
	r.t.Helper()
	embedtest.Eventually(r.t, "the sub-agent is "+status, func() bool {
		got := fields(r.t, r.must("GET", "/v1/agents/"+r.agent+"/children/"+id, ""))
		if got["status"] != status && got["status"] != subagent.Working {
			r.t.Fatalf("the sub-agent is %v, want %s", got, status)
		}
		return got["status"] == status
	})
}

// A copy of a sub-agent has the sub-agent's depth: a fork of its conversation, an agent imported from its file, and
// forks of these. This holds after the originals are deleted.
func TestCopiesOfChildrenAreAsDeep(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	fork := func(conversation string) string {
		return c.made("/v1/conversations/"+conversation+"/fork?agent_id="+agent, `{}`)
	}
	if child := c.child(agent, `{"mode":"fork","task":"Go.","conversation_id":"`+fork("default")+`"}`); child.Depth != 1 {
		t.Errorf("of a fork of the agent's own conversation: the depth is %d, want 1", child.Depth)
	}
	deep := "default"
	for depth := 1; depth <= subagent.MaxDepth; depth++ {
		child := c.child(agent, `{"mode":"fork","task":"Go deeper.","conversation_id":"`+deep+`"}`)
		if child.Depth != depth {
			t.Fatalf("the depth of a sub-agent of a fork is %d, want %d", child.Depth, depth)
		}
		deep = fork(fork(child.ConversationID))
		c.must("DELETE", "/v1/conversations/"+child.ConversationID, "")
	}
	body := `{"mode":"blank","task":"x","conversation_id":"` + deep + `"}`
	got := c.call("POST", "/v1/agents/"+agent+"/children", body)
	if got.Code != 422 || !strings.Contains(got.Text, "deep") {
		t.Errorf("too deep by forks: %d %s", got.Code, got.Text)
	}
	own := agent
	for range subagent.MaxDepth {
		own = c.child(own, `{"mode":"blank","task":"Go deeper."}`).AgentID
	}
	for _, query := range []string{"", "?full=true"} {
		copies, _ := c.imported(c.must("GET", "/v1/agents/"+own+"/export"+query, ""))
		if got := c.call("POST", "/v1/agents/"+copies[0]+"/children", `{"mode":"blank","task":"x"}`); got.Code != 422 {
			t.Errorf("of a copy by export%s: %d %s", query, got.Code, got.Text)
		}
	}
}

// The number and depth of sub-agents are bounded. Options that a mode does not have are refused.
func TestChildrenAreBounded(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	deep := agent
	for depth := range subagent.MaxDepth {
		child := c.child(deep, `{"mode":"blank","task":"Go deeper."}`)
		if deep = child.AgentID; child.Depth != depth+1 {
			t.Errorf("the depth is %d, want %d", child.Depth, depth+1)
		}
	}
	if got := c.call("POST", "/v1/agents/"+deep+"/children", `{"mode":"fork","task":"x"}`); got.Code != 422 {
		t.Errorf("too deep: %d %s", got.Code, got.Text)
	}
	for range subagent.MaxWorking - 1 {
		c.child(agent, `{"mode":"blank","task":"Work."}`)
	}
	if got := c.call("POST", "/v1/agents/"+agent+"/children", `{"mode":"blank","task":"x"}`); got.Code != 429 {
		t.Errorf("too many: %d %s", got.Code, got.Text)
	}
	other := c.made("/v1/agents", "")
	for body, code := range map[string]int{
		`{"mode":"clone","task":"x"}`: 422, `{"mode":"blank","task":" "}`: 422, `{"mode":"blank"}`: 422,
		`{"mode":"fork","task":"x","blocks":[{"id":"human"}]}`:                      422,
		`{"mode":"fork","task":"x","model":"openai/gpt-4o"}`:                        422,
		`{"mode":"blank","task":"x","files":["a/b"]}`:                               422,
		`{"mode":"blank","task":"x","tools":["no_tool"]}`:                           422,
		`{"mode":"blank","task":"x","blocks":[{"id":"none"}]}`:                      422,
		`{"mode":"blank","task":"x","folders":["source-x"]}`:                        422,
		`{"mode":"blank","task":"x","run":true}`:                                    503,
		`{"mode":"blank","task":"x","tool_call_id":"none"}`:                         404,
		`{"mode":"blank","task":"x","conversation_id":"conv-none"}`:                 404,
		`{"mode":"blank","task":"x","compaction_settings":{"mode":"no such mode"}}`: 422,
	} {
		if got := c.call("POST", "/v1/agents/"+other+"/children", body); got.Code != code {
			t.Errorf("%s: got %d %s, want %d", body, got.Code, got.Text, code)
		}
	}
	if list := c.must("GET", "/v1/agents/"+other+"/children", ""); list != "[]" && strings.TrimSpace(list) != "[]" {
		t.Errorf("refused requests made %s", list)
	}
}
