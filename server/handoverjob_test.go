package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/agent/handover"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/compaction/summary"
)

// slowWriter is a model that waits for permission to answer.
type slowWriter struct {
	text string
	may  chan struct{}
}

func (w slowWriter) Complete(ctx context.Context, _ summary.Request) (summary.Reply, error) {
	select {
	case <-w.may:
		return summary.Reply{Text: w.text}, nil
	case <-ctx.Done():
		return summary.Reply{}, ctx.Err()
	}
}

// writesSlowly gives a server a model that answers after may is closed, later than requests wait.
func (c *client) writesSlowly(text string) (may chan struct{}) {
	may = make(chan struct{})
	c.own().Agents.Compaction.Models = func(context.Context, string) *summary.Model {
		return &summary.Model{Summarizer: slowWriter{text, may}, Name: "m"}
	}
	c.own().Handovers.Patience = time.Millisecond
	return may
}

// awaitHandover waits until a hand-over is made.
func (c *client) awaitHandover(agent, id string) (h handedOver) {
	c.t.Helper()
	path := "/v1/agents/" + agent + "/handovers/" + id
	c.awaitJobs("the hand-over is made", func() bool {
		c.unmarshal(c.must("GET", path, ""), &h)
		return h.Status != handover.Running
	})
	return h
}

// If a model takes longer than a request waits, the hand-over's job goes on, and the API shows its result.
func TestASlowHandoverIsMadeByItsJob(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.work()
	agent := c.filed("")
	s := c.session(agent)
	release := c.writesSlowly(written(s))
	path := "/v1/agents/" + agent + "/handover"
	id := ""
	for range 2 { // asked again, it is the same hand-over
		got := c.call("POST", path, `{}`)
		if handoverID := fields(t, got.Text)["id"].(string); got.Code != 202 || id != "" && handoverID != id {
			t.Fatalf("got %d %s, want 202 and %s", got.Code, got.Text, id)
		}
		id = fields(t, got.Text)["id"].(string)
	}
	if got := fields(t, c.must("GET", path+"s/"+id, ""))["status"]; got != handover.Running {
		t.Errorf("the status of a hand-over that is still made is %v", got)
	}
	close(release)
	h := c.awaitHandover(agent, id)
	if h.Status != handover.Done || *h.How != handover.ByModel || len(h.Updates) != 4 {
		t.Errorf("got %+v", h)
	}
	if text := c.file(agent, "/memories/topics/sessions.md"); strings.Count(text, "The port is fixed") != 1 {
		t.Errorf("the file: %s", text)
	}
	if got := c.call("POST", path, `{}`); got.Code != 200 || fields(t, got.Text)["id"] != id {
		t.Errorf("asked for again when it is made: %d %s", got.Code, got.Text)
	}
}

// A session is handed over only while no run works. Otherwise the request is refused.
func TestNoHandoverWhileARunWorks(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	other := r.made("/v1/conversations?agent_id="+r.agent, `{}`)
	wait := make(chan struct{})
	r.model.Says(modeltest.Answer{Text: "We decided to use port 8283.", Wait: wait})
	reply := r.begun(hello)
	path := "/v1/agents/" + r.agent + "/handover"
	if got := r.call("POST", path, `{}`); got.Code != 409 || !strings.HasPrefix(fmt.Sprint(fields(t, got.Text)["run_id"]),
		"run-") {
		t.Errorf("while a run works: got %d %s", got.Code, got.Text)
	}
	if got := r.call("POST", path, `{"conversation_id":"`+other+`"}`); got.Code != 200 {
		t.Errorf("another conversation: got %d %s", got.Code, got.Text)
	}
	close(wait)
	<-reply
	if h := r.handOver(r.agent); h.Status != handover.Done || !strings.Contains(strings.Join(h.lines(), "\n"), "8283") {
		t.Errorf("after the run: %+v", h)
	}
}

// If someone deletes a conversation, nothing of it should be kept. It is not handed over, even if its hand-over was
// already requested, and no conversation begins with its working memory.
func TestADeletedConversationLeavesNothing(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.work()
	agent := c.filed(`,"handover":{"mode":"apply"}`)
	conversation := func() string {
		id := c.made("/v1/conversations?agent_id="+agent, `{}`)
		c.captured(agent, id, `{"messages":[{"role":"assistant","content":"We decided to use port 8283."}]}`)
		return id
	}
	c.must("DELETE", "/v1/conversations/"+conversation(), "")
	if got := c.must("GET", "/v1/agents/"+agent+"/handovers", ""); strings.TrimSpace(got) != "[]" {
		t.Errorf("a deleted conversation is handed over: %s", got)
	}
	finished := conversation()
	c.must("POST", "/v1/agents/"+agent+"/handover", `{"conversation_id":"`+finished+`"}`)
	c.must("DELETE", "/v1/conversations/"+finished, "")
	running := conversation()
	release := c.writesSlowly("no JSON")
	h := c.call("POST", "/v1/agents/"+agent+"/handover", `{"conversation_id":"`+running+`"}`)
	c.must("DELETE", "/v1/conversations/"+running, "")
	next := c.made("/v1/conversations?agent_id="+agent, `{}`)
	close(release)
	if h.Code != 202 {
		t.Fatalf("got %d %s", h.Code, h.Text)
	}
	if got := c.awaitHandover(agent, fields(t, h.Text)["id"].(string)); got.TakenBy != nil || len(got.Updates) != 0 {
		t.Errorf("the hand-over of a deleted conversation: %+v", got)
	}
	if got := c.must("GET", "/v1/conversations/"+next+"/working-memory", ""); strings.Contains(got, "8283") {
		t.Errorf("the next conversation begins with what was deleted: %s", got)
	}
}

// Several users talk to one agent. A user's working memory goes to the user's own next conversation, whoever begins
// another one first.
func TestAHandoverIsCarriedOnByTheSameIdentity(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	agent := c.filed("")
	identity := func(key string) string {
		return c.made("/v1/identities", fmt.Sprintf(`{"identifier_key":%q,"name":%[1]q,"identity_type":"user"}`, key))
	}
	ada, bob := identity("ada"), identity("bob")
	begin := func(body string) string {
		return c.made("/v1/conversations?agent_id="+agent, body)
	}
	withIdentity := func(id string) string { return `{"identity_id":"` + id + `"}` }
	leave := func(conversation, text string) {
		c.captured(agent, conversation, `{"messages":[{"role":"assistant","content":"We decided to use `+text+`."}]}`)
		c.must("POST", "/v1/agents/"+agent+"/handover", `{"conversation_id":"`+conversation+`"}`)
	}
	working := func(conversation string) string {
		return c.must("GET", "/v1/conversations/"+conversation+"/working-memory?agent_id="+agent, "")
	}
	leave(begin(withIdentity(ada)), "the port of Ada")
	leave(begin(withIdentity(bob)), "the port of Bob")
	leave(begin(`{}`), "the port of nobody")
	deleted := identity("gone")
	gone := begin(withIdentity(deleted))
	leave(gone, "the port of Eve")
	if got := c.call("DELETE", "/v1/identities/"+deleted, ""); got.Code != 409 { // all would read her conversation
		t.Errorf("the identity of a conversation is deleted: %d %s", got.Code, got.Text)
	}
	c.must("DELETE", "/v1/conversations/"+gone, "")
	c.must("DELETE", "/v1/identities/"+deleted, "")
	for _, next := range []struct{ with, has string }{{withIdentity(ada), "Ada"}, {`{}`, "nobody"},
		{withIdentity(bob), "Bob"}, {withIdentity(ada), ""},
		{`{}`, ""}} {
		got := working(begin(next.with))
		for _, name := range []string{"Ada", "Bob", "nobody", "Eve"} {
			if strings.Contains(got, "port of "+name) != (name == next.has) {
				t.Errorf("%s begins with what is %q's: %s", next.with, name, got)
			}
		}
	}
	// A reset keeps the default conversation's identity, and a copy keeps its original's.
	c.must("PATCH", "/v1/conversations/default?agent_id="+agent, withIdentity(ada))
	leave("default", "the port of Ada once more")
	c.must("PATCH", "/v1/agents/"+agent+"/reset-messages", `{}`)
	if got := working("default"); !strings.Contains(got, "once more") {
		t.Errorf("the reset conversation begins with %s", got)
	}
	copied := c.must("POST", "/v1/conversations/default/fork?agent_id="+agent, "")
	if got := fields(t, copied)["identity_id"]; got != ada {
		t.Errorf("a copy is with %v, want %s", got, ada)
	}
	if got := c.call("POST", "/v1/conversations?agent_id="+agent, withIdentity("identity-x")); got.Code != 404 {
		t.Errorf("an identity that does not exist: %d %s", got.Code, got.Text)
	}
}

// A session of which neither a model nor the rules find anything is not spent: the next hand-over has it, too.
func TestASessionThatNobodyCouldReadIsNotSpent(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.work()
	agent := c.filed("")
	s := c.capture(agent, `{"messages":[{"role":"user","content":"Sono Anna"},
		{"role":"assistant","content":"Piacere."},{"role":"user","content":"Grazie"},
		{"role":"assistant","content":"Prego."}]}`).Messages
	c.summarizes("no JSON")
	first := c.handOver(agent)
	if first.Status != "done" || len(first.Updates) != 0 || !strings.HasPrefix(*first.Why, "The rules found nothing") ||
		!strings.Contains(*first.Why, "no JSON object") {
		t.Fatalf("without an answer: %+v", first)
	}
	c.summarizes(fmt.Sprintf(`{"entities":[{"text":"is named Anna","seqs":[%d],"name":"user","kind":"person"}]}`,
		s[0].Seq))
	h := c.handOver(agent)
	if h.ID != first.ID || *h.How != "model" || len(h.Updates) != 1 || h.Why != nil {
		t.Errorf("with one: %+v", h)
	}
	if again := c.handOver(agent); again.ID != h.ID || len(again.Updates) != 1 {
		t.Errorf("once more: %+v", again)
	}
}
