package recall_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/recall"
)

func TestNeighbors(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var drafts []recall.Draft
	for i := range 9 {
		drafts = append(drafts, say(recall.User, fmt.Sprint(i)))
	}
	appended := f.append(drafts...) // at positions 2 to 10
	other, err := f.store.CreateConversation(t.Context(), f.org, f.agent, recall.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.store.Append(t.Context(), f.org, f.agent, other.ID, []recall.Draft{say(recall.User,
		"elsewhere")}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name          string
		of            recall.Appended
		before, after int
		want          []int
		at            int
	}{
		{"on both sides", appended[4], 2, 1, []int{4, 5, 6, 7}, 2},
		{"itself alone", appended[4], 0, 0, []int{6}, 0},
		{"no further than the beginning", appended[0], 100, 0, []int{1, 2}, 1},
		{"no further than the end, and not in another conversation", appended[8], 0, 100, []int{10}, 0},
	} {
		got, err := f.store.Neighbors(t.Context(), f.org,
			recall.NeighborQuery{AgentID: f.agent, MessageID: tt.of.ID, Before: tt.before, After: tt.after})
		var positions []int
		for _, m := range got.Messages {
			positions = append(positions, m.Position)
		}
		if err != nil || !slices.Equal(positions, tt.want) || got.At != tt.at || got.Total != 10 {
			t.Errorf("%s: got positions %v, at %d, of %d, %v; want %v at %d of 10",
				tt.name, positions, got.At, got.Total, err, tt.want, tt.at)
		}
	}
}

func TestNeighborsRefuses(t *testing.T) {
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
		{"a message that is not there", f.org, f.agent, "message-123e4567-e89b-42d3-8456-426614174000", 1, 1, db.ErrNotFound},
		{"what is no id", f.org, f.agent, "x", 1, 1, db.ErrNotFound},
		{"another agent's message", f.org, f.newAgent(), mine, 1, 1, db.ErrNotFound},
		{"another organization's message", dbtest.NewOrg(t, f.pool), f.agent, mine, 1, 1, db.ErrNotFound},
		{"too many messages", f.org, f.agent, mine, 0, recall.MaxNeighbors + 1, db.ErrInvalid},
		{"fewer than none", f.org, f.agent, mine, -1, 0, db.ErrInvalid},
	} {
		q := recall.NeighborQuery{AgentID: tt.agent, MessageID: tt.id, Before: tt.before, After: tt.after}
		if _, err := f.store.Neighbors(t.Context(), tt.org, q); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
}
