package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/server/servertest"
)

// The preview of an agent made for Letta has its files where Letta has them.
func TestAPreviewHasLettasLayout(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	folder := c.made("/v1/folders", `{"name":"test_source"}`)
	c.uploaded(folder, "a.txt", "The walrus sleeps.")
	closed := c.uploaded(folder, "b.txt", "The gnu sleeps.")
	for made, want := range map[string]bool{"letta": true, "loci": false} {
		agent := c.made("/v1/agents", `{"made_for":"`+made+`","source_ids":["`+folder+`"]}`)
		c.must("PATCH", "/v1/agents/"+agent+"/files/"+closed+"/close", "")
		got := fields(t, c.must("POST", "/v1/agents/"+agent+"/messages/preview-raw-payload", `{"input":"Hi"}`))
		messages := got["messages"].([]any)
		first, last := fmt.Sprint(messages[0].(map[string]any)["content"]), fmt.Sprint(messages[len(messages)-1])
		for _, part := range []string{"<directories>", `name="test_source/a.txt"`,
			`<file status="closed" name="test_source/b.txt"`, "The walrus sleeps."} {
			if strings.Contains(first, part) != want || strings.Contains(last, part) == want {
				t.Errorf("made for %s: %s stands in the system message: %v", made, part, !want)
			}
		}
		if strings.Contains(first, "name=\"test_source/b.txt\">\n<metadata>") != want {
			t.Errorf("made for %s: the closed file stands in the system message: %s", made, first)
		}
		if strings.Contains(last, frame.State) == want {
			t.Errorf("made for %s: the last message is %s", made, last)
		}
	}
}

// A preview returns the request that some messages would cause, in any form of messages, and stores nothing.
func TestAPreviewStoresNothing(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"system":"Help."}`)
	c.capture(agent, `{"messages":[{"role":"user","content":"Hi."},{"role":"assistant","content":"Ho."}]}`)
	conversation := c.made("/v1/conversations?agent_id="+agent, "")
	before := c.must("GET", "/v1/agents/"+agent+"/prompt", "")
	target := "/v1/agents/" + agent + "/messages/preview-raw-payload"
	const said = `{"role":"user","content":"Who <am> I?"}`
	for _, body := range []string{`{"messages":[` + said + `],"max_steps":3}`, `{"input":"Who <am> I?"}`,
		`{"input":[{"type":"text","text":"Who <am> I?"}]}`} {
		got := fields(t, c.must("POST", target, body))["messages"].([]any)
		system, last := got[0].(map[string]any), got[len(got)-2].(map[string]any)
		if len(got) != 5 || !strings.Contains(fmt.Sprint(got[len(got)-1]), frame.State) ||
			system["role"] != "system" || last["content"] != "Who <am> I?" {
			t.Errorf("%s: got %v", body, got)
		}
	}
	if got := fields(t, c.must("POST", target, ""))["messages"].([]any); len(got) != 4 {
		t.Errorf("without messages: got %v", got)
	}
	for path, want := range map[string]int{conversation + "/messages/preview-raw-payload": 3,
		"default/messages/preview-raw-payload?agent_id=" + agent: 5} {
		got := fields(t, c.must("POST", "/v1/conversations/"+path, `{"messages":[`+said+`]}`))["messages"].([]any)
		if len(got) != want {
			t.Errorf("%s: got %v, want %d messages", path, got, want)
		}
	}
	unknown := c.call("POST", target, `{"input":"Hi","bogus":1}`)
	if strings.Contains(unknown.Text, `"warnings"`) ||
		!strings.Contains(unknown.Header().Get("X-Loci-Warnings"), "bogus") {
		t.Errorf("an unknown field: got %v and %s", unknown.Header(), unknown.Text)
	}
	if got := c.call("POST", target, `{"input":"Hi","conversation_id":"`+conversation+`"}`); got.Code != 422 {
		t.Errorf("another conversation: got %d %s", got.Code, got.Text)
	}
	got := c.call("POST", target, `{"messages":[{"role":"robot"}]}`)
	contains(t, "a message that is none", got.Text, "messages[0].role: expected one of system")
	servertest.CheckProblem(t, c.call("POST", someAgent+"/messages/preview-raw-payload", ""), 404,
		map[string]any{"detail": "Agent with ID agent-123e4567-e89b-42d3-8456-426614174000 not found"})
	if after := c.must("GET", "/v1/agents/"+agent+"/prompt", ""); after != before {
		t.Errorf("the prompt was\n%s\nand is now\n%s", before, after)
	}
}
