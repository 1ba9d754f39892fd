package recall_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

func TestALongResultIsStoredWholeAndExpanded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var b strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&b, "line %04d of the répertoire\n", i)
	}
	whole := b.String()
	got := f.append(called("c", "read", "{}"), returned("c", whole))
	part := f.message(got[1].ID).Content[0]
	if part.Clip == nil || part.Clip.Bytes != len(whole) || len(part.Text) > recall.PreviewBytes+300 {
		t.Fatalf("got %d bytes of text, clip %+v", len(part.Text), part.Clip)
	}
	if read := f.expand(part.Clip.ID, 7001); read != whole {
		t.Errorf("expanded %d bytes, want the %d that were appended", len(read), len(whole))
	}
	e, err := f.store.Expand(t.Context(), f.org, f.agent, recall.ExpandQuery{ID: part.Clip.ID, Pattern: `39\d9 `})
	if err != nil || len(e.Lines) != 10 || e.Lines[0].Number != 3910 {
		t.Errorf("matching lines: got %+v, %v", e.Lines, err)
	}
	f.expandIs(db.ErrNotFound, f.newAgent(), part.Clip.ID)
}

// Six results of 45,000 characters answer one message: those that go above 200,000 together are stored outside the log,
// whether they are parts of a message or messages of their own. The next answer counts anew.
func TestParallelResultsShareABound(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a page of the répertoire\n", 1800)
	calls := say(recall.Assistant, "I look.")
	calls.Content = nil
	all := recall.Draft{Role: recall.Tool}
	var each []recall.Draft
	for i := range 6 {
		id := fmt.Sprint("c", i)
		calls.Content = append(calls.Content, called(id, "read", "{}").Content...)
		r := returned(id, fmt.Sprint(i, text))
		all.Content, each = append(all.Content, r.Content...), append(each, r)
	}
	for name, results := range map[string][]recall.Draft{"parts": {all}, "messages": each} {
		f := newFixture(t)
		added := f.append(append([]recall.Draft{calls}, results...)...)
		added = append(added, f.append(called("d", "read", "{}"), returned("d", text))...)
		chars, clips := 0, 0
		for _, m := range added {
			for _, p := range f.message(m.ID).Content {
				if p.Type == recall.ToolReturn {
					chars += utf8.RuneCountInString(p.Text)
				}
				if p.Clip == nil {
					continue
				}
				clips++
				if read := f.expand(p.Clip.ID, 7001); !strings.HasSuffix(read, text) {
					t.Errorf("%s: a whole result has %d bytes", name, len(read))
				}
			}
		}
		if clips != 2 || chars > 5*45_001+2*(recall.PreviewBytes+200) {
			t.Errorf("%s: %d results are stored outside the log, and %d characters in it", name, clips, chars)
		}
	}
}

func TestALongMessageIsExpandedByItsIDOrSeq(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	text := strings.Repeat("línea\n", 10_000)
	added := f.append(say(recall.User, text))[0]
	for _, id := range []string{added.ID, fmt.Sprint(added.Seq)} {
		if got := f.expand(id, 16_001); got != text {
			t.Errorf("%s: got %d bytes, want the %d of the message", id, len(got), len(text))
		}
		f.expandIs(db.ErrNotFound, f.newAgent(), id)
	}
	f.expandIs(db.ErrNotFound, f.agent, "99999")
}
