package archival_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/embedtest"
)

// A search that reads the keys of its tags and times first finds the same as one that compares every passage. It holds
// for words and meaning, with and without the index of words, and without a text.
func TestTagsAndTimesNarrowASearch(t *testing.T) {
	t.Parallel()
	for _, indexed := range []bool{false, true} {
		t.Run(fmt.Sprint("index of words: ", indexed), func(t *testing.T) {
			t.Parallel()
			f := newDenseFixture(t, embedtest.New(t, 64))
			f.store.SetWordRows(100, 10)
			archives := []string{f.archive("one").ID, f.archive("two").ID}
			f.taggedNotes(append(archives, f.archive("of another agent").ID)...)
			for _, id := range archives {
				if err := f.store.Attach(t.Context(), f.org, f.agent, id); err != nil {
					t.Fatal(err)
				}
			}
			f.embedded(archives...)
			exact := archival.New(f.pool, archival.Options{Endpoint: f.endpoint})
			exact.SetWide(1 << 40)
			exact.SetWordRows(1<<40, 1<<40)
			if f.store.SetWide(10); indexed {
				if n, err := f.store.IndexWords(t.Context()); err != nil || n == 0 {
					t.Fatalf("%d segments, %v", n, err)
				}
			}
			for _, q := range narrowing(f.agent) {
				got := f.search(q)
				want, err := exact.Search(t.Context(), f.org, q)
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Errorf("%+v: %v (-all +narrowed):\n%s", q, err, diff)
				}
				if absent := len(q.Tags) == 1 && q.Tags[0] == "absent"; absent != (len(got.Hits) == 0) {
					t.Errorf("%+v: %d hits", q, len(got.Hits))
				}
			}
		})
	}
}

// noteDay is the day of note n.
func noteDay(n int) *time.Time {
	day := time.Date(2026, 1, 1+n%25, 12, 0, 0, 0, time.UTC)
	return &day
}

// taggedNotes inserts notes with tags and days into each archive.
func (f *fixture) taggedNotes(archives ...string) {
	f.Helper()
	for _, id := range archives {
		var drafts []archival.Draft
		for n := range 120 {
			d := archival.Draft{Text: fmt.Sprintf("note number%d of subject%d", n, n%7), HappenedAt: noteDay(n)}
			if n%5 > 0 {
				d.Tags = []string{fmt.Sprint("tag ", n%20), "a, 'b' {c}"}
			}
			drafts = append(drafts, d)
		}
		if _, err := f.store.Insert(f.Context(), f.org, id, drafts); err != nil {
			f.Fatal(err)
		}
	}
}

func narrowing(agent string) (all []archival.Query) {
	for _, text := range []string{"note of subject3", ""} {
		for _, tags := range [][]string{nil, {"tag 7"}, {"tag 7", "tag 8"}, {"absent"}, {"a, 'b' {c}", "tag 3"}} {
			for _, match := range []archival.Match{archival.Any, archival.All} {
				q := archival.Query{Text: text, AgentID: agent, Limit: 15, Tags: tags, Match: match}
				if match == archival.All && len(tags) == 2 && tags[0] == "tag 7" {
					continue // no note has this
				}
				all = append(all, q)
				q.Start, q.End = noteDay(3), noteDay(18)
				all = append(all, q)
			}
		}
	}
	return all
}

func TestASearchHasAtMostAThousandTags(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	archive := f.archive("notes")
	q := archival.Query{ArchiveID: archive.ID, Limit: 10}
	for n := range 1001 {
		q.Tags = append(q.Tags, fmt.Sprint("tag ", n))
	}
	if _, err := f.store.Search(t.Context(), f.org, q); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
	q.Tags = append(q.Tags[:1000], q.Tags[0])
	if _, err := f.store.Search(t.Context(), f.org, q); err != nil {
		t.Errorf("with 1,000 different ones: %v", err)
	}
}
