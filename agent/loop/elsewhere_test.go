package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/recall"
)

// stopped runs a loop, has it start a run, and stops it once its model was asked n times.
func (f *fixture) stopped(r loop.Request, n int) loop.Started {
	f.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	config := f.config
	config.Server += "-stopped"
	l := loop.New(config)
	var running sync.WaitGroup
	running.Go(func() { l.Run(ctx, nil) })
	s, err := l.Start(f.Context(), f.org, r)
	if err != nil {
		f.Fatal(err)
	}
	f.model.Await(f.TB, n)
	cancel()
	running.Wait()
	if _, err := l.Start(f.Context(), f.org, f.request("late")); err == nil {
		f.Error("a server that has stopped starts a run")
	}
	return s
}

// A run of a server that is gone goes on here behind its last stored step. Its first client is told that it goes on.
func TestARunOfAServerThatIsGoneGoesOn(t *testing.T) {
	t.Parallel()
	for _, background := range []bool{false, true} {
		f := newFixture(t, &agent.Settings{Tools: []string{insert}})
		f.model.Says(callOf("c1", insert, content), modeltest.Answer{Text: "Never.", Wait: make(chan struct{})})
		r := f.request("Hello")
		r.Background = background
		s := f.stopped(r, 2)
		events, err := s.Next(t.Context(), 0, patience)
		if last := events[len(events)-1]; err != nil || last.End == nil || last.End.Failure == nil ||
			last.End.Failure.Type != loop.Interrupted || !strings.Contains(last.End.Failure.Text, s.Run.ID) {
			t.Errorf("its client got %+v (%v)", events, err)
		}
		f.Adopt(t.Context(), f.org)
		run := f.awaitRun(s.Run.ID)
		if run.Status != loop.Completed || *run.StopReason != loop.EndTurn {
			t.Errorf("got %+v", run)
		}
		if n := f.archived(); n != 1 {
			t.Errorf("%d passages are stored, want 1", n)
		}
		var roles []recall.Role
		for _, m := range f.messages() {
			roles = append(roles, m.Role)
		}
		if want := []recall.Role{recall.User, recall.Assistant, recall.Tool, recall.Assistant}; !slices.Equal(want, roles) {
			t.Errorf("got %q, want %q", roles, want)
		}
	}
}

// awaitRun waits until a run that this server took over has ended.
func (f *fixture) awaitRun(id string) loop.Run {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), patience)
	defer cancel()
	for {
		run, err := f.AwaitEnd(ctx, f.org, id)
		if err != nil {
			f.Fatal(err)
		}
		if run.Status != loop.Running {
			return run
		}
	}
}

// Only runs whose server is gone are taken over.
func TestARunAtWorkIsNotTakenOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	hold := make(chan struct{})
	f.model.Says(modeltest.Answer{Text: "Slow.", Wait: hold})
	s := f.start(f.request("Hello"))
	f.model.Await(t, 1)
	f.Adopt(t.Context(), f.org)
	close(hold)
	f.checkEnd(f.await(s), loop.Completed, loop.EndTurn)
	if n := len(f.model.Requests()); n != 1 {
		t.Errorf("the model was asked %d times, want once", n)
	}
}

// Clients of a background run read its items from any server, from any number on.
func TestItemsOfABackgroundRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, &agent.Settings{Tools: []string{insert}})
	f.model.Says(callOf("c1", insert, content), modeltest.Answer{Text: "Done."})
	r := f.request("Hello")
	r.Background, r.Options.StreamTokens = true, true
	s := f.start(r)
	f.await(s)
	items, ended, err := f.Items(t.Context(), f.org, s.Run.ID, 0, 1000)
	if err != nil || !ended {
		t.Fatalf("got ended %t (%v)", ended, err)
	}
	var says []string
	for i, item := range items {
		var shown struct {
			Seq  int64  `json:"seq"`
			Says string `json:"says"`
		}
		if err := json.Unmarshal(item.Item, &shown); err != nil {
			t.Fatal(err)
		}
		if item.Seq != int64(i+1) || shown.Seq != item.Seq {
			t.Errorf("the item %d has the numbers %d and %d", i, item.Seq, shown.Seq)
		}
		if n := len(says); n > 0 && strings.HasPrefix(shown.Says, "delta") && strings.HasPrefix(says[n-1], "delta") {
			says[n-1] += strings.TrimPrefix(shown.Says, "delta ")
			continue
		}
		says = append(says, shown.Says)
	}
	want := []string{"delta " + content, "assistant", "tool", "delta Done.", "assistant", "end end_turn"}
	if diff := cmp.Diff(want, says); diff != "" {
		t.Errorf("the items (-want +got):\n%s", diff)
	}
	last, ended, err := f.Items(t.Context(), f.org, s.Run.ID, int64(len(items)-1), 1)
	if err != nil || ended || len(last) != 1 || last[0].Seq != int64(len(items)) {
		t.Errorf("the last item: got %+v, ended %t (%v)", last, ended, err)
	}
	if rest, ended, err := f.Items(t.Context(), f.org, s.Run.ID, int64(len(items)), 1); err != nil || !ended ||
		len(rest) != 0 {
		t.Errorf("after the last: got %+v, ended %t (%v)", rest, ended, err)
	}
}

// refuseText makes the model refuse prompts that contain a text, with a status and an error message.
func (f *fixture) refuseText(text string, status int, message string) {
	f.model.Reply = func(a modeltest.Asked) modeltest.Answer {
		if strings.Contains(string(a.Body), text) {
			return modeltest.Answer{Status: status, Text: fmt.Sprintf(`{"error":{"message":%q}}`, message)}
		}
		return modeltest.Answer{Text: "Done."}
	}
}

// A message that the provider refuses leaves the model's view, so that the conversation goes on.
func TestARefusedMessageLeavesTheView(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.refuseText("forbidden", http.StatusBadRequest, "content_policy_violation: this was flagged")
	f.checkEnd(f.do(f.request("Hello")), loop.Completed, loop.EndTurn)
	f.checkEnd(f.do(f.request("Something forbidden")), loop.Failed, loop.ModelError)
	f.checkEnd(f.do(f.request("Something else")), loop.Completed, loop.EndTurn)
	var kept bool
	for _, m := range f.messages() {
		kept = kept || line(m) == "user: Something forbidden"
	}
	if !kept {
		t.Error("the log has lost the refused message")
	}
}

// A prompt that is too long for the provider has the conversation compacted, and is asked again.
func TestAnOverflowIsCompacted(t *testing.T) {
	t.Parallel()
	f := newFixtureOf(t, agent.New{Name: "Ada", WindowLimit: new(32_000)})
	for i := range 20 {
		f.record(says(recall.User, fmt.Sprintf("%d: %s", i, strings.Repeat("ships sail the sea. ", 100))),
			says(recall.Assistant, "Noted."))
	}
	const most = 30_000
	f.model.Reply = func(a modeltest.Asked) modeltest.Answer {
		if len(a.Body) > most {
			return modeltest.Answer{Status: http.StatusBadRequest,
				Text: `{"error":{"code":"context_length_exceeded","message":"This model's maximum context length is exceeded"}}`}
		}
		return modeltest.Answer{Text: "Done."}
	}
	r := f.request("How many?")
	r.Options.Compactions = true
	run := f.do(r)
	f.checkEnd(run, loop.Completed, loop.EndTurn)
	asked := f.model.Requests()
	if first, last := len(asked[0].Body), len(asked[len(asked)-1].Body); first <= most || last > most {
		t.Errorf("the first prompt has %d bytes, the last %d", first, last)
	}
	summaries := 0
	for _, e := range run.events {
		if e.Message != nil && e.Message.Role == recall.Summary {
			summaries++
		}
	}
	if summaries == 0 {
		t.Error("the client was shown no summary")
	}
}
