package recall_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/recall"
)

func TestConversationsBeginWithTheirInstructions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	summary, window := "trips", 8192
	trip, err := f.store.CreateConversation(t.Context(), f.org, f.agent,
		recall.NewConversation{Summary: &summary, WindowLimit: &window, Instructions: "Be brief."})
	if err != nil || trip.Messages != 1 || *trip.Summary != "trips" || *trip.WindowLimit != 8192 ||
		trip.AgentID != f.agent {
		t.Fatalf("got %+v, %v", trip, err)
	}
	got, err := f.store.Messages(t.Context(), f.org, recall.MessageFilter{Conversation: trip.ID}, db.Page{Ascending: true})
	if err != nil || len(got) != 1 || got[0].Role != recall.System || got[0].Content[0].Text != "Be brief." ||
		*got[0].ConversationID != trip.ID {
		t.Errorf("got %+v, %v", got, err)
	}
	zero := 0
	for _, c := range []struct {
		name  string
		org   db.Org
		agent string
		made  recall.NewConversation
		want  error
	}{
		{"a window of nothing", f.org, f.agent, recall.NewConversation{WindowLimit: &zero}, db.ErrInvalid},
		{"of no agent", f.org, "agent-none", recall.NewConversation{}, db.ErrNotFound},
		{"of another organization's agent", dbtest.NewOrg(t, f.pool), f.agent, recall.NewConversation{}, db.ErrNotFound},
	} {
		if _, err := f.store.CreateConversation(t.Context(), c.org, c.agent, c.made); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}

func TestConversationsAreChangedListedAndDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var ids []string
	for i := range 3 {
		summary := fmt.Sprintf("Number %d", i)
		c, err := f.store.CreateConversation(t.Context(), f.org, f.agent,
			recall.NewConversation{Summary: &summary, Hidden: i == 2})
		f.must(err)
		ids = append(ids, c.ID)
	}
	yes, no := true, false
	c, err := f.store.UpdateConversation(t.Context(), f.org, ids[0], recall.ConversationUpdate{Archived: &yes})
	if err != nil || c.ArchivedAt == nil || *c.Summary != "Number 0" {
		t.Errorf("archived: got %+v, %v", c, err)
	}
	list := func(filter recall.ConversationFilter) []string {
		t.Helper()
		rows, err := f.store.Conversations(t.Context(), f.org, filter, db.Page{Ascending: true, Limit: 10})
		f.must(err)
		got := []string{}
		for _, c := range rows {
			got = append(got, c.ID)
		}
		return got
	}
	for _, tt := range []struct {
		name   string
		filter recall.ConversationFilter
		want   []string
	}{
		{"all but the hidden and the default one", recall.ConversationFilter{AgentID: f.agent}, ids[:2]},
		{"the hidden too", recall.ConversationFilter{Hidden: true}, ids},
		{"what is archived", recall.ConversationFilter{Archived: &yes}, ids[:1]},
		{"what is not", recall.ConversationFilter{Archived: &no}, ids[1:2]},
		{"by a part of the summary", recall.ConversationFilter{Contains: "NUMBER 1"}, ids[1:2]},
		{"of another agent", recall.ConversationFilter{AgentID: f.newAgent()}, []string{}},
	} {
		if diff := cmp.Diff(tt.want, list(tt.filter)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	f.must(f.store.DeleteConversation(t.Context(), f.org, ids[1]))
	if err := f.store.DeleteConversation(t.Context(), f.org, ids[1]); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("deleted twice: got %v, want ErrNotFound", err)
	}
	_, err = f.store.Append(t.Context(), f.org, f.agent, ids[1], []recall.Draft{say(recall.User, "still there?")})
	if !errors.Is(err, db.ErrNotFound) {
		t.Errorf("appended to what is deleted: got %v, want ErrNotFound", err)
	}
	if err := f.store.DeleteConversation(t.Context(), f.org, f.conversation().ID); !errors.Is(err, db.ErrConflict) {
		t.Errorf("the default one: got %v, want ErrConflict", err)
	}
}

// anew returns the instructions for a conversation after a reset.
func anew(pgx.Tx) (string, error) { return "Anew.", nil }

func TestAResetHidesWhatWasSaidAndKeepsItInTheLog(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append(say(recall.User, "a secret plan"))
	f.must(f.store.Reset(t.Context(), f.org, f.agent, anew))
	got, err := f.store.Messages(t.Context(), f.org, recall.MessageFilter{AgentID: f.agent}, db.Page{Ascending: true})
	if err != nil || len(got) != 1 || got[0].Content[0].Text != "Anew." || got[0].Seq != 3 {
		t.Errorf("got %+v, %v", got, err)
	}
	if hits := f.found(recall.Query{Text: "secret plan"}); len(hits) != 0 {
		t.Errorf("found %q", hits)
	}
	if n := f.count(`SELECT count(*) FROM messages WHERE org = $1`); n != 3 {
		t.Errorf("the log has %d messages, want all 3", n)
	}
}

// A request that found the default conversation before a reset may be sent again: the agent then has another one.
func TestARequestThatMeetsAResetMayBeSentAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	previous := f.conversation()
	f.must(f.store.Reset(t.Context(), f.org, f.agent, anew))
	if _, err := f.store.Append(t.Context(), f.org, f.agent, previous.ID,
		[]recall.Draft{say(recall.User, "hello")}); !errors.Is(err, recall.ErrReset) {
		t.Errorf("an append to what was reset: %v", err)
	}
	f.exec(`UPDATE conversations SET reset_at = now() - interval '2 minutes' WHERE org = $1 AND reset_at IS NOT NULL`)
	if _, err := f.store.Conversation(t.Context(), f.org, f.agent, previous.ID); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("long after it: %v", err)
	}
}

func TestADeletedAgentLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	otherAgent := f.newAgent()
	f.append(called("c", "read", "{}"), returned("c", strings.Repeat("abcdefgh \n", 6_000)))
	f.must(pgx.BeginFunc(t.Context(), f.pool, func(tx pgx.Tx) error {
		if err := f.store.With(tx).Forget(t.Context(), f.org, f.agent); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `DELETE FROM agents WHERE id = $1`, f.agent)
		return err
	}))
	f.exec(`UPDATE blobs SET used_at = now() - interval '2 hours' WHERE org = $1`)
	f.clear()
	for table, want := range map[string]int{"messages": 1, "conversations": 1, // the other agent's
		"tool_calls": 0, "clips": 0, "blobs": 0, "agent_logs": 1} {
		if n := f.count(`SELECT count(*) FROM ` + table + ` WHERE org = $1`); n != want {
			t.Errorf("%s has %d rows, want %d", table, n, want)
		}
	}
	if _, err := f.store.Conversation(t.Context(), f.org, otherAgent, ""); err != nil {
		t.Error(err)
	}
}

// Two servers clear at the same time: the second waits for the batch that the first deletes, and then deletes the next
// rows.
func TestServersClearADeletedAgentAtOnce(t *testing.T) {
	t.Parallel()
	f := newOwnFixture(t)
	const batch = 5_000
	f.exec(fmt.Sprintf(`
		INSERT INTO messages (id, org, agent_key, seq, conversation_key, position, session, role, content, tokens, length,
		                      created_at)
		SELECT gen_random_uuid(), m.org, m.agent_key, 10 + i, m.conversation_key, 10 + i, 1, 'user', '[]', 1, 1, now()
		FROM messages m, generate_series(1, %d) i WHERE m.org = $1`, batch+1))
	f.must(f.store.Forget(t.Context(), f.org, f.agent))
	f.exec(`DELETE FROM agents WHERE org = $1`)
	first, err := f.pool.Begin(t.Context())
	f.must(err)
	defer func() { _ = first.Rollback(context.Background()) }()
	n, err := f.store.With(first).Clear(t.Context())
	if n != batch || err != nil {
		t.Fatalf("cleared %d rows, %v, want a batch of %d", n, err, batch)
	}
	second := make(chan error)
	go func() {
		_, err := f.store.Clear(t.Context())
		second <- err
	}()
	f.eventually("the second waits for the first", func() bool {
		n, err := db.One[int](t.Context(), f.pool, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		return n > 0 && err == nil
	})
	f.must(first.Commit(t.Context()))
	if err := <-second; err != nil {
		t.Errorf("the second: %v", err)
	}
	for n := 1; n > 0; {
		n, err = f.store.Clear(t.Context())
		f.must(err)
	}
	if n := f.count(`SELECT count(*) FROM agent_logs WHERE org = $1`); n != 0 {
		t.Errorf("%d logs are left", n)
	}
}

// Messages that are an hour apart belong to different sessions. A search weighs each session as one text.
func TestSessionsEndWithAnHourOfSilence(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	start := time.Date(2024, 5, 1, 9, 0, 0, 0, time.UTC)
	for _, minutes := range []int{0, 5, 64, 125, 126} {
		m := say(recall.User, "tick")
		m.CreatedAt = new(start.Add(time.Duration(minutes) * time.Minute))
		f.append(m)
	}
	got, err := db.All[int](t.Context(), f.pool, `SELECT session FROM messages WHERE org = $1 ORDER BY position`, f.org)
	if diff := cmp.Diff([]int{1, 2, 2, 2, 5, 5}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
