package recall_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

func TestAppendKeepsOrderAndWhatWasSaid(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.append(say(recall.User, "hello"), say(recall.Assistant, "hi"))
	second := f.append(say(recall.User, "bye\x00"))
	var got [][2]int64
	for _, a := range append(first, second...) {
		got = append(got, [2]int64{a.Seq, int64(a.Position)})
	}
	if diff := cmp.Diff([][2]int64{{2, 2}, {3, 3}, {4, 4}}, got); diff != "" {
		t.Errorf("seq and position (-want +got):\n%s", diff)
	}
	if m := f.message(second[0].ID); m.Content[0].Text != "bye␀" || m.Role != recall.User || m.ConversationID != nil {
		t.Errorf("got %+v", m)
	}
	all, err := f.store.Messages(t.Context(), f.org, recall.MessageFilter{AgentID: f.agent},
		db.Page{Ascending: true, Limit: 10})
	if err != nil || len(all) != 4 || all[0].Role != recall.System || all[3].Content[0].Text != "bye␀" {
		t.Errorf("got %+v, %v", all, err)
	}
	page, err := f.store.Messages(t.Context(), f.org, recall.MessageFilter{AgentID: f.agent, Conversation: "default"},
		db.Page{After: all[1].ID, Ascending: true, Limit: 1})
	if err != nil || len(page) != 1 || page[0].ID != all[2].ID {
		t.Errorf("after %s got %+v, %v", all[1].ID, page, err)
	}
}

func TestAnOTIDIsStoredOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	otid := "turn-1"
	m := say(recall.User, "once")
	m.OTID = &otid
	first := f.append(m, say(recall.Assistant, "fine"))
	again, err := f.store.Append(t.Context(), f.org, f.agent, "", []recall.Draft{m})
	if err != nil || again[0].ID != first[0].ID || !again[0].Repeated || again[0].Seq != first[0].Seq {
		t.Errorf("got %+v, %v, want %+v repeated", again, err, first[0])
	}
	other := say(recall.User, "something else")
	other.OTID = &otid
	_, err = f.store.Append(t.Context(), f.org, f.agent, "", []recall.Draft{say(recall.User, "lost?"), other})
	if !errors.Is(err, db.ErrConflict) {
		t.Errorf("another message under the same otid: got %v, want ErrConflict", err)
	}
	if c := f.conversation(); c.Messages != 3 {
		t.Errorf("the conversation has %d messages, want 3: nothing of a refused request is kept", c.Messages)
	}
}

// A request appends at most MaxMessages messages, and reads no more drafts than it needs to see that there are more.
func TestARequestHasAMostOfMessages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		given, read int
		want        error
	}{
		{"none", 0, 0, db.ErrInvalid},
		{"the most", recall.MaxMessages, recall.MaxMessages, nil},
		{"more", 2 * recall.MaxMessages, recall.MaxMessages + 1, db.ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			read := 0
			got, _, err := f.store.AppendTo(t.Context(), f.org, f.agent, "", func(yield func(recall.Draft, error) bool) {
				for range c.given {
					if read++; !yield(say(recall.User, "again"), nil) {
						return
					}
				}
			})
			if !errors.Is(err, c.want) || c.want == nil && len(got) != c.given || read != c.read {
				t.Errorf("%d messages: got %d, %v after %d drafts, want %v after %d", c.given, len(got), err, read, c.want, c.read)
			}
			if n := f.conversation().Messages; n != 1+len(got) {
				t.Errorf("the conversation has %d messages, want %d", n, 1+len(got))
			}
		})
	}
}

func TestAnOTIDOfAHiddenMessageIsFree(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	otid := "turn-1"
	m, other := say(recall.User, "once"), say(recall.User, "something else")
	m.OTID, other.OTID = &otid, &otid
	last := f.append(m)
	for _, next := range []recall.Draft{m, other} {
		f.must(f.store.Reset(t.Context(), f.org, f.agent, anew))
		for _, repeated := range []bool{false, true} {
			got, err := f.store.Append(t.Context(), f.org, f.agent, "", []recall.Draft{next})
			f.must(err)
			if got[0].Repeated != repeated || (got[0].ID == last[0].ID) != repeated {
				t.Fatalf("after a reset, an otid of before: got %+v, want repeated %v; before: %+v", got, repeated, last)
			}
			last = got
		}
		if c := f.conversation(); c.Messages != 2 {
			t.Errorf("the conversation has %d messages, want the instructions and one", c.Messages)
		}
	}
}

// A call has only one result: the same result again returns the stored one, and a different result is refused together
// with its whole request.
func TestACallHasOneResult(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	long := strings.Repeat("long ", 50_000)
	first := f.append(called("c1", "look", `{}`), returned("c1", "blue"), called("c2", "look", `{}`),
		returned("c2", long))
	again := f.append(returned("c1", "blue"), say(recall.User, "and?"), returned("c2", long))
	for i, want := range map[int]string{0: first[1].ID, 2: first[3].ID} {
		if got := again[i]; !got.Repeated || got.ID != want || len(got.Orphans) > 0 {
			t.Errorf("the same result again: got %+v, want %s", got, want)
		}
	}
	count := f.conversation().Messages
	if again[1].Position != count || again[1].Repeated {
		t.Errorf("the message between them is %+v of %d", again[1], count)
	}
	failed := returned("c1", "blue")
	failed.Content[0].IsError = true
	for name, c := range map[string]struct {
		drafts []recall.Draft
		want   error
	}{
		"another text":      {[]recall.Draft{say(recall.User, "x"), returned("c1", "green")}, db.ErrConflict},
		"an error":          {[]recall.Draft{say(recall.User, "x"), failed}, db.ErrConflict},
		"another long text": {[]recall.Draft{say(recall.User, "x"), returned("c2", long+"x")}, db.ErrConflict},
		"two in a request": {[]recall.Draft{called("c3", "look", `{}`), returned("c3", "a"), returned("c3", "a")},
			db.ErrInvalid},
	} {
		_, err := f.store.Append(t.Context(), f.org, f.agent, "", c.drafts)
		draft, isDraftError := errors.AsType[*recall.DraftError](err)
		if !errors.Is(err, c.want) || !isDraftError || draft.At != len(c.drafts)-1 || f.conversation().Messages != count {
			t.Errorf("%s: got %v, and %d messages of %d", name, err, f.conversation().Messages, count)
		}
	}
	f.append(called("c1", "look", `{}`), returned("c1", "green")) // another call with this id
}

func TestResultsArePairedWithTheirCalls(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append(say(recall.User, "look"), called("c1", "look", `{"at":"sky"}`), returned("c1", "blue"))
	f.append(called("c1", "look", `{}`))
	late := f.append(returned("c1", "grey"))
	orphan := f.append(returned("c9", "whose?"))
	for _, c := range []struct {
		id   string
		want bool
	}{{late[0].ID, false}, {orphan[0].ID, true}} {
		if got := f.message(c.id).Content[0].Orphan; got != c.want {
			t.Errorf("%s is an orphan: got %v, want %v", c.id, got, c.want)
		}
	}
	if diff := cmp.Diff([]string{"You remember.", "look", `{"at":"sky"}`, "blue", "{}", "grey"}, f.view()); diff != "" {
		t.Errorf("the view (-want +got):\n%s", diff)
	}
}

func TestAppendsAndResetsDoNotMissEachOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var group errgroup.Group
	for i := range 4 {
		group.Go(func() error {
			for n := range 10 {
				m := say(recall.User, "go on")
				otid := fmt.Sprintf("%d", n) // all four drafts have the same otid
				m.OTID = &otid
				if _, err := f.store.Append(t.Context(), f.org, f.agent, "", []recall.Draft{m}); err != nil {
					return err
				}
				if i == 0 && n%3 == 0 {
					if err := f.store.Reset(t.Context(), f.org, f.agent, anew); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := f.count(`SELECT count(*) FROM messages WHERE org = $1 AND otid IS NOT NULL`); n != 10 {
		t.Errorf("%d messages, want each of 10 once", n)
	}
}
