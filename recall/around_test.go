package recall_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

func TestWhatIsAroundAMessage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var drafts []recall.Draft
	for i := range 9 {
		drafts = append(drafts, say(recall.User, fmt.Sprint(i)))
	}
	said := f.append(drafts...) // at positions 2 to 10
	other, err := f.store.CreateConversation(t.Context(), org, f.agent, recall.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.store.Append(t.Context(), org, f.agent, other.ID, []recall.Draft{say(recall.User, "elsewhere")}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name          string
		of            recall.Appended
		before, after int
		want          []int
		at            int
	}{
		{"on both sides", said[4], 2, 1, []int{4, 5, 6, 7}, 2},
		{"itself alone", said[4], 0, 0, []int{6}, 0},
		{"no further than the beginning", said[0], 100, 0, []int{1, 2}, 1},
		{"no further than the end, and not in another conversation", said[8], 0, 100, []int{10}, 0},
	} {
		got, err := f.store.Around(t.Context(), org, f.agent, tt.of.ID, tt.before, tt.after)
		var positions []int
		for _, m := range got.Messages {
			positions = append(positions, m.Position)
		}
		if err != nil || !slices.Equal(positions, tt.want) || got.At != tt.at || got.Total != 10 {
			t.Errorf("%s: got positions %v, at %d, of %d, %v; want %v at %d of 10", tt.name, positions, got.At, got.Total, err, tt.want, tt.at)
		}
	}
}

func TestAroundRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	mine := f.append(say(recall.User, "hello"))[0].ID
	for _, tt := range []struct {
		name          string
		org           db.Org
		agent, id     string
		before, after int
		want          error
	}{
		{"a message that is not there", org, f.agent, "message-123e4567-e89b-42d3-8456-426614174000", 1, 1, db.ErrNotFound},
		{"what is no id", org, f.agent, "x", 1, 1, db.ErrNotFound},
		{"another agent's message", org, f.newAgent(), mine, 1, 1, db.ErrNotFound},
		{"another organization's message", 2, f.agent, mine, 1, 1, db.ErrNotFound},
		{"too many messages", org, f.agent, mine, 0, recall.MaxAround + 1, db.ErrInvalid},
		{"fewer than none", org, f.agent, mine, -1, 0, db.ErrInvalid},
	} {
		if _, err := f.store.Around(t.Context(), tt.org, tt.agent, tt.id, tt.before, tt.after); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
}

func TestALongMessageIsExpandedByItsID(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	text := strings.Repeat("línea\n", 10_000)
	id := f.append(say(recall.User, text))[0].ID
	var got strings.Builder
	for at := new(0); at != nil; {
		e, err := f.store.Expand(t.Context(), org, f.agent, id, *at, 16_001, "")
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString(e.Text)
		at = e.NextOffset
	}
	if got.String() != text {
		t.Errorf("got %d bytes, want the %d of the message", got.Len(), len(text))
	}
	if _, err := f.store.Expand(t.Context(), org, f.newAgent(), id, 0, 0, ""); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("of another agent: %v, want ErrNotFound", err)
	}
}

// A NUL in the JSON of a part would break every statement that looks into the content.
func TestTheJSONOfPartsIsCleaned(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.append(recall.Draft{Role: recall.Assistant, Content: []recall.Part{
		{Type: recall.Image, Source: json.RawMessage(`{"type":"url","url":"https://a\u0000/b"}`)},
		{Type: recall.SummarizedReasoning, Text: "hm", Summary: json.RawMessage(`[{"index":0,"text":"a\u0000b"}]`)},
	}})[0].ID
	f.append(say(recall.User, "zebra"))
	m := f.message(id)
	if got := string(m.Content[0].Source); got != `{"type":"url","url":"https://a/b"}` {
		t.Errorf("source is %s, want no NUL", got)
	}
	if got := string(m.Content[1].Summary); got != `[{"index":0,"text":"ab"}]` {
		t.Errorf("summary is %s, want no NUL", got)
	}
	if _, err := f.store.Search(t.Context(), org, recall.Query{Text: "zebra", AgentID: f.agent, Limit: 5}); err != nil {
		t.Errorf("search: %v", err)
	}
	broken := recall.Draft{Role: recall.User, OTID: new("o"), Content: []recall.Part{{Type: recall.Image, Source: json.RawMessage(`{`)}}}
	_, err := f.store.Append(t.Context(), org, f.agent, recall.DefaultConversation, []recall.Draft{say(recall.User, "x"), broken})
	if wrong, ok := errors.AsType[*recall.DraftError](err); !ok || wrong.At != 1 || !errors.Is(err, db.ErrInvalid) {
		t.Errorf("broken JSON: got %v, want ErrInvalid of the second message", err)
	}
}
