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
	got := [][2]int64{{first[0].Seq, int64(first[0].Position)}, {first[1].Seq, int64(first[1].Position)}, {second[0].Seq, int64(second[0].Position)}}
	if diff := cmp.Diff([][2]int64{{2, 2}, {3, 3}, {4, 4}}, got); diff != "" {
		t.Errorf("seq and position (-want +got):\n%s", diff)
	}
	if m := f.message(second[0].ID); m.Content[0].Text != "bye" || m.Role != recall.User || m.ConversationID != nil {
		t.Errorf("got %+v", m)
	}
	all, err := f.store.Messages(t.Context(), org, recall.MessageFilter{AgentID: f.agent}, db.Page{Ascending: true, Limit: 10})
	if err != nil || len(all) != 4 || all[0].Role != recall.System || all[3].Content[0].Text != "bye" {
		t.Errorf("got %+v, %v", all, err)
	}
	page, err := f.store.Messages(t.Context(), org, recall.MessageFilter{AgentID: f.agent, Conversation: "default"}, db.Page{After: all[1].ID, Ascending: true, Limit: 1})
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
	again, err := f.store.Append(t.Context(), org, f.agent, "", []recall.Draft{m})
	if err != nil || again[0].ID != first[0].ID || !again[0].Repeated || again[0].Seq != first[0].Seq {
		t.Errorf("got %+v, %v, want %+v repeated", again, err, first[0])
	}
	other := say(recall.User, "something else")
	other.OTID = &otid
	if _, err := f.store.Append(t.Context(), org, f.agent, "", []recall.Draft{say(recall.User, "lost?"), other}); !errors.Is(err, db.ErrConflict) {
		t.Errorf("another message under the same otid: got %v, want ErrConflict", err)
	}
	if c, err := f.store.Conversation(t.Context(), org, f.agent, ""); err != nil || c.Messages != 3 {
		t.Errorf("the conversation has %d messages, %v, want 3: nothing of a refused request is kept", c.Messages, err)
	}
}

func TestResultsArePairedWithTheirCalls(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append(say(recall.User, "look"), called("c1", "look", `{"at":"sky"}`), returned("c1", "blue"))
	f.append(called("c1", "look", `{}`))
	late := f.append(returned("c1", "grey"))
	orphan := f.append(returned("c9", "whose?"), returned("c1", "twice"))
	for _, c := range []struct {
		id   string
		want bool
	}{{late[0].ID, false}, {orphan[0].ID, true}, {orphan[1].ID, true}} {
		if got := f.message(c.id).Content[0].Orphan; got != c.want {
			t.Errorf("%s is an orphan: got %v, want %v", c.id, got, c.want)
		}
	}
	view, err := f.store.ViewOf(t.Context(), org, f.agent, "")
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, m := range view {
		shown = append(shown, m.Content[0].Text+m.Content[0].Input)
	}
	if diff := cmp.Diff([]string{"You remember.", "look", `{"at":"sky"}`, "blue", "{}", "grey"}, shown); diff != "" {
		t.Errorf("the view (-want +got):\n%s", diff)
	}
}

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
	var read strings.Builder
	for offset := 0; ; {
		e, err := f.store.Expand(t.Context(), org, f.agent, part.Clip.ID, offset, 7001, "")
		if err != nil {
			t.Fatal(err)
		}
		read.WriteString(e.Text)
		if e.NextOffset == nil {
			break
		}
		offset = *e.NextOffset
	}
	if read.String() != whole {
		t.Errorf("expanded %d bytes, want the %d that were appended", read.Len(), len(whole))
	}
	e, err := f.store.Expand(t.Context(), org, f.agent, part.Clip.ID, 0, 0, `39\d9 `)
	if err != nil || len(e.Lines) != 10 || e.Lines[0].Number != 3910 {
		t.Errorf("lines that fit: got %+v, %v", e.Lines, err)
	}
	if _, err := f.store.Expand(t.Context(), org, f.newAgent(), part.Clip.ID, 0, 0, ""); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("another agent's: got %v, want ErrNotFound", err)
	}
}

func TestSearchFindsByWordsAndSurroundings(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 30 {
		f.append(say(recall.User, fmt.Sprintf("Let us talk about topic %d and the weather", i)), say(recall.Assistant, "Sure, go on."))
	}
	asked := f.append(say(recall.User, "Where did I park the red bicycle?"), say(recall.Assistant, "Behind the library."))
	got, err := f.store.Search(t.Context(), org, recall.Query{Text: "where is my bicycle", AgentID: f.agent, Limit: 3})
	if err != nil || len(got.Hits) < 2 || got.Hits[0].ID != asked[0].ID || got.Hits[1].ID != asked[1].ID {
		t.Errorf("got %+v, %v, want the question and its answer first", got.Hits, err)
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
				otid := fmt.Sprintf("%d", n) // the same of all four
				m.OTID = &otid
				if _, err := f.store.Append(t.Context(), org, f.agent, "", []recall.Draft{m}); err != nil {
					return err
				}
				if i == 0 && n%3 == 0 {
					if err := f.store.Reset(t.Context(), org, f.agent, "Anew."); err != nil {
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
	n, err := db.One[int](t.Context(), f.pool, `SELECT count(*) FROM messages WHERE otid IS NOT NULL`)
	if err != nil || n != 10 {
		t.Errorf("%d messages, %v, want each of 10 once", n, err)
	}
}
