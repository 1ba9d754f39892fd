package archival_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/embedtest"
)

// describedNotes inserts notes with metadata, tags and days into each archive.
func (f *fixture) describedNotes(archives ...string) {
	f.Helper()
	for _, id := range archives {
		var drafts []archival.Draft
		for n := range 120 {
			d := archival.Draft{Text: fmt.Sprintf("note number%d of subject%d", n, n%7), HappenedAt: noteDay(n),
				Tags: []string{fmt.Sprint("tag ", n%20)}}
			if n%5 > 0 {
				d.Metadata = json.RawMessage(fmt.Sprintf(`{"food": "dish %d", "price": %d, "who": {"name": "person %d"},
					"due": "2026-02-%02d", "list": ["a", %d]}`, n%20, n, n%3, 1+n%28, n%4))
			}
			drafts = append(drafts, d)
		}
		if _, err := f.store.Insert(f.Context(), f.org, id, drafts); err != nil {
			f.Fatal(err)
		}
	}
}

// filters are filters of the described notes, with how many of 120 notes pass each.
var filters = []struct {
	filter string
	passed int
}{
	{`{"metadata.food": "dish 7"}`, 6}, {`{"metadata.food": "dish 5"}`, 0},
	{`{"metadata.food": ["dish 7", "dish 8"]}`, 12},
	{`{"metadata.who.name": "person 1", "tags": "tag 7"}`, 2}, {`{"metadata": {"price": {"gte": 100, "lt": 103}}}`, 2},
	{`{"metadata.food": {"exists": false}}`, 24}, {`{"metadata.food": {"ne": "dish 7"}}`, 114},
	{`{"metadata.due": "2026-02-02"}`, 4}, {`{"metadata.due": {"gt": "2026-02-26"}}`, 6},
	{`{"metadata.list": {"contains": 3}}`, 24}, {`{"metadata.food": {"prefix": "dish 1"}}`, 54},
	{`{"tags": ["tag 1", "tag 2"]}`, 12}, {`{"created_at": "2026-01-03"}`, 5},
	{`{"created_at": {"gte": "2026-01-03", "lte": "2026-01-04"}, "metadata.price": {"gt": 50}}`, 6},
	{`{"or": [{"tags": "tag 3"}, {"metadata.price": 1}]}`, 7}, {`{"not": {"tags": "tag 3"}}`, 114},
	{`{"user": {"exists": false}, "archive": "one", "tags": "tag 3"}`, 6}, {`{"language": "en", "tags": "tag 3"}`, 6},
	{`{"metadata.food": {"contains": "h 7"}}`, 6}, {`{"metadata.food": {"contains": "7"}}`, 12},
	{`{"metadata.list": {"contains": "a"}}`, 96}, {`{"metadata.who": {"exists": true}}`, 96},
	{`{"metadata.price": {"gte": 117}, "metadata.who.name": {"gt": "person"}}`, 3},
	{`{"or": [{"metadata.price": 119}, {"metadata.due": {"lt": "2026-02-02"}}]}`, 5},
	{`{"metadata.list.1": 3, "tags": "tag 3"}`, 6}, {`{"metadata.who.name": {"prefix": "person 1"}, "tags": "tag 7"}`, 2},
	{`{"tool": "archival_memory_insert"}`, 0}, {`{"updated_at": {"gt": "2026-01-01"}, "tags": "tag 3"}`, 6},
}

// Filters find the same through keys, indexes and an exact scan: the rows that pass and no others, by words and meaning
// and without a text.
func TestFiltersNarrowASearch(t *testing.T) {
	t.Parallel()
	for _, indexed := range []bool{false, true} {
		t.Run(fmt.Sprint("index of words: ", indexed), func(t *testing.T) {
			t.Parallel()
			f := newDenseFixture(t, embedtest.New(t, 64))
			f.store.SetWordRows(100, 10)
			archive := f.archive("one").ID
			f.describedNotes(archive, f.archive("of another agent").ID)
			if err := f.store.Attach(t.Context(), f.org, f.agent, archive); err != nil {
				t.Fatal(err)
			}
			f.embedded(archive)
			exact := archival.New(f.pool, archival.Options{Endpoint: f.endpoint})
			exact.SetWide(1 << 40)
			exact.SetWordRows(1<<40, 1<<40)
			if f.store.SetWide(10); indexed {
				if n, err := f.store.IndexWords(t.Context()); err != nil || n == 0 {
					t.Fatalf("%d segments, %v", n, err)
				}
			}
			for _, row := range filters {
				for _, text := range []string{"note of subject3", ""} {
					q := archival.Query{Text: text, AgentID: f.agent, Limit: 100, Filter: json.RawMessage(row.filter)}
					got := f.search(q)
					want, err := exact.Search(t.Context(), f.org, q)
					if diff := cmp.Diff(want, got); diff != "" || err != nil {
						t.Errorf("%s: %v (-all +narrowed):\n%s", row.filter, err, diff)
					}
					if text == "" && len(got.Hits) != min(row.passed, 100) {
						t.Errorf("%s: got %d passages, want %d", row.filter, len(got.Hits), row.passed)
					}
				}
			}
		})
	}
}

// What an index knows of metadata finds all that passes, whatever the values are, also once they change.
func TestValuesOfMetadataAreFound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	archive := f.archive("one").ID
	if err := f.store.Attach(t.Context(), f.org, f.agent, archive); err != nil {
		t.Fatal(err)
	}
	cut := strings.Repeat("é", 199)
	var many []string
	for n := range 150 {
		many = append(many, fmt.Sprintf(`"k%03d": %d`, n, n))
	}
	values := []string{`"text"`, `"` + cut + `xyz"`, `"` + cut + `xya"`, `5`, `5.0`, `-1e-400`, `1e305`, `-1e305`,
		`0.1000000000000000055511151231257827`, `true`, `null`, `[]`, `{}`, `[null]`, `["text", 5, true, {"a": 1}]`,
		`{"b": "text"}`, `"2026-03-01"`, `"2026-02-28T23:30:00-05:00"`, `" 2026-03-01T05 "`, `"2026-02-30"`,
		`"2026-03-01T04:30:00Z"`, `"a\"b%_"`, `""`}
	drafts := []archival.Draft{{Text: "many values",
		Metadata: json.RawMessage(`{"a": "text", ` + strings.Join(many, ",") + `}`)}}
	for i, value := range values {
		drafts = append(drafts, archival.Draft{Text: fmt.Sprint("note ", i),
			Metadata: json.RawMessage(`{"a": ` + value + `}`)})
	}
	inserted, err := f.store.Insert(t.Context(), f.org, archive, drafts)
	if err != nil {
		t.Fatal(err)
	}
	exact := archival.New(f.pool, archival.Options{})
	exact.SetWide(1 << 40)
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		for _, test := range []string{`"text"`, `5`, `5e0`, `0`, `1e305`, `true`, `["text", 5, "2026-03-01"]`,
			`"2026-03-01"`, `{"gt": 4.9}`, `{"gte": 1e304}`, `{"lte": 1e305}`, `{"lt": 0}`, `{"gt": 0.1}`,
			`{"gte": "2026-03-01"}`, `{"lt": "2026-03-01"}`, `{"gt": "t", "lt": "u"}`, `{"gt": "` + cut + `xyb"}`,
			`{"lte": "` + cut + `xya"}`, `{"prefix": "te"}`, `{"prefix": ""}`, `{"prefix": "` + cut + `xyz"}`,
			`{"contains": "ex"}`, `{"contains": "text"}`, `{"contains": "xyz"}`, `{"contains": "éxy"}`, `{"contains": 5}`,
			`{"contains": true}`, `{"contains": "2026-0"}`, `{"contains": "\"b%"}`, `{"contains": ""}`, `{"exists": true}`,
		} {
			for _, name := range []string{"a", "a.b", "k149"} {
				q := archival.Query{ArchiveID: archive, Text: "note values", Limit: 100,
					Filter: json.RawMessage(`{"metadata.` + name + `": ` + test + `}`), Zone: newYork}
				got := f.search(q)
				want, err := exact.Search(t.Context(), f.org, q)
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Errorf("%s: %v (-all +narrowed):\n%s", q.Filter, err, diff)
				}
			}
		}
	}
	f.store.SetWide(1)
	check()
	for i, p := range inserted[1:] { // each gets the values of the next
		update := archival.PassageUpdate{Metadata: json.RawMessage(`{"a": ` + values[(i+1)%len(values)] + `}`)}
		if _, err := f.store.UpdatePassage(t.Context(), f.org, archival.Of(f.agent), p.ID, update); err != nil {
			t.Fatal(err)
		}
	}
	check()
	if err := f.store.Replace(t.Context(), f.org, inserted[1].Key, func(c archival.Contents) archival.Contents {
		c.Metadata = `{"a": "gone"}`
		return c
	}); err != nil {
		t.Fatal(err)
	}
	check()
}

func TestAFilterOfAnUnknownFieldIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.insert("a note")
	q := archival.Query{AgentID: f.agent, Filter: json.RawMessage(`{"tag": "x"}`)}
	_, err := f.store.Search(t.Context(), f.org, q)
	if !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "did you mean tags?") {
		t.Errorf("got %v, want a refusal that names tags", err)
	}
}

// Hits ordered by time are on one page each, and pages stay valid while passages are added.
func TestHitsAreOrderedByTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	archive := f.archive("notes")
	f.describedNotes(archive.ID)
	q := archival.Query{Text: "subject3", ArchiveID: archive.ID, Limit: 30, ByTime: true,
		Filter: json.RawMessage(`{"metadata.price": {"gt": 10}}`)}
	var seen []archival.Hit
	for page := 0; ; page++ {
		got := f.search(q)
		if seen = append(seen, got.Hits...); !got.More {
			break
		}
		q.After = got.Hits[len(got.Hits)-1].ID
		added := archival.Draft{Text: fmt.Sprint("a new note of subject3, page ", page),
			Metadata: json.RawMessage(`{"price": 99}`)}
		if _, err := f.store.Insert(t.Context(), f.org, archive.ID, []archival.Draft{added}); err != nil {
			t.Fatal(err)
		}
	}
	ids := map[string]bool{}
	for i, h := range seen {
		if ids[h.ID] = true; i > 0 && h.HappenedAt.After(seen[i-1].HappenedAt) {
			t.Errorf("hit %d is newer than the one before", i)
		}
	}
	if len(seen) != 88 || len(ids) != 88 { // all notes with a price above 10 share a word with the query
		t.Errorf("got %d hits, %d different ones, want 88", len(seen), len(ids))
	}
}

func TestFacetsCountWhatAFilterLeaves(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	archive := f.archive("notes")
	f.describedNotes(archive.ID, f.archive("another").ID)
	got, err := f.store.Facets(t.Context(), f.org, archival.Query{ArchiveID: archive.ID,
		Filter: json.RawMessage(`{"tags": ["tag 1", "tag 2"], "metadata.who.name": {"exists": true}}`)})
	if err != nil {
		t.Fatal(err)
	}
	tags := []archival.Count{{Value: "tag 1", Count: 6}, {Value: "tag 2", Count: 6}}
	if diff := cmp.Diff(tags, got.Counts["tags"]); diff != "" {
		t.Error(diff)
	}
	dishes := []archival.Count{{Value: "dish 1", Count: 6}, {Value: "dish 2", Count: 6}}
	if diff := cmp.Diff(dishes, got.Counts["metadata.food"]); diff != "" {
		t.Error(diff)
	}
	list := []archival.Count{{Value: "a", Count: 12}, {Value: "1", Count: 6}, {Value: "2", Count: 6}}
	if diff := cmp.Diff(list, got.Counts["metadata.list"]); diff != "" {
		t.Error(diff)
	}
	if got.Passages != 12 || len(got.Counts["day"]) == 0 || got.Counts["day"][0].Count > 2 ||
		len(got.Counts["metadata.price"]) != 12 {
		t.Errorf("got %+v, want 12 passages with their days and prices", got)
	}
	if _, err := f.store.Facets(t.Context(), f.org, archival.Query{Filter: json.RawMessage(`{"x": 1}`)}); err == nil {
		t.Error("a filter of an unknown field is taken")
	}
}
