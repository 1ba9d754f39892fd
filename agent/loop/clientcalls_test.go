package loop_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// asking are settings of an agent whose insertions need the client's approval.
func asking() *agent.Settings {
	return &agent.Settings{Tools: []string{insert, look},
		ToolRules: []byte(`[{"type":"requires_approval","tool_name":"` + insert + `"}]`)}
}

// approve returns a request that answers calls.
func (f *fixture) approve(approvals ...loop.Approval) loop.Request {
	r := f.request("")
	r.Approvals = approvals
	return r
}

const (
	askedFor = "assistant: c1 " + insert + " " + content + " [asked]"
	askedTwo = "assistant: c1 " + insert + " " + content + " [asked]; c2 " + insert + " " + content + " [asked]"
)

// askForTwo has the agent ask for two insertions.
func (f *fixture) askForTwo() ended {
	f.Helper()
	f.model.Says(modeltest.Answer{Calls: []modeltest.Call{{ID: "c1", Name: insert, Arguments: content},
		{ID: "c2", Name: insert, Arguments: content}}})
	run := f.do(f.request("Hello"))
	f.checkEnd(run, loop.Completed, loop.RequiresApproval)
	f.checkLog("user: Hello", askedTwo)
	return run
}

// archived returns the texts of the agent's passages.
func (f *fixture) archived() int {
	f.Helper()
	n, err := db.One[int](f.Context(), f.config.DB, `SELECT count(*)::integer FROM passages WHERE org = $1`, f.org)
	if err != nil {
		f.Fatal(err)
	}
	return n
}

func TestCallsThatNeedAnApprovalWait(t *testing.T) {
	t.Parallel()
	f := newFixture(t, asking())
	f.model.Says(callOf("c1", insert, content))
	run := f.do(f.request("Hello"))
	f.checkEnd(run, loop.Completed, loop.RequiresApproval)
	f.checkLog("user: Hello", askedFor)
	if n := f.archived(); n != 0 {
		t.Errorf("%d passages are stored before the approval", n)
	}
	pending, err := f.Pending(t.Context(), f.org, f.agent)
	if got := pending[f.agent.ID]; err != nil || len(got.Calls) != 1 || got.Calls[0] != "c1" ||
		line(got.Message) != askedFor {
		t.Errorf("waiting are %+v (%v)", pending, err)
	}
	if _, err := f.Start(t.Context(), f.org, f.request("Go on")); !isPending(err) {
		t.Errorf("another message: got %v, want a PendingError", err)
	}
	f.checkEnd(f.do(f.approve(loop.Approval{CallID: "c1", Approve: true})), loop.Completed, loop.EndTurn)
	if got := line(f.messages()[2]); !strings.HasPrefix(got, "tool: c1 = Archived as passage-") ||
		!strings.HasSuffix(got, "[approved]") {
		t.Errorf("got the result %q", got)
	}
	if n := f.archived(); n != 1 {
		t.Errorf("%d passages are stored, want 1", n)
	}
	if pending, err := f.Pending(t.Context(), f.org, f.agent); len(pending) != 0 || err != nil {
		t.Errorf("after the approval %+v wait (%v)", pending, err)
	}
}

func isPending(err error) bool {
	_, is := errors.AsType[*loop.PendingError](err)
	return is && errors.Is(err, db.ErrConflict)
}

// Each way to answer two waiting calls, and what the log then has before the model's next answer.
func TestAnswersToWaitingCalls(t *testing.T) {
	t.Parallel()
	const denied = " = Error: request to call tool denied. User reason: "
	for _, c := range []struct {
		name   string
		answer loop.Request
		want   []string // lines after the calls; an insertion's result is cut
		reason string
	}{
		{"one denied, one approved", loop.Request{Approvals: []loop.Approval{{CallID: "c1", Reason: "Not now."},
			{CallID: "c2", Approve: true}}}, []string{"tool: c1" + denied + "Not now. (failed) [denied]",
			"tool: c2 = Archived [approved]", "assistant: Done."}, loop.EndTurn},
		{"both by their message", loop.Request{Approvals: []loop.Approval{{MessageID: "*"}}},
			[]string{"tool: c1" + denied + "None (failed) [denied]; c2" + denied + "None (failed) [denied]",
				"assistant: Done."}, loop.EndTurn},
		{"results of the client", loop.Request{Input: []recall.Draft{resultOf("c1", "one"), resultOf("c2", "two")}},
			[]string{"tool: c1 = one [returned]", "tool: c2 = two [returned]", "assistant: Done."}, loop.EndTurn},
		{"one of them", loop.Request{Approvals: []loop.Approval{{CallID: "c2", Approve: true}}},
			[]string{"tool: c2 = Archived [approved]"}, loop.RequiresApproval},
		{"with another message", loop.Request{Approvals: []loop.Approval{{CallID: "c1"}, {CallID: "c2", Approve: true}},
			Input: []recall.Draft{says(recall.User, "And hurry.")}}, []string{
			"tool: c1" + denied + "None (failed) [denied]", "tool: c2 = Archived [approved]", "user: And hurry.",
			"assistant: Done."}, loop.EndTurn},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, asking())
			f.askForTwo()
			r := f.approve(c.answer.Approvals...)
			for i, a := range r.Approvals {
				if a.MessageID == "*" {
					r.Approvals[i].MessageID = f.messages()[1].ID
				}
			}
			r.Input = c.answer.Input
			f.checkEnd(f.do(r), loop.Completed, c.reason)
			var got []string
			for _, m := range f.messages()[2:] {
				l := line(m)
				if before, _, is := strings.Cut(l, " as passage-"); is {
					l = before + " [approved]"
				}
				got = append(got, l)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the log (-want +got):\n%s", diff)
			}
		})
	}
}

// Answers that fit no waiting call are refused, and nothing is stored.
func TestAnswersThatFitNoCallAreRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, asking())
	if _, err := f.Start(t.Context(), f.org, f.approve(loop.Approval{Approve: true})); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("without any call: got %v", err)
	}
	f.askForTwo()
	yes := loop.Approval{CallID: "c1", Approve: true}
	for name, c := range map[string]struct {
		approvals []loop.Approval
		input     []recall.Draft
		want      string
	}{
		"an unknown call": {[]loop.Approval{{CallID: "c9", Approve: true}}, nil,
			"Invalid tool call IDs: nothing waits under the id c9. Expected c1, c2"},
		"an unknown message": {[]loop.Approval{{MessageID: "message-9"}}, nil,
			"Invalid tool call IDs: nothing waits under the id message-9. Expected c1, c2"},
		"yes and no": {[]loop.Approval{yes, {CallID: "c1"}}, nil,
			"The request answers the tool call c1 twice: send one approval, denial or result of it"},
		"yes and a result": {[]loop.Approval{yes}, []recall.Draft{resultOf("c1", "x")},
			"The request answers the tool call c1 twice: send one approval, denial or result of it"},
		"two results": {nil, []recall.Draft{resultOf("c1", "x"), resultOf("c1", "y")},
			"The request answers the tool call c1 twice: send one approval, denial or result of it"},
		"a result of an unknown call": {nil, []recall.Draft{resultOf("c9", "x")},
			"Invalid tool call IDs: nothing waits under the id c9. Expected c1, c2"},
		"one answer beside another message": {[]loop.Approval{yes}, []recall.Draft{says(recall.User, "Hurry.")},
			new(loop.PendingError).Error()},
	} {
		r := f.approve(c.approvals...)
		r.Input = c.input
		if _, err := f.Start(t.Context(), f.org, r); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	f.checkLog("user: Hello", askedTwo)
}

// A tool that the client runs waits for its result, which no approval replaces.
func TestTheClientRunsItsTools(t *testing.T) {
	t.Parallel()
	f := newFixture(t, &agent.Settings{Tools: []string{look}})
	r := f.request("Hello")
	r.Options.ClientTools = []loop.ClientTool{{Name: "paint", Description: "Paints."},
		{Name: "draw", Parameters: []byte(`{"type":"object","properties":{"what":{"type":"string"}}}`)}}
	f.model.Says(modeltest.Answer{Calls: []modeltest.Call{{ID: "c1", Name: "paint", Arguments: `{}`},
		{ID: "c2", Name: look, Arguments: query}}})
	f.checkEnd(f.do(r), loop.Completed, loop.RequiresApproval)
	body := string(f.model.Requests()[0].Body)
	for _, want := range []string{`"Paints."`, `"parameters":{"type":"object","properties":{}}`,
		`"what":{"type":"string"}`} {
		if !strings.Contains(body, want) {
			t.Errorf("the prompt lacks %s", want)
		}
	}
	_, err := f.Start(t.Context(), f.org, f.approve(loop.Approval{CallID: "c1", Approve: true}))
	if err == nil || !strings.Contains(err.Error(), "paint, a tool that the client runs: send its result") {
		t.Errorf("approved: got %v", err)
	}
	r = f.request("")
	r.Input = []recall.Draft{resultOf("c1", "A ship.")}
	f.checkEnd(f.do(r), loop.Completed, loop.EndTurn)
	var got []string
	for _, m := range f.messages()[1:] {
		l, _, _ := strings.Cut(line(m), " was found")
		got = append(got, l)
	}
	want := []string{"assistant: c1 paint {} [asked]; c2 " + look + " " + query,
		"tool: c2 = No passage of your archival memory", "tool: c1 = A ship. [returned]", "assistant: Done."}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}

// Cancelling denies the calls that wait, and ends the run that waits for them as cancelled.
func TestCancellingDeniesWaitingCalls(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"conversation", "run"} {
		f := newFixture(t, asking())
		waiting := f.askForTwo()
		switch way {
		case "conversation":
			if id, err := f.Cancel(t.Context(), f.org, f.conversation()); id != waiting.ID || err != nil {
				t.Errorf("%s: cancelled %q (%v), want %q", way, id, err, waiting.ID)
			}
		default:
			if is, err := f.CancelRun(t.Context(), f.org, waiting.Run); !is || err != nil {
				t.Errorf("%s: got %t (%v)", way, is, err)
			}
		}
		const cancelled = " = Error: request to call tool denied. User reason: The user cancelled the request, so the tool " +
			"call was denied. (failed) [denied]"
		f.checkLog("user: Hello", askedTwo, "tool: c1"+cancelled+"; c2"+cancelled)
		run, err := f.RunByID(t.Context(), f.org, waiting.ID)
		if err != nil || run.Status != loop.Cancelled || *run.StopReason != loop.StopCancelled {
			t.Errorf("%s: got %+v (%v)", way, run, err)
		}
		f.checkEnd(f.do(f.request("Go on")), loop.Completed, loop.EndTurn)
	}
}

// A client that did not get the answer to its approval sends it again, and gets that answer; the call runs once.
func TestAnApprovalSentAgainGetsTheStoredAnswer(t *testing.T) {
	t.Parallel()
	for name, otid := range map[string]string{"with an otid": "o1", "without": ""} {
		f := newFixture(t, asking())
		f.model.Says(callOf("c1", insert, content))
		f.do(f.request("Hello"))
		r := f.approve(loop.Approval{CallID: "c1", Approve: true, OTID: otid})
		first, again := f.do(r), f.do(r)
		if first.ID != again.ID || f.archived() != 1 {
			t.Errorf("%s: got the runs %s and %s, and %d passages", name, first.ID, again.ID, f.archived())
		}
		r.Approvals[0].Approve = false
		if _, err := f.Start(t.Context(), f.org, r); err == nil {
			t.Errorf("%s: another answer to the call is taken", name)
		}
	}
}

func TestReasonsOfDenials(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]string{
		"Error: request to call tool denied. User reason: Not now.":     "Not now.",
		"Error: request to call tool denied. User reason: None":         "",
		"The request to call the tool was denied. Too risky":            "Too risky",
		"The request to call the tool was denied. No reason was given.": "",
		"Not now.": "",
	} {
		if got := loop.DenialReason(result); got != want {
			t.Errorf("%s: got %q, want %q", result, got, want)
		}
	}
}
