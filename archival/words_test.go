package archival_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/embed/lexicon"
)

// The index of words ranks an archive exactly as the passages themselves do, also after a passage was changed or
// erased.
func anArchiveIsRankedThroughTheIndexOfWords(t *testing.T, database owned) {
	f := newFixtureIn(t, database.pool)
	plans := dbtest.NewPlans(t, f.pool)
	plain, indexed := f.store, archival.New(plans, archival.Options{})
	plain.SetWordRows(1<<40, 1<<40)
	indexed.SetWordRows(500, 200)
	f.store = indexed
	var texts []string
	for i := range 800 {
		texts = append(texts, fmt.Sprintf("common note number%d about subject%d", i, i%70))
	}
	f.insert(texts...)
	if n, err := indexed.IndexWords(t.Context()); err != nil || n != 1 {
		t.Fatalf("got %d segments (%v), want 1", n, err)
	}
	if _, err := db.AnalyzeGrown(t.Context(), f.pool); err != nil { // as the server does
		t.Fatal(err)
	}
	search := func(store *archival.Store, text string) archival.Results {
		t.Helper()
		got, err := store.Search(t.Context(), f.org, archival.Query{Text: text, AgentID: f.agent, Limit: 20})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	compare := func() {
		t.Helper()
		for _, text := range []string{"note about subject7", "number77 or number78", "common", "walnut", "absent"} {
			if diff := cmp.Diff(search(plain, text), search(indexed, text)); diff != "" {
				t.Errorf("%q (-passages +index):\n%s", text, diff)
			}
		}
	}
	compare()
	if plan := plans.Take("@matched"); !strings.Contains(plan, "passages_pkey") || strings.Contains(plan, "Seq Scan") {
		t.Errorf("matched passages are not read by their keys:\n%s", plan)
	}
	walnut := "the walnut tree"
	hit := search(indexed, "number77").Hits[0]
	update := archival.PassageUpdate{Text: &walnut}
	if _, err := indexed.UpdatePassage(t.Context(), f.org, archival.Of(f.agent), hit.ID, update); err != nil {
		t.Fatal(err)
	}
	compare()
	if got := search(indexed, "walnut").Hits; len(got) != 1 || got[0].Text != walnut {
		t.Errorf("a passage is not found by its new words: %v", got)
	}
	if err := indexed.Replace(t.Context(), f.org, hit.Key, func(archival.Contents) archival.Contents {
		return archival.Contents{}
	}); err != nil {
		t.Fatal(err)
	}
	compare()
	if n, err := indexed.PruneWords(t.Context()); err != nil || n != 1 {
		t.Errorf("%d segments are made anew (%v), want 1", n, err)
	}
	compare()
}

// ReweighWords weighs passages again that an older version of Loci weighed.
func passagesOfAnOlderVersionAreWeighedAnew(t *testing.T, database owned) {
	f := newFixtureIn(t, database.pool)
	f.insert("the walnut tree", "the plum tree")
	if _, err := f.pool.Exec(t.Context(), `
		UPDATE passages SET lex_version = 1, lex = '{}/16777216', terms = '{}' WHERE org = $1`, f.org); err != nil {
		t.Fatal(err)
	}
	found := func() int { return len(f.search(archival.Query{Text: "walnut", AgentID: f.agent, Limit: 5}).Hits) }
	before := found()
	n, err := f.store.ReweighWords(t.Context())
	if err != nil || n != 2 || before != 0 || found() != 1 {
		t.Errorf("%d passages are weighed anew (%v), %d found before, %d after, want 2, 0 and 1", n, err, before, found())
	}
}

// Two words may share a term id in the lexicon. A search for one does not find passages that have only the other.
func TestAWordFindsNoPassageWithAnotherOfItsPlace(t *testing.T) {
	t.Parallel()
	a, b := "xxzlzq", "xvdbbcq" // found with embedtest.Colliding
	if !slices.Equal(lexicon.TermIDs(a), lexicon.TermIDs(b)) {
		a, b = embedtest.Colliding(t)
	}
	f := newFixture(t)
	f.insert("the word "+a, "the word "+b)
	for _, word := range []string{a, b} {
		hits := f.search(archival.Query{Text: word, AgentID: f.agent, Limit: 5}).Hits
		if len(hits) != 1 || !strings.Contains(hits[0].Text, word) {
			t.Errorf("%q finds %v, want its own passage alone", word, hits)
		}
	}
}

// Compound words of passages are found by their parts.
func TestPassagesAreFoundByPartsOfWords(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.insert("Die Umsatzsteuervoranmeldung geht am Montag an das Finanzamt.", "Die Belege für den März fehlen noch.")
	if got := f.found(archival.Query{Text: "Umsatzsteuer", AgentID: f.agent, Limit: 5}); len(got) != 1 {
		t.Errorf("got %q, want the passage with the compound word", got)
	}
}

// A passage's language is found, and may be given and changed: its words have the stems of that language.
func TestAPassageHasALanguage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	given, err := f.store.InsertFor(t.Context(), f.org, archival.Of(f.agent), []archival.Draft{
		{Text: "Toimituksen viivästymisestä valitettiin."}, {Text: "Rechnungen prüfen", Language: "de"}, {Text: "Накладная"},
		{Text: "1 2 3"}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		code  string
		given bool
	}{{"fi", false}, {"de", true}, {"ru", false}, {"", false}} {
		got := ""
		if given[i].Language != nil {
			got = *given[i].Language
		}
		if got != want.code || given[i].LanguageGiven != want.given {
			t.Errorf("%q: got %q, given %t, want %+v", given[i].Text, got, given[i].LanguageGiven, want)
		}
	}
	for _, c := range []struct {
		code, shown string
		given       bool
	}{{"fi", "fi", true}, {"", "de", false}} {
		changed, err := f.store.UpdatePassage(t.Context(), f.org, archival.Of(""), given[1].ID,
			archival.PassageUpdate{Language: &c.code})
		if err != nil || changed.Language == nil || *changed.Language != c.shown && c.given ||
			changed.LanguageGiven != c.given || changed.Text != given[1].Text {
			t.Errorf("%q: got %+v (%v)", c.code, changed, err)
		}
	}
	unknown := "xx"
	_, err = f.store.UpdatePassage(t.Context(), f.org, archival.Of(""), given[1].ID,
		archival.PassageUpdate{Language: &unknown})
	if _, ok := errors.AsType[*db.FieldError](err); !ok {
		t.Errorf("an unknown language: got %v", err)
	}
	_, err = f.store.InsertFor(t.Context(), f.org, archival.Of(f.agent), []archival.Draft{{Text: "a",
		Language: "xx"}})
	if !errors.Is(err, db.ErrInvalid) {
		t.Errorf("an unknown language: got %v", err)
	}
}
