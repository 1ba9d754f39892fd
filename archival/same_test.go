package archival_test

import (
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/embedtest"
)

// A text that differs from a stored one in spaces, in the full stop at its end or in case is that passage. Case counts
// where there is code or an identifier.
func TestTextsThatSayTheSameAreOnePassage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, row := range []struct {
		stored, text string
		same         bool
	}{
		{"Ann likes green tea", "ann likes green tea", true}, {"Bob likes tea.", "Bob  likes\n tea", true},
		{"Cem likes tea", " Cem likes tea. ", true}, {"Dee likes tea", "DEE LIKES TEA.", true},
		{"Éva kávét iszik.", "éva kávét iszik", true}, {"茶が好き。", "茶が好き", true}, {"Wait...", "wait..", false},
		{"Fay likes tea", "Fay likes teas", false}, {"Gus pays at 10:30.", "gus pays at 10:30", true},
		{"set MAX_ROWS to 5", "set max_rows to 5", false}, {"call readAll first", "call readall first", false},
		{"the part is SN74LS00", "the part is sn74ls00", false}, {"use `Make`", "use `make`", false},
		{"see Docs/Readme.md", "see docs/readme.md", false}, {"call Close() at last.", "call Close()  at last", true},
		{"write to Ann@example.org", "write to ann@example.org", false}, {"set $HOME", "set $home", false},
	} {
		first := f.insert(row.stored)[0]
		second := f.insert(row.text)[0]
		if row.same != second.Duplicate || row.same != (first.ID == second.ID) || first.Duplicate {
			t.Errorf("%q after %q: got the duplicate %v of %s, want %v", row.text, row.stored, second.Duplicate, second.ID,
				row.same)
		}
		if row.same && second.Text != row.stored {
			t.Errorf("%q: got the text %q, want the stored one", row.text, second.Text)
		}
	}
}

// The scope of a text is its archive, and the time until which it holds.
func TestTheSameTextInAnotherScopeIsStored(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.insert("the sky is blue")
	until := time.Now().Add(time.Hour)
	got, err := f.store.InsertFor(t.Context(), f.org, archival.Of(f.agent), []archival.Draft{{Text: "The sky is blue.",
		Validity: db.Validity{ValidUntil: &until}}})
	if err != nil || got[0].Duplicate {
		t.Errorf("until another time: got %+v, %v, want a new passage", got, err)
	}
	got, err = f.store.Insert(t.Context(), f.org, f.archive("other").ID, []archival.Draft{{Text: "The sky is blue."},
		{Text: "the sky is  blue"}, {Text: "the sea"}})
	if err != nil || got[0].Duplicate || !got[1].Duplicate || got[0].ID != got[1].ID || got[2].Duplicate {
		t.Errorf("in another archive: got %+v, %v, want one new passage for the first two, and another", got, err)
	}
	if n := f.rows("passages"); n != 4 {
		t.Errorf("got %d passages, want 4", n)
	}
}

// Requests that insert the same at the same time store it once, however they write it.
func TestTheSameTextIsStoredOnceByRequestsAtTheSameTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	archive := f.archive("notes").ID
	variants := []string{"Ann likes tea", "ann likes tea.", "ANN LIKES TEA", "Ann  likes tea"}
	many := make([]archival.Draft, 20)
	for i := range many {
		many[i].Text = variants[i%len(variants)]
	}
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			drafts := []archival.Draft{{Text: variants[i%len(variants)]}}
			if i == 0 {
				drafts = many
			}
			if _, err := f.store.Insert(t.Context(), f.org, archive, drafts); err != nil {
				t.Error(err)
			}
		})
	}
	if wait.Wait(); f.rows("passages") != 1 {
		t.Errorf("got %d passages, want 1", f.rows("passages"))
	}
}

// A new passage names those of its archive that say nearly the same: by their words, or by their meaning.
func TestSimilarPassagesAreNamed(t *testing.T) {
	t.Parallel()
	f := newDenseFixture(t, embedtest.New(t, 64))
	stored := f.insert("Ann likes green tea with lemon in the morning", "the harbour opens at nine")
	f.insert("a red bicycle stands in the yard")
	f.embedded(stored[0].ArchiveID)
	for text, want := range map[string]string{
		"Ann likes green tea with lemon in the evening":  stored[0].ID,
		"Ann likes green tea with LEMON in the morning.": "",
		"Bob sold his car": "",
	} {
		got := f.insert(text)[0]
		similar, err := f.store.Similar(t.Context(), f.org, got)
		if err != nil || (want == "") != (len(similar) == 0) {
			t.Errorf("%q: got %+v, %v, want %q", text, similar, err, want)
			continue
		}
		if want != "" && (similar[0].ID != want || similar[0].Similarity < 0.8 || similar[0].Similarity > 1.001) {
			t.Errorf("%q: got %+v, want %s", text, similar, want)
		}
	}
	never := archival.New(f.pool, archival.Options{Similar: 2})
	if got, err := never.Similar(t.Context(), f.org, stored[0]); err != nil || got != nil {
		t.Errorf("without a threshold: got %+v, %v, want none", got, err)
	}
}
