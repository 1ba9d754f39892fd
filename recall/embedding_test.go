package recall_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/recall"
)

// denseFixture is a fixture with an endpoint that embeds its messages. In the database that tests share, embed does the
// work. In a database of its own, backfill and work do it for all organizations.
type denseFixture struct {
	*fixture
	server   *embedtest.Endpoint
	endpoint *endpoint.Endpoint
	space    endpoint.Space
}

func newDenseFixture(t *testing.T, e *embedtest.Endpoint) *denseFixture {
	t.Helper()
	f := &denseFixture{fixture: newFixture(t)}
	f.connect(e)
	return f
}

// connect replaces the fixture's store by one with an endpoint.
func (f *denseFixture) connect(e *embedtest.Endpoint) {
	f.Helper()
	f.server, f.endpoint = e, e.Endpoint(f)
	f.endpoint.FirstPause, f.endpoint.MaxPause = time.Millisecond, 20*time.Millisecond
	f.space = e.Use(f, f.pool, f.endpoint)
	f.store = recall.New(f.pool, recall.Options{Endpoint: f.endpoint})
	f.store.SetSettle(0)
}

// embed makes the missing vectors of the agent's messages.
func (f *denseFixture) embed() {
	f.Helper()
	f.must(recall.EmbedOnce(f.store, f.Context(), f.org, f.agent))
}

// backfill hands the messages of all organizations to the endpoint, as a starting server does.
func (f *denseFixture) backfill() {
	f.Helper()
	_, err := f.store.Queue().Backfill(f.Context(), 0)
	f.must(err)
}

// work makes the missing vectors of all organizations, as a server does, until stop is called or the test ends.
func (f *denseFixture) work() (stop func()) {
	f.Helper()
	return embedtest.Work(f, f.pool, f.store.Queue(), f.store.Queue().Queues())
}

// eventually waits until a condition holds. If it never does, it prints the conversations.
func (f *fixture) eventually(what string, holds func() bool) {
	f.Helper()
	defer func() {
		if f.Failed() {
			f.Logf("conversations are %v", f.states())
		}
	}()
	embedtest.Eventually(f, what, holds)
}

func (f *fixture) states() []string {
	states, _ := db.All[string](f.Context(), f.pool, `
		SELECT concat_ws(' ', id, messages, embedded, unembedded, embedded_space, embed_error)
		FROM conversations WHERE org = $1 ORDER BY key`, f.org)
	return states
}

// settled waits until all messages except a given number have vectors in the current space.
func (f *denseFixture) settled(without int) {
	f.Helper()
	f.eventually("no conversation waits", func() bool {
		return f.count(`
			SELECT count(*) FROM conversations
			WHERE org = $1 AND (unembedded OR embedded_space <> $2) AND deleted_at IS NULL`, f.space.ID) == 0
	})
	got, want := f.count(`SELECT count(*) FROM message_vectors WHERE org = $1 AND space_id = $2`, f.space.ID),
		f.count(`SELECT count(lex) FROM messages WHERE org = $1`)-without
	if got != want {
		f.Errorf("%d vectors in space %d, want %d", got, f.space.ID, want)
	}
}

// status returns the embedding status of the agent's default conversation; nil if no endpoint has worked on it.
func (f *fixture) status() *endpoint.Status {
	f.Helper()
	return f.conversation().Vectors
}

// chat appends turns of two messages to a conversation, one turn per call.
func (f *fixture) chat(conversation string, turns int) {
	f.Helper()
	for i := range turns {
		f.appendTo(conversation,
			say(recall.User, fmt.Sprintf("question %d about topic %d", i, i%7)),
			say(recall.Assistant, fmt.Sprintf("answer %d of many", i)))
	}
}

// Conversations that were written to last are embedded first.
func TestTheLatestConversationsAreEmbeddedFirst(t *testing.T) {
	t.Parallel()
	f := newDenseFixture(t, embedtest.New(t, 8))
	f.endpoint.JobTexts = 4
	older, newer := f.newConversation("You remember."), f.newConversation("You remember.")
	f.chat(newer, 1)
	f.chat(older, 2)
	f.appendTo(newer, say(recall.User, "the latest question"), say(recall.Assistant, "the latest answer"))
	f.embed()
	requests := f.server.Asked()
	if len(requests) < 2 || !slices.ContainsFunc(requests[0], func(text string) bool {
		return strings.Contains(text, "the latest answer")
	}) {
		t.Errorf("got the texts %q; want those of the conversation that was written last first", requests)
	}
}

func TestQueueOfMessages(t *testing.T) {
	t.Parallel()
	embedtest.TestQueue(t, func(t *testing.T) *embedtest.Memory {
		f := &denseFixture{fixture: newOwnFixture(t)}
		return &embedtest.Memory{
			Pool: f.pool, Vectors: "message_vectors",
			Connect: func(e *embedtest.Endpoint, settle time.Duration) {
				f.connect(e)
				f.backfill()
				f.store.SetSettle(settle)
			},
			Queue: func() embedtest.Queue { return f.store.Queue() },
			Write: func(n int) { f.chat("", n) },
			Found: func() bool {
				return len(f.search(recall.Query{Text: "answer", AgentID: f.agent, Mode: recall.ByWords}).Hits) > 0
			},
			Status: f.status, Settled: func() { f.settled(0) },
		}
	})
}

// Messages from before there was an endpoint are embedded once there is one: for every agent, and for several
// conversations together.
func TestALogIsBackfilled(t *testing.T) {
	t.Parallel()
	f := &denseFixture{fixture: newOwnFixture(t)}
	f.chat("", 70)
	for range 40 {
		f.chat(f.newConversation("You remember."), 1)
	}
	first := f.agent
	f.agent = f.newAgent()
	f.chat("", 3)
	f.append(called("c", "conversation_search", `{"query":"topic"}`), returned("c", "question 1 about topic 1"))
	f.agent = first
	f.connect(embedtest.New(t, 8))
	f.backfill()
	stop := f.work()
	f.settled(0)
	stop()
	if n := f.count(`SELECT count(*) FROM message_vectors v JOIN messages m ON m.key = v.message_key
		WHERE v.org = $1 AND (v.org, v.agent_key, v.conversation_key, v.position, v.role, v.created_at)
		   IS DISTINCT FROM (m.org, m.agent_key, m.conversation_key, m.position, m.role, m.created_at)`); n != 0 {
		t.Errorf("%d vectors tell something else of their message", n)
	}
	t.Run("a model that comes meanwhile", f.modelComesMeanwhile)
}

// modelComesMeanwhile checks a model that comes into use while another model's vectors are made: it starts from the
// beginning, whatever becomes of those vectors.
func (f *denseFixture) modelComesMeanwhile(t *testing.T) {
	first, second := embedtest.New(t, 8), embedtest.New(t, 16)
	f.connect(first)
	f.backfill()
	old := f.store
	comes := embedtest.Fault(func(http.ResponseWriter, *http.Request, []string) bool {
		first.Fault.Store(nil)
		f.connect(second)
		f.backfill()
		return false
	})
	first.Fault.Store(&comes)
	if err := recall.EmbedOnce(old, t.Context(), f.org, f.agent); err != nil {
		t.Fatal(err)
	}
	f.work()
	f.settled(0)
}

// If the endpoint refuses a message, its beginning is embedded, or it is counted and stays without a vector. All other
// messages get vectors.
func TestARefusedMessageHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 8)
	e.Refuse = "forbidden"
	f := newDenseFixture(t, e)
	f.chat("", 40)
	refused := f.append(say(recall.User, "this is forbidden"))[0]
	f.append(say(recall.User, strings.Repeat("allowed words ", 200)+"forbidden"))
	f.append(say(recall.User, strings.Repeat("many words ", 2000)))
	f.embed()
	f.settled(1)
	if got := f.status(); got.Refused != 1 || got.Pending != 0 || got.Error == nil || !strings.Contains(*got.Error,
		"some messages get no vector") {
		t.Errorf("the conversation's status is %+v", got)
	}
	for _, texts := range e.Asked() {
		if i := slices.IndexFunc(texts, func(s string) bool { return len(s) > 8000 }); i >= 0 {
			t.Errorf("a text of %d characters was sent", len(texts[i]))
		}
	}
	got, err := f.store.Search(t.Context(), f.org, recall.Query{Text: "what is forbidden", AgentID: f.agent, Limit: 1})
	if err != nil || len(got.Hits) != 1 || got.Hits[0].ID != refused.ID {
		t.Errorf("by its words: got %+v, %v", got, err)
	}
}

// Messages that are deleted while the endpoint has them get no vectors.
func TestDeletingWhileEmbedding(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		remove func(f *denseFixture, conversation string) error
		left   int
	}{
		{"a conversation", func(f *denseFixture, conversation string) error {
			return f.store.DeleteConversation(context.Background(), f.org, conversation)
		}, 10},
		{"the agent", func(f *denseFixture, _ string) error {
			return pgx.BeginFunc(context.Background(), f.pool, func(tx pgx.Tx) error {
				if err := f.store.With(tx).Forget(context.Background(), f.org, f.agent); err != nil {
					return err
				}
				_, err := tx.Exec(context.Background(), `DELETE FROM agents WHERE org = $1 AND id = $2`, f.org, f.agent)
				return err
			})
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := embedtest.New(t, 8)
			f := newDenseFixture(t, e)
			f.chat("", 5)
			deleted := f.newConversation("You remember.")
			f.chat(deleted, 5)
			var once sync.Once
			removes := embedtest.Fault(func(http.ResponseWriter, *http.Request, []string) bool {
				once.Do(func() {
					if err := c.remove(f, deleted); err != nil {
						t.Error(err)
					}
				})
				return false
			})
			e.Fault.Store(&removes)
			if err := recall.EmbedOnce(f.store, t.Context(), f.org, f.agent); err != nil {
				t.Errorf("embed: %v", err)
			}
			if n := f.count(`SELECT count(*) FROM message_vectors WHERE org = $1`); n != c.left {
				t.Errorf("%d vectors are left, want %d", n, c.left)
			}
			if n, err := recall.Waiting(t.Context(), f.store, f.org); n != 0 || err != nil {
				t.Errorf("%d agents have messages left that wait (%v)", n, err)
			}
			f.clear()
			if n := f.count(`SELECT count(*) FROM messages WHERE org = $1`); (n == 0) != (c.left == 0) {
				t.Errorf("%d messages are left", n)
			}
		})
	}
}

// Two servers may work on the same agent after one of them lost its lock. Nothing is stored twice, and messages that
// arrive meanwhile are not missed.
func TestTwoServersAtOneAgent(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 8)
	f := newDenseFixture(t, e)
	f.chat("", 20)
	other := recall.New(f.pool, recall.Options{Endpoint: f.endpoint})
	meanwhile := embedtest.Fault(func(http.ResponseWriter, *http.Request, []string) bool {
		e.Fault.Store(nil)
		if err := recall.EmbedOnce(other, context.Background(), f.org, f.agent); err != nil {
			t.Error(err)
		}
		if _, err := other.Append(context.Background(), f.org, f.agent, "", []recall.Draft{say(recall.User,
			"one more")}); err != nil {
			t.Error(err)
		}
		return false
	})
	e.Fault.Store(&meanwhile)
	if err := recall.EmbedOnce(f.store, t.Context(), f.org, f.agent); err != nil {
		t.Fatal(err)
	}
	f.settled(0)
	var group sync.WaitGroup
	for _, s := range []*recall.Store{f.store, other} {
		group.Go(func() {
			for range 10 {
				if _, err := s.Append(context.Background(), f.org, f.agent, "", []recall.Draft{say(recall.User,
					"and another")}); err != nil {
					t.Error(err)
				}
				if err := recall.EmbedOnce(s, context.Background(), f.org, f.agent); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	f.settled(0)
}

// After an erasure a message gets a new vector, even if a vector of its old text was being made.
func TestAnErasedMessageGetsANewVector(t *testing.T) {
	t.Parallel()
	for _, meanwhile := range []bool{false, true} {
		e := embedtest.New(t, 8)
		f := newDenseFixture(t, e)
		f.appendTo(recall.DefaultConversation, say(recall.User, "My secret is qzx7741."), say(recall.Assistant, "I see."))
		key := int64(f.count(`SELECT key FROM messages WHERE org = $1 AND content::text LIKE '%qzx7741%'`))
		erase := sync.OnceFunc(func() {
			if err := pgx.BeginFunc(t.Context(), f.pool, func(tx pgx.Tx) error {
				_, err := f.store.With(tx).EraseFrom(t.Context(), f.org, key, recall.Eraser{Text: func(text string) (string, int) {
					return strings.ReplaceAll(text, "qzx7741", "[…]"), strings.Count(text, "qzx7741")
				}})
				return err
			}); err != nil {
				t.Error(err)
			}
		})
		if meanwhile {
			during := embedtest.Fault(func(http.ResponseWriter, *http.Request, []string) bool { erase(); return false })
			e.Fault.Store(&during)
		}
		f.embed()
		f.settled(0)
		erase()
		f.embed()
		f.settled(0)
		requests := fmt.Sprint(e.Asked())
		if strings.Count(requests, "qzx7741") != 1 || !strings.Contains(requests, "My secret is […].") {
			t.Errorf("erased meanwhile: %t; the endpoint is sent %s", meanwhile, requests)
		}
	}
}
