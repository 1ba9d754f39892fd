package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// work says some calls of a tool, each with a long result. The results stand at the positions 4, 6, 8, ….
func (k *kept) work(calls int) {
	k.Helper()
	drafts := []recall.Draft{{Role: recall.User, Content: []recall.Part{{Type: recall.Text, Text: "Read all files."}}}}
	for i := range calls {
		id := fmt.Sprint("call_", i)
		drafts = append(drafts,
			recall.Draft{Role: recall.Assistant, Content: []recall.Part{{Type: recall.ToolCall, CallID: id, Name: "read",
				Input: fmt.Sprintf(`{"path":"%d.go"}`, i)}}},
			recall.Draft{Role: recall.Tool, Content: []recall.Part{{Type: recall.ToolReturn, CallID: id,
				Text: strings.Repeat(fmt.Sprint("line of file ", i, "\n"), 200)}}})
	}
	drafts = append(drafts,
		recall.Draft{Role: recall.Assistant, Content: []recall.Part{{Type: recall.Text, Text: "I have read them."}}},
		recall.Draft{Role: recall.User, Content: []recall.Part{{Type: recall.Text, Text: "Thanks."}}})
	if _, err := k.store.Recall.Append(k.Context(), k.org, k.agent, recall.DefaultConversation, drafts); err != nil {
		k.Fatal(err)
	}
}

func (k *kept) load() clip.View {
	k.Helper()
	v, err := k.store.LoadView(k.Context(), k.org, k.conversation(), store.PromptOverhead{Window: 8000, Tokens: 10})
	if err != nil {
		k.Fatal(err)
	}
	return v
}

// prune commits edits of a policy.
func (k *kept) prune(edits ...clip.Edit) store.Compaction {
	k.Helper()
	before := k.load()
	after := before
	after.Edits = clip.MergeEdits(before.Edits, edits)
	made, err := k.store.Prune(k.Context(), k.org, k.conversation(), plan.Pruning{Policy: "p", Mode: plan.SlidingWindow,
		Edits: edits, Before: before, After: after, Asked: plan.Asked{Calls: 2, PromptTokens: 30, OutputTokens: 4}})
	if err != nil {
		k.Fatal(err)
	}
	return made
}

func stub(position int) clip.Edit {
	return clip.Edit{Position: position, Kind: clip.Stub, Step: "stubs"}
}

func shown(position, chars int) clip.Edit {
	return clip.Edit{Position: position, Kind: clip.Head, Chars: chars, Step: "heads"}
}

// edits checks the edits of the view.
func (k *kept) edits(when string, want ...clip.Edit) {
	k.Helper()
	if got := k.load().Edits; len(got)+len(want) > 0 && !cmp.Equal(got, want) {
		k.Errorf("%s: the edits are %+v, want %+v", when, got, want)
	}
}

// A pruning hides no message. It stores its steps and what they save, and leaves the trigger and the warning alone.
func TestAPruningIsStored(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.work(3)
	c := k.conversation()
	if err := k.store.Recall.RecordUsage(t.Context(), k.org, c.Key, c.Version,
		recall.Usage{Fixed: 5, Settled: 6, Warned: true}); err != nil {
		t.Fatal(err)
	}
	made := k.prune(stub(4), shown(6, 10))
	if made.Trigger != plan.Pruned || made.Policy == nil || *made.Policy != "p" || len(made.Steps) != 2 ||
		made.ModelCalls != 2 || made.PromptTokens != 30 || made.OutputTokens != 4 || made.Summary != nil || made.How != nil ||
		made.MessagesBefore != made.MessagesAfter {
		t.Errorf("the pruning is %+v", made)
	}
	saved := made.Steps[0].Tokens + made.Steps[1].Tokens
	if saved <= 0 || made.TokensBefore-made.TokensAfter != saved {
		t.Errorf("from %d to %d tokens, by steps that save %d", made.TokensBefore, made.TokensAfter, saved)
	}
	after := k.conversation()
	if after.Fixed != 5 || after.Settled != 6 || !after.Warned || after.Version != c.Version+1 ||
		after.HiddenTokens <= c.HiddenTokens {
		t.Errorf("the usage is %+v, in version %d with %d hidden tokens", after.Usage, after.Version, after.HiddenTokens)
	}
	if _, err := k.store.Latest(t.Context(), k.org, after); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("the latest compaction, after a pruning alone: %v, want ErrNotFound", err)
	}
}

// An edit that loses something is not stored.
func TestAPruningLosesNothing(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.work(1)
	v := k.load()
	after := v
	after.Messages = v.Messages[1:]
	_, err := k.store.Prune(t.Context(), k.org, k.conversation(), plan.Pruning{Policy: "p", Before: v, After: after})
	if _, is := errors.AsType[*plan.Violation](err); !is || k.conversation().Version != 0 {
		t.Errorf("got %v, and version %d; want a Violation and no change", err, k.conversation().Version)
	}
}

// Reverting a pruning shows its parts as before it. Later edits that show less of a part stay. Its edits are known
// from then on, so that they are not made again.
func TestAPruningIsReverted(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.work(3)
	first := k.prune(shown(4, 100), shown(6, 100))
	second := k.prune(shown(4, 50), shown(8, 100))
	k.edits("after both", shown(4, 50), shown(6, 100), shown(8, 100))
	k.revert(second)
	k.edits("the second reverted", shown(4, 100), shown(6, 100))
	third := k.prune(stub(6))
	k.revert(first)
	k.edits("the first reverted", stub(6))
	if kept, err := k.store.KeptWhole(t.Context(), k.org, k.conversation()); err != nil || !cmp.Equal(kept,
		[]clip.Edit{shown(4, 100), shown(6, 100), shown(4, 50), shown(8, 100)}) {
		t.Errorf("the reverted edits are %+v, %v", kept, err)
	}
	k.revert(third)
	k.edits("all reverted", shown(6, 100))
	if _, err := k.store.Restored(t.Context(), k.org, third); !errors.Is(err, db.ErrConflict) {
		t.Errorf("a second reversal: got %v, want ErrConflict", err)
	}
}

// If a view has none of a pruning's edits any more, there is nothing to revert.
func TestAPruningThatIsGoneIsNotReverted(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.work(2)
	made := k.prune(shown(4, 100))
	k.prune(stub(4))
	if _, err := k.store.Restored(t.Context(), k.org, made); !errors.Is(err, db.ErrConflict) ||
		!strings.Contains(err.Error(), "none of its edits") {
		t.Errorf("got %v, want ErrConflict", err)
	}
}

// The reversal of a compaction keeps edits that policies made since, where they show less.
func TestAReversalKeepsLaterEdits(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.work(4)
	k.prune(shown(4, 100), stub(6))
	ch := change(3, "They read.")
	ch.Summary.To, ch.Edits = 2, []clip.Edit{shown(4, 100), stub(6)}
	made := k.commit(k.conversation(), ch)
	k.prune(shown(4, 10), stub(8))
	k.revert(k.prune(stub(10)))
	k.revert(made)
	k.edits("the compaction reverted", shown(4, 10), stub(6), stub(8))
}

// The view at an earlier message is found for each of many prunings, although only some of their rows store all edits.
func TestViewsBeforePrunings(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	const prunings = store.MaxPruningsSince + 2
	k.work(2)
	want := map[int]clip.Edit{} // by the position that was the last before a pruning
	for i := range prunings {
		want[k.conversation().Messages] = shown(4, 1_001-i)
		k.prune(shown(4, 1_000-i))
		k.say("more")
	}
	c := k.conversation()
	for position, edit := range want {
		view, err := k.store.ViewAt(t.Context(), k.org, c, position)
		var edits []clip.Edit
		if err == nil && len(view.Clipped) > 0 {
			err = json.Unmarshal(view.Clipped, &edits)
		}
		if first := edit.Chars == 1_001; err != nil || first && len(edits) > 0 ||
			!first && !cmp.Equal(edits, []clip.Edit{edit}) {
			t.Errorf("before the pruning after position %d: the edits are %+v, %v, want %+v", position, edits, err, edit)
		}
	}
	if now, err := k.store.ViewAt(t.Context(), k.org, c, c.Messages); err != nil || now.Version != c.Version {
		t.Errorf("the view now: %+v, %v", now, err)
	}
	whole, err := db.One[int](t.Context(), k.pool, `
		SELECT count(*) FROM compactions WHERE org = $1 AND NOT before ? 'since'`, k.org)
	if err != nil || whole != 2 {
		t.Errorf("%d rows store all edits, %v; want the first, and one after %d", whole, err, store.MaxPruningsSince)
	}
	if err := db.Exec(t.Context(), k.pool, `DELETE FROM compactions WHERE org = $1 AND frame = 2`, k.org); err != nil {
		t.Fatal(err)
	}
	third := 2*2 + 5 // the position before the third pruning
	if _, err := k.store.ViewAt(t.Context(), k.org, c, third); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("without the row of the second pruning, the view before the third: %v, want ErrNotFound", err)
	}
}
