package recall_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/recall"
)

// Filters narrow a search of messages, by words and meaning and without a text, whether the rows that pass are read by
// their keys or not.
func TestFiltersNarrowASearchOfMessages(t *testing.T) {
	t.Parallel()
	f := newDenseFixture(t, embedtest.New(t, 64))
	f.append(at(say(recall.User, "apple one"), "2024-01-01T10:00:00Z"),
		at(called("c", "buy", `{"what":"apple two"}`), "2024-02-01T10:00:00Z"),
		at(returned("c", "apple three"), "2024-02-02T10:00:00Z"),
		at(say(recall.Assistant, "apple four"), "2024-03-01T10:00:00Z"),
		say(recall.User, "pears "+strings.Repeat("and plums in the long garden behind the house. ", 400)+" apple five"))
	other, err := f.store.CreateConversation(t.Context(), f.org, f.agent, recall.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.store.Append(t.Context(), f.org, f.agent, other.ID,
		[]recall.Draft{at(say(recall.User, "apple six"), "2024-01-01T12:00:00Z")}); err != nil {
		t.Fatal(err)
	}
	f.embed()
	for _, row := range []struct{ filter, want string }{
		{`{"role": "user"}`, "five one six"}, {`{"role": {"nin": ["user", "tool"]}}`, "four two"},
		{`{"tool": "buy"}`, "three two"}, {`{"tool": {"exists": false}, "role": "user"}`, "five one six"},
		{`{"created_at": "2024-01-01"}`, "one six"}, {`{"created_at": {"gt": "2024-02-01", "lt": "2024-03-02"}}`,
			"four three"},
		{`{"conversation": "` + other.ID + `"}`, "six"}, {`{"conversation": "default", "role": "user"}`, "five one"},
		{`{"not": {"conversation": "default"}}`, "six"}, {`{"conversation": "conv-none"}`, ""},
		{`{"agent": "` + f.agent + `", "position": {"lte": 2}}`, "one six"}, {`{"user": {"exists": true}}`, ""},
		{`{"user": "ann"}`, ""}, {`{"or": [{"tool": "buy"}, {"conversation": "` + other.ID + `"}]}`, "six three two"},
	} {
		for _, text := range []string{"apple", ""} {
			for _, wide := range []int{1, 1 << 40} {
				f.store.SetWide(wide)
				var got []string
				for _, said := range f.found(recall.Query{Text: text, Filter: json.RawMessage(row.filter), OnlyMatches: true,
					Limit: 50}) {
					for _, n := range []string{"one", "two", "three", "four", "five", "six"} {
						if strings.Contains(said, "apple "+n) {
							got = append(got, n)
						}
					}
				}
				slices.Sort(got)
				if diff := cmp.Diff(row.want, strings.Join(got, " ")); diff != "" {
					t.Errorf("%s of %q, keys from %d rows on (-want +got):\n%s", row.filter, text, wide, diff)
				}
			}
		}
	}
	_, err = f.store.Search(t.Context(), f.org, recall.Query{AgentID: f.agent, Filter: json.RawMessage(`{"roles": "x"}`)})
	if !errors.Is(err, db.ErrInvalid) || !strings.Contains(fmt.Sprint(err), "did you mean role?") {
		t.Errorf("an unknown field: got %v, want a refusal that names role", err)
	}
}
