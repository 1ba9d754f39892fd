package store_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Compactions are exported from the oldest on, and restored with everything that they had.
func TestCompactionsAreExportedAndRestored(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.work(2)
	k.commit(k.conversation(), change(4, "They began."))
	k.prune(stub(6))
	exported, err := k.store.Export(t.Context(), k.org, k.conversation().Key)
	if err != nil || len(exported) != 2 || exported[0].Trigger != store.Manual || exported[1].Trigger != plan.Pruned {
		t.Fatalf("got %+v, %v", exported, err)
	}
	if err := db.Tx(t.Context(), k.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `DELETE FROM compactions WHERE org = $1`, k.org); err != nil {
			return err
		}
		for _, c := range exported {
			if err := k.store.With(tx).RestoreCompaction(t.Context(), k.org, c); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	restored, err := k.store.Export(t.Context(), k.org, k.conversation().Key)
	if diff := cmp.Diff(exported, restored); err != nil || diff != "" {
		t.Errorf("%v; restored otherwise (-before +after):\n%s", err, diff)
	}
}

// A compaction that Commit could not have made is not restored.
func TestCompactionsThatAreNotRestored(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.work(2)
	k.commit(k.conversation(), change(4, "They began."))
	k.prune(stub(6))
	exported, err := k.store.Export(t.Context(), k.org, k.conversation().Key)
	if err != nil {
		t.Fatal(err)
	}
	wrong := clip.How("guessed")
	for name, c := range map[string]struct {
		of     int // index in exported
		change func(*store.Portable)
	}{
		"its view before is no JSON":           {0, func(p *store.Portable) { p.Before = json.RawMessage(`{`) }},
		"its view before begins at nothing":    {0, func(p *store.Portable) { p.Before = json.RawMessage(`{}`) }},
		"its trigger is unknown":               {0, func(p *store.Portable) { p.Trigger = "boredom" }},
		"its mode is unknown":                  {0, func(p *store.Portable) { p.Mode = "none" }},
		"its summary was made in no known way": {0, func(p *store.Portable) { p.How = &wrong }},
		"its version is 0":                     {0, func(p *store.Portable) { p.Version = 0 }},
		"it came after a negative position":    {0, func(p *store.Portable) { p.AfterPosition = -1 }},
		"its steps are no list":                {1, func(p *store.Portable) { p.Steps = json.RawMessage(`7`) }},
		"its edits are no list":                {1, func(p *store.Portable) { p.Edits = json.RawMessage(`7`) }},
		"a pruning has no edits":               {1, func(p *store.Portable) { p.Edits = nil }},
		"a compaction has a policy's edits":    {0, func(p *store.Portable) { p.Edits = exported[1].Edits }},
	} {
		p := exported[c.of]
		p.ID = "compaction-new"
		c.change(&p)
		if err := k.store.RestoreCompaction(t.Context(), k.org, p); !errors.Is(err, db.ErrInvalid) ||
			!strings.Contains(err.Error(), "compaction-new") {
			t.Errorf("%s: got %v, want ErrInvalid that names it", name, err)
		}
	}
}

// A file's view is checked before it is restored.
func TestViewsOfFilesAreChecked(t *testing.T) {
	t.Parallel()
	said := recall.PortableMessage{ID: "message-1", Role: recall.User}
	drafted := recall.Draft{Role: recall.Summary, Content: []recall.Part{{Type: recall.Text, Text: "S"}}}
	if err := store.MarkSummary(&drafted, clip.Summary{From: 2, To: 3, FromSeq: 12, ToSeq: 13}); err != nil {
		t.Fatal(err)
	}
	marked := recall.PortableMessage{ID: "message-2", Role: recall.Summary, Content: drafted.Content}
	sum, err := store.SummaryOf(recall.Message{Content: drafted.Content})
	if err != nil || sum.From != 2 || sum.To != 3 || sum.FromSeq != 12 || sum.ToSeq != 13 || sum.How != clip.Whole {
		t.Errorf("the marked summary is %+v, %v", sum, err)
	}
	bare := recall.PortableMessage{ID: "message-3", Role: recall.Summary, Content: []recall.Part{{Type: recall.Text}}}
	for _, c := range []struct {
		name     string
		clipped  string
		messages []recall.PortableMessage
		refused  bool
	}{
		{"no edits, and a message", ``, []recall.PortableMessage{said}, false},
		{"edits, and a marked summary", `[{"position":1,"part":0,"chars":3}]`, []recall.PortableMessage{said, marked}, false},
		{"edits that are no list", `{"position":1}`, nil, true},
		{"a summary without stats", `[]`, []recall.PortableMessage{said, bare}, true},
	} {
		if err := store.CheckView(json.RawMessage(c.clipped), c.messages...); errors.Is(err, db.ErrInvalid) != c.refused ||
			(err != nil) != c.refused {
			t.Errorf("%s: got %v, refused should be %v", c.name, err, c.refused)
		}
	}
}

// A copy's summary names the copy's seqs.
func TestASummaryIsRestatedForACopy(t *testing.T) {
	t.Parallel()
	raw, err := store.Restated(json.RawMessage(`{"how":"whole","from_position":2,"to_position":3,"from_seq":12,
		"to_seq":13}`), func(position int) int64 { return int64(100 * position) })
	if err != nil {
		t.Fatal(err)
	}
	sum, err := store.SummaryOf(recall.Message{Content: []recall.Part{{Stats: raw}}})
	if err != nil || sum.FromSeq != 200 || sum.ToSeq != 300 || sum.From != 2 || sum.To != 3 || sum.How != clip.Whole {
		t.Errorf("got %+v, %v", sum, err)
	}
	if _, err := store.Restated(json.RawMessage(`7`), nil); err == nil {
		t.Error("stats that are no object are restated")
	}
}

// Summaries that replace a message or a later one are found, the oldest first. A summary's text is replaced only where
// it is still the old text.
func TestSummariesAreRewritten(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.say("one", "two", "three", "four")
	k.commit(k.conversation(), change(4, "They counted."))
	second := change(5, "They counted on.")
	second.Summary.How, second.Summary.Why = clip.Whole, "it failed"
	made := k.commit(k.conversation(), second)
	for position, want := range map[int]string{2: "2-3 2-4", 3: "2-3 2-4", 4: "2-4", 5: ""} {
		list, err := k.store.Written(t.Context(), k.org, k.conversation().Key, position)
		var got []string
		for _, w := range list {
			got = append(got, string(rune('0'+w.From))+"-"+string(rune('0'+w.To)))
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("from position %d: got %q, %v, want %q", position, got, err, want)
		}
	}
	list, err := k.store.Written(t.Context(), k.org, k.conversation().Key, 4)
	if err != nil {
		t.Fatal(err)
	}
	w := list[0]
	for _, c := range []struct{ old, text, want string }{
		{"another text", "Nothing.", "They counted on."},
		{"They counted on.", "They went on.", "They went on."},
	} {
		w.Text = c.text
		if err := k.store.Rewrite(t.Context(), k.org, w, c.old, clip.Extracted); err != nil {
			t.Fatal(err)
		}
		if sum := k.load().Summary; sum == nil || sum.Text != c.want {
			t.Errorf("a rewrite of %q: the summary is %+v, want %q", c.old, sum, c.want)
		}
	}
	if got, err := k.store.Compaction(t.Context(), k.org, made.ID); err != nil || *got.How != clip.Extracted ||
		got.Why != nil {
		t.Errorf("the compaction is %+v, %v; want its way changed, and no reason", got, err)
	}
}
