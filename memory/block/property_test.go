package block_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/memory/block"
)

// edits are the edits of the tools, on any value.
var edits = map[string]func(t *rapid.T, value string) (string, error){
	"append": func(t *rapid.T, value string) (string, error) {
		return block.Append(value, word.Draw(t, "content")), nil
	},
	"replace all": func(t *rapid.T, value string) (string, error) {
		return block.ReplaceAll("b", value, word.Draw(t, "old"), word.Draw(t, "new"))
	},
	"replace once": func(t *rapid.T, value string) (string, error) {
		return block.ReplaceOnce("b", value, word.Draw(t, "old"), word.Draw(t, "new"))
	},
	"insert": func(t *rapid.T, value string) (string, error) {
		return block.Insert(value, word.Draw(t, "text"), rapid.IntRange(-1, 3).Draw(t, "line"))
	},
	"rethink": func(t *rapid.T, _ string) (string, error) { return word.Draw(t, "memory"), nil },
	"patch": func(t *rapid.T, value string) (string, error) {
		p, err := block.ParsePatch("b", "-"+word.Draw(t, "old")+"\n+"+word.Draw(t, "new"))
		if err != nil {
			return "", err
		}
		return p[0].Apply(value)
	},
}

var word = rapid.SampledFrom([]string{"a", "b", "a\nb", "\tb", "12→ a", "}{", "</value>", "é", ""})

// An edit that is undone and made again gives the same bytes. An edit that fails changes nothing.
func TestAnEditIsUndoneAndMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.create(block.New{Label: "b"})
	agent := w.agent(b)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"append", "replace all", "replace once", "insert", "rethink", "patch"}).Draw(t,
			"edit")
		start := strings.Join(rapid.SliceOfN(word, 0, 3).Draw(t, "lines"), "\n")
		before, err := w.store.Update(context.Background(), w.org, block.Target{ID: b.ID, Author: "op"},
			block.Update{Value: &start})
		if err != nil {
			t.Fatal(err)
		}
		var made string
		after, err := w.store.Edit(context.Background(), w.org, agent, "b", func(value string) (string, error) {
			var err error
			made, err = edits[name](t, value)
			return made, err
		})
		if errors.Is(err, db.ErrInvalid) {
			if stored, err := w.store.Block(context.Background(), w.org, b.ID); err != nil || stored.Value != start ||
				stored.Version != before.Version {
				t.Fatalf("a %s that failed left %q at version %d, %v; want %q", name, stored.Value, stored.Version, err, start)
			}
			return
		}
		if err != nil || after.Value != made {
			t.Fatalf("%s of %q: got %q, %v, want %q", name, start, after.Value, err, made)
		}
		undone, err := w.store.Restore(context.Background(), w.org, block.Target{ID: b.ID, Author: "op"}, before.Version)
		if err != nil || undone.Value != start {
			t.Fatalf("undone: got %q, %v, want %q", undone.Value, err, start)
		}
		again, err := w.store.Edit(context.Background(), w.org, agent, "b", func(string) (string, error) { return made, nil })
		if err != nil || again.Value != after.Value {
			t.Fatalf("made again: got %q, %v, want %q", again.Value, err, after.Value)
		}
	})
}

// If many requests attach and detach a block at the same time, it is attached once or not at all in the end, and the
// agent's events show which.
func TestAttachAndDetachRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.create(block.New{Label: "a", Value: "1"}), w.create(block.New{Label: "a", Value: "2"})
	agent := w.agent()
	var group errgroup.Group
	for i := range 48 {
		b := []block.Block{one, two}[i%2]
		group.Go(func() error {
			do := []func(context.Context, db.Org, string, string) error{w.store.Attach, w.store.Detach}[i/2%2]
			if err := do(context.Background(), w.org, agent, b.ID); err != nil && !errors.Is(err, db.ErrConflict) &&
				!errors.Is(err, db.ErrNotFound) {
				return err
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	attached := 0
	for _, e := range w.events(agent) {
		if attached += map[string]int{"block_attached": 1, "block_detached": -1}[e]; attached < 0 || attached > 1 {
			t.Fatalf("after %s the agent would have %d blocks of one label", e, attached)
		}
	}
	if blocks, err := w.store.OfAgent(t.Context(), w.org, agent); err != nil || len(blocks) != attached {
		t.Errorf("the agent has %d blocks, %v; its events say %d", len(blocks), err, attached)
	}
}
