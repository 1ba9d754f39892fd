package server_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/server/servertest"
)

// A result has the name of its tool, in answers, streams, lists and by itself; what a user says has an otid and the
// step that answered it.
func TestItemsNameToolsAndSteps(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"tool_set":"standard","memory_blocks":[{"label":"human","value":"Ann"}]}`)
	appending := callOf("c1", "memory_insert", `{"label":"human","new_string":"likes tea"}`)
	r.model.Says(appending, modeltest.Answer{Text: "Noted."}, appending, modeltest.Answer{Text: "Again."})
	answered := r.send(`{"messages":[{"role":"user","content":"I like tea."}]}`)
	streamed, _ := r.stream(r.path()+"/stream", `{"messages":[{"role":"user","content":"And tea."}]}`)
	listed := r.list(r.path())
	for place, items := range map[string][]map[string]any{"the answer": answered.Messages, "the stream": streamed,
		"the list": listed, "the message": r.list("/v1/messages/" + idOf(listed, "tool_return_message"))} {
		n := 0
		for _, item := range items {
			if item["message_type"] == "tool_return_message" {
				if n++; item["name"] != "memory_insert" {
					t.Errorf("%s: a result has the name %v", place, item["name"])
				}
			}
		}
		if n == 0 {
			t.Errorf("%s has no result: %v", place, items)
		}
	}
	steps := r.list("/v1/steps?order=asc&agent_id=" + r.agent)
	users := r.list(r.path() + "?include_return_message_types=user_message")
	if len(users) != 2 || len(steps) != 4 {
		t.Fatalf("got %d messages of users and %d steps", len(users), len(steps))
	}
	for i, m := range users {
		if m["step_id"] != steps[2*i]["id"] || m["otid"] == nil {
			t.Errorf("message %d of a user has the step %v, want %v; and the otid %v", i, m["step_id"], steps[2*i]["id"],
				m["otid"])
		}
	}
}

// idOf returns the id of the first item of a type.
func idOf(items []map[string]any, kind string) string {
	i := slices.IndexFunc(items, func(item map[string]any) bool { return item["message_type"] == kind })
	return items[max(i, 0)]["id"].(string)
}

// A list shows the current system prompt first, under the id that the agent names first. Asked for all prompts, it
// shows each where it was set.
func TestTheCurrentPromptIsListedFirst(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"system":"Old."}`)
	target := "/v1/agents/" + agent
	c.capture(agent, `{"messages":[{"role":"user","content":"Hello."}]}`)
	c.must("PATCH", target, `{"system":"New."}`)
	c.must("POST", target+"/recompile", "")
	c.capture(agent, `{"messages":[{"role":"user","content":"Still there?"}]}`)
	texts := func(query string) (all []string) {
		for _, item := range c.list(target + "/messages" + query) {
			text, _, _ := strings.Cut(item["content"].(string), "\n")
			all = append(all, text)
		}
		return all
	}
	for query, want := range map[string][]string{
		"": {"New.", "Hello.", "Still there?"}, "?limit=2": {"Hello.", "Still there?"},
		"?order=asc&limit=1":    {"New."},
		"?include_prompts=true": {"Old.", "Hello.", "New.", "Still there?"},
	} {
		if got := texts(query); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", cmp.Or(query, "the list"), got, want)
		}
	}
	first := c.list(target + "/messages")[0]["id"]
	for place, ids := range map[string]any{"message_ids": fields(t, c.must("GET", target, ""))["message_ids"],
		"in_context_message_ids": fields(t, c.must("GET", "/v1/conversations/"+agent, ""))["in_context_message_ids"]} {
		if got := ids.([]any)[0]; got != first {
			t.Errorf("%s begins with %v, the list with %v", place, got, first)
		}
	}
}

// Operations that newer clients of Letta expect null from answer older ones with the agent.
func TestOlderClientsGetTheAgentsState(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent, folder := c.made("/v1/agents", `{}`), c.made("/v1/folders", `{"name":"f"}`)
	tool := toolIDs()["archival_memory_search"]
	target := "/v1/agents/" + agent
	for _, path := range []string{"/tools/attach/" + tool, "/tools/approval/archival_memory_search",
		"/tools/detach/" + tool, "/folders/attach/" + folder, "/folders/detach/" + folder} {
		body := map[bool]string{true: `{"requires_approval":true}`}[strings.Contains(path, "approval/")]
		if got := c.must("PATCH", target+path, body); got != "null" {
			t.Errorf("%s: got %s, want null", path, got)
		}
		got := servertest.Send(c, "PATCH", target+path, body, append(c.headers(), "Content-Type", "application/json",
			"X-Fern-SDK-Name", "letta-client")...)
		if got.Code != 200 || fields(t, got.Text)["id"] != agent {
			t.Errorf("%s: an older client gets %d %s, want the agent", path, got.Code, got.Text)
		}
	}
}
