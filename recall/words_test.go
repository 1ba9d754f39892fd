package recall_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/recall"
)

// An agent's messages get the same ranks through the index of words as from the log; long messages are indexed in
// pieces.
func messagesAreRankedThroughWords(f *fixture) {
	f.Helper()
	f.store.SetWordRows(1000, 1)
	f.append(say(recall.User, strings.Repeat("many words of talk. ", 3000)+"At last a needle."))
	if n, err := f.store.IndexWords(f.Context()); err != nil || n != 1 {
		f.Fatalf("got %d segments (%v), want 1", n, err)
	}
	if _, err := db.AnalyzeGrown(f.Context(), f.pool); err != nil { // the server does this, too
		f.Fatal(err)
	}
	f.append(say(recall.User, "a new talk about subject307"))
	march := time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC)
	plans := dbtest.NewPlans(f, f.pool)
	plain, indexed := recall.New(f.pool, recall.Options{}), recall.New(plans, recall.Options{})
	plain.SetWordRows(1<<40, 1<<40)
	indexed.SetWordRows(1000, 300)
	for _, q := range []recall.Query{{Text: "talk about subject307"}, {Text: "needle"}, {Text: "number77 or number78"},
		{Text: "talk", Roles: []recall.Role{recall.Assistant}}, {Text: "subject307", Start: &march}, {Text: "new talk"},
		{Text: "subject369", Conversation: recall.DefaultConversation}, {Text: "absent"}} {
		q.AgentID, q.Limit = f.agent, 20
		f.store = plain
		want := f.search(q)
		f.store = indexed
		if diff := cmp.Diff(want, f.search(q)); diff != "" {
			f.Errorf("%q (-log +index):\n%s", q.Text, diff)
		}
	}
	if plan := plans.Take("@matched"); !strings.Contains(plan, "messages_pkey") || strings.Contains(plan, "Seq Scan") {
		f.Errorf("matched messages are not read by their keys:\n%s", plan)
	}
	if got := f.search(recall.Query{Text: "neeedle", AgentID: f.agent, Limit: 20}); got.SearchedFor != "needle" {
		f.Errorf("neeedle is searched as %q", got.SearchedFor)
	}
	if plan := plans.Take("AS of_rows"); !strings.Contains(plan, "hashed SubPlan") {
		f.Errorf("terms of messages are compared with each spelling:\n%s", plan)
	}
}

// Soon after a load Postgres' statistics do not know the new messages. A search still reads the messages it found, and
// their neighbors, by keys and positions, instead of comparing each with each.
func freshMessagesAreReadByKeys(f *fixture) {
	f.Helper()
	plans := dbtest.NewPlans(f, f.pool)
	f.store = recall.New(plans, recall.Options{})
	if n := len(f.search(recall.Query{AgentID: f.agent, Text: "talk about subject303", Limit: 20}).Hits); n != 20 {
		f.Fatalf("%d messages are found", n)
	}
	plans.ReadByKeys("AS hit (key", "messages_pkey", "messages_position_key", "(key = t.conversation_key)")
}

// Messages that an older version of Loci weighed are weighed again, long ones with their pieces.
func TestMessagesOfAnOlderVersionAreWeighedAnew(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append(say(recall.User, "the walnut tree"),
		say(recall.User, strings.Repeat("many words of talk. ", 3000)+"At last a needle."))
	f.exec(`
		UPDATE messages SET lex_version = 1, lex = '{}/16777216', terms = '{}' WHERE org = $1 AND lex IS NOT NULL`)
	f.exec(`UPDATE message_pieces SET lex = '{}/16777216', terms = '{}' WHERE org = $1`)
	found := func(text string) int { return len(f.search(recall.Query{Text: text, AgentID: f.agent, Limit: 1}).Hits) }
	before := found("walnut") + found("needle")
	n, err := f.store.ReweighWords(t.Context())
	if err != nil || n != 2 || before != 0 {
		t.Errorf("%d messages are weighed anew (%v) of which %d were found before, want 2 and 0", n, err, before)
	}
	for _, text := range []string{"walnut", "needle"} {
		if found(text) != 1 {
			t.Errorf("%q is not found", text)
		}
	}
}

// Two words may share a place in the lexicon. A search for one does not find messages that only have the other, nor
// messages next to them.
func TestAWordFindsNoMessageWithAnotherOfItsPlace(t *testing.T) {
	t.Parallel()
	a, b := embedtest.Colliding(t)
	f := newFixture(t)
	f.append(say(recall.User, "What is near?"), say(recall.User, "the word "+b), say(recall.Assistant, "So it is."))
	if hits := f.search(recall.Query{Text: a, AgentID: f.agent, Limit: 5}).Hits; len(hits) != 0 {
		t.Errorf("%q finds %v, want nothing", a, hits)
	}
	f.append(say(recall.User, "the word "+a))
	hits := f.search(recall.Query{Text: a, AgentID: f.agent, Limit: 1}).Hits
	if len(hits) != 1 || !strings.Contains(hits[0].Snippet, a) {
		t.Errorf("%q finds %v, want its own message", a, hits)
	}
	if hits := f.search(recall.Query{Text: b, AgentID: f.agent, Limit: 5}).Hits; len(hits) == 0 {
		t.Errorf("%q finds nothing", b)
	}
}

// Compound words of a log are found by their parts.
func TestMessagesAreFoundByPartsOfWords(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append(say(recall.User, "Ist die Umsatzsteuervoranmeldung schon beim Finanzamt?"),
		say(recall.Assistant, "Nein, die Belege für den März fehlen noch."))
	for _, question := range []string{"Umsatzsteuer", "Voranmeldungen"} {
		if got := f.found(recall.Query{Text: question, OnlyMatches: true}); len(got) != 1 ||
			!strings.Contains(got[0], "Umsatz") {
			t.Errorf("%q finds %q", question, got)
		}
	}
	f.append(say(recall.User, "Wo liegt der Versicherungsschein?"))
	if got := f.found(recall.Query{Text: "Versicherung", OnlyMatches: true}); len(got) != 1 {
		t.Errorf("a word that was said later is not found: %q", got)
	}
}
