package loop_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

func TestARunAsksRunsToolsAndStoresEachStep(t *testing.T) {
	t.Parallel()
	f := newFixture(t, &agent.Settings{Tools: []string{insert, look}})
	f.model.Says(modeltest.Answer{Reasoning: "I note it.", Text: "One moment.", PromptTokens: 100,
		Calls: []modeltest.Call{{ID: "c1", Name: insert, Arguments: content}}}, modeltest.Answer{Text: "Noted.",
		PromptTokens: 200})
	run := f.do(f.request("Note blue."))
	f.checkEnd(run, loop.Completed, loop.EndTurn)
	list := f.messages()
	var roles []recall.Role
	for _, m := range list {
		roles = append(roles, m.Role)
		if m.RunID == nil || *m.RunID != run.ID {
			t.Errorf("the message %q is not of the run", line(m))
		}
	}
	if want := []recall.Role{recall.User, recall.Assistant, recall.Tool, recall.Assistant}; !slices.Equal(roles, want) {
		t.Fatalf("got %q, want %q", roles, want)
	}
	if got := line(list[1]); got != "assistant: I note it.; One moment.; c1 "+insert+" "+content {
		t.Errorf("got %q", got)
	}
	if *list[1].StepID != *list[2].StepID || *list[1].StepID == *list[3].StepID {
		t.Error("a result is not of the step of its call, or two answers are of one step")
	}
	steps, err := f.Steps(t.Context(), f.org, loop.StepFilter{RunID: run.ID}, db.Page{Ascending: true})
	if err != nil || len(steps) != 2 {
		t.Fatalf("got %d steps (%v), want 2", len(steps), err)
	}
	if steps[0].StopReason != nil || *steps[1].StopReason != loop.EndTurn || steps[1].Status != loop.Succeeded ||
		steps[1].Prompt != 200 || steps[1].Model != "m" || steps[1].Provider != "openai" {
		t.Errorf("got the steps %+v", steps)
	}
	want := loop.Usage{Steps: 2, Prompt: 300}
	if diff := cmp.Diff(want, run.Usage, cmpopts.IgnoreFields(loop.Usage{}, "Completion", "Context")); diff != "" {
		t.Errorf("the usage (-want +got):\n%s", diff)
	}
	if run.Usage.Context != 200+steps[1].Completion || run.Usage.Completion != steps[0].Completion+steps[1].Completion {
		t.Errorf("got the usage %+v of the steps %+v", run.Usage, steps)
	}
}

// What a run ends with after a model's answers.
func TestHowRunsEnd(t *testing.T) {
	t.Parallel()
	many := func(n int, a modeltest.Answer) []modeltest.Answer { return slices.Repeat([]modeltest.Answer{a}, n) }
	busy := modeltest.Answer{Status: http.StatusServiceUnavailable, Text: `{"error":{"message":"Try later."}}`}
	noJSON := callOf("c", insert, "blue")
	noTool := callOf("c", "paint", `{}`)
	for _, c := range []struct {
		name           string
		answers        []modeltest.Answer
		status, reason string
		failure        string // a part of its text
		asked          int
	}{
		{"a text", []modeltest.Answer{{Text: "Hello"}}, loop.Completed, loop.EndTurn, "", 1},
		{"no more tokens", []modeltest.Answer{{Text: "Hel", Finish: "length"}}, loop.Failed, loop.MaxTokens, "", 1},
		{"too many steps", many(9, callOf("c1", look, query)), loop.Completed, loop.MaxSteps, "", 4},
		{"calls that are no JSON", append(many(3, noJSON), noJSON), loop.Completed, loop.MaxSteps, "", 4},
		{"a tool that it lacks", []modeltest.Answer{noTool, {Text: "Sorry."}}, loop.Completed, loop.EndTurn, "", 2},
		{"failures that pass", []modeltest.Answer{busy, busy, {Text: "Hello"}}, loop.Completed, loop.EndTurn, "", 3},
		{"failures that stay", many(9, busy), loop.Failed, loop.ModelError, "Try later.", 3},
		{"a wrong key", []modeltest.Answer{{Status: http.StatusUnauthorized, Text: `{"error":{"message":"No key."}}`}},
			loop.Failed, loop.ModelError, "No key.", 1},
		{"no credits", []modeltest.Answer{{Status: http.StatusPaymentRequired, Text: `{"error":{"message":"Pay."}}`}},
			loop.Failed, loop.NoCredits, "Pay.", 1},
		{"a limit without patience", []modeltest.Answer{{Status: http.StatusTooManyRequests,
			Text: `{"error":{"message":"Slow down."}}`}}, loop.Failed, loop.ModelError, "Slow down.", 1},
		{"a connection that breaks", many(3, modeltest.Answer{Closes: true}), loop.Failed, loop.ModelError, "", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, &agent.Settings{Tools: []string{insert, look}})
			f.model.Says(c.answers...)
			r := f.request("Hello")
			r.Options.MaxSteps = 4
			run := f.do(r)
			f.checkEnd(run, c.status, c.reason)
			switch {
			case c.failure == "":
			case run.Failure == nil || !strings.Contains(run.Failure.Text, c.failure):
				t.Errorf("got the failure %+v, want %q", run.Failure, c.failure)
			case run.Run.Failure() == nil || run.Run.Failure().Text != run.Failure.Text:
				t.Errorf("stored is %+v, and shown %+v", run.Run.Failure(), run.Failure)
			}
			if n := len(f.model.Requests()); n != c.asked {
				t.Errorf("the model was asked %d times, want %d", n, c.asked)
			}
		})
	}
}

// A model that makes only broken calls is told why each is broken, and given up after six in a row.
func TestBrokenCallsInARowEndARun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, &agent.Settings{Tools: []string{insert}})
	broken := callOf("c", "paint", `{}`)
	f.model.Says(broken, broken, broken, broken, broken, callOf("c", insert, content))
	f.model.Says(slices.Repeat([]modeltest.Answer{callOf("c", insert, "blue")}, 9)...)
	run := f.do(f.request("Hello"))
	f.checkEnd(run, loop.Failed, loop.BrokenCalls)
	if n := len(f.model.Requests()); n != 12 { // five, a good one, and six
		t.Errorf("the model was asked %d times, want 12", n)
	}
	for _, m := range f.messages() {
		if l := line(m); strings.HasPrefix(l, "tool: c = There is no tool paint.") && !strings.Contains(l, insert) {
			t.Errorf("got %q, want the tools that there are", l)
		}
	}
}

// Tools that exist but are not attached are refused, and the model reads which it has.
func TestAToolThatIsNotAttachedIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, &agent.Settings{Tools: []string{insert}})
	f.model.Says(callOf("c1", look, query))
	f.checkEnd(f.do(f.request("Hello")), loop.Completed, loop.EndTurn)
	f.checkLog("user: Hello", "assistant: c1 "+look+" "+query, "tool: c1 = The tool "+look+
		" is not attached to you. Your tools are "+insert+". (failed)", "assistant: Done.")
}

// Calls after the first are dropped if the agent makes one call at a time.
func TestOneCallAtATime(t *testing.T) {
	t.Parallel()
	f := newFixture(t, &agent.Settings{Tools: []string{look}, ModelSettings: []byte(`{"parallel_tool_calls":false}`)})
	f.model.Says(modeltest.Answer{Text: "I look.", Calls: []modeltest.Call{{ID: "c1", Name: look, Arguments: query},
		{ID: "c2", Name: look, Arguments: query}}})
	f.do(f.request("Hello"))
	if got := line(f.messages()[1]); got != "assistant: I look.; c1 "+look+" "+query && !f.agent.OneCall() {
		t.Errorf("got %q", got)
	}
}

func TestWhatARunNeedsToStart(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	for name, c := range map[string]struct {
		change func(*loop.Request)
		want   error
	}{
		"an agent":        {func(r *loop.Request) { r.AgentID = "agent-none" }, db.ErrNotFound},
		"a conversation":  {func(r *loop.Request) { r.Conversation = "conv-none" }, db.ErrNotFound},
		"calls that wait": {func(r *loop.Request) { r.Input = []recall.Draft{resultOf("c", "x")} }, db.ErrInvalid},
	} {
		r := f.request("Hello")
		c.change(&r)
		if _, err := f.Start(t.Context(), f.org, r); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	config := f.config
	config.Models = nil
	if _, err := f.run(config).Start(t.Context(), f.org, f.request("Hello")); !errors.Is(err, loop.ErrNoModel) {
		t.Errorf("a model: got %v, want ErrNoModel", err)
	}
	if _, err := f.Start(t.Context(), f.org+1_000_000, f.request("Hello")); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("from another organization: got %v, want ErrNotFound", err)
	}
	f.checkLog()
}

// An organization has as many simultaneous runs as it may have, and no more.
func TestSimultaneousRunsAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	config := f.config
	config.MaxRuns = 1
	f.Loop = f.run(config)
	hold := make(chan struct{})
	f.model.Says(modeltest.Answer{Text: "Slow.", Wait: hold})
	first := f.start(f.request("Hello"))
	other, err := f.Agents.Create(t.Context(), f.org, agent.New{Name: "Eve"})
	if err != nil {
		t.Fatal(err)
	}
	r := f.request("Hello")
	r.AgentID = other.ID
	if _, err := f.Start(t.Context(), f.org, r); !errors.Is(err, db.ErrTooMany) {
		t.Errorf("got %v, want ErrTooMany", err)
	}
	close(hold)
	f.await(first)
	f.checkEnd(f.do(r), loop.Completed, loop.EndTurn)
}

// A run's options reach the model: another model's handle, instructions, and the client's skills.
func TestOptionsReachTheModel(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	var handles []string
	config := f.config
	config.Models = func(handle string) (loop.Model, error) {
		handles = append(handles, handle)
		return f.config.Models(handle)
	}
	f.Loop = f.run(config)
	r := f.request("Hello")
	r.Options.Model, r.Options.System = new("openai/gpt-4o"), new("You paint.")
	r.Options.Skills = []loop.Skill{{Name: "varnish", Description: "how to varnish", Location: "/skills/varnish"}}
	run := f.do(r)
	if !slices.Equal(handles, []string{"openai/gpt-4o"}) {
		t.Errorf("asked for the models %q", handles)
	}
	body := string(f.model.Requests()[0].Body)
	for _, want := range []string{"You paint.", "- varnish: how to varnish (/skills/varnish)"} {
		if !strings.Contains(body, want) {
			t.Errorf("the prompt lacks %q", want)
		}
	}
	steps, err := f.Steps(t.Context(), f.org, loop.StepFilter{RunID: run.ID}, db.Page{})
	if err != nil || len(steps) != 1 || steps[0].Handle != "openai/gpt-4o" {
		t.Errorf("got the steps %+v (%v)", steps, err)
	}
}

// Pieces of an answer are shown as they come if the client wants them, and then the message.
func TestPiecesOfAnswersAreShown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	r := f.request("Hello")
	r.Options.StreamTokens = true
	run := f.do(r)
	var text string
	for _, e := range run.events {
		if e.Delta != nil {
			text += e.Delta.Text
		}
	}
	last := run.events[len(run.events)-2]
	if text != "Done." || last.Message == nil || !last.Streamed || last.Message.Text() != "Done." {
		t.Errorf("got the pieces %q and then %+v", text, last)
	}
	if run.FirstTokenAt == nil {
		t.Error("the time of the first token is not stored")
	}
	for _, e := range f.do(f.request("Again")).events {
		if e.Delta != nil {
			t.Errorf("got a piece %q that nobody asked for", e.Delta.Text)
		}
	}
}

// A run at work is cancelled at once, its model's answer is given up, and its calls get results.
func TestACancelledRunEnds(t *testing.T) {
	t.Parallel()
	f := newFixture(t, &agent.Settings{Tools: []string{look}})
	f.model.Says(modeltest.Answer{Text: "Never.", Wait: make(chan struct{})})
	started := f.start(f.request("Hello"))
	f.model.Await(t, 1)
	id, err := f.Cancel(t.Context(), f.org, f.conversation())
	if err != nil || id != started.Run.ID {
		t.Errorf("cancelled %q (%v), want %q", id, err, started.Run.ID)
	}
	f.checkEnd(f.await(started), loop.Cancelled, loop.StopCancelled)
	f.checkLog("user: Hello")
	run, err := f.AwaitEnd(t.Context(), f.org, started.Run.ID)
	if err != nil || run.CancelledAt == nil || run.CompletedAt == nil {
		t.Errorf("got %+v (%v)", run, err)
	}
	if is, err := f.CancelRun(t.Context(), f.org, run); !is || err != nil {
		t.Errorf("cancelled again: got %t (%v)", is, err)
	}
	if id, err := f.Cancel(t.Context(), f.org, f.conversation()); id != "" || err != nil {
		t.Errorf("with nothing to cancel: got %q (%v)", id, err)
	}
	done := f.do(f.request("Again"))
	if is, err := f.CancelRun(t.Context(), f.org, done.Run); is || err != nil {
		t.Errorf("a run that has ended: got %t (%v)", is, err)
	}
}

func TestRunsAreListedAndDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.model.Says(modeltest.Answer{Text: "Hello"}, modeltest.Answer{Status: http.StatusUnauthorized, Text: "{}"})
	good, bad := f.do(f.request("Hello")), f.do(f.request("Bye"))
	hold := make(chan struct{})
	f.model.Says(modeltest.Answer{Text: "Slow.", Wait: hold})
	r := f.request("Wait")
	r.Background = true
	working := f.start(r)
	for name, c := range map[string]struct {
		filter loop.Filter
		want   []string
	}{
		"all":                   {loop.Filter{}, []string{good.ID, bad.ID, working.Run.ID}},
		"the agent's":           {loop.Filter{AgentIDs: []string{f.agent.ID}}, []string{good.ID, bad.ID, working.Run.ID}},
		"another agent's":       {loop.Filter{AgentIDs: []string{"agent-none"}}, nil},
		"with a status":         {loop.Filter{Statuses: []string{loop.Failed}}, []string{bad.ID}},
		"with a stop reason":    {loop.Filter{StopReason: loop.EndTurn}, []string{good.ID}},
		"in the background":     {loop.Filter{Background: new(true)}, []string{working.Run.ID}},
		"not in the background": {loop.Filter{Background: new(false)}, []string{good.ID, bad.ID}},
		"at work":               {loop.Filter{Active: true}, []string{working.Run.ID}},
		"of the default":        {loop.Filter{Conversation: "default", StopReason: loop.ModelError}, []string{bad.ID}},
		"of one":                {loop.Filter{Conversation: bad.Conversation, StopReason: loop.ModelError}, []string{bad.ID}},
		"of none":               {loop.Filter{Conversation: "conv-none"}, nil},
	} {
		list, err := f.Runs(t.Context(), f.org, c.filter, db.Page{Ascending: true})
		var got []string
		for _, r := range list {
			got = append(got, r.ID)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q (%v), want %q", name, got, err, c.want)
		}
	}
	if _, err := f.DeleteRun(t.Context(), f.org, working.Run.ID); !errors.Is(err, db.ErrConflict) {
		t.Errorf("delete a run at work: got %v, want ErrConflict", err)
	}
	close(hold)
	f.await(working)
	if _, err := f.DeleteRun(t.Context(), f.org, working.Run.ID); err != nil {
		t.Error(err)
	}
	if _, err := f.RunByID(t.Context(), f.org, working.Run.ID); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("the deleted run: got %v, want ErrNotFound", err)
	}
	if last := f.messages()[len(f.messages())-1]; line(last) != "assistant: Slow." {
		t.Errorf("the deleted run's answer is gone; the last message is %q", line(last))
	}
}

func TestStepsAreListedAndJudged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	run, other := f.do(f.request("Hello")), f.do(f.request("Again"))
	steps, err := f.Steps(t.Context(), f.org, loop.StepFilter{RunID: run.ID}, db.Page{})
	if err != nil || len(steps) != 1 {
		t.Fatalf("got %d steps (%v), want 1", len(steps), err)
	}
	id := steps[0].ID
	if _, err := f.SetFeedback(t.Context(), f.org, "step-none", new("positive"), nil); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("judge no step: got %v, want ErrNotFound", err)
	}
	s, err := f.SetFeedback(t.Context(), f.org, id, new("positive"), []string{"x"})
	if err != nil || *s.Feedback != "positive" || !slices.Equal(s.Tags, []string{"x"}) {
		t.Errorf("judged: got %+v (%v)", s, err)
	}
	for name, c := range map[string]struct {
		filter loop.StepFilter
		want   int
	}{
		"all":                   {loop.StepFilter{}, 2},
		"judged":                {loop.StepFilter{HasFeedback: new(true)}, 1},
		"not judged":            {loop.StepFilter{HasFeedback: new(false)}, 1},
		"good":                  {loop.StepFilter{Feedback: "positive"}, 1},
		"bad":                   {loop.StepFilter{Feedback: "negative"}, 0},
		"tagged":                {loop.StepFilter{Tags: []string{"x", "y"}}, 1},
		"of a model":            {loop.StepFilter{Model: "m"}, 2},
		"of another model":      {loop.StepFilter{Model: "n"}, 0},
		"of the agent":          {loop.StepFilter{AgentID: f.agent.ID}, 2},
		"from the first's time": {loop.StepFilter{From: &steps[0].CreatedAt}, 2},
		"to the first's time":   {loop.StepFilter{To: &steps[0].CreatedAt}, 1},
	} {
		if list, err := f.Steps(t.Context(), f.org, c.filter, db.Page{}); err != nil || len(list) != c.want {
			t.Errorf("%s: got %d steps (%v), want %d", name, len(list), err, c.want)
		}
	}
	if s, err = f.SetFeedback(t.Context(), f.org, id, nil, nil); err != nil || s.Feedback != nil ||
		!slices.Equal(s.Tags, []string{"x"}) {
		t.Errorf("no longer judged: got %+v (%v)", s, err)
	}
	first, err := f.FirstSteps(t.Context(), f.org, []string{run.ID, other.ID, "run-none"})
	if err != nil || len(first) != 2 || first[run.ID] != id {
		t.Errorf("got the first steps %v (%v), want that of %s to be %s", first, err, run.ID, id)
	}
}
