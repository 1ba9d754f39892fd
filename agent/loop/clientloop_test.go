package loop_test

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

func (f *fixture) clientLoop() *loop.ClientLoop {
	f.Helper()
	o, err := f.NewClientLoop(f.Context(), f.org, f.agent, recall.DefaultConversation)
	if err != nil {
		f.Fatal(err)
	}
	return o
}

func each(drafts ...recall.Draft) iter.Seq2[recall.Draft, error] {
	return func(yield func(recall.Draft, error) bool) {
		for _, d := range drafts {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// calling is an answer of a client's own loop.
func calling(calls ...modeltest.Call) recall.Draft {
	d := recall.Draft{Role: recall.Assistant}
	for _, c := range calls {
		d.Content = append(d.Content, recall.Part{Type: recall.ToolCall, CallID: c.ID, Name: c.Name, Input: c.Arguments})
	}
	return d
}

// record records what a client's own loop said.
func (f *fixture) record(drafts ...recall.Draft) loop.Recorded {
	f.Helper()
	out, err := f.Record(f.Context(), f.org, f.agent, loop.Record{Conversation: recall.DefaultConversation,
		Drafts: each(drafts...)})
	if err != nil {
		f.Fatal(err)
	}
	return out
}

// asked shows calls as tests compare them.
func asked(calls []loop.ClientLoopCall) (all []string) {
	for _, c := range calls {
		text := c.CallID
		if c.Ran {
			text += " ran"
		}
		if c.NeedsApproval {
			text += " needs approval"
		}
		if c.Result != nil {
			result, _, _ := strings.Cut(c.Result.Text, " as passage-")
			text += " = " + result
		}
		all = append(all, text)
	}
	return all
}

// The server runs memory tools for a client's own loop, leaves the client its own calls, and refuses what the rules do
// not allow.
func TestAClientsLoopHasItsMemoryToolsRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, &agent.Settings{Tools: []string{insert, look},
		ToolRules: []byte(`[{"type":"max_count_per_step","tool_name":"` + insert + `","max_count_limit":1}]`)})
	out := f.record(says(recall.User, "Hello"), calling(modeltest.Call{ID: "c1", Name: insert, Arguments: content},
		modeltest.Call{ID: "c2", Name: "paint", Arguments: `{}`},
		modeltest.Call{ID: "c3", Name: insert, Arguments: content},
		modeltest.Call{ID: "c4", Name: recall.Nameless, Arguments: `{}`}))
	calls, err := f.clientLoop().Run(t.Context(), out.Messages[1].Position)
	if err != nil {
		t.Fatal(err)
	}
	got := asked(calls)
	want := []string{"c1 ran = Archived", "c2", "c3 ran = The rules of your tools do not allow " + insert + " now.",
		"c4 ran = The call names no tool. "}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("got %q, want beginnings %q", got, want)
	}
	if again, err := f.clientLoop().Run(t.Context(), out.Messages[1].Position); err != nil || f.archived() != 1 ||
		!cmp.Equal(got, asked(again)) {
		t.Errorf("run again: got %q (%v), and %d passages", asked(again), err, f.archived())
	}
}

// A client's loop approves and denies calls. The same approval again changes nothing; another one is refused.
func TestAClientsLoopApprovesCalls(t *testing.T) {
	t.Parallel()
	f := newFixture(t, asking())
	o := f.clientLoop()
	two := calling(modeltest.Call{ID: "c1", Name: insert, Arguments: content},
		modeltest.Call{ID: "c2", Name: insert, Arguments: content})
	marked, err := o.Asking(t.Context(), each(two))
	if err != nil {
		t.Fatal(err)
	}
	f.record(says(recall.User, "Hello"))
	out, err := f.Record(t.Context(), f.org, f.agent, loop.Record{Conversation: recall.DefaultConversation,
		Drafts: marked, Answer: true})
	if err != nil {
		t.Fatal(err)
	}
	f.checkLog("user: Hello", askedTwo)
	calls, err := o.Run(t.Context(), out.Messages[0].Position)
	if want := []string{"c1 needs approval", "c2 needs approval"}; err != nil || !cmp.Equal(want, asked(calls)) {
		t.Errorf("before: got %q (%v), want %q", asked(calls), err, want)
	}
	answers := []loop.Approval{{CallID: "c1", Approve: true}, {CallID: "c2", Reason: "Once is enough."}}
	tried := loop.Record{Conversation: recall.DefaultConversation}
	if err := o.Try(t.Context(), answers, tried); err != nil || f.archived() != 0 {
		t.Errorf("tried: got %v, and %d passages", err, f.archived())
	}
	want := []string{"c1 ran = Archived", "c2 ran = Error: request to call tool denied. User reason: Once is enough."}
	for _, time := range []string{"once", "twice"} {
		calls, err := o.Approve(t.Context(), answers)
		if err != nil || !cmp.Equal(want, asked(calls)) || f.archived() != 1 {
			t.Errorf("%s: got %q (%v), want %q, and %d passages", time, asked(calls), err, want, f.archived())
		}
	}
	f.record(says(recall.Assistant, "Done."))
	if calls, err := o.Approve(t.Context(), answers); err != nil || !cmp.Equal(want, asked(calls)) {
		t.Errorf("after more messages: got %q (%v), want %q", asked(calls), err, want)
	}
	if _, err := o.Approve(t.Context(), []loop.Approval{{CallID: "c1"}}); !errors.Is(err, db.ErrConflict) {
		t.Errorf("denied after the approval: got %v, want ErrConflict", err)
	}
	unknown := []loop.Approval{{CallID: "c9", Approve: true}}
	if _, err := o.Approve(t.Context(), unknown); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("an unknown call: got %v, want ErrInvalid", err)
	}
	if err := o.Try(t.Context(), unknown, tried); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("an unknown call tried: got %v, want ErrInvalid", err)
	}
	if calls, err := o.Approve(t.Context(), nil); calls != nil || err != nil {
		t.Errorf("no approvals: got %v (%v)", calls, err)
	}
}

// Next tells a client's loop whether to ask, to answer calls, or that the turn has ended.
func TestWhatAClientsLoopDoesNext(t *testing.T) {
	t.Parallel()
	const rules = `[{"type":"exit_loop","tool_name":"` + look + `"},
		{"type":"required_before_exit","tool_name":"` + insert + `"}]`
	lookUp := calling(modeltest.Call{ID: "c1", Name: look, Arguments: query})
	store := calling(modeltest.Call{ID: "c2", Name: insert, Arguments: content})
	type state struct {
		Ended, Empty, Answered, Reminded, GaveUp bool
		Calls                                    []string
	}
	for _, c := range []struct {
		name, rules string
		said        []recall.Draft
		want        state
	}{
		{"nothing", ``, nil, state{Empty: true}},
		{"a question", ``, []recall.Draft{says(recall.User, "Hello")}, state{}},
		{"an answer", ``, []recall.Draft{says(recall.User, "Hello"), says(recall.Assistant, "Hi")}, state{Answered: true}},
		{"a call of its own", ``, []recall.Draft{says(recall.User, "Hello"),
			calling(modeltest.Call{ID: "c3", Name: "paint", Arguments: `{}`})}, state{Calls: []string{"c3"}}},
		{"a call of a memory tool", ``, []recall.Draft{says(recall.User, "Hello"), store}, state{}},
		{"a required call is missing", rules, []recall.Draft{says(recall.User, "Hello"), says(recall.Assistant, "Hi")},
			state{Answered: true, Reminded: true}},
		{"the ending call without the required one", rules, []recall.Draft{says(recall.User, "Hello"), lookUp,
			resultOf("c1", "Found.")}, state{Reminded: true}},
		{"the ending call after it", rules, []recall.Draft{says(recall.User, "Hello"), store, resultOf("c2", "Stored."),
			lookUp, resultOf("c1", "Found.")}, state{Ended: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, &agent.Settings{Tools: []string{insert, look}, ToolRules: []byte(c.rules)})
			for _, d := range c.said {
				f.record(d)
			}
			o := f.clientLoop()
			next, err := o.Next(t.Context(), agent.PromptTarget{AgentID: f.agent.ID, Conversation: o.Conversation.ID})
			if err != nil {
				t.Fatal(err)
			}
			got := state{next.Ended, next.Empty, next.Answered, next.Reminded, next.GaveUp, asked(next.Calls)}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("what to do (-want +got):\n%s", diff)
			}
		})
	}
}

// A client's loop is reminded of a required call three times, then its prompt asks for the call no more.
func TestAClientsLoopIsGivenUp(t *testing.T) {
	t.Parallel()
	f := newRuled(t, `[{"type":"required_before_exit","tool_name":"`+look+`"}]`)
	f.record(says(recall.User, "Hello"))
	o := f.clientLoop()
	target := agent.PromptTarget{AgentID: f.agent.ID, Conversation: o.Conversation.ID}
	for n := range 4 {
		f.record(says(recall.Assistant, "Hi"))
		for range 2 { // the second one changes nothing
			next, err := o.Next(t.Context(), target)
			if err != nil || next.Reminded != (n < 3) || next.GaveUp != (n == 3) {
				t.Errorf("after %d answers: got reminded %t, given up %t (%v)", n+1, next.Reminded, next.GaveUp, err)
			}
			if forced := strings.Contains(string(next.Prompt.Request), `"tool_choice"`); forced != (n < 3) {
				t.Errorf("after %d answers: the prompt asks for the call: %t", n+1, forced)
			}
		}
	}
	const reminder = "system: " + frame.System + " Before your response ends, you must call " + look + "."
	f.checkLog("user: Hello", "assistant: Hi", reminder, "assistant: Hi", reminder, "assistant: Hi", reminder,
		"assistant: Hi")
}

// Messages that leave calls behind are refused unless they may; those already stored change nothing.
func TestRecordingKeepsWaitingCalls(t *testing.T) {
	t.Parallel()
	f := newFixture(t, &agent.Settings{Tools: []string{look}})
	paint := calling(modeltest.Call{ID: "c1", Name: "paint", Arguments: `{}`})
	f.record(says(recall.User, "Hello"), paint)
	user := says(recall.User, "And?")
	user.OTID = new("o1")
	r := loop.Record{Conversation: recall.DefaultConversation, Drafts: each(user)}
	if _, err := f.Record(t.Context(), f.org, f.agent, r); !isPending(err) {
		t.Errorf("got %v, want a PendingError", err)
	}
	f.checkLog("user: Hello", "assistant: c1 paint {}")
	r.Leaves = true
	out, err := f.Record(t.Context(), f.org, f.agent, r)
	if err != nil || len(out.Left) != 1 || out.Left[0].CallID != "c1" || out.Left[0].Name != "paint" {
		t.Errorf("left behind are %+v (%v)", out.Left, err)
	}
	r.Leaves = false
	if out, err = f.Record(t.Context(), f.org, f.agent, r); err != nil || !out.Messages[0].Repeated {
		t.Errorf("recorded again: got %+v (%v)", out.Messages, err)
	}
	f.checkLog("user: Hello", "assistant: c1 paint {}", "user: And?")
	hold := make(chan struct{})
	f.model.Says(modeltest.Answer{Text: "Slow.", Wait: hold})
	started := f.start(f.request("Now you."))
	_, err = f.Record(t.Context(), f.org, f.agent, loop.Record{Conversation: recall.DefaultConversation,
		Drafts: each(says(recall.User, "Me, too."))})
	if !isBusy(err, started.Run.ID) {
		t.Errorf("while a run works: got %v, want a BusyError", err)
	}
	close(hold)
	f.await(started)
}

// A client reports that its provider refused the prompt: the turn leaves the view if that may help.
func TestRefusalsOfAClientsLoop(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		refusal loop.Refusal
		left    bool
	}{
		{"its content", loop.Refusal{Status: 400, Message: "content_policy_violation: this was flagged"}, true},
		{"a key", loop.Refusal{Status: 401, Message: "Incorrect API key provided"}, false},
		{"an outage", loop.Refusal{Status: 503, Message: "overloaded"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.record(says(recall.User, "One"), says(recall.Assistant, "1"), says(recall.User, "Two"))
			out, err := f.Record(t.Context(), f.org, f.agent, loop.Record{Conversation: recall.DefaultConversation,
				Refusal: &c.refusal})
			if err != nil || out.Refused == nil {
				t.Fatalf("got %+v (%v)", out, err)
			}
			if left := len(out.Refused.Left) > 0 || out.Refused.AskAgain; left != c.left || out.Refused.Unchanged == c.left {
				t.Errorf("got %+v, want messages to leave the view: %t", out.Refused, c.left)
			}
		})
	}
}
