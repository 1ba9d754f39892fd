package loop_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/recall"
)

// lastPrompt returns the model's newest request.
func (f *fixture) lastPrompt() string {
	all := f.model.Requests()
	return string(all[len(all)-1].Body)
}

// An earlier message that the provider refuses only now leaves the view; the others stay, and the turn is answered.
func TestAnEarlierMessageThatIsRefusedLeavesTheView(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	for _, text := range []string{"One", "forbidden", "Three", "Four"} {
		f.record(says(recall.User, text), says(recall.Assistant, "Noted "+text[:1]))
	}
	f.refuseText(`"forbidden"`, http.StatusBadRequest, "content_policy_violation: this was flagged")
	f.checkEnd(f.do(f.request("Five")), loop.Completed, loop.EndTurn)
	f.checkEnd(f.do(f.request("Six")), loop.Completed, loop.EndTurn)
	prompt := f.lastPrompt()
	for text, want := range map[string]bool{`"One"`: true, `"forbidden"`: false, `"Three"`: true, `"Four"`: true,
		"left your view; the log has them": true} {
		if strings.Contains(prompt, text) != want {
			t.Errorf("the prompt has %s: got %t", text, !want)
		}
	}
}

// A refusal of the agent's memory is told by its place, and no message leaves the view.
func TestARefusedMemoryIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ where, want string }{
		{"memory", "What it refuses stands in the agent's memory: its memory blocks"},
		{"system", "What it refuses stands in the agent's system prompt, its tools or its folders"},
	} {
		n := agent.New{Name: "Ada"}
		if c.where == "memory" {
			n.Blocks = []block.New{{Label: "human", Value: "forbidden"}}
		} else {
			n.System = "Be forbidden."
		}
		f := newFixtureOf(t, n)
		f.refuseText("forbidden", http.StatusBadRequest, "content_policy_violation: this was flagged")
		run := f.do(f.request("Hello"))
		f.checkEnd(run, loop.Failed, loop.ModelError)
		if run.Failure == nil || !strings.Contains(run.Failure.Text, c.want) {
			t.Errorf("%s: got %+v, want %q", c.where, run.Failure, c.want)
		}
	}
}

// A provider that fails twice without a reason is asked without the earlier messages.
func TestAMessageThatMakesTheProviderFailLeavesTheView(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.record(says(recall.User, "poison"), says(recall.Assistant, "Noted."))
	f.refuseText(`"poison"`, http.StatusInternalServerError, "internal error")
	f.checkEnd(f.do(f.request("One")), loop.Failed, loop.ModelError)
	f.checkEnd(f.do(f.request("Two")), loop.Completed, loop.EndTurn)
	f.checkEnd(f.do(f.request("Three")), loop.Completed, loop.EndTurn)
	if strings.Contains(f.lastPrompt(), `"poison"`) {
		t.Error("the message is still in the view")
	}
	f = newFixture(t, nil)
	f.record(says(recall.User, "harmless"), says(recall.Assistant, "Noted."))
	f.refuseText("", http.StatusInternalServerError, "internal error")
	f.checkEnd(f.do(f.request("One")), loop.Failed, loop.ModelError)
	run := f.do(f.request("Two"))
	f.checkEnd(run, loop.Failed, loop.ModelError)
	if run.Failure == nil || !strings.Contains(run.Failure.Text, "Loci cannot tell which") {
		t.Errorf("got %+v", run.Failure)
	}
	f.model.Reply = nil
	f.do(f.request("Three"))
	if !strings.Contains(f.lastPrompt(), `"harmless"`) {
		t.Error("a provider that fails for each prompt has taken a message out of the view")
	}
}

// What a model said before its provider withheld the rest is kept and shown, and the turn leaves the view.
func TestAWithheldAnswerIsKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.model.Says(modeltest.Answer{Text: "It begins", Finish: "content_filter"})
	r := f.request("Tell me.")
	r.Options.StreamTokens = true
	run := f.do(r)
	f.checkEnd(run, loop.Failed, loop.ModelError)
	if run.Failure == nil || run.Failure.Type != loop.ContentFilter {
		t.Errorf("got %+v, want the type %s", run.Failure, loop.ContentFilter)
	}
	kept := false
	for _, m := range f.messages() {
		kept = kept || line(m) == "assistant: It begins"
	}
	if !kept {
		t.Error("the beginning of the answer is not in the log")
	}
}

// An agent whose model sees nothing of earlier requests forgets them with each new one, and the log keeps them.
func TestEarlierRequestsAreForgottenByTheModel(t *testing.T) {
	t.Parallel()
	settings := asking()
	settings.MessageBufferAutoclear = new(true)
	f := newFixture(t, settings)
	f.do(f.request("First"))
	f.model.Says(callOf("c1", insert, content))
	f.checkEnd(f.do(f.request("Second")), loop.Completed, loop.RequiresApproval)
	f.checkEnd(f.do(f.approve(loop.Approval{CallID: "c1", Approve: true})), loop.Completed, loop.EndTurn)
	if prompt := f.lastPrompt(); strings.Contains(prompt, `"First"`) || !strings.Contains(prompt, `"Second"`) {
		t.Errorf("the prompt after the approval has the first request, or lacks the second: %s", prompt)
	}
	f.do(f.request("Third"))
	if prompt := f.lastPrompt(); strings.Contains(prompt, `"Second"`) {
		t.Errorf("the third prompt has the second request: %s", prompt)
	}
	if n := len(f.messages()); n != 8 {
		t.Errorf("the log has %d messages, want 8", n)
	}
}

// A run that a transaction prepares begins only after it, and not at all if it is rolled back.
func TestARunIsPreparedInATransaction(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	var p loop.Prepared
	prepare := func(tx pgx.Tx) (err error) {
		p, err = f.Prepare(t.Context(), tx, f.org, f.request("Hello"))
		return err
	}
	rolled := errors.New("rolled back")
	err := db.Tx(t.Context(), f.config.DB, func(tx pgx.Tx) error { return errors.Join(prepare(tx), rolled) })
	if !errors.Is(err, rolled) {
		t.Fatal(err)
	}
	p.Drop()
	if list, err := f.Runs(t.Context(), f.org, loop.Filter{}, db.Page{}); len(list) != 0 || err != nil {
		t.Errorf("rolled back: got %d runs (%v)", len(list), err)
	}
	if err := db.Tx(t.Context(), f.config.DB, prepare); err != nil {
		t.Fatal(err)
	}
	if err := p.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := f.Runs(t.Context(), f.org, loop.Filter{}, db.Page{})
	if err != nil || len(list) != 1 {
		t.Fatalf("got %d runs (%v), want one", len(list), err)
	}
	if run := f.awaitRun(list[0].ID); run.Status != loop.Completed {
		t.Errorf("got %+v", run)
	}
	f.checkLog("user: Hello", "assistant: Done.")
	var none loop.Prepared
	if err := none.Begin(t.Context()); err != nil {
		t.Errorf("no run: got %v", err)
	}
	none.Drop()
}

// A run is found by its id, by the otid of what it was made from, or as the one at work.
func TestRunsAreFound(t *testing.T) {
	t.Parallel()
	f := newFixture(t, asking())
	f.model.Says(callOf("c1", insert, content), modeltest.Answer{Text: "Done."},
		modeltest.Answer{Status: http.StatusUnauthorized, Text: "{}"})
	first := f.do(f.named("Hello", "o1"))
	second := f.do(f.approve(loop.Approval{CallID: "c1", OTID: "o2"}))
	f.do(f.named("Again", "o3"))
	third := f.do(f.named("Again", "o3")) // goes on after its failure
	hold := make(chan struct{})
	f.model.Says(modeltest.Answer{Text: "Slow.", Wait: hold})
	working := f.start(f.request("Wait"))
	c := f.conversation()
	for name, w := range map[string]struct{ id, otid, want string }{
		"by its id":             {first.ID, "", first.ID},
		"by a message":          {"", "o1", first.ID},
		"by an approval":        {"", "o2", second.ID},
		"the latest attempt":    {"", "o3", third.ID},
		"at work":               {"", "", working.Run.ID},
		"by an unknown otid":    {"", "o9", ""},
		"by an unknown id":      {"run-none", "", ""},
		"by its id and an otid": {first.ID, "o1", first.ID},
	} {
		got, err := f.Find(t.Context(), f.org, c, w.id, w.otid)
		if got.ID != w.want && w.want != "" || w.want == "" && !errors.Is(err, db.ErrNotFound) {
			t.Errorf("%s: got %q (%v), want %q", name, got.ID, err, w.want)
		}
	}
	other, err := f.Agents.Create(t.Context(), f.org, agent.New{Name: "Eve"})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := f.Recall.Conversation(t.Context(), f.org, other.ID, recall.DefaultConversation)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{first.ID, ""} {
		if _, err := f.Find(t.Context(), f.org, elsewhere, id, ""); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("in another conversation: got %v, want ErrNotFound", err)
		}
	}
	close(hold)
	f.await(working)
	given, err := f.Given(t.Context(), f.org, second.Run)
	const denied = "tool: c1 = Error: request to call tool denied"
	if err != nil || len(given) != 1 || !strings.HasPrefix(line(given[0]), denied) {
		t.Errorf("what the denial's request brought: got %+v (%v)", given, err)
	}
	if has, err := f.HasRun(t.Context(), f.org, c.ID); !has || err != nil {
		t.Errorf("the conversation has no run (%v)", err)
	}
	if has, err := f.HasRun(t.Context(), f.org, elsewhere.ID); has || err != nil {
		t.Errorf("another conversation has a run (%v)", err)
	}
}
