package recall_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/golden"
	"github.com/loci-memory/loci/recall"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// fixture is a store, and an organization with one agent. The agent's default conversation has one message, the system
// prompt "You remember.". The fixture's methods fail the test on any error.
type fixture struct {
	*testing.T
	pool  *pgxpool.Pool
	org   db.Org
	store *recall.Store
	agent string
}

// newFixture returns an organization in the database that the package's tests share.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	pool, org := dbtest.Org(t)
	return fixtureOf(t, pool, org)
}

// newOwnFixture returns an organization in a database of its own.
func newOwnFixture(t *testing.T) *fixture {
	t.Helper()
	pool := dbtest.New(t)
	return fixtureOf(t, pool, dbtest.NewOrg(t, pool))
}

func fixtureOf(t *testing.T, pool *pgxpool.Pool, org db.Org) *fixture {
	t.Helper()
	f := &fixture{T: t, pool: pool, org: org, store: recall.New(pool, recall.Options{})}
	f.agent = f.newAgent()
	return f
}

// clear clears the logs of all deleted agents, even other tests' agents, so only one test at a time calls it.
func (f *fixture) clear() {
	f.Helper()
	clearing.Lock()
	defer clearing.Unlock()
	for n := 1; n > 0; {
		var err error
		n, err = f.store.Clear(f.Context())
		f.must(err)
	}
}

var clearing sync.Mutex

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// newAgent creates another agent in the same way, and returns its id.
func (f *fixture) newAgent() string {
	f.Helper()
	id, err := db.One[string](f.Context(), f.pool, `
		INSERT INTO agents (org, name, agent_type, system) VALUES ($1, 'a', 'letta_v1_agent', '') RETURNING id`, f.org)
	f.must(err)
	f.must(f.store.Begin(f.Context(), f.org, id, "You remember."))
	return id
}

// newConversation creates a conversation in addition to the agent's default one, and returns its id.
func (f *fixture) newConversation(instructions string) string {
	f.Helper()
	c, err := f.store.CreateConversation(f.Context(), f.org, f.agent, recall.NewConversation{Instructions: instructions})
	f.must(err)
	return c.ID
}

// conversation returns the agent's default conversation.
func (f *fixture) conversation() recall.Conversation {
	f.Helper()
	c, err := f.store.Conversation(f.Context(), f.org, f.agent, "")
	f.must(err)
	return c
}

// append appends to the agent's default conversation.
func (f *fixture) append(messages ...recall.Draft) []recall.Appended {
	f.Helper()
	return f.appendTo(recall.DefaultConversation, messages...)
}

func (f *fixture) appendTo(conversation string, messages ...recall.Draft) []recall.Appended {
	f.Helper()
	appended, err := f.store.Append(f.Context(), f.org, f.agent, conversation, messages)
	f.must(err)
	return appended
}

func (f *fixture) message(id string) recall.Message {
	f.Helper()
	m, err := f.store.Message(f.Context(), f.org, id)
	f.must(err)
	return m
}

// messages lists the default conversation, in order.
func (f *fixture) messages() []recall.Message {
	f.Helper()
	list, err := f.store.Messages(f.Context(), f.org,
		recall.MessageFilter{AgentID: f.agent, Conversation: recall.DefaultConversation}, db.Page{Ascending: true})
	f.must(err)
	return list
}

// expansion returns what Expand returns for a query.
func (f *fixture) expansion(q recall.ExpandQuery) recall.Expansion {
	f.Helper()
	e, err := f.store.Expand(f.Context(), f.org, f.agent, q)
	if err != nil {
		f.Fatal(err)
	}
	return e
}

// expand returns all pages of a text, joined; each page has at most limit bytes.
func (f *fixture) expand(id string, limit int) string {
	f.Helper()
	var whole strings.Builder
	for offset := new(0); offset != nil; {
		e, err := f.store.Expand(f.Context(), f.org, f.agent, recall.ExpandQuery{ID: id, Offset: *offset, Limit: limit})
		f.must(err)
		whole.WriteString(e.Text)
		offset = e.NextOffset
	}
	return whole.String()
}

// expandIs checks that an agent gets an error when it expands a text.
func (f *fixture) expandIs(want error, agent, id string) {
	f.Helper()
	if _, err := f.store.Expand(f.Context(), f.org, agent, recall.ExpandQuery{ID: id}); !errors.Is(err, want) {
		f.Errorf("expand %s as %s: got %v, want %v", id, agent, err, want)
	}
}

// search searches the organization, or less if the query says so.
func (f *fixture) search(q recall.Query) recall.Results {
	f.Helper()
	got, err := f.store.Search(f.Context(), f.org, q)
	f.must(err)
	return got
}

// found returns the texts of the first 20 hits in the agent's messages.
func (f *fixture) found(q recall.Query) []string {
	f.Helper()
	q.AgentID = f.agent
	if q.Limit == 0 {
		q.Limit = 20
	}
	texts := []string{}
	for _, h := range f.search(q).Hits {
		texts = append(texts, strings.TrimSpace(h.Content[0].Text+h.Content[0].Input))
	}
	return texts
}

// view returns the texts that the model sees of the default conversation.
func (f *fixture) view() []string {
	f.Helper()
	view, err := f.store.ViewOf(f.Context(), f.org, f.agent, "")
	f.must(err)
	return texts(view)
}

// exec runs a statement with the organization as $1.
func (f *fixture) exec(sql string) {
	f.Helper()
	_, err := f.pool.Exec(f.Context(), sql, f.org)
	f.must(err)
}

// count runs a query that counts, with the organization as $1.
func (f *fixture) count(sql string, args ...any) int {
	f.Helper()
	n, err := db.One[int](f.Context(), f.pool, sql, append([]any{f.org}, args...)...)
	f.must(err)
	return n
}

// say returns a draft with one text.
func say(role recall.Role, text string) recall.Draft {
	return recall.Draft{Role: role, Content: []recall.Part{{Type: recall.Text, Text: text}}}
}

// at sets the time of a draft, in RFC 3339.
func at(m recall.Draft, when string) recall.Draft {
	t, err := time.Parse(time.RFC3339, when)
	if err != nil {
		panic(err)
	}
	m.CreatedAt = &t
	return m
}

func called(id, tool, input string) recall.Draft {
	return recall.Draft{Role: recall.Assistant,
		Content: []recall.Part{{Type: recall.ToolCall, CallID: id, Name: tool, Input: input}}}
}

func returned(id, text string) recall.Draft {
	return recall.Draft{Role: recall.Tool, Content: []recall.Part{{Type: recall.ToolReturn, CallID: id, Text: text}}}
}

// texts returns what each message says or calls first.
func texts(messages []recall.Message) []string {
	all := []string{}
	for _, m := range messages {
		all = append(all, m.Content[0].Text+m.Content[0].Input)
	}
	return all
}

// ids returns the ids of a search's hits.
func ids(r recall.Results) []string {
	all := make([]string, len(r.Hits))
	for i, h := range r.Hits {
		all[i] = h.ID
	}
	return all
}

// checkGolden compares a text with testdata/<name>.golden. With -update it writes the file.
func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	golden.Check(t, "testdata/"+name+".golden", got)
}
