package recall_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// What a summary names is read by the name that it gives, in whichever way a model writes that.
func TestExpandReadsAStretchOfTheLog(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append(say(recall.User, "one"), say(recall.Assistant, "two"), called("c1", "look", `{"at":"sky"}`), returned("c1", "blue\nand grey"))
	if _, err := f.store.CreateConversation(t.Context(), org, f.agent, recall.NewConversation{ID: recall.NewConversationID(), Instructions: "Other."}); err != nil {
		t.Fatal(err)
	}
	f.append(say(recall.User, "three"))
	all, err := f.store.Messages(t.Context(), org, recall.MessageFilter{AgentID: f.agent, Conversation: "default"}, db.Page{Limit: 50, Ascending: true})
	if err != nil {
		t.Fatal(err)
	}
	from, to := all[1].Seq, all[len(all)-1].Seq
	first := fmt.Sprint(from)
	for _, c := range []struct {
		id   string
		want []string
	}{
		{fmt.Sprintf("seq %d-%d", from, to), []string{"one", "two", `look({"at":"sky"})`, "blue\nand grey", "three"}},
		{fmt.Sprintf("[seq %d–%d]", from, to), []string{"one", "two", `look({"at":"sky"})`, "blue\nand grey", "three"}},
		{fmt.Sprintf("Seq %d to %d", from+1, from+2), []string{"two", `look({"at":"sky"})`}},
		{fmt.Sprintf("%d-%d", from, from), []string{"one"}},
		{"seq " + first, []string{"one"}},
	} {
		got, err := f.store.Expand(t.Context(), org, f.agent, c.id, 0, 0, "")
		if err != nil {
			t.Errorf("%s: %v", c.id, err)
			continue
		}
		for _, text := range c.want {
			if !strings.Contains(got.Text, text+"\n") {
				t.Errorf("%s: %q is not in:\n%s", c.id, text, got.Text)
			}
		}
		if n := strings.Count(got.Text, "[seq "); n != len(c.want) || strings.Contains(got.Text, "Other.") || strings.Contains(got.Text, "You remember") {
			t.Errorf("%s: %d messages, want %d and no prompts:\n%s", c.id, n, len(c.want), got.Text)
		}
	}
	for id, want := range map[string]error{"seq 9-3": db.ErrInvalid, "seq 9000-9001": db.ErrNotFound, "120": db.ErrNotFound, "seq 99999999999999999999": db.ErrNotFound} {
		if _, err := f.store.Expand(t.Context(), org, f.agent, id, 0, 0, ""); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", id, err, want)
		}
	}
	if _, err := f.store.Expand(t.Context(), org, "agent-of-nobody", "seq "+first, 0, 0, ""); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("of another agent: %v", err)
	}
}
