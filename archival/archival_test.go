package archival_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const org = db.Org(1)

// world is a store with one agent.
type world struct {
	*testing.T
	pool  *pgxpool.Pool
	store *archival.Store
	agent string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	pool := dbtest.New(t)
	w := &world{T: t, pool: pool, store: archival.New(pool, archival.Options{})}
	w.agent = w.newAgent("Ada")
	return w
}

func (w *world) newAgent(name string) string {
	w.Helper()
	id, err := db.One[string](w.Context(), w.pool, `
		INSERT INTO agents (org, name, agent_type, system) VALUES (1, $1, 'letta_v1_agent', '') RETURNING id`, name)
	if err != nil {
		w.Fatal(err)
	}
	return id
}

func (w *world) insert(texts ...string) []archival.Inserted {
	w.Helper()
	var drafts []archival.Draft
	for _, text := range texts {
		drafts = append(drafts, archival.Draft{Text: text})
	}
	got, err := w.store.InsertFor(w.Context(), org, w.agent, drafts)
	if err != nil {
		w.Fatalf("insert: %v", err)
	}
	return got
}

func (w *world) archive(name string) archival.Archive {
	w.Helper()
	c, err := w.store.CreateArchive(w.Context(), org, archival.NewArchive{Name: name})
	if err != nil {
		w.Fatal(err)
	}
	return c
}

func (w *world) found(q archival.Query) []string {
	w.Helper()
	if q.AgentID == "" && q.ArchiveID == "" {
		q.AgentID = w.agent
	}
	if q.Limit == 0 {
		q.Limit = 10
	}
	got, err := w.store.Search(w.Context(), org, q)
	if err != nil {
		w.Fatalf("search %+v: %v", q, err)
	}
	texts := []string{}
	for _, h := range got.Hits {
		texts = append(texts, h.Text)
	}
	return texts
}

// events are the types of what happened to an agent.
func (w *world) events(agent string) []string {
	w.Helper()
	got, err := db.All[string](w.Context(), w.pool, `SELECT type FROM events WHERE agent_id = $1 ORDER BY seq`, agent)
	if err != nil {
		w.Fatal(err)
	}
	return got
}

func TestTheFirstInsertMakesTheDefaultArchive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.insert("the sky is blue")
	second := w.insert("grass is green")
	if first[0].ArchiveID != second[0].ArchiveID || first[0].Duplicate {
		t.Errorf("got %+v and %+v", first, second)
	}
	list, err := w.store.Archives(t.Context(), org, w.agent, "", db.Page{})
	if err != nil || len(list) != 1 || list[0].Name != "Ada's Archive" || *list[0].Description != "Default archive created automatically" {
		t.Errorf("archives: %+v, %v", list, err)
	}
	if diff := cmp.Diff([]string{"archive_attached", "passage_inserted", "passage_inserted"}, w.events(w.agent)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if _, err := w.store.InsertFor(t.Context(), org, "agent-none", []archival.Draft{{Text: "x"}}); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("for no agent: got %v, want ErrNotFound", err)
	}
}

func TestATextIsStoredOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.insert("cats purr", "dogs bark")
	again := w.insert("dogs bark", "birds sing", "birds sing")
	if !again[0].Duplicate || again[0].ID != first[1].ID || again[1].Duplicate || !again[2].Duplicate || again[1].ID != again[2].ID {
		t.Errorf("got %+v", again)
	}
	if n, err := w.store.CountPassages(t.Context(), org, w.agent); err != nil || n != 3 {
		t.Errorf("%d passages, %v, want 3", n, err)
	}
}

func TestALongTextBecomesSeveralPassages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "Sentence number %d says little. ", i)
	}
	got := w.insert(b.String())
	var joined strings.Builder
	for _, p := range got {
		joined.WriteString(p.Text)
	}
	if len(got) < 5 || joined.String() != b.String() {
		t.Errorf("%d passages of %d bytes, want several of %d", len(got), joined.Len(), b.Len())
	}
}

func TestABatchIsAllOrNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.archive("shared")
	for _, agent := range []string{w.agent, w.newAgent("Bob")} {
		if err := w.store.Attach(t.Context(), org, agent, c.ID); err != nil {
			t.Fatal(err)
		}
	}
	drafts := make([]archival.Draft, archival.MaxPassages)
	for i := range drafts {
		drafts[i].Text = fmt.Sprintf("fact %d", i)
	}
	drafts[9999].Text = " "
	if _, err := w.store.Insert(t.Context(), org, c.ID, drafts); !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "passages[9999]") {
		t.Errorf("with an empty text: got %v, want ErrInvalid that names it", err)
	}
	if n, err := w.store.CountPassages(t.Context(), org, w.agent); err != nil || n != 0 {
		t.Errorf("%d passages of a refused batch, %v", n, err)
	}
	drafts[9999].Text = "fact 9999"
	got, err := w.store.Insert(t.Context(), org, c.ID, drafts)
	if err != nil || len(got) != len(drafts) || got[17].Text != "fact 17" {
		t.Fatalf("%d inserted, %v", len(got), err)
	}
	if diff := cmp.Diff([]string{"archive_attached", "passages_inserted"}, w.events(w.agent)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if _, err := w.store.Insert(t.Context(), org, c.ID, append(drafts, archival.Draft{Text: "one more"})); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("more than a batch may have: got %v, want ErrInvalid", err)
	}
}

func TestTagsAndTimesNarrowBeforeTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	day := func(d int) *time.Time {
		when := time.Date(2024, 6, d, 12, 0, 0, 0, time.UTC)
		return &when
	}
	if _, err := w.store.InsertFor(t.Context(), org, w.agent, []archival.Draft{
		{Text: "tea one", Tags: []string{"drink", "hot", "drink"}, HappenedAt: day(1)},
		{Text: "tea two", Tags: []string{"drink"}, HappenedAt: day(2)},
		{Text: "tea three", Tags: []string{"hot"}, HappenedAt: day(3)},
		{Text: "tea four", HappenedAt: day(4)},
	}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		q    archival.Query
		want []string
	}{
		{"any tag", archival.Query{Text: "tea", Tags: []string{"drink", "hot"}}, []string{"tea one", "tea three", "tea two"}},
		{"all tags", archival.Query{Text: "tea", Tags: []string{"drink", "hot"}, Match: archival.All, Limit: 1}, []string{"tea one"}},
		{"a tag that nothing has", archival.Query{Text: "tea", Tags: []string{"cold"}}, []string{}},
		{"from a moment on", archival.Query{Text: "tea", Start: day(3)}, []string{"tea four", "tea three"}},
		{"to a moment", archival.Query{Text: "tea", End: day(2)}, []string{"tea one", "tea two"}},
		{"the newest", archival.Query{Limit: 2}, []string{"tea four", "tea three"}},
		{"nothing shares a word", archival.Query{Text: "coffee"}, []string{}},
	} {
		got := w.found(tt.q)
		if tt.q.Text != "" {
			slices.Sort(got)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestPassagesAreChangedAndDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.insert("Bob lives in Rome", "Bob has a dog")
	text, same := "Bob lives in Turin", "Bob has a dog"
	changed, err := w.store.UpdatePassage(t.Context(), org, w.agent, p[0].ID, archival.PassageUpdate{Text: &text, Tags: []string{"bob"}})
	if err != nil || changed.Text != text || !slices.Equal(changed.Tags, []string{"bob"}) {
		t.Errorf("got %+v, %v", changed, err)
	}
	if got := w.found(archival.Query{Text: "Turin"}); len(got) != 1 {
		t.Errorf("the new text is not found: %q", got)
	}
	if got := w.found(archival.Query{Text: "Rome"}); len(got) != 0 {
		t.Errorf("the old text is found: %q", got)
	}
	if _, err := w.store.UpdatePassage(t.Context(), org, w.agent, p[0].ID, archival.PassageUpdate{Text: &same}); !errors.Is(err, db.ErrConflict) {
		t.Errorf("to the text of another: got %v, want ErrConflict", err)
	}
	other := w.newAgent("Eve")
	if err := w.store.DeletePassage(t.Context(), org, other, p[0].ID); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("by an agent without the archive: got %v, want ErrNotFound", err)
	}
	if err := w.store.DeletePassage(t.Context(), org, w.agent, p[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Passage(t.Context(), org, "", p[0].ID); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("deleted: got %v, want ErrNotFound", err)
	}
	want := []string{"archive_attached", "passages_inserted", "passage_updated", "passage_deleted"}
	if diff := cmp.Diff(want, w.events(w.agent)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestArchivesAreSharedAndDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.insert("mine alone")
	bob, c := w.newAgent("Bob"), w.archive("team")
	for _, agent := range []string{w.agent, bob, bob} {
		if err := w.store.Attach(t.Context(), org, agent, c.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.store.InsertFor(t.Context(), org, bob, []archival.Draft{{Text: "ours together"}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ours together", "mine alone"}, w.found(archival.Query{})); diff != "" {
		t.Errorf("of an agent with two archives (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ours together"}, w.found(archival.Query{ArchiveID: c.ID})); diff != "" {
		t.Errorf("of one archive (-want +got):\n%s", diff)
	}
	if err := w.store.Detach(t.Context(), org, w.agent, c.ID); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"mine alone"}, w.found(archival.Query{})); diff != "" {
		t.Errorf("after it was detached (-want +got):\n%s", diff)
	}
	if err := w.store.DeleteArchive(t.Context(), org, c.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Archive(t.Context(), org, c.ID); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("deleted: got %v, want ErrNotFound", err)
	}
	if got := w.found(archival.Query{AgentID: bob}); len(got) != 0 {
		t.Errorf("found in a deleted archive: %q", got)
	}
	for {
		n, err := w.store.Clear(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	if n, err := db.One[int](t.Context(), w.pool, `SELECT count(*) FROM passages`); err != nil || n != 1 {
		t.Errorf("%d passages are left, %v, want 1", n, err)
	}
}

func TestListsOfPassagesArePaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var texts []string
	for i := range 5 {
		texts = append(texts, fmt.Sprintf("Page %d", i))
	}
	all := w.insert(texts...)
	list := func(contains string, p db.Page) []string {
		t.Helper()
		rows, err := w.store.Passages(t.Context(), org, w.agent, contains, p)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, r := range rows {
			got = append(got, r.Text)
		}
		return got
	}
	for _, tt := range []struct {
		name, contains string
		p              db.Page
		want           []string
	}{
		{"the first", "", db.Page{Ascending: true, Limit: 2}, texts[:2]},
		{"after one", "", db.Page{Ascending: true, Limit: 2, After: all[1].ID}, texts[2:4]},
		{"before one", "", db.Page{Ascending: true, Limit: 2, Before: all[4].ID}, texts[2:4]},
		{"the newest", "", db.Page{Limit: 1}, texts[4:]},
		{"with a text", "PAGE 3", db.Page{}, texts[3:4]},
		{"after what is not there", "", db.Page{Ascending: true, After: "passage-none"}, []string{}},
	} {
		if diff := cmp.Diff(tt.want, list(tt.contains, tt.p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// A search of a large scope is answered by the index on terms and finds what one of a small scope finds.
func TestSearchOfALargeScopeReadsTheIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var texts []string
	for i := range 3000 {
		texts = append(texts, fmt.Sprintf("common note number%d about subject%d", i, i%700))
	}
	w.insert(texts...)
	if _, err := w.pool.Exec(t.Context(), `VACUUM ANALYZE passages`); err != nil {
		t.Fatal(err)
	}
	q := archival.Query{Text: "note about subject77", AgentID: w.agent, Limit: 4}
	small := w.found(q)
	plans := dbtest.NewPlans(t, w.pool)
	w.store = archival.New(plans, archival.Options{})
	w.store.SetIndexRows(1000)
	large := w.found(q)
	if plan := plans.Take("@terms"); !strings.Contains(plan, "passages_terms") {
		t.Errorf("a large scope is not read through the index:\n%s", plan)
	}
	if diff := cmp.Diff(small, large); diff != "" || len(small) != 4 {
		t.Errorf("a small and a large scope (-small +large):\n%s", diff)
	}
}
