package recall_test

import (
	"fmt"
	"strings"
	"testing"

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
