// Package loop runs agents: it asks their models, runs the tools that they call, stores each step before the next one,
// and goes on with the runs of servers that are gone. It owns the tables of runs and steps.
package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Loop runs agents. All fields must be set but MaxRuns, FirstPause, LimitPatience, Patience and Models, without which
// no run can start. Run must be running.
type Loop struct {
	DB     db.DB
	Agents *agent.Store
	Recall *recall.Store
	Tools  *tool.Set
	Server string // this server's id, by which queue.Presence announces it
	Log    *slog.Logger

	// MaxRuns bounds the runs that an organization has at the same time, on all servers; 0 means no bound.
	MaxRuns int

	// FirstPause is the longest pause before a model that failed is asked again; 0 means 500 ms. Further ones are longer.
	FirstPause time.Duration

	// LimitPatience is how long a model is asked again whose provider limits requests, from the first limit of an answer
	// on; 0 means not at all.
	LimitPatience time.Duration

	// Patience is how long a run waits for a database that does not answer, or for another session's lock, before its
	// clients are told that it goes on later; 0 means 24 s. The run itself goes on waiting.
	Patience time.Duration

	// CancelPatience is how long a cancellation waits for the end of the run; 0 means 5 s.
	CancelPatience time.Duration

	// Models returns the model of a handle, which may be empty. ErrNoModel if none is configured for it.
	Models func(handle string) (Model, error)

	// Ended is called in the transaction that ends a run, with its stop reason; nil is not called.
	Ended func(ctx context.Context, tx pgx.Tx, org db.Org, r Run, reason string) error

	// Render returns the items that the client of a background run is sent of an event. The first has the number seq.
	Render func(r Run, e Event, seq int64) []json.RawMessage

	*registry
	starts  chan *session
	stopped chan struct{} // is closed when Run ends
}

// registry holds the runs on this server.
type registry struct {
	mu     sync.Mutex
	active map[string]*session // by the ids of their runs
	halts  map[string]Halt     // by the ids of their runs
}

func newRegistry() *registry {
	return &registry{active: map[string]*session{}, halts: map[string]Halt{}}
}

// Model is a model that answers.
type Model struct {
	model.Client
	Name string // as its provider names it
}

// Provider returns the provider's name in Letta's words.
func (m Model) Provider() string {
	if m.Format() == model.FormatAnthropic {
		return "anthropic"
	}
	return "openai"
}

// ErrNoModel means that no model is configured for an agent.
var ErrNoModel = errors.New("no language model is configured")

// NoModel is the type of the failure of a run that goes on where no model is configured for it.
const NoModel = "no_model"

// NoModelText tells a client what to do about an ErrNoModel.
func NoModelText(err error) string {
	return "This server cannot run the agent, because " + err.Error() + ": set LOCI_LLM_BASE_URL and LOCI_LLM_MODEL, " +
		"and for anthropic/ handles LOCI_ANTHROPIC_API_KEY. A loop of your own needs none of them: " +
		"GET /v1/agents/{agent_id}/prompt hands out prompts, and POST /v1/agents/{agent_id}/messages/capture stores turns"
}

// New returns a Loop with the fields of l.
func New(l Loop) *Loop {
	l.registry, l.starts = newRegistry(), make(chan *session)
	l.stopped = make(chan struct{})
	return &l
}

// with returns a loop whose statements are tx's.
func (l *Loop) with(tx pgx.Tx) *Loop {
	in := *l
	in.DB, in.Recall = tx, l.Recall.With(tx)
	return &in
}

// In returns a loop that records in tx.
func (l *Loop) In(tx pgx.Tx) *Loop { return l.with(tx) }

// Stopped returns a channel that is closed when the server works on runs no more.
func (l *Loop) Stopped() <-chan struct{} { return l.stopped }

// adoptEvery is the time between two looks for the runs of servers that are gone.
const adoptEvery = 2 * time.Second

// Run works on runs until ctx ends, and waits for them to stop. It is called once. The next steps of these runs are
// another server's, or this one's when it runs again. present is closed when this server is announced; only then it
// takes over runs.
func (l *Loop) Run(ctx context.Context, present <-chan struct{}) {
	announced := false
	defer close(l.stopped)
	var working sync.WaitGroup
	defer working.Wait()
	adopt := time.NewTicker(adoptEvery)
	defer adopt.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-present:
			announced, present = true, nil
			l.Adopt(ctx, 0)
		case <-adopt.C:
			if announced {
				l.Adopt(ctx, 0)
			}
		case s := <-l.starts:
			working.Go(func() { l.work(ctx, s) })
		}
	}
}

// session is a run on this server.
type session struct {
	*Feed
	org    db.Org
	run    Run
	model  Model // its client is nil if the run began on another server
	cancel chan struct{}
	once   sync.Once
}

func newSession(org db.Org, r Run, m Model) *session {
	return &session{Feed: newFeed(r.ID), org: org, run: r, model: m, cancel: make(chan struct{})}
}

// stop ends the run at once, and what it waits for.
func (s *session) stop() { s.once.Do(func() { close(s.cancel) }) }

// hold makes a session known to the server; false if its run is there already.
func (r *registry) hold(s *session) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active[s.run.ID] != nil {
		return false
	}
	r.active[s.run.ID] = s
	return true
}

func (r *registry) release(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.active, s.run.ID)
}

func (r *registry) held(id string) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.active[id]
}

// work works on a run until it ends, or until ctx does.
func (l *Loop) work(ctx context.Context, s *session) {
	defer l.release(s)
	defer s.close()
	ctx = db.WithProvenance(db.WithOrg(ctx, s.org), db.Provenance{KeyID: s.run.Options.KeyID, AgentID: s.run.AgentID,
		ConversationID: s.run.Conversation})
	w := &worker{Loop: l, session: s}
	err := w.work(db.WithNotice(ctx, cmp.Or(l.Patience, defaultPatience), s.waiting))
	switch {
	case err == nil:
		l.forgetHalt(s.run.ID)
	case ctx.Err() != nil:
		l.Log.InfoContext(ctx, "a run goes on when a server works again", "run", s.run.ID)
		s.interrupt()
	default:
		l.Log.ErrorContext(ctx, "a run stopped; it goes on later", "run", s.run.ID, "error", err)
		if !unavailable(err) {
			s.interrupt()
			return
		}
		l.halt(s.run.ID)
		s.add(interruption(OutageText(s.run.ID)))
	}
}

// interrupt ends the run for its clients on this server, which stops.
func (s *session) interrupt() { s.add(interruption(InterruptedText(s.run.ID))) }

// interruption is the end of a run for its clients that goes on later.
func interruption(text string) Event {
	return Event{End: &End{StopReason: StopError, Failure: &Failure{Type: Interrupted, Text: text}}}
}

// defaultPatience is the Patience of a loop that has none. Until a wait is noticed some seconds may pass: 30 s in all.
const defaultPatience = 24 * time.Second

// Interrupted is the type of the failure of a run that goes on later.
const Interrupted = "interrupted"

// InterruptedText tells the client of a run that the run goes on later.
func InterruptedText(run string) string {
	return "The server stopped before the run ended. The run goes on later: " + readsLater(run)
}

// OutageText tells the client of a run that the run goes on when the database serves again.
func OutageText(run string) string {
	return "The database does not answer, or stores nothing, so that this answer ends before the run. The run goes on " +
		"when it does: " + readsLater(run)
}

// readsLater says how the client of a run learns what became of it.
func readsLater(run string) string {
	return "GET /v1/runs/" + run + " tells how it ends, and /v1/runs/" + run + "/messages has what it says. Do not send " +
		"the request again, unless with its otids"
}

// isCancelled reports whether the client cancelled the run on this server.
func (s *session) isCancelled() bool {
	select {
	case <-s.cancel:
		return true
	default:
		return false
	}
}

func newID(prefix string) string { return prefix + uuid.NewString() }
