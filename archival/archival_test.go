package archival_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// fixture is a store, and an organization with one agent.
type fixture struct {
	*testing.T
	pool  *pgxpool.Pool
	org   db.Org
	store *archival.Store
	agent string
	noted int // passages that notes inserted
}

// newFixture returns a fixture in the shared database.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	pool, _ := dbtest.Org(t)
	return newFixtureIn(t, pool)
}

// newFixtureIn returns a fixture in the given database.
func newFixtureIn(t *testing.T, pool *pgxpool.Pool) *fixture {
	t.Helper()
	f := &fixture{T: t, pool: pool, org: dbtest.NewOrg(t, pool), store: archival.New(pool, archival.Options{})}
	f.agent = f.newAgent("Ada")
	return f
}

func (f *fixture) newAgent(name string) string {
	f.Helper()
	id, err := db.One[string](f.Context(), f.pool, `
		INSERT INTO agents (org, name, agent_type, system) VALUES ($1, $2, 'letta_v1_agent', '') RETURNING id`, f.org, name)
	if err != nil {
		f.Fatal(err)
	}
	return id
}

func (f *fixture) insert(texts ...string) []archival.Inserted {
	f.Helper()
	var drafts []archival.Draft
	for _, text := range texts {
		drafts = append(drafts, archival.Draft{Text: text})
	}
	got, err := f.store.InsertFor(f.Context(), f.org, archival.Of(f.agent), drafts)
	if err != nil {
		f.Fatalf("insert: %v", err)
	}
	return got
}

func (f *fixture) archive(name string) archival.Archive {
	f.Helper()
	c, err := f.store.CreateArchive(f.Context(), f.org, archival.NewArchive{Name: name})
	if err != nil {
		f.Fatal(err)
	}
	return c
}

func (f *fixture) found(q archival.Query) []string {
	f.Helper()
	if q.AgentID == "" && q.ArchiveID == "" {
		q.AgentID = f.agent
	}
	if q.Limit == 0 {
		q.Limit = 10
	}
	got, err := f.store.Search(f.Context(), f.org, q)
	if err != nil {
		f.Fatalf("search %+v: %v", q, err)
	}
	texts := []string{}
	for _, h := range got.Hits {
		texts = append(texts, h.Text)
	}
	return texts
}

// rows counts the organization's rows in a table.
func (f *fixture) rows(table string) int {
	f.Helper()
	return f.count(`SELECT count(*) FROM `+table+` WHERE org = $1`, f.org)
}

// clear calls Clear until nothing is left. Clear also removes other tests' deleted archives, so only one test runs it
// at a time.
func (f *fixture) clear() {
	f.Helper()
	clearing.Lock()
	defer clearing.Unlock()
	for n := 1; n > 0; {
		var err error
		if n, err = f.store.Clear(f.Context()); err != nil {
			f.Fatal(err)
		}
	}
}

var clearing sync.Mutex

// events returns the types of an agent's events, in order.
func (f *fixture) events(agent string) []string {
	f.Helper()
	got, err := db.All[string](f.Context(), f.pool, `SELECT type FROM events WHERE agent_id = $1 ORDER BY seq`, agent)
	if err != nil {
		f.Fatal(err)
	}
	return got
}

func TestTheFirstInsertMakesTheDefaultArchive(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.insert("the sky is blue")
	second := f.insert("grass is green")
	if first[0].ArchiveID != second[0].ArchiveID || first[0].Duplicate {
		t.Errorf("got %+v and %+v", first, second)
	}
	list, err := f.store.Archives(t.Context(), f.org, archival.Of(f.agent), "", db.Page{})
	if err != nil || len(list) != 1 || list[0].Name != "Ada's Archive" ||
		*list[0].Description != "Default archive created automatically" {
		t.Errorf("archives: %+v, %v", list, err)
	}
	if diff := cmp.Diff([]string{"archive_attached", "passage_inserted", "passage_inserted"},
		f.events(f.agent)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if _, err := f.store.InsertFor(t.Context(), f.org, archival.Of("agent-none"),
		[]archival.Draft{{Text: "x"}}); !errors.Is(
		err,
		db.ErrNotFound,
	) {
		t.Errorf("for no agent: got %v, want ErrNotFound", err)
	}
}

func TestATextIsStoredOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.insert("cats purr", "dogs bark")
	again := f.insert("dogs bark", "birds sing", "birds sing")
	if !again[0].Duplicate || again[0].ID != first[1].ID || again[1].Duplicate || !again[2].Duplicate ||
		again[1].ID != again[2].ID {
		t.Errorf("got %+v", again)
	}
	if n, err := f.store.CountPassages(t.Context(), f.org, archival.Of(f.agent)); err != nil || n != 3 {
		t.Errorf("%d passages, %v, want 3", n, err)
	}
}

func TestALongTextBecomesSeveralPassages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var b strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&b, "Sentence number %d says little. ", i)
	}
	got := f.insert(b.String())
	var joined strings.Builder
	for _, p := range got {
		joined.WriteString(p.Text)
	}
	if len(got) < 5 || joined.String() != b.String() {
		t.Errorf("%d passages of %d bytes, want several of %d", len(got), joined.Len(), b.Len())
	}
}

func TestABatchIsAllOrNothing(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	f := newFixture(t)
	c := f.archive("shared")
	for _, agent := range []string{f.agent, f.newAgent("Bob")} {
		if err := f.store.Attach(t.Context(), f.org, agent, c.ID); err != nil {
			t.Fatal(err)
		}
	}
	drafts := make([]archival.Draft, scale.Of(600, archival.MaxPassages))
	last := len(drafts) - 1
	filler := strings.Repeat("x", 1300<<10/len(drafts)) // together more than a batch holds in memory
	text := func(i int) string { return fmt.Sprintf("fact %d %s", i, filler) }
	for i := range drafts {
		drafts[i].Text = text(i)
	}
	drafts[last].Text = " "
	if _, err := f.store.Insert(t.Context(), f.org, c.ID, drafts); !errors.Is(err, db.ErrInvalid) ||
		!strings.Contains(err.Error(), fmt.Sprintf("passages[%d]", last)) {
		t.Errorf("with an empty text: got %v, want ErrInvalid that names it", err)
	}
	if n, err := f.store.CountPassages(t.Context(), f.org, archival.Of(f.agent)); err != nil || n != 0 {
		t.Errorf("%d passages of a refused batch, %v", n, err)
	}
	drafts[last].Text = text(last)
	got, err := f.store.Insert(t.Context(), f.org, c.ID, drafts)
	if err != nil || len(got) != len(drafts) || got[17].Text != text(17) {
		t.Fatalf("%d inserted, %v", len(got), err)
	}
	if diff := cmp.Diff([]string{"archive_attached", "passages_inserted"}, f.events(f.agent)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if _, err := f.store.Insert(t.Context(), f.org, c.ID, slices.Repeat(drafts[:1], archival.MaxPassages+1)); !errors.Is(
		err,
		db.ErrInvalid,
	) {
		t.Errorf("more than a batch may have: got %v, want ErrInvalid", err)
	}
}

func TestTagsAndTimesNarrowBeforeTheLimit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	day := func(d int) *time.Time {
		when := time.Date(2024, 6, d, 12, 0, 0, 0, time.UTC)
		return &when
	}
	if _, err := f.store.InsertFor(t.Context(), f.org, archival.Of(f.agent), []archival.Draft{
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
		{"all tags", archival.Query{Text: "tea", Tags: []string{"drink", "hot"}, Match: archival.All, Limit: 1},
			[]string{"tea one"}},
		{"a tag that nothing has", archival.Query{Text: "tea", Tags: []string{"cold"}}, []string{}},
		{"from a moment on", archival.Query{Text: "tea", Start: day(3)}, []string{"tea four", "tea three"}},
		{"to a moment", archival.Query{Text: "tea", End: day(2)}, []string{"tea one", "tea two"}},
		{"the newest", archival.Query{Limit: 2}, []string{"tea four", "tea three"}},
		{"nothing shares a word", archival.Query{Text: "coffee"}, []string{}},
	} {
		got := f.found(tt.q)
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
	f := newFixture(t)
	p := f.insert("Bob lives in Rome", "Bob has a dog")
	text, same := "Bob lives in Turin", "Bob has a dog"
	changed, err := f.store.UpdatePassage(
		t.Context(),
		f.org,
		archival.Of(f.agent),
		p[0].ID,
		archival.PassageUpdate{Text: &text, Tags: []string{"bob"}},
	)
	if err != nil || changed.Text != text || !slices.Equal(changed.Tags, []string{"bob"}) {
		t.Errorf("got %+v, %v", changed, err)
	}
	if got := f.found(archival.Query{Text: "Turin"}); len(got) != 1 {
		t.Errorf("the new text is not found: %q", got)
	}
	if got := f.found(archival.Query{Text: "Rome"}); len(got) != 0 {
		t.Errorf("the old text is found: %q", got)
	}
	if _, err := f.store.UpdatePassage(t.Context(), f.org, archival.Of(f.agent), p[0].ID,
		archival.PassageUpdate{Text: &same}); !errors.Is(
		err,
		db.ErrConflict,
	) {
		t.Errorf("to the text of another: got %v, want ErrConflict", err)
	}
	other := f.newAgent("Eve")
	if err := f.store.DeletePassage(t.Context(), f.org, archival.Of(other), p[0].ID); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("by an agent without the archive: got %v, want ErrNotFound", err)
	}
	if err := f.store.DeletePassage(t.Context(), f.org, archival.Of(f.agent), p[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := f.store.Passage(t.Context(), f.org, archival.Of(""), p[0].ID); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("deleted: got %v, want ErrNotFound", err)
	}
	want := []string{"archive_attached", "passages_inserted", "passage_updated", "passage_deleted"}
	if diff := cmp.Diff(want, f.events(f.agent)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// An agent's first archive is its default. If the default is detached, it is the archive that was attached first of the
// others, whichever was created first.
func TestTheDefaultIsTheOldestAttachment(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ids, names := map[string]string{}, map[string]string{}
	for _, name := range []string{"a", "b", "c", "d"} {
		id := f.archive(name).ID
		ids[name], names[id] = id, name
	}
	for _, step := range []struct {
		attach, detach string
		want           string // the archive that gets an insertion
	}{
		{attach: "c", want: "c"}, {attach: "d", want: "c"}, {attach: "b", want: "c"}, {attach: "a", want: "c"},
		{attach: "c", want: "c"}, {detach: "b", want: "c"}, {detach: "c", want: "d"}, {attach: "c", want: "d"},
		{detach: "d", want: "a"}, {detach: "a", want: "c"},
	} {
		change, name := f.store.Attach, step.attach
		if step.detach != "" {
			change, name = f.store.Detach, step.detach
		}
		if err := change(t.Context(), f.org, f.agent, ids[name]); err != nil {
			t.Fatal(err)
		}
		if got := names[f.insert(fmt.Sprintf("after %+v", step))[0].ArchiveID]; got != step.want {
			t.Errorf("%+v: an insertion goes to archive %s", step, got)
		}
	}
}

func TestAgentsOfAnArchiveAreListedByTheirAttachment(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.archive("team")
	want := []string{f.newAgent("Bob"), f.newAgent("Eve"), f.agent}
	slices.SortFunc(want, func(a, b string) int { return strings.Compare(b, a) }) // in no other order
	for _, agent := range want {
		if err := f.store.Attach(t.Context(), f.org, agent, c.ID); err != nil {
			t.Fatal(err)
		}
	}
	got, err := f.store.ArchiveAgents(t.Context(), f.org, c.ID)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, agents (-want +got):\n%s", err, diff)
	}
}

func TestArchivesAreSharedAndDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.insert("mine alone")
	bob, c := f.newAgent("Bob"), f.archive("team")
	for _, agent := range []string{f.agent, bob, bob} {
		if err := f.store.Attach(t.Context(), f.org, agent, c.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.store.InsertFor(t.Context(), f.org, archival.Of(bob),
		[]archival.Draft{{Text: "ours together"}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ours together", "mine alone"}, f.found(archival.Query{})); diff != "" {
		t.Errorf("of an agent with two archives (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ours together"}, f.found(archival.Query{ArchiveID: c.ID})); diff != "" {
		t.Errorf("of one archive (-want +got):\n%s", diff)
	}
	if err := f.store.Detach(t.Context(), f.org, f.agent, c.ID); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"mine alone"}, f.found(archival.Query{})); diff != "" {
		t.Errorf("after it was detached (-want +got):\n%s", diff)
	}
	if err := f.store.DeleteArchive(t.Context(), f.org, c.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := f.store.Archive(t.Context(), f.org, c.ID); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("deleted: got %v, want ErrNotFound", err)
	}
	later := f.archive("later")
	list, err := f.store.Archives(t.Context(), f.org, archival.Of(""), "", db.Page{After: c.ID, Ascending: true})
	if err != nil || len(list) == 0 || list[len(list)-1].ID != later.ID {
		t.Errorf("after the deleted archive: got %v, %v, want a list that ends with %s", list, err, later.ID)
	}
	if got := f.found(archival.Query{AgentID: bob}); len(got) != 0 {
		t.Errorf("found in a deleted archive: %q", got)
	}
	f.clear()
	if n := f.rows("passages"); n != 1 {
		t.Errorf("%d passages are left, want 1", n)
	}
}

func TestListsOfPassagesArePaged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var texts []string
	for i := range 5 {
		texts = append(texts, fmt.Sprintf("Page %d", i))
	}
	all := f.insert(texts...)
	list := func(contains string, p db.Page) []string {
		t.Helper()
		rows, err := f.store.Passages(t.Context(), f.org, archival.Of(f.agent), archival.PassageList{Contains: contains}, p)
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

// The pages of a search, joined, are the hits of one search without pages.
func TestPagesOfASearch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 11 {
		f.insert(fmt.Sprintf("apple %d", i))
	}
	for _, text := range []string{"apple", ""} {
		q := archival.Query{Text: text, AgentID: f.agent, Limit: archival.SearchMax}
		ids := func() (all []string, more bool) {
			found := f.search(q)
			for _, h := range found.Hits {
				all = append(all, h.ID)
			}
			return all, found.More
		}
		want, _ := ids()
		q.Limit = 4
		var byOffset, byID, page []string
		for more := true; more; q.Offset += q.Limit {
			page, more = ids()
			byOffset = append(byOffset, page...)
		}
		q.Offset = 0
		for more := true; more; q.After = byID[len(byID)-1] {
			page, more = ids()
			byID = append(byID, page...)
		}
		if len(want) != 11 || !slices.Equal(want, byOffset) || !slices.Equal(want, byID) {
			t.Errorf("%q: at once %q\nby offset %q\nby after %q", text, want, byOffset, byID)
		}
		q.After = "passage-123e4567-e89b-42d3-8456-426614174000"
		if _, err := f.store.Search(t.Context(), f.org, q); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("after a passage that does not exist: got %v, want ErrInvalid", err)
		}
	}
}
