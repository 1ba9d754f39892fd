package compaction_test

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/recall"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// kept is a store, and an organization with one agent.
type kept struct {
	*testing.T
	pool  *pgxpool.Pool
	org   db.Org
	store *compaction.Compactor
	agent string
}

func newKept(t *testing.T) *kept {
	t.Helper()
	pool, org := dbtest.Org(t)
	k := &kept{T: t, pool: pool, org: org, store: compaction.New(pool, recall.New(pool, recall.Options{}))}
	id, err := db.One[string](t.Context(), pool, `
		INSERT INTO agents (org, name, agent_type, system) VALUES ($1, 'a', 'letta_v1_agent', '') RETURNING id`, org)
	if err == nil {
		err = k.store.Recall.Begin(t.Context(), org, id, "You remember.")
	}
	if err != nil {
		t.Fatal(err)
	}
	k.agent = id
	return k
}

func (k *kept) say(texts ...string) {
	k.Helper()
	var drafts []recall.Draft
	for _, text := range texts {
		drafts = append(drafts, recall.Draft{Role: recall.User, Content: []recall.Part{{Type: recall.Text, Text: text}}})
	}
	if _, err := k.store.Recall.Append(k.Context(), k.org, k.agent, recall.DefaultConversation, drafts); err != nil {
		k.Fatal(err)
	}
}

func (k *kept) conversation() recall.Conversation {
	k.Helper()
	c, err := k.store.Recall.Conversation(k.Context(), k.org, k.agent, "")
	if err != nil {
		k.Fatal(err)
	}
	return c
}

// slow is a model that answers only once the test lets it.
type slow struct {
	calls  atomic.Int64
	asked  chan struct{} // receives when the model is asked
	answer chan struct{}
}

func newSlow() *slow { return &slow{asked: make(chan struct{}, 100), answer: make(chan struct{})} }

func (m *slow) Complete(ctx context.Context, _ summary.Request) (summary.Reply, error) {
	m.calls.Add(1)
	m.asked <- struct{}{}
	select {
	case <-m.answer:
	case <-ctx.Done():
		return summary.Reply{}, ctx.Err()
	}
	return summary.Reply{Text: strings.Repeat("They spoke of tea at length. ", 8), Finish: "stop"}, nil
}

// crowded returns a store with an agent that has said more than fits its window, and the task that compacts the
// conversation.
func crowded(t *testing.T, m summary.Summarizer) (*kept, compaction.Task) {
	t.Helper()
	k := newKept(t)
	k.store.Models = func(context.Context, string) *summary.Model { return &summary.Model{Summarizer: m} }
	for range 10 {
		k.say(strings.Repeat("they spoke of tea, ", 200))
	}
	return k, compaction.Task{AgentID: k.agent, Conversation: recall.DefaultConversation,
		Settings: plan.Defaults(), Overhead: store.PromptOverhead{Window: 8000, Tokens: 10},
		Trigger: store.BeforePrompt,
		Due:     func(_ recall.Conversation, v clip.View) bool { return clip.Estimate(v) > 7200 }}
}

// If requests on several servers find the same compaction due, all wait for one of them.
func TestOneRequestOfManyAsksTheModel(t *testing.T) {
	t.Parallel()
	m := newSlow()
	k, task := crowded(t, m)
	results := make([]compaction.Result, 8)
	var wait sync.WaitGroup
	for i := range results {
		server := *k.store
		wait.Go(func() {
			var err error
			if results[i], err = server.Run(t.Context(), k.org, task); err != nil {
				t.Error(err)
			}
		})
	}
	<-m.asked
	close(m.answer)
	wait.Wait()
	compactions := 0
	for _, r := range results {
		if r.Made != nil {
			compactions++
			if got := int(m.calls.Load()); got != r.Made.ModelCalls {
				t.Errorf("the model was asked %d times, and %d times for the summary", got, r.Made.ModelCalls)
			}
		}
	}
	if compactions != 1 {
		t.Errorf("%d compactions, want 1", compactions)
	}
}

// If a request's patience ends while another request waits for its model, the request makes a summary without a model.
func TestARequestDoesNotWaitForAnotherForEver(t *testing.T) {
	t.Parallel()
	m := newSlow()
	k, task := crowded(t, m)
	var first compaction.Result
	var firstErr error
	var wait sync.WaitGroup
	wait.Go(func() { first, firstErr = k.store.Run(t.Context(), k.org, task) })
	<-m.asked
	task.Patience = time.Nanosecond
	r, err := k.store.Run(t.Context(), k.org, task)
	if err != nil || r.Made == nil || *r.Made.How != clip.Extracted || r.Made.ModelCalls != 0 ||
		!strings.Contains(*r.Made.Why, "another compaction") {
		t.Errorf("got %+v, %v", r.Made, err)
	}
	if _, err := k.pool.Exec(t.Context(), `
		UPDATE compaction_claims SET holder = $2, held_until = now() + interval '1 hour' WHERE org = $1`,
		k.org, aged(t, time.Hour)); err != nil {
		t.Fatal(err)
	}
	k.say(strings.Repeat("they spoke of tea, ", 1200))
	task.Patience = 30 * time.Minute // others have waited that long
	if r, err := k.store.Run(t.Context(), k.org, task); err != nil || r.Made == nil ||
		*r.Made.How != clip.Extracted || r.Made.ModelCalls != 0 {
		t.Errorf("after an hour: got %+v, %v", r.Made, err)
	}
	close(m.answer)
	wait.Wait()
	if firstErr != nil || first.Made != nil {
		t.Errorf("the first then makes %+v, %v; want nothing", first.Made, firstErr)
	}
}

// A compaction that a caller asks for waits for other compactions, and they wait for it. While another one runs, it
// asks no model.
func TestACallersCompactionWaitsForOthers(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"automatic", "manual"} {
		m := newSlow()
		k, automatic := crowded(t, m)
		manual := automatic
		manual.Due, manual.Trigger = nil, store.Manual
		task := map[string]compaction.Task{"automatic": automatic, "manual": manual}[first]
		var wait sync.WaitGroup
		wait.Go(func() {
			if r, err := k.store.Run(t.Context(), k.org, task); err != nil || r.Made == nil {
				t.Errorf("the first, %s: %+v, %v", first, r.Made, err)
			}
		})
		<-m.asked
		late := manual
		late.Wait = time.Nanosecond
		if _, err := k.store.Run(t.Context(), k.org, late); !errors.Is(err, db.ErrBusy) {
			t.Errorf("a manual one that cannot wait: %v, want ErrBusy", err)
		}
		late.Dry = true
		if r, err := k.store.Run(t.Context(), k.org, late); err != nil || !r.Plan.NeedsModel {
			t.Errorf("a plan waits for none: %v", err)
		}
		for _, task := range []compaction.Task{manual, automatic, manual} {
			wait.Go(func() {
				r, err := k.store.Run(t.Context(), k.org, task)
				if _, nothing := errors.AsType[*plan.Nothing](err); r.Made != nil || err != nil && !nothing {
					t.Errorf("another: %+v, %v; want nothing to do", r.Made, err)
				}
			})
		}
		close(m.answer)
		wait.Wait()
		var compactions, calls int
		if err := k.pool.QueryRow(t.Context(), `
			SELECT count(*), sum(model_calls) FROM compactions WHERE org = $1 AND conversation_key = $2`, k.org,
			k.conversation().Key).Scan(&compactions, &calls); err != nil {
			t.Fatal(err)
		}
		if compactions != 1 || calls != int(m.calls.Load()) {
			t.Errorf("%s first: %d compactions with %d calls; the model was asked %d times", first, compactions, calls,
				m.calls.Load())
		}
	}
}

// aged returns the holder of a claim that was made ago.
func aged(t *testing.T, ago time.Duration) uuid.UUID {
	t.Helper()
	holder, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(time.Now().Add(-ago).UnixMilli())) // #nosec G115 -- after 1970
	copy(holder[:6], ms[2:])
	return holder
}

// The claim of a stopped server ends. The claim of a working server does not end before its work.
func TestAClaimEndsWithItsServer(t *testing.T) {
	t.Parallel()
	m := newSlow()
	k, task := crowded(t, m)
	hold := func(until string) {
		t.Helper()
		if _, err := k.pool.Exec(t.Context(), `
			INSERT INTO compaction_claims (org, conversation_key, holder, held_until)
			VALUES ($1, $2, gen_random_uuid(), now() + $3::interval)
			ON CONFLICT (org, conversation_key) DO UPDATE SET held_until = excluded.held_until`,
			k.org, k.conversation().Key, until); err != nil {
			t.Fatal(err)
		}
	}
	hold("1 hour")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.store.Run(ended, k.org, task); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	hold("-1 second")
	close(m.answer)
	if r, err := k.store.Run(t.Context(), k.org, task); err != nil || r.Made == nil || *r.Made.How != clip.Whole {
		t.Errorf("got %+v, %v", r.Made, err)
	}
	var claims int
	if err := k.pool.QueryRow(t.Context(), `
		SELECT count(*) FROM compaction_claims WHERE org = $1`, k.org).Scan(&claims); err != nil || claims > 0 {
		t.Errorf("%d claims are left, %v", claims, err)
	}
}
