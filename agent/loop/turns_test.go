package loop_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// named returns a request with an otid.
func (f *fixture) named(text, otid string) loop.Request {
	r := f.request(text)
	r.Input[0].OTID = &otid
	return r
}

func isBusy(err error, run string) bool {
	busy, is := errors.AsType[*loop.BusyError](err)
	return is && busy.RunID == run && errors.Is(err, db.ErrConflict)
}

// A conversation has one run at a time. Others of the same agent are not held up.
func TestAConversationHasOneRunAtATime(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	hold := make(chan struct{})
	f.model.Says(modeltest.Answer{Text: "Slow.", Wait: hold})
	first := f.start(f.request("Hello"))
	f.model.Await(t, 1)
	if _, err := f.Start(t.Context(), f.org, f.request("And?")); !isBusy(err, first.Run.ID) {
		t.Errorf("got %v, want a BusyError of %s", err, first.Run.ID)
	}
	if err := f.RefuseBusy(t.Context(), f.org, f.conversation()); !isBusy(err, first.Run.ID) {
		t.Errorf("refuse busy: got %v", err)
	}
	if err := f.CheckIdle(t.Context(), f.org, f.conversation().ID); !isBusy(err, first.Run.ID) {
		t.Errorf("check idle: got %v", err)
	}
	other, err := f.Recall.CreateConversation(t.Context(), f.org, f.agent.ID, recall.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	r := f.request("Hello there")
	r.Conversation = other.ID
	f.checkEnd(f.do(r), loop.Completed, loop.EndTurn)
	close(hold)
	f.await(first)
	if err := errors.Join(f.RefuseBusy(t.Context(), f.org, f.conversation()),
		f.CheckIdle(t.Context(), f.org, f.conversation().ID)); err != nil {
		t.Errorf("after the run: got %v", err)
	}
	f.checkLog("user: Hello", "assistant: Slow.")
}

// Requests wait for their turn in the order in which they came.
func TestRequestsWaitInLine(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	hold := make(chan struct{})
	f.model.Says(modeltest.Answer{Text: "Slow.", Wait: hold})
	first := f.start(f.request("0"))
	f.model.Await(t, 1)
	var waiting sync.WaitGroup
	for i, text := range []string{"1", "2", "3"} {
		waiting.Go(func() {
			s, err := f.StartInTurn(t.Context(), f.org, f.request(text), patience, patience)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				return
			}
			f.await(s)
		})
		f.awaitInLine(i + 1)
	}
	close(hold)
	f.await(first)
	waiting.Wait()
	f.checkLog("user: 0", "assistant: Slow.", "user: 1", "assistant: Done.", "user: 2", "assistant: Done.", "user: 3",
		"assistant: Done.")
	if n := f.InLine(); n != 0 {
		t.Errorf("%d requests wait at the end", n)
	}
}

// awaitInLine waits until n requests wait in line.
func (f *fixture) awaitInLine(n int) {
	f.Helper()
	for deadline := time.Now().Add(patience); f.InLine() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			f.Fatalf("%d requests wait, want %d", f.InLine(), n)
		}
	}
}

// A line has a bound, a request leaves it when its client does, and one whose patience ends is told who is at work.
func TestALineIsBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	hold := make(chan struct{})
	f.model.Says(modeltest.Answer{Text: "Slow.", Wait: hold})
	first := f.start(f.request("Hello"))
	f.model.Await(t, 1)
	_, err := f.StartInTurn(t.Context(), f.org, f.request("impatient"), time.Nanosecond, patience)
	if !isBusy(err, first.Run.ID) {
		t.Errorf("an impatient request: got %v", err)
	}
	ctx, leave := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range 16 {
		waiting.Go(func() {
			if _, err := f.StartInTurn(ctx, f.org, f.request("waits"), patience, patience); err == nil {
				t.Error("a request that its client left has begun")
			}
		})
	}
	f.awaitInLine(16)
	_, err = f.StartInTurn(t.Context(), f.org, f.request("too many"), patience, patience)
	if !isBusy(err, first.Run.ID) {
		t.Errorf("the 17th request: got %v", err)
	}
	leave()
	waiting.Wait()
	close(hold)
	f.await(first)
	f.checkLog("user: Hello", "assistant: Slow.")
}

// A request that the working run was made from attaches to that run.
func TestTheSameRequestAttachesToItsRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	hold := make(chan struct{})
	f.model.Says(modeltest.Answer{Text: "Slow.", Wait: hold})
	first := f.start(f.named("Hello", "o1"))
	f.model.Await(t, 1)
	same, err := f.StartInTurn(t.Context(), f.org, f.named("Hello", "o1"), 0, patience)
	if err != nil || same.Run.ID != first.Run.ID {
		t.Fatalf("got the run %q (%v), want %q", same.Run.ID, err, first.Run.ID)
	}
	if _, err := f.StartInTurn(t.Context(), f.org, f.named("Hello", "o2"), 0, patience); !isBusy(err, first.Run.ID) {
		t.Errorf("another otid: got %v", err)
	}
	if _, err := f.StartInTurn(t.Context(), f.org, f.request("Hello"), 0, patience); !isBusy(err, first.Run.ID) {
		t.Errorf("no otid: got %v", err)
	}
	close(hold)
	if a, b := f.await(first), f.await(same); a.ID != b.ID {
		t.Errorf("got the ends of %s and %s", a.ID, b.ID)
	}
}

// A request sent again by its otids gets its run; nothing is stored, and the model is not asked.
func TestARequestSentAgainGetsItsRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	first := f.do(f.named("Hello", "o1"))
	again := f.do(f.named("Hello", "o1"))
	if again.ID != first.ID || len(f.model.Requests()) != 1 {
		t.Errorf("got the run %s after %d requests to the model, want %s after one", again.ID, len(f.model.Requests()),
			first.ID)
	}
	var texts []string
	for _, e := range again.events {
		if e.Message != nil {
			texts = append(texts, e.Message.Text())
		}
	}
	if !slices.Equal(texts, []string{"Done."}) {
		t.Errorf("got the messages %q", texts)
	}
	second := f.do(f.named("Again", "o2"))
	for name, c := range map[string]struct {
		input []recall.Draft
		want  string
	}{
		"other words": {f.named("Bye", "o1").Input, `otid`},
		"a new message beside a known one": {append(f.named("Hello", "o1").Input, says(recall.User, "New")),
			`The message with the otid "o1" was sent before, without others of this request: nothing is stored`},
		"messages of two requests": {append(f.named("Hello", "o1").Input, f.named("Again", "o2").Input...),
			`The otids "o1" and "o2" belong to messages of two earlier requests`},
	} {
		r := f.request("")
		r.Input = c.input
		_, err := f.Start(t.Context(), f.org, r)
		if !errors.Is(err, db.ErrConflict) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	if _, err := f.DeleteRun(t.Context(), f.org, second.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Start(t.Context(), f.org, f.named("Again", "o2")); !errors.Is(err, db.ErrConflict) ||
		!strings.Contains(err.Error(), "was deleted") {
		t.Errorf("a deleted run: got %v", err)
	}
	f.checkLog("user: Hello", "assistant: Done.", "user: Again", "assistant: Done.")
}

// A request whose run failed goes on where that stopped when it is sent again, by its otid or its words.
func TestAFailedRequestSentAgainGoesOn(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]func(f *fixture) loop.Request{
		"by its otid":  func(f *fixture) loop.Request { return f.named("Hello", "o1") },
		"by its words": func(f *fixture) loop.Request { return f.request("Hello") },
	} {
		f := newFixture(t, nil)
		f.model.Says(modeltest.Answer{Status: http.StatusUnauthorized, Text: "{}"})
		failed := f.do(request(f))
		f.checkEnd(failed, loop.Failed, loop.ModelError)
		again := f.do(request(f))
		f.checkEnd(again, loop.Completed, loop.EndTurn)
		if again.ID == failed.ID {
			t.Errorf("%s: the failed run has no successor", name)
		}
		f.checkLog("user: Hello", "assistant: Done.")
	}
	f := newFixture(t, nil)
	f.model.Says(modeltest.Answer{Status: http.StatusUnauthorized, Text: "{}"})
	f.do(f.request("Hello"))
	f.do(f.request("Something else"))
	f.checkLog("user: Hello", "user: Something else", "assistant: Done.")
}
