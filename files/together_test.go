package files_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/files"
)

// sendAll stores n small files while nobody parses, then lets two begin; open lets all go on.
func (fx *fixture) sendAll(gate *gate, folder files.Folder, n int, text func(i int) string) (sent []files.File,
	open func()) {
	fx.t.Helper()
	for i := range n {
		sent = append(sent, fx.send(folder, fmt.Sprintf("%02d.txt", i), text(i), files.Suffix))
	}
	open = gate.close()
	fx.work(files.Queues())
	gate.await(fx.t, 2) // two are read at the same time
	return sent, open
}

// Small files that are committed and embedded together keep their own text, state and refusals. While the endpoint is
// down, words find them.
func TestFilesThatAreCommittedTogetherAreEachWhole(t *testing.T) {
	t.Parallel()
	e, gate := embedtest.New(t, 8), newGate()
	e.Refuse = "forbidden"
	e.Down.Store(true)
	endpoint := e.Endpoint(t)
	endpoint.FirstPause, endpoint.MaxPause = 20*time.Millisecond, 100*time.Millisecond
	fx := newIdleFixture(t, files.Options{Endpoint: endpoint, Read: gate.read})
	endpoint.Use(fx.space(e, "fake"))
	fx.poll = 50 * time.Millisecond
	folder := fx.folder("f")
	text := func(i int) string {
		line := map[bool]string{true: "forbidden\n"}[i == 5]
		return fmt.Sprintf("unique%d is here\n", i) + line + manyLines(20*i)
	}
	sent, open := fx.sendAll(gate, folder, 12, text)
	if _, err := fx.Cancel(t.Context(), fx.org, folder.ID, sent[2].ID); err != nil {
		t.Fatal(err)
	}
	open()
	agent := fx.agentWith(folder)
	for i, f := range sent {
		if i == 2 {
			continue
		}
		fx.awaitWhere(folder, f, func(f files.File) bool { return f.Status == files.Embedding })
		if got := fx.content(folder, f); got != text(i) {
			t.Errorf("file %d has the text %.100q", i, got)
		}
		fx.find(agent, fmt.Sprintf("unique%d", i))
	}
	e.Down.Store(false)
	for i, f := range sent {
		f = fx.await(folder, f)
		switch {
		case i == 2 && (f.Status != files.Failed || f.TotalChunks != 0):
			t.Errorf("the cancelled file is %+v", f)
		case i == 5 && (f.ErrorMessage == nil || !strings.Contains(*f.ErrorMessage, "get no vector")):
			t.Errorf("the file with a refused text is %+v", f)
		case i != 2 && i != 5 && (f.Status != files.Completed || f.ErrorMessage != nil || f.ChunksEmbedded != f.TotalChunks):
			t.Errorf("file %d is %+v", i, f)
		}
	}
}

// As many files open by themselves from a group committed together as from files that come one after the other.
func TestFilesThatAreCommittedTogetherOpenWhileThereIsRoom(t *testing.T) {
	t.Parallel()
	l := files.Limits{MaxOpen: 3, ViewChars: 1000}
	o, gate := limitsOf(l), newGate()
	o.Read = gate.read
	fx := newIdleFixture(t, o)
	folder := fx.folder("f")
	agent := fx.agentWith(folder)
	sent, open := fx.sendAll(gate, folder, 12, func(int) string { return "short\n" })
	open()
	for _, f := range sent {
		if f = fx.await(folder, f); f.Status != files.Completed {
			t.Errorf("got %+v", f)
		}
	}
	if open := fx.open(agent); len(open) != 3 {
		t.Errorf("the agent has %v open, want three files", open)
	}
}

// Things that arrive during the first call are done by one call, in order. If that call fails, each is done alone.
func TestThingsAreDoneTogether(t *testing.T) {
	t.Parallel()
	begun, goOn := make(chan []int), make(chan error)
	g := files.NewGathering(1, 3, func(_ context.Context, _ string, things []int) error {
		begun <- things
		return <-goOn
	})
	done := make(chan error, 5)
	do := func(thing int) { go func() { done <- g.Do(t.Context(), "key", thing) }() }
	do(1)
	if got := <-begun; !slices.Equal(got, []int{1}) {
		t.Fatalf("the first call does %v", got)
	}
	for i := 2; i <= 5; i++ {
		do(i)
		embedtest.Eventually(t, "it waits", func() bool { return g.Waiting("key") == i-1 })
	}
	failed := errors.New("failed")
	goOn <- nil
	if got := <-begun; !slices.Equal(got, []int{2, 3, 4}) {
		t.Errorf("the second call does %v, want 2 to 4", got)
	}
	goOn <- failed
	alone := []int{}
	for range 4 { // in any order
		alone = append(alone, <-begun...)
		goOn <- map[bool]error{true: failed}[alone[len(alone)-1] == 3]
	}
	slices.Sort(alone)
	if !slices.Equal(alone, []int{2, 3, 4, 5}) {
		t.Errorf("alone are done %v, want 2 to 5", alone)
	}
	errs := 0
	for range 5 {
		if err := <-done; err != nil {
			errs++
		}
	}
	if errs != 1 {
		t.Errorf("%d of 5 fail, want the one whose own call failed", errs)
	}
}
