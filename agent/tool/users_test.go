package tool_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/recall"
)

// secrets maps whose conversation it is → a word that was said and stored there alone.
var secrets = map[string]string{"ann": "zanzibar", "bob": "quokka", "cid": "tamarisk", "": "lighthouse"}

// newUsers returns an agent that has talked with three users and with nobody, and the conversation with each. In each,
// a message, a passage, a thought of working memory and a long result hold the secret.
func newUsers(t *testing.T, scope string) (w world, with map[string]recall.Conversation) {
	t.Helper()
	w, _ = newTalk(t)
	a, err := w.agents.Update(t.Context(), w.org, w.agent.ID, agent.Update{Settings: agent.Settings{RecallScope: scope}})
	if err != nil {
		t.Fatal(err)
	}
	w.agent = a
	with = map[string]recall.Conversation{}
	for user, secret := range secrets {
		c, err := w.agents.CreateConversation(t.Context(), w.org, a.ID, agent.NewConversation{User: user})
		if err != nil {
			t.Fatal(err)
		}
		with[user] = c
		w.say(t, c.ID, draft(recall.User, "2024-03-06T12:00:00Z", recall.Part{Type: recall.Text,
			Text: "My salary is " + secret}),
			draft(recall.Assistant, "2024-03-06T12:00:01Z", recall.Part{Type: recall.ToolCall, CallID: "l", Name: "rows",
				Input: "{}"}),
			draft(recall.Tool, "2024-03-06T12:00:02Z", recall.Part{Type: recall.ToolReturn, CallID: "l",
				Text: strings.Repeat("a row of "+secret+"\n", 9_000)}))
		for _, call := range [][2]string{
			{"archival_memory_insert", `{"content": "The salary is ` + secret + `"}`},
			{"archival_memory_insert", `{"content": "Everybody's salary is secret"}`},
			{"update_working_memory", `{"changes": [{"field": "task", "text": "Pay the ` + secret + `"}]}`},
		} {
			if got := w.in(t, c, call[0], call[1]); got.IsError || scope == agent.ScopeUser && strings.Contains(got.Text,
				"already") {
				t.Errorf("%s of %q: %s", call[0], user, got.Text)
			}
		}
	}
	return w, with
}

// in runs a tool in a conversation.
func (w world) in(t *testing.T, c recall.Conversation, name, args string) tool.Result {
	t.Helper()
	c, err := w.said.Conversation(t.Context(), w.org, w.agent.ID, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.tools.Run(t.Context(), tool.CallerIn(w.org, w.agent, c), name, json.RawMessage(args))
	if err != nil {
		t.Fatalf("%s(%s): %v", name, args, err)
	}
	return got
}

// calls are calls that find the secret of a user in a conversation, with the places of that user's messages.
func (w world) calls(t *testing.T, c recall.Conversation, secret string) [][2]string {
	t.Helper()
	list, err := w.said.Messages(t.Context(), w.org, recall.MessageFilter{AgentID: w.agent.ID, Conversation: c.ID},
		db.Page{Ascending: true, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	said, long := list[1], list[3]
	clip := long.Content[0].Clip
	if clip == nil {
		t.Fatalf("the result of %q is not long", secret)
	}
	return [][2]string{
		{"conversation_search", `{"query": "salary"}`},
		{"conversation_search", `{"query": "` + secret + `"}`},
		{"conversation_search", `{"limit": 50}`},
		{"conversation_search", `{"query": "` + misspelt(secret) + `"}`},
		{"conversation_search", `{"query": "salary", "conversation_id": "` + c.ID + `"}`},
		{"conversation_search", `{"around": "` + said.ID + `"}`},
		{"expand", `{"id": "` + said.ID + `"}`},
		{"expand", `{"id": "` + clip.ID + `"}`},
		{"expand", fmt.Sprintf(`{"id": "seq %d-%d"}`, said.Seq, said.Seq)},
		{"expand", fmt.Sprintf(`{"id": "%d"}`, said.Seq)},
		{"query_log", fmt.Sprintf(`{"seq": "%d"}`, said.Seq)},
		{"query_log", `{"seq": "1-1000"}`},
		{"ask_session", `{"conversation_id": "` + c.ID + `", "question": "What is the salary?"}`},
		{"ask_session", `{"conversation_id": "last", "question": "What is the salary?"}`},
		{"search_memory", `{"query": "salary", "limit": 50}`},
		{"search_memory", `{"query": "pay", "limit": 50}`},
		{"archival_memory_search", `{"query": "salary"}`},
		{"archival_memory_search", `{"query": "` + misspelt(secret) + `"}`},
		{"archival_memory_search", `{"query": ""}`},
	}
}

// misspelt returns a word with two letters exchanged.
func misspelt(word string) string { return word[:2] + word[3:4] + word[2:3] + word[4:] }

// No tool shows in one user's conversation what was said or stored in another's; what is nobody's, everybody reads.
func TestNoToolShowsAnotherUsersMemories(t *testing.T) {
	t.Parallel()
	w, with := newUsers(t, agent.ScopeUser)
	for owner, secret := range secrets {
		for _, call := range w.calls(t, with[owner], secret) {
			for reader, c := range with {
				got := w.in(t, c, call[0], call[1])
				for other, word := range secrets {
					shown := strings.Contains(strings.ReplaceAll(got.Text, call[1], ""), word) &&
						!strings.Contains(call[1], word)
					if shown && other != reader && other != "" {
						t.Errorf("in the conversation with %q, %s(%s) shows what is %s's:\n%s", reader, call[0], call[1], other,
							got.Text)
					}
				}
			}
		}
	}
}

// In its own conversation, a user's memories are found by each tool; and so are nobody's.
func TestAUserFindsItsOwnMemories(t *testing.T) {
	t.Parallel()
	w, with := newUsers(t, agent.ScopeUser)
	for _, user := range []string{"ann", ""} {
		for _, call := range w.calls(t, with[user], secrets[user]) {
			if strings.Contains(call[1], "last") || strings.Contains(call[1], "1-1000") {
				continue
			}
			if got := w.in(t, with["ann"], call[0], call[1]); !strings.Contains(got.Text, secrets[user]) &&
				!strings.Contains(call[1], "limit") {
				t.Errorf("%s(%s) does not show %q:\n%s", call[0], call[1], secrets[user], got.Text)
			}
		}
	}
}

// An agent of the scope agent, as agents made for Letta are, shares one memory among all its users.
func TestAnAgentMayShareOneMemoryAmongItsUsers(t *testing.T) {
	t.Parallel()
	w, with := newUsers(t, agent.ScopeAgent)
	for owner, secret := range secrets {
		got := w.in(t, with["bob"], "conversation_search", `{"query": "`+secret+`"}`)
		if !strings.Contains(got.Text, "My salary is "+secret) {
			t.Errorf("bob does not find what %q said:\n%s", owner, got.Text)
		}
	}
}

// A passage of one user is neither changed nor deleted in another's conversation.
func TestNoToolChangesAnotherUsersPassages(t *testing.T) {
	t.Parallel()
	w, with := newUsers(t, agent.ScopeUser)
	found := w.in(t, with["ann"], "archival_memory_search", `{"query": "zanzibar", "top_k": 1}`)
	id := found.Text[strings.Index(found.Text, "passage-"):][:len("passage-")+36]
	for _, call := range [][2]string{
		{"archival_memory_update", `{"id": "` + id + `", "content": "gone"}`},
		{"archival_memory_delete", `{"id": "` + id + `"}`},
		{"archival_memory_insert", `{"content": "gone", "supersedes": "` + id + `"}`},
	} {
		if got := w.in(t, with["bob"], call[0], call[1]); !got.IsError {
			t.Errorf("%s: %s", call[0], got.Text)
		}
	}
	if got := w.in(t, with["ann"], "archival_memory_search", `{"query": "zanzibar"}`); !strings.Contains(got.Text, id) {
		t.Errorf("the passage is gone: %s", got.Text)
	}
}

// What an agent writes into a block in the conversation with a user, only that user's conversations see: the block is
// the template of each user's own.
func TestABlockBecomesEachUsersOwn(t *testing.T) {
	t.Parallel()
	w, with := newUsers(t, agent.ScopeUser)
	template, err := w.agents.Blocks.Create(t.Context(), w.org, block.OperatorAuthor, block.New{Label: "human",
		Value: "Name: unknown"})
	if err == nil {
		err = w.agents.Blocks.Attach(t.Context(), w.org, w.agent.ID, template.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"ann", "bob"} {
		for range 2 { // the second time it is the user's already
			args := `{"label": "human", "content": "I am ` + user + `"}`
			if got := w.in(t, with[user], "core_memory_append", args); got.IsError {
				t.Errorf("%s: %s", user, got.Text)
			}
		}
	}
	for reader, c := range with {
		p, _, err := w.agents.Overview(t.Context(), w.org, w.agent.ID, c.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, owner := range []string{"ann", "bob"} {
			if got := strings.Contains(p.CoreMemory, "I am "+owner); got != (reader == owner) {
				t.Errorf("the prompt of the conversation with %q has what is %s's: %t", reader, owner, got)
			}
		}
	}
	for _, call := range [][2]string{
		{"memory_apply_patch", `{"patch": "*** Begin Patch\n*** Add Block: secret\n+of ann\n*** End Patch"}`},
		{"memory_apply_patch", `{"label": "human", "patch": "*** Begin Patch\n*** Delete Block: human\n*** End Patch"}`},
	} {
		if got := w.in(t, with["ann"], call[0], call[1]); !got.IsError {
			t.Errorf("%s: %s", call[0], got.Text)
		}
	}
	b, err := w.agents.Blocks.Block(t.Context(), w.org, template.ID)
	if err != nil || b.Value != "Name: unknown" {
		t.Errorf("the template is %q, %v", b.Value, err)
	}
}

// What an agent writes to memory files in the conversation with a user is that user's; the agent's own files are where
// each user's begin.
func TestMemoryFilesBecomeEachUsersOwn(t *testing.T) {
	t.Parallel()
	w, with := newUsers(t, agent.ScopeUser)
	write := func(user, path, text string) {
		t.Helper()
		got := w.in(t, with[user], "memory_files",
			`{"command": "create", "path": "/memories/`+path+`", "file_text": "`+text+`"}`)
		if got.IsError {
			t.Fatalf("%s: %s", path, got.Text)
		}
	}
	write("", "rules.md", "Be kind to everybody.")
	write("ann", "ann.md", "Her cat is Ivo.")
	write("bob", "bob.md", "His dog is Rex.")
	for user, want := range map[string][]bool{"ann": {true, true, false}, "bob": {true, false, true},
		"cid": {true, false, false}, "": {true, false, false}} {
		view := w.in(t, with[user], "memory_files", `{"command": "view", "path": "/memories"}`).Text +
			w.in(t, with[user], "search_memory", `{"query": "kind cat dog", "kinds": ["memory_file"]}`).Text
		for i, word := range []string{"rules.md", "ann.md", "bob.md"} {
			if strings.Contains(view, word) != want[i] {
				t.Errorf("in the conversation with %q, %s is seen: %t\n%s", user, word, !want[i], view)
			}
		}
	}
}

// An operator is told which agents show each user what the others said.
func TestAgentsThatMixUsersAreNamed(t *testing.T) {
	t.Parallel()
	mixes, _ := newUsers(t, agent.ScopeAgent)
	keeps, _ := newUsers(t, agent.ScopeUser)
	for _, tt := range []struct {
		w    world
		want []agent.MixedAgent
	}{{mixes, []agent.MixedAgent{{ID: mixes.agent.ID, Name: mixes.agent.Name, Users: 3}}}, {keeps, nil}} {
		got, err := agent.Mixed(t.Context(), tt.w.pool, tt.w.org)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("got %v, %v, want %v", got, err, tt.want)
		}
	}
	findings := agent.ExamineUsers(t.Context(), mixes.pool)
	if len(findings) != 1 || findings[0].State != db.Advice || !strings.Contains(findings[0].Text, mixes.agent.ID) ||
		strings.Contains(findings[0].Text, keeps.agent.ID) {
		t.Errorf("the doctor says %+v", findings)
	}
}
