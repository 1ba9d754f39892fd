package server_test

import (
	"strings"
	"testing"
)

// A conversation is told once what another branch said after the two parted. Conversations with no common messages are
// not branches.
func TestABranchThatWasLeftIsSummarized(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada"}`)
	original := c.made("/v1/conversations?agent_id="+agent, `{}`)
	say := func(conversation, user, assistant string) {
		c.capture(agent, `{"conversation_id":"`+conversation+`","messages":[{"role":"user","content":"`+user+
			`"},{"role":"assistant","content":"`+assistant+`"}]}`)
	}
	say(original, "Please mend the parser.", "I begin with the lexer.")
	fork := c.made("/v1/conversations/"+original+"/fork", "")
	tell := func(into, branch string) map[string]any {
		return fields(t, c.must("POST", "/v1/conversations/"+into+"/summarize-branch", `{"branch":"`+branch+`"}`))
	}
	if got := tell(original, fork); got["messages"] != 0.0 || got["message_id"] != nil || got["parted_at"] != 3.0 {
		t.Errorf("a branch that says nothing: %v", got)
	}
	say(fork, "Try src/lookahead.go with two tokens.", "It fails: the grammar is LL(3). We decided to drop it.")
	before := c.must("GET", "/v1/agents/"+agent+"/prompt?conversation_id="+original, "")
	if strings.Contains(before, "lookahead") {
		t.Fatalf("before: %s", before)
	}
	got := tell(original, fork)
	text, _ := got["text"].(string)
	if got["messages"] != 2.0 || got["repeated"] != false || got["how"] != "extracted" ||
		!strings.Contains(text, "src/lookahead.go") || !strings.Contains(text, "LL(3)") ||
		strings.Contains(text, "mend the parser") {
		t.Errorf("the branch: %v", got)
	}
	if after := c.must("GET", "/v1/agents/"+agent+"/prompt?conversation_id="+original, ""); !strings.Contains(after,
		"explored another branch") || !strings.Contains(after, "src/lookahead.go") {
		t.Errorf("after: %s", after)
	}
	again := tell(original, fork)
	if again["repeated"] != true || again["message_id"] != got["message_id"] || again["text"] != text {
		t.Errorf("again: %v, first %v", again, got)
	}
	other := c.made("/v1/conversations?agent_id="+agent, `{}`)
	for branch, want := range map[string]int{other: 422, original: 422, "conv-123e4567-e89b-42d3-8456-426614174000": 404} {
		got := c.call("POST", "/v1/conversations/"+original+"/summarize-branch", `{"branch":"`+branch+`"}`)
		if got.Code != want {
			t.Errorf("%s: got %d %s, want %d", branch, got.Code, got.Text, want)
		}
	}
}
