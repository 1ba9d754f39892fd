package store_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/recall"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// kept is a store, and an organization with one agent.
type kept struct {
	*testing.T
	pool  *pgxpool.Pool
	org   db.Org
	store *store.Store
	agent string
}

func newKept(t *testing.T) *kept {
	t.Helper()
	pool, org := dbtest.Org(t)
	k := &kept{T: t, pool: pool, org: org, store: &store.Store{DB: pool, Recall: recall.New(pool, recall.Options{})}}
	id, err := db.One[string](t.Context(), pool, `
		INSERT INTO agents (org, name, agent_type, system) VALUES ($1, 'a', 'letta_v1_agent', '') RETURNING id`, org)
	if err == nil {
		err = k.store.Recall.Begin(t.Context(), org, id, "You remember.")
	}
	if err != nil {
		t.Fatal(err)
	}
	k.agent = id
	return k
}

func (k *kept) say(texts ...string) {
	k.Helper()
	var drafts []recall.Draft
	for _, text := range texts {
		drafts = append(drafts, recall.Draft{Role: recall.User, Content: []recall.Part{{Type: recall.Text, Text: text}}})
	}
	if _, err := k.store.Recall.Append(k.Context(), k.org, k.agent, recall.DefaultConversation, drafts); err != nil {
		k.Fatal(err)
	}
}

func (k *kept) conversation() recall.Conversation {
	k.Helper()
	c, err := k.store.Recall.Conversation(k.Context(), k.org, k.agent, "")
	if err != nil {
		k.Fatal(err)
	}
	return c
}

func (k *kept) view() (summary string, texts []string) {
	k.Helper()
	v, err := k.store.LoadView(k.Context(), k.org, k.conversation(), store.PromptOverhead{Window: 8000, Tokens: 10})
	if err != nil {
		k.Fatal(err)
	}
	if v.Summary != nil {
		summary = fmt.Sprintf("%s [%d-%d]", v.Summary.Text, v.Summary.From, v.Summary.To)
	}
	for _, m := range v.Messages {
		texts = append(texts, m.Content[0].Text)
	}
	return summary, texts
}

// change returns a change that hides everything before position first.
func change(first int, text string) store.Change {
	return store.Change{Trigger: "manual", Mode: plan.SlidingWindow, Window: 8000, FirstVisible: first,
		Before: 900, After: 100,
		MessagesBefore: 9, MessagesAfter: 3,
		Summary: &clip.Summary{Text: text, From: 2, To: first - 1, FromSeq: 3, ToSeq: int64(first),
			How: clip.Extracted}}
}

func (k *kept) commit(c recall.Conversation, ch store.Change) store.Compaction {
	k.Helper()
	made, err := k.store.Commit(k.Context(), k.org, c, ch)
	if err != nil {
		k.Fatal(err)
	}
	return made
}

// Messages said while a summary is made stay in view. A compaction has an event. Reverting it brings back what it hid.
func TestACompactionIsKeptAndReverted(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.say("one", "two", "three")
	read := k.conversation()
	k.say("four") // while a model is thinking
	first := k.commit(read, change(4, "They counted."))
	if summary, view := k.view(); summary != "They counted. [2-3]" || !cmp.Equal(view, []string{"three", "four"}) {
		t.Errorf("the view is %q, %v", summary, view)
	}
	if first.Summary == nil || *first.Summary != "They counted." || *first.ToPosition != 3 ||
		first.ConversationID != nil || first.Model != nil {
		t.Errorf("the compaction is %+v", first)
	}
	k.say("five")
	second := k.commit(k.conversation(), change(6, "They counted on."))
	if summary, view := k.view(); summary != "They counted on. [2-5]" || !cmp.Equal(view, []string{"five"}) {
		t.Errorf("compacted twice, the view is %q, %v", summary, view)
	}
	list, err := k.store.Compactions(t.Context(), k.org, k.agent, "", db.Page{Limit: 10, Ascending: true})
	if err != nil || len(list) != 2 || list[0].ID != first.ID || list[1].ID != second.ID {
		t.Errorf("the compactions are %+v, %v", list, err)
	}
	if _, err := k.store.Restored(t.Context(), k.org, first); !errors.Is(err, db.ErrConflict) {
		t.Errorf("the first cannot be reverted before the second: %v", err)
	}
	k.revert(second)
	if _, err := k.store.Restored(t.Context(), k.org, second); !errors.Is(err, db.ErrConflict) ||
		!strings.Contains(err.Error(), "reverted already") {
		t.Errorf("reverted by who read it before, with an older one left: %v", err)
	}
	if summary, view := k.view(); summary != "They counted. [2-3]" || !cmp.Equal(view, []string{"three", "four", "five"}) {
		t.Errorf("reverted once, the view is %q, %v", summary, view)
	}
	k.revert(first)
	if summary, view := k.view(); summary != "" || !cmp.Equal(view, []string{"one", "two", "three", "four", "five"}) {
		t.Errorf("reverted twice, the view is %q, %v", summary, view)
	}
	again, err := k.store.Compaction(t.Context(), k.org, first.ID)
	if err != nil || again.RevertedAt == nil {
		t.Fatalf("the first, reverted: %+v, %v", again, err)
	}
	for what, known := range map[string]store.Compaction{"reverted a second time": again,
		"by who read it before": first} {
		if _, err := k.store.Restored(t.Context(), k.org, known); !errors.Is(err, db.ErrConflict) ||
			!strings.Contains(err.Error(), "reverted already") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func (k *kept) revert(c store.Compaction) {
	k.Helper()
	restored, err := k.store.Restored(k.Context(), k.org, c)
	if err == nil {
		_, err = k.store.Revert(k.Context(), k.org, c, restored, 100)
	}
	if err != nil {
		k.Fatal(err)
	}
}

// If servers compact the same view at the same time, only one does so, and the agent's events contain it once.
func TestAViewIsCompactedOnce(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.say("one", "two", "three")
	read := k.conversation()
	results := make([]error, 16)
	var wait sync.WaitGroup
	for i := range results {
		wait.Go(func() { _, results[i] = k.store.Commit(k.Context(), k.org, read, change(3, fmt.Sprint("summary ", i))) })
	}
	wait.Wait()
	succeeded := 0
	for _, err := range results {
		if err == nil {
			succeeded++
		} else if !errors.Is(err, db.ErrConflict) {
			t.Error(err)
		}
	}
	events, err := db.One[int](t.Context(), k.pool, `SELECT count(*) FROM events WHERE agent_id = $1 AND type = `+
		`'compaction'`, k.agent)
	if c := k.conversation(); err != nil || succeeded != 1 || c.Version != 1 || c.Messages != 5 || events != 1 {
		t.Errorf("%d were kept, the frame is %d, there are %d messages and %d events, %v; want 1, 1, 5 and 1", succeeded,
			c.Version, c.Messages, events, err)
	}
}

// Clips stay with the view, and disappear with their parts.
func TestClipsAreKept(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.say("one", "two")
	ch := change(1, "")
	ch.Summary, ch.Edits = nil, []clip.Edit{{Position: 2, Part: 0, Chars: 500}}
	made := k.commit(k.conversation(), ch)
	v, err := k.store.LoadView(t.Context(), k.org, k.conversation(), store.PromptOverhead{Window: 8000, Tokens: 10})
	if err != nil || !cmp.Equal(v.Edits, ch.Edits) || v.Summary != nil || made.Summary != nil || made.How != nil {
		t.Errorf("the clips are %v, the summary %v, %v; the compaction is %+v", v.Edits, v.Summary, err, made)
	}
}

// A compaction keeps the tokens that a model took, and why it did not write the summary, whatever its provider said.
func TestWhyASummaryWasExtractedIsKept(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.say("one", "two")
	ch := change(3, "They counted.")
	ch.Summary.Why, ch.Summary.ModelCalls = "it fails (status 500: a\x00b\xff)", 2
	ch.Summary.PromptTokens, ch.Summary.OutputTokens = 1<<40, 7
	made := k.commit(k.conversation(), ch)
	if made.Why == nil || *made.Why != "it fails (status 500: ab\ufffd)" || made.ModelCalls != 2 ||
		made.PromptTokens != 1<<40 || made.OutputTokens != 7 {
		t.Errorf("the compaction is %+v, and says %q", made, *made.Why)
	}
}

// After a compaction or its reversal, the trigger is disarmed at the usage that the view then has.
func TestTheTriggerIsDisarmed(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.say("one", "two", "three")
	c := k.conversation()
	if err := k.store.Recall.RecordUsage(t.Context(), k.org, c.Key, c.Version, recall.Usage{Fixed: 7, Settled: 1,
		Reported: 500, ReportedPosition: 3, Warned: true}); err != nil {
		t.Fatal(err)
	}
	made := k.commit(k.conversation(), change(4, "They counted."))
	if got, want := k.conversation().Usage, (recall.Usage{Fixed: 7, Settled: 100}); got != want {
		t.Errorf("after a compaction the usage is %+v, want %+v", got, want)
	}
	restored, err := k.store.Restored(t.Context(), k.org, made)
	if err == nil {
		_, err = k.store.Revert(t.Context(), k.org, made, restored, 321)
	}
	if got, want := k.conversation().Usage, (recall.Usage{Fixed: 7, Settled: 321}); err != nil || got != want {
		t.Errorf("after its reversal the usage is %+v, %v, want %+v", got, err, want)
	}
	pruned := newKept(t)
	pruned.work(1)
	edit := pruned.prune(stub(4))
	c = pruned.conversation()
	before := recall.Usage{Fixed: 7, Settled: 1, Warned: true}
	if err := pruned.store.Recall.RecordUsage(t.Context(), pruned.org, c.Key, c.Version, before); err != nil {
		t.Fatal(err)
	}
	pruned.revert(edit)
	if got := pruned.conversation().Usage; got != before {
		t.Errorf("after the reversal of a policy's edits the usage is %+v, want %+v", got, before)
	}
}

// The compactions of an agent are those of all its conversations; those of a conversation are only its own.
func TestCompactionsOfAConversation(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.say("one", "two", "three")
	first := k.commit(k.conversation(), change(3, "They began."))
	other, err := k.store.Recall.CreateConversation(t.Context(), k.org, k.agent, recall.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.store.Recall.Append(t.Context(), k.org, k.agent, other.ID, []recall.Draft{
		{Role: recall.User, Content: []recall.Part{{Type: recall.Text, Text: "one"}}},
		{Role: recall.User, Content: []recall.Part{{Type: recall.Text, Text: "two"}}}}); err != nil {
		t.Fatal(err)
	}
	if other, err = k.store.Recall.Conversation(t.Context(), k.org, k.agent, other.ID); err != nil {
		t.Fatal(err)
	}
	second := k.commit(other, change(3, "They began, elsewhere."))
	for of, want := range map[string]string{"": first.ID + " " + second.ID, recall.DefaultConversation: first.ID,
		other.ID: second.ID} {
		list, err := k.store.Compactions(t.Context(), k.org, k.agent, of, db.Page{Ascending: true})
		var got []string
		for _, c := range list {
			got = append(got, c.ID)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("of %q: got %q, %v, want %q", of, got, err, want)
		}
	}
	if second.ConversationID == nil || *second.ConversationID != other.ID || first.ConversationID != nil {
		t.Errorf("their conversations are %v and %v", first.ConversationID, second.ConversationID)
	}
	if _, err := k.store.Compaction(t.Context(), k.org, "compaction-none"); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("an unknown one: got %v, want ErrNotFound", err)
	}
}

// What a model saw when a message was the last is the view before the first compaction after that message.
func TestTheViewAtAMessage(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.say("one", "two", "three")
	k.commit(k.conversation(), change(3, "They began.")) // after position 4; the summary has 5
	k.say("four")
	k.commit(k.conversation(), change(4, "They went on.")) // after position 6; the summary has 7
	k.say("five")
	for position, want := range map[int]int{2: 1, 4: 1, 5: 3, 6: 3, 7: 4, 8: 4} {
		view, err := k.store.ViewAt(t.Context(), k.org, k.conversation(), position)
		if err != nil || view.FirstVisible != want {
			t.Errorf("at position %d the first visible message is %d, %v, want %d", position, view.FirstVisible, err, want)
		}
	}
}

// A copy of a conversation has the compactions that made its view, with the copy's seqs, and the policies' edits that
// were reverted. It has no other reverted compactions, and none from after the copied messages.
func TestACopyInheritsCompactions(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.work(2)
	k.commit(k.conversation(), change(3, "stays"))
	k.revert(k.prune(stub(6)))
	k.revert(k.commit(k.conversation(), change(4, "reverted")))
	k.commit(k.conversation(), change(4, "later"))
	c := k.conversation()
	copied, err := k.store.Recall.CreateConversation(t.Context(), k.org, k.agent, recall.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	later, err := db.One[int](t.Context(), k.pool, `SELECT max(after_position) FROM compactions WHERE org = $1`, k.org)
	if err != nil {
		t.Fatal(err)
	}
	copied.Messages = later
	if err := k.store.Inherit(t.Context(), k.org, c, copied, 1_000); err != nil {
		t.Fatal(err)
	}
	list, err := k.store.Export(t.Context(), k.org, copied.Key)
	if err != nil || len(list) != 2 || list[0].Trigger != store.Manual || list[1].Trigger != plan.Pruned ||
		list[1].RevertedAt == nil {
		t.Fatalf("got %+v, %v", list, err)
	}
	if k := list[0]; *k.FromPosition != 2 || *k.FromSeq != 1_002 || *k.ToSeq != 1_000+int64(*k.ToPosition) {
		t.Errorf("the copy replaces seq %d to %d", *k.FromSeq, *k.ToSeq)
	}
}
