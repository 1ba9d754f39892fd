package recall_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall"
)

// inventory returns a text of about size bytes. Its lines hardly share a word, and count facts are spread over it.
func inventory(size, count int) (text string, facts []string) {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "shelf %05d holds part%06d in colour%05d from maker%04d\n", i, i*7919%1_000_000, i*31%100_000,
			i*17%10_000)
		if b.Len() >= (len(facts)+1)*size/(count+1) && len(facts) < count {
			facts = append(facts, fmt.Sprintf("the spare key%02d hangs behind the boiler", len(facts)))
			b.WriteString(facts[len(facts)-1] + "\n")
		}
	}
	return b.String(), facts
}

// A search finds a result that is too long for the log by all of its text, even while the model sees its beginning.
func TestAllOfALongTextIsSearchedAndExpanded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		size   int
		drafts func(string) []recall.Draft
	}{
		{"a tool's result", scale.Of(80_000, 400_000), func(s string) []recall.Draft {
			return []recall.Draft{called("c", "read", "{}"), returned("c", s)}
		}},
		{"a user's message", scale.Of(120_000, 700_000), func(s string) []recall.Draft {
			return []recall.Draft{say(recall.User, s)}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			text, facts := inventory(tt.size, scale.Of(4, 12))
			f.append(say(recall.User, "What is in the cellar?"), say(recall.Assistant, "I shall look where the key hangs."))
			long := f.append(tt.drafts(text)...)
			// The model now sees the beginning of the long message.
			f.exec(`UPDATE conversations SET first_visible = 3 WHERE org = $1`)
			last := long[len(long)-1]
			for i, fact := range facts {
				hits := f.search(recall.Query{AgentID: f.agent, Text: fmt.Sprintf("Where hangs key%02d?", i), Unseen: true,
					Limit: 1}).Hits
				if len(hits) == 0 || hits[0].ID != last.ID || !strings.Contains(hits[0].Snippet, fact) {
					t.Errorf("fact %d is not found: %+v", i, hits)
				}
				for _, id := range []string{last.ID, fmt.Sprintf("seq %d-%d", long[0].Seq, last.Seq)} {
					e, err := f.store.Expand(t.Context(), f.org, f.agent,
						recall.ExpandQuery{ID: id, Pattern: fmt.Sprintf(`key%02d hangs`, i)})
					if err != nil || len(e.Lines) != 1 || !strings.Contains(e.Lines[0].Text, fact) {
						t.Errorf("expand(%s) does not reach fact %d: %+v, %v", id, i, e.Lines, err)
					}
				}
			}
			if got := f.expand(last.ID, 100_000); got != text {
				t.Errorf("expand reads %d bytes, want the %d that were said", len(got), len(text))
			}
		})
	}
}
