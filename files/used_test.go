package files_test

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/files"
)

// recordUses runs RecordUses until stop is called.
func (fx *fixture) recordUses() (stop func()) {
	ctx, cancel := context.WithCancel(fx.t.Context())
	var recording sync.WaitGroup
	recording.Go(func() {
		fx.RecordUses(ctx, func(err error) { fx.t.Errorf("uses are not recorded: %v", err) })
	})
	stop = sync.OnceFunc(func() {
		cancel()
		recording.Wait()
	})
	fx.t.Cleanup(stop)
	return stop
}

// fourOpen returns a fixture with files named 0.txt to 3.txt, each with its own word, open in this order.
func fourOpen(t *testing.T) (fx *fixture, agent string) {
	fx = newFixture(t)
	folder := fx.folder("set")
	agent = fx.agentWith(folder)
	var names []string
	for i, word := range []string{"apple\n", "banana\n", "cherry\n", "damson\n"} {
		name := string(rune('0'+i)) + ".txt"
		fx.upload(folder, name, word)
		names = append(names, "set/"+name)
	}
	fx.mustOpen(agent, wide, false, names...)
	return fx, agent
}

func (fx *fixture) find(agent, text string) {
	fx.t.Helper()
	found, err := fx.Search(fx.t.Context(), fx.org, files.Of(agent), files.Query{Text: text, Limit: 1})
	if err != nil || len(found.Hits) != 1 {
		fx.t.Fatalf("search for %s: %d hits (%v)", text, len(found.Hits), err)
	}
}

// Searches are recorded in order after their answer: soon, before files are opened, and before the server ends.
func TestUsesAreRecordedAfterTheAnswer(t *testing.T) {
	t.Parallel()
	fx, agent := fourOpen(t)
	stop := fx.recordUses()
	fx.find(agent, "banana")
	fx.find(agent, "apple")
	fx.eventually("the files that were found are the last used", func() bool {
		return cmp.Equal([]string{"set/2.txt", "set/3.txt", "set/1.txt", "set/0.txt"}, fx.open(agent))
	})
	fx.find(agent, "cherry")
	if _, err := fx.Grep(t.Context(), fx.org, files.Of(agent), files.GrepQuery{Pattern: "damson"}); err != nil {
		t.Fatal(err)
	}
	stop()
	if diff := cmp.Diff([]string{"set/1.txt", "set/0.txt", "set/2.txt", "set/3.txt"}, fx.open(agent)); diff != "" {
		t.Errorf("after the end (-want +got):\n%s", diff)
	}
	fx.find(agent, "banana") // nobody records: the search records its use itself
	if diff := cmp.Diff([]string{"set/0.txt", "set/2.txt", "set/3.txt", "set/1.txt"}, fx.open(agent)); diff != "" {
		t.Errorf("without a recorder (-want +got):\n%s", diff)
	}
}

// A file that a search used is not closed by the next opening.
func TestAnOpeningKnowsTheUsesBefore(t *testing.T) {
	t.Parallel()
	fx, agent := fourOpen(t)
	fx.recordUses()
	for range 3 {
		fx.find(agent, "apple")
		fx.find(agent, "cherry")
		fx.mustOpen(agent, files.Limits{MaxOpen: 3, ViewChars: 1000}, false, "set/3.txt")
		if diff := cmp.Diff([]string{"set/0.txt", "set/2.txt", "set/3.txt"}, fx.open(agent)); diff != "" {
			t.Fatalf("open (-want +got):\n%s", diff)
		}
		fx.mustOpen(agent, wide, false, "set/2.txt", "set/1.txt", "set/0.txt", "set/3.txt")
	}
}
