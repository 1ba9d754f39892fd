package archival_test

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/embed/embedtest"
)

// may returns day n, counted from May 1, 2024.
func may(n int) *time.Time { return new(time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, n)) }

// fact inserts one passage.
func (f *fixture) fact(d archival.Draft) archival.Inserted {
	f.Helper()
	got, err := f.store.InsertFor(f.Context(), f.org, archival.Of(f.agent), []archival.Draft{d})
	if err != nil {
		f.Fatalf("insert %+v: %v", d, err)
	}
	return got[0]
}

// listed returns the texts of a list.
func (f *fixture) listed(held db.Held) []string {
	f.Helper()
	list, err := f.store.Passages(f.Context(), f.org, archival.Of(f.agent), archival.PassageList{Held: held},
		db.Page{Ascending: true, Limit: 1000})
	if err != nil {
		f.Fatal(err)
	}
	texts := []string{}
	for _, p := range list {
		texts = append(texts, p.Text)
	}
	return texts
}

// At every moment, searches and lists show exactly the facts that hold then. With All they show every fact.
func TestNoSearchShowsAFactThatDoesNotHold(t *testing.T) {
	scale.NotRaced(t)
	if err := flag.Set("rapid.checks", strconv.Itoa(scale.Of(12, 100))); err != nil { // no other test here uses it
		t.Fatal(err)
	}
	t.Parallel()
	f := newDenseFixture(t, embedtest.New(t, 16))
	day := rapid.IntRange(0, 20)
	rapid.Check(t, func(r *rapid.T) {
		archive := f.archive("facts")
		f.store.SetIndexRows(rapid.SampledFrom([]int{3, 1000}).Draw(r, "index rows"))
		f.agent = f.newAgent("Ada")
		if err := f.store.Attach(f.Context(), f.org, f.agent, archive.ID); err != nil {
			r.Fatal(err)
		}
		facts := map[string]db.Validity{}
		for i := range rapid.IntRange(1, 12).Draw(r, "facts") {
			d := archival.Draft{Text: fmt.Sprintf("ferry number %d leaves", i)}
			if rapid.Bool().Draw(r, "begins") {
				d.ValidFrom = may(day.Draw(r, "from"))
			}
			if rapid.Bool().Draw(r, "ends") {
				d.ValidUntil = may(day.Draw(r, "until"))
			}
			_, err := f.store.InsertFor(f.Context(), f.org, archival.Of(f.agent), []archival.Draft{d})
			if bad := d.Check() != nil; bad != (err != nil) {
				r.Fatalf("%+v: %v", d.Validity, err)
			} else if !bad {
				facts[d.Text] = d.Validity
			}
		}
		if len(facts) > 0 {
			f.embedded(archive.ID)
		}
		for _, held := range []db.Held{{}, {All: true}, {AsOf: may(day.Draw(r, "as of"))}, {AsOf: may(day.Draw(r, "as of"))},
			{AsOf: may(-1)}} {
			var want []string
			for text, v := range facts {
				if holds(v, held) {
					want = append(want, text)
				}
			}
			slices.Sort(want)
			for name, got := range map[string][]string{
				"hybrid": f.found(archival.Query{Text: "ferry leaves", Limit: max(len(want), 1), Held: held}),
				"words":  f.found(archival.Query{Text: "ferry leaves", Limit: max(len(want), 1), Held: held, WordsOnly: true}),
				"newest": f.found(archival.Query{Limit: max(len(want), 1), Held: held}), "list": f.listed(held)} {
				slices.Sort(got)
				if !slices.Equal(got, want) {
					r.Fatalf("%s %+v:\ngot  %q\nwant %q", name, held, got, want)
				}
			}
		}
	})
}

func holds(v db.Validity, h db.Held) bool {
	at := time.Now()
	if h.AsOf != nil {
		at = *h.AsOf
	}
	return h.All || (v.ValidFrom == nil || !v.ValidFrom.After(at)) && (v.ValidUntil == nil || v.ValidUntil.After(at))
}

// Ended facts do not take places of a result from facts that hold, in small scopes and through the indexes.
func TestEndedFactsLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	f := newDenseFixture(t, embedtest.New(t, 64))
	var drafts []archival.Draft
	for i := range 60 { // nearer to the question than the facts that hold
		drafts = append(drafts, archival.Draft{Text: strings.Repeat("velo locked library ", i+1),
			Validity: db.Validity{ValidUntil: may(0)}})
	}
	drafts = append(drafts, archival.Draft{Text: "a velo of another town"}, archival.Draft{Text: "one more velo"})
	got, err := f.store.InsertFor(t.Context(), f.org, archival.Of(f.agent), drafts)
	if err != nil {
		t.Fatal(err)
	}
	f.embedded(got[0].ArchiveID)
	for _, rows := range []int{1000, 10} {
		f.store.SetIndexRows(rows)
		texts := f.found(archival.Query{Text: "velo locked library", Limit: 2})
		slices.Sort(texts)
		if diff := cmp.Diff([]string{"a velo of another town", "one more velo"}, texts); diff != "" {
			t.Errorf("above %d rows (-want +got):\n%s", rows, diff)
		}
		if n := len(f.found(archival.Query{Text: "velo locked library", Limit: 100, Held: db.Held{AsOf: may(-3)}})); n != 62 {
			t.Errorf("above %d rows, before: %d hits, want 62", rows, n)
		}
	}
	if n, err := f.store.CountPassages(t.Context(), f.org, archival.Of(f.agent)); err != nil || n != 2 {
		t.Errorf("%d passages hold, %v", n, err)
	}
}

func TestSupersedingEndsTheOldPassage(t *testing.T) {
	t.Parallel()
	f := newDenseFixture(t, embedtest.New(t, 8))
	old := f.fact(archival.Draft{Text: "Ada lives in Oslo"})
	f.embedded(old.ArchiveID)
	next := f.fact(archival.Draft{Text: "Ada lives in Bergen", Supersedes: old.ID})
	f.embedded(old.ArchiveID)
	f.settled(0)
	if diff := cmp.Diff([]string{"Ada lives in Bergen"}, f.found(archival.Query{Text: "Ada lives"})); diff != "" {
		t.Errorf("now (-want +got):\n%s", diff)
	}
	was, err := f.store.Passage(t.Context(), f.org, archival.Of(f.agent), old.ID)
	if err != nil || !was.Ended || was.SupersededBy == nil || *was.SupersededBy != next.ID || next.ValidFrom == nil ||
		!was.ValidUntil.Equal(*next.ValidFrom) {
		t.Fatalf("the old one is %+v, the new one %+v, %v", was, next, err)
	}
	before := next.ValidFrom.Add(-time.Microsecond)
	if diff := cmp.Diff([]string{"Ada lives in Oslo"},
		f.found(archival.Query{Text: "Ada lives", Held: db.Held{AsOf: &before}})); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	// A fact that ended may become true again.
	again := f.fact(archival.Draft{Text: "Ada lives in Oslo", Supersedes: next.ID})
	if again.Duplicate || again.ID == old.ID {
		t.Errorf("again: %+v", again)
	}
	if diff := cmp.Diff([]string{"Ada lives in Oslo"}, f.found(archival.Query{Text: "Ada lives"})); diff != "" {
		t.Errorf("again (-want +got):\n%s", diff)
	}
	// A passage stays ended after its successor is deleted.
	if err := f.store.DeletePassage(t.Context(), f.org, archival.Of(f.agent), again.ID); err != nil {
		t.Fatal(err)
	}
	if p, err := f.store.Passage(t.Context(), f.org, archival.Of(""),
		next.ID); err != nil || !p.Ended || p.SupersededBy != nil {
		t.Errorf("the successor is deleted: %+v, %v", p, err)
	}
}

// An update that breaks a rule of validity changes nothing, and the error names the field.
func TestValidityIsChecked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, b, c := f.fact(archival.Draft{Text: "a"}), f.fact(archival.Draft{Text: "b"}), f.fact(archival.Draft{Text: "c"})
	elsewhere, err := f.store.Insert(t.Context(), f.org, f.archive("other").ID, []archival.Draft{{Text: "d"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, chain := range [][2]string{{a.ID, b.ID}, {b.ID, c.ID}} {
		if _, err := f.store.UpdatePassage(t.Context(), f.org, archival.Of(f.agent), chain[0],
			archival.PassageUpdate{SupersededBy: &chain[1]}); err != nil {
			t.Fatal(err)
		}
	}
	all := f.rows("passages")
	for _, w := range []struct {
		name, field string
		do          func() error
	}{
		{"an end before the beginning", "valid_until", func() error {
			return f.insertError(archival.Draft{Text: "x", Validity: db.Validity{ValidFrom: may(2), ValidUntil: may(2)}})
		}},
		{"a loop", "superseded_by", func() error { return f.supersede(c.ID, a.ID) }},
		{"itself", "superseded_by", func() error { return f.supersede(c.ID, c.ID) }},
		{"another archive's", "superseded_by", func() error { return f.supersede(c.ID, elsewhere[0].ID) }},
		{"none", "superseded_by", func() error { return f.supersede(c.ID, "passage-none") }},
		{"no end, though superseded", "valid_until", func() error {
			_, err := f.store.UpdatePassage(t.Context(), f.org, archival.Of(f.agent), a.ID,
				archival.PassageUpdate{ValidUntil: &db.Bound{}})
			return err
		}},
		{"supersedes none", "supersedes", func() error {
			return f.insertError(archival.Draft{Text: "x", Supersedes: "passage-none"})
		}},
		{"supersedes its own text", "supersedes", func() error {
			return f.insertError(archival.Draft{Text: "c", Supersedes: c.ID})
		}},
		{"supersedes what has not begun", "supersedes", func() error {
			later := f.fact(archival.Draft{Text: "later", Validity: db.Validity{ValidFrom: new(time.Now().AddDate(1, 0, 0))}})
			all++
			return f.insertError(archival.Draft{Text: "x", Supersedes: later.ID})
		}},
	} {
		field, ok := errors.AsType[*db.FieldError](w.do())
		if !ok || field.Field != w.field {
			t.Errorf("%s: got %v, want an error of %s", w.name, field, w.field)
		}
	}
	if n := f.rows("passages"); n != all {
		t.Errorf("%d passages, want %d", n, all)
	}
	if got := f.listed(db.Held{}); !slices.Contains(got, "c") || slices.Contains(got, "a") || slices.Contains(got, "x") {
		t.Errorf("what holds: %q", got)
	}
}

func (f *fixture) insertError(d archival.Draft) error {
	_, err := f.store.InsertFor(f.Context(), f.org, archival.Of(f.agent), []archival.Draft{d})
	return err
}

func (f *fixture) supersede(id, by string) error {
	_, err := f.store.UpdatePassage(f.Context(), f.org, archival.Of(f.agent), id,
		archival.PassageUpdate{SupersededBy: &by})
	return err
}

// If many requests supersede a passage at once, one wins. The others get the passage as it is now, and store nothing.
func TestOneOfManySupersedesAPassage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	old := f.fact(archival.Draft{Text: "Ada lives in Oslo"})
	var group errgroup.Group
	won := make([]bool, 8)
	for i := range won {
		group.Go(func() error {
			_, err := f.store.InsertFor(t.Context(), f.org, archival.Of(f.agent),
				[]archival.Draft{{Text: fmt.Sprintf("Ada lives in house %d", i), Supersedes: old.ID}})
			lost, ok := errors.AsType[*archival.SupersededError](err)
			if won[i] = err == nil; won[i] || ok && lost.Current.ID == old.ID && lost.Current.SupersededBy != nil &&
				errors.Is(err, db.ErrConflict) {
				return nil
			}
			return fmt.Errorf("house %d: %w", i, err)
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	i := slices.Index(won, true)
	if diff := cmp.Diff([]string{fmt.Sprintf("Ada lives in house %d", i)}, f.listed(db.Held{})); diff != "" ||
		slices.Contains(won[i+1:], true) {
		t.Errorf("%v won (-want +got):\n%s", won, diff)
	}
	if n := f.rows("passages"); n != 2 {
		t.Errorf("%d passages, want 2", n)
	}
}

// Two requests that let two passages supersede each other do not make a loop.
func TestChainsMadeAtOnceAreNoLoops(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 10 {
		a, b := f.fact(archival.Draft{Text: fmt.Sprint("a", i)}), f.fact(archival.Draft{Text: fmt.Sprint("b", i)})
		errs := make(chan error, 2)
		go func() { errs <- f.supersede(a.ID, b.ID) }()
		go func() { errs <- f.supersede(b.ID, a.ID) }()
		first, second := <-errs, <-errs
		if (first == nil) == (second == nil) {
			t.Fatalf("got %v and %v, want one error", first, second)
		}
	}
}
