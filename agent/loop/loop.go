// Package loop runs agents. It asks their models, runs the tools that they call, and stores each step before the next
// one. It continues runs of servers that are gone. It owns the tables of runs and steps.
//
// Each file uses those that are named before it:
//   - what a run is: errors.go status.go event.go model.go halt.go feed.go denial.go tail.go rules.go options.go run.go
//   - the runs of a server, and those in the tables: localrun.go registry.go refusedfiles.go lines.go loop.go
//     unconfirmed.go record.go usage.go clientcalls.go busy.go
//   - requests, which begin runs or repeat them: request.go resume.go calls.go ruleinput.go repeat.go
//     answeredcalls.go approval.go
//   - the worker of a run: waitingevents.go promptoverflow.go worker.go
//   - how runs begin, in turn, and are given up: autoclear.go input.go requestretry.go start.go turns.go
//     adopt.go cancel.go
//   - how a run shows, stores and ends what it does: background.go workertools.go subagents.go
//     end.go
//   - loops of others: clientloop.go flush.go refusal.go clientlooprefusal.go clientlooprecord.go opencalls.go
//     clientloopapproval.go
//   - steps, and the work that makes them one after the other: modelretry.go openfiles.go failurecause.go
//     promptfault.go step.go work.go serve.go
package loop

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Loop runs agents. All fields must be set except MaxRuns, FirstPause, LimitPatience, Patience and Models; without
// Models no run can start. Run must be running.
type Loop struct {
	DB     db.DB
	Agents *agent.Store
	Recall *recall.Store
	Tools  *tool.Set
	Server string // this server's id, as queue.Presence announces it
	Log    *slog.Logger

	// MaxRuns bounds an organization's simultaneous runs on all servers; 0 means no bound.
	MaxRuns int

	// FirstPause is the longest pause before a model is asked again after its first failure; 0 means 500 ms. Later pauses
	// are longer.
	FirstPause time.Duration

	// LimitPatience is how long a model is asked again while its provider limits requests, counted from an answer's first
	// limit; 0 means not at all.
	LimitPatience time.Duration

	// Patience is how long a run waits for a database that does not answer, or for another session's lock, before its
	// clients are told that it goes on later; 0 means 24 s. The run itself keeps waiting.
	Patience time.Duration

	// CancelPatience is how long a cancellation waits for the run to end; 0 means 5 s.
	CancelPatience time.Duration

	// Models returns the model for a handle, which may be empty. ErrNoModel if none is configured for it.
	Models func(handle string) (Model, error)

	// Ended, if not nil, is called with the stop reason, in the transaction that ends a run.
	Ended func(ctx context.Context, tx pgx.Tx, org db.Org, r Run, reason string) error

	// Render returns the items that clients of a background run get for an event. The first has the number seq.
	Render func(r Run, e Event, seq int64) []json.RawMessage

	*registry
	unconfirmed  *unconfirmed
	refusedFiles *refusedFiles
	lines        *lines
	starts       chan *localRun
	stopped      chan struct{} // closed when Run ends
}

// New returns a Loop with the fields of l.
func New(l Loop) *Loop {
	l.registry, l.starts = newRegistry(), make(chan *localRun)
	l.unconfirmed = &unconfirmed{all: map[int64]unconfirmedIn{}}
	l.refusedFiles = &refusedFiles{of: map[agentModel]openFiles{}}
	l.lines = &lines{each: map[int64][]chan struct{}{}}
	l.stopped = make(chan struct{})
	return &l
}

// with returns the loop for use in transaction tx.
func (l *Loop) with(tx pgx.Tx) *Loop {
	in := *l
	in.DB, in.Recall = tx, l.Recall.With(tx)
	return &in
}

// In returns the loop for use in transaction tx.
func (l *Loop) In(tx pgx.Tx) *Loop { return l.with(tx) }

// Stopped returns a channel that is closed once the server no longer works on runs.
func (l *Loop) Stopped() <-chan struct{} { return l.stopped }

func newID(prefix string) string { return prefix + uuid.NewString() }
