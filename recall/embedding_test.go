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
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/recall"
)

// denseWorld is a world whose messages an endpoint embeds.
type denseWorld struct {
	*world
	endpoint *embedtest.Endpoint
	dense    *embed.Dense
	space    embed.Space
}

func newDenseWorld(t *testing.T, e *embedtest.Endpoint) *denseWorld {
	t.Helper()
	w := &denseWorld{world: newWorld(t)}
	w.connect(e)
	return w
}

// connect gives the world a store that uses an endpoint, as a server that is started does.
func (w *denseWorld) connect(e *embedtest.Endpoint) {
	w.Helper()
	w.endpoint, w.dense = e, e.DenseWithin(w, 2*time.Second)
	w.dense.FirstPause, w.dense.MaxPause = time.Millisecond, 20*time.Millisecond
	w.space = e.Use(w, w.pool, w.dense)
	w.store = recall.New(w.pool, recall.Options{Dense: w.dense})
	w.store.SetSettle(0)
	if _, err := w.store.Backfill(w.Context(), 0); err != nil {
		w.Fatal(err)
	}
}

// work does what a server does for the world's store, until stop is called or the test ends.
func (w *denseWorld) work() (stop func()) {
	w.Helper()
	return embedtest.Work(w, w.pool, w.store, recall.Queues())
}

// count runs a query that counts.
func (w *world) count(sql string, args ...any) int {
	w.Helper()
	n, err := db.One[int](w.Context(), w.pool, sql, args...)
	if err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
	return n
}

// eventually looks until something is so, and tells how the conversations are if it is not.
func (w *world) eventually(what string, is func() bool) {
	w.Helper()
	defer func() {
		if w.Failed() {
			w.Logf("conversations are %v", w.states())
		}
	}()
	embedtest.Eventually(w, what, is)
}

func (w *world) states() []string {
	states, _ := db.All[string](w.Context(), w.pool, `
		SELECT concat_ws(' ', id, messages, embedded, unembedded, embedded_space, embed_error) FROM conversations ORDER BY key`)
	return states
}

// settled waits until all messages have their vectors, but so many, in the space that is in use.
func (w *denseWorld) settled(without int) {
	w.Helper()
	w.eventually("no conversation waits", func() bool {
		return w.count(`SELECT count(*) FROM conversations WHERE (unembedded OR embedded_space <> $1) AND deleted_at IS NULL`, w.space.ID) == 0
	})
	got, want := w.count(`SELECT count(*) FROM message_vectors WHERE space_id = $1`, w.space.ID), w.count(`SELECT count(lex) FROM messages`)-without
	if got != want {
		w.Errorf("%d vectors in space %d, want %d", got, w.space.ID, want)
	}
}

// status is how far the vectors of the agent's default conversation are; nothing if no endpoint has worked on it.
func (w *world) status() *embed.Status {
	w.Helper()
	c, err := w.store.Conversation(w.Context(), org, w.agent, recall.DefaultConversation)
	if err != nil {
		w.Fatal(err)
	}
	return c.Vectors
}

// chat appends so many turns of two messages each to a conversation, a call for each.
func (w *world) chat(conversation string, turns int) {
	w.Helper()
	for i := range turns {
		_, err := w.store.Append(w.Context(), org, w.agent, conversation, []recall.Draft{
			say(recall.User, fmt.Sprintf("question %d about topic %d", i, i%7)), say(recall.Assistant, fmt.Sprintf("answer %d of many", i))})
		if err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) other() string {
	w.Helper()
	c, err := w.store.CreateConversation(w.Context(), org, w.agent, recall.NewConversation{Instructions: "You remember."})
	if err != nil {
		w.Fatal(err)
	}
	return c.ID
}

// A burst of appends makes one job, which begins when more may have come, and few requests.
func TestManyAppendsAreOneJob(t *testing.T) {
	t.Parallel()
	w := newDenseWorld(t, embedtest.New(t, 8))
	w.store.SetSettle(time.Hour)
	jobs := embedtest.Jobs(t, w.pool, river.Config{})
	for range 50 {
		w.chat("", 2)
		if _, err := w.store.Call(t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.count(`SELECT count(*) FROM river_job`); n != 1 {
		t.Errorf("100 appends made %d jobs", n)
	}
	if n := w.count(`SELECT count(*) FROM river_job WHERE state = 'available' AND scheduled_at > now() + interval '50 minutes'`); n != 1 {
		t.Error("the job does not wait for more to be appended")
	}
	if _, err := w.pool.Exec(t.Context(), `UPDATE river_job SET scheduled_at = now()`); err != nil {
		t.Fatal(err)
	}
	w.work()
	w.settled(0)
	if n := w.count(`SELECT count(*) FROM river_job`); n != 1 || w.endpoint.Requests.Load() > 12 {
		t.Errorf("200 messages took %d jobs and %d requests", n, w.endpoint.Requests.Load())
	}
}

// What was appended before there was an endpoint is embedded when there is one: of every agent, and of conversations that go together.
func TestALogIsBackfilled(t *testing.T) {
	t.Parallel()
	w := &denseWorld{world: newWorld(t)}
	w.chat("", 150)
	for range 40 {
		w.chat(w.other(), 1)
	}
	first := w.agent
	w.agent = w.newAgent()
	w.chat("", 3)
	w.append(called("c", "conversation_search", `{"query":"topic"}`), returned("c", "question 1 about topic 1"))
	w.agent = first
	w.connect(embedtest.New(t, 8))
	w.work()
	w.settled(0)
	if n := w.count(`SELECT count(*) FROM message_vectors v JOIN messages m ON m.key = v.message_key
		WHERE (v.org, v.agent_key, v.conversation_key, v.position, v.role, v.created_at)
		   IS DISTINCT FROM (m.org, m.agent_key, m.conversation_key, m.position, m.role, m.created_at)`); n != 0 {
		t.Errorf("%d vectors tell something else of their message", n)
	}
}

// A server that is stopped or killed leaves what it had in hand to the next.
func TestWorkGoesOnAfterAServerEnded(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 8)
	w := newDenseWorld(t, e)
	w.chat("", 200)
	asked := make(chan struct{})
	var once sync.Once
	hangs := embedtest.Fault(func(_ http.ResponseWriter, r *http.Request, _ []string) bool {
		if e.Requests.Load() < 6 {
			return false
		}
		once.Do(func() { close(asked) })
		<-r.Context().Done()
		return true
	})
	e.Fault.Store(&hangs)
	stop := w.work()
	select {
	case <-asked:
	case <-time.After(embedtest.Patience):
		t.Fatal("the endpoint is not asked")
	}
	stop()
	e.Fault.Store(nil)
	if _, err := w.pool.Exec(t.Context(), `
		UPDATE river_job SET state = 'running', attempted_by = '{killed}', attempted_at = now(), finalized_at = NULL`); err != nil {
		t.Fatal(err)
	}
	jobs := embedtest.Jobs(t, w.pool, river.Config{})
	if n, err := w.store.Call(t.Context(), jobs); n != 0 || err != nil {
		t.Errorf("beside a job in hand %d are made (%v)", n, err)
	}
	if n, err := db.GiveBack(t.Context(), w.pool); n != 1 || err != nil {
		t.Errorf("%d jobs are given back (%v), want 1", n, err)
	}
	w.connect(e)
	w.work()
	w.settled(0)
}

// Another model's vectors are made beside the old ones; whoever goes back finds those.
func TestANewModelStartsAgain(t *testing.T) {
	t.Parallel()
	first, second := embedtest.New(t, 8), embedtest.New(t, 16)
	w := newDenseWorld(t, first)
	w.chat("", 100)
	w.chat(w.other(), 10)
	stop := w.work()
	w.settled(0)
	stop()
	old := w.store
	if err := embed.InUse(t.Context(), w.pool, w.space); err != nil {
		t.Fatal(err)
	}
	w.connect(second)
	stop = w.work()
	w.settled(0)
	stop()
	if n, vectors := w.count(`SELECT count(lex) FROM messages`), w.count(`SELECT count(*) FROM message_vectors`); vectors != 2*n {
		t.Errorf("%d vectors for %d messages in two spaces", vectors, n)
	}
	if n, err := old.Backfill(t.Context(), embed.IdleSpace); n != 0 || err != nil {
		t.Errorf("%d conversations are taken from a server that runs (%v)", n, err)
	}
	asked := first.Requests.Load()
	w.connect(first)
	w.work()
	w.settled(0)
	if n := first.Requests.Load(); n != asked {
		t.Errorf("going back took %d requests", n-asked)
	}
}

// However the endpoint fails, messages wait with the reason to be seen, and go on when it works again.
func TestMessagesOutliveFailuresOfTheEndpoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		fault  embedtest.Fault
		reason string
	}{
		{"it is down", embedtest.Answer(503, `{"error": {"message": "down for repairs"}}`), "down for repairs"},
		{"it takes no more", embedtest.Answer(429, `{}`, "Retry-After-Ms", "20"), "takes no more requests for now"},
		{"its dimension is another", embedtest.Vectors(5, 0), "a vector of 5 numbers after ones of 8"},
		{"it answers garbage", embedtest.Answer(200, `<html>`), "something else than embeddings"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := embedtest.New(t, 8)
			w := newDenseWorld(t, e)
			w.chat("", 1)
			w.work()
			w.settled(0)
			e.Fault.Store(&c.fault)
			asked := e.Requests.Load()
			w.chat("", 20)
			w.eventually("the reason is seen, and the endpoint asked again", func() bool {
				got := w.status()
				return e.Requests.Load() > asked+3 && got.Pending == 40 && got.Error != nil && strings.Contains(*got.Error, c.reason)
			})
			if n := w.count(`SELECT count(*) FROM message_vectors`); n != 2 {
				t.Errorf("meanwhile %d vectors are stored", n-2)
			}
			w.chat("", 1)
			e.Fault.Store(nil)
			w.settled(0)
			if got := w.status(); *got != (embed.Status{}) {
				t.Errorf("the conversation's status is %+v", got)
			}
		})
	}
}

// A message that the endpoint refuses is embedded by its beginning, or goes without a vector and is counted; the others have theirs.
func TestARefusedMessageHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 8)
	e.Refuse = "forbidden"
	w := newDenseWorld(t, e)
	w.chat("", 40)
	refused := w.append(say(recall.User, "this is forbidden"))[0]
	w.append(say(recall.User, strings.Repeat("allowed words ", 200)+"forbidden"))
	w.append(say(recall.User, strings.Repeat("many words ", 2000)))
	w.work()
	w.settled(1)
	if got := w.status(); got.Refused != 1 || got.Pending != 0 || got.Error == nil || !strings.Contains(*got.Error, "refuses some messages") {
		t.Errorf("the conversation's status is %+v", got)
	}
	for _, texts := range e.Asked() {
		if i := slices.IndexFunc(texts, func(s string) bool { return len(s) > 8000 }); i >= 0 {
			t.Errorf("a text of %d characters was sent", len(texts[i]))
		}
	}
	got, err := w.store.Search(t.Context(), org, recall.Query{Text: "what is forbidden", AgentID: w.agent, Limit: 1})
	if err != nil || len(got.Hits) != 1 || got.Hits[0].ID != refused.ID {
		t.Errorf("by its words: got %+v, %v", got, err)
	}
}

// What is deleted while the endpoint has it gets no vectors.
func TestDeletingWhileEmbedding(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		remove func(w *denseWorld, conversation string) error
		left   int
	}{
		{"a conversation", func(w *denseWorld, conversation string) error {
			return w.store.DeleteConversation(context.Background(), org, conversation)
		}, 10},
		{"the agent", func(w *denseWorld, _ string) error {
			return pgx.BeginFunc(context.Background(), w.pool, func(tx pgx.Tx) error {
				if err := w.store.With(tx).Forget(context.Background(), org, w.agent); err != nil {
					return err
				}
				_, err := tx.Exec(context.Background(), `DELETE FROM agents WHERE id = $1`, w.agent)
				return err
			})
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := embedtest.New(t, 8)
			w := newDenseWorld(t, e)
			w.chat("", 5)
			gone := w.other()
			w.chat(gone, 5)
			var once sync.Once
			removes := embedtest.Fault(func(http.ResponseWriter, *http.Request, []string) bool {
				once.Do(func() {
					if err := c.remove(w, gone); err != nil {
						t.Error(err)
					}
				})
				return false
			})
			e.Fault.Store(&removes)
			if err := recall.EmbedOnce(w.store, t.Context(), org, w.agent); err != nil {
				t.Errorf("embed: %v", err)
			}
			if n := w.count(`SELECT count(*) FROM message_vectors`); n != c.left {
				t.Errorf("%d vectors are left, want %d", n, c.left)
			}
			if n, err := w.store.Call(t.Context(), embedtest.Jobs(t, w.pool, river.Config{})); n != 0 || err != nil {
				t.Errorf("%d jobs are made for what is left (%v)", n, err)
			}
			for {
				if n, err := w.store.Clear(t.Context()); n == 0 || err != nil {
					break
				}
			}
			if n := w.count(`SELECT count(*) FROM messages`); (n == 0) != (c.left == 0) {
				t.Errorf("%d messages are left", n)
			}
		})
	}
}

// Two servers may be at one agent, where one of them lost its lock; nothing is stored twice, and nothing that comes meanwhile is passed over.
func TestTwoServersAtOneAgent(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 8)
	w := newDenseWorld(t, e)
	w.chat("", 20)
	other := recall.New(w.pool, recall.Options{Dense: w.dense})
	meanwhile := embedtest.Fault(func(http.ResponseWriter, *http.Request, []string) bool {
		e.Fault.Store(nil)
		if err := recall.EmbedOnce(other, context.Background(), org, w.agent); err != nil {
			t.Error(err)
		}
		if _, err := other.Append(context.Background(), org, w.agent, "", []recall.Draft{say(recall.User, "one more")}); err != nil {
			t.Error(err)
		}
		return false
	})
	e.Fault.Store(&meanwhile)
	if err := recall.EmbedOnce(w.store, t.Context(), org, w.agent); err != nil {
		t.Fatal(err)
	}
	w.settled(0)
	var group sync.WaitGroup
	for _, s := range []*recall.Store{w.store, other} {
		group.Go(func() {
			for range 10 {
				if _, err := s.Append(context.Background(), org, w.agent, "", []recall.Draft{say(recall.User, "and another")}); err != nil {
					t.Error(err)
				}
				if err := recall.EmbedOnce(s, context.Background(), org, w.agent); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	w.settled(0)
}

// A model that comes into use while another's vectors are made starts from the beginning, whatever comes of those.
func TestAModelThatComesMeanwhile(t *testing.T) {
	t.Parallel()
	first, second := embedtest.New(t, 8), embedtest.New(t, 16)
	w := newDenseWorld(t, first)
	w.chat("", 20)
	old := w.store
	comes := embedtest.Fault(func(http.ResponseWriter, *http.Request, []string) bool {
		first.Fault.Store(nil)
		w.connect(second)
		return false
	})
	first.Fault.Store(&comes)
	if err := recall.EmbedOnce(old, t.Context(), org, w.agent); err != nil {
		t.Fatal(err)
	}
	w.work()
	w.settled(0)
}
