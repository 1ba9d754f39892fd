package loop

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// registry holds the runs on this server.
type registry struct {
	mu     sync.Mutex
	active map[string]*localRun // run id → session
	halts  map[string]Halt      // run id → halt
}

func newRegistry() *registry {
	return &registry{active: map[string]*localRun{}, halts: map[string]Halt{}}
}

// hold registers a session. It returns false if its run already has one.
func (r *registry) hold(s *localRun) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active[s.run.ID] != nil {
		return false
	}
	r.active[s.run.ID] = s
	return true
}

func (r *registry) release(s *localRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active[s.run.ID] == s {
		delete(r.active, s.run.ID)
	}
}

func (r *registry) held(id string) *localRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.active[id]
}

// Halted returns the halt of a run that stopped on this server and has not ended since. ok is false if there is none.
func (r *registry) Halted(run string) (Halt, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, is := r.halts[run]
	h.Works = r.active[run] != nil
	return h, is
}

// halt records that a run stopped.
func (r *registry) halt(run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, now := r.halts[run], time.Now()
	if now.Sub(h.last) > haltsApart {
		h = Halt{Since: now}
	}
	h.last, h.Times = now, h.Times+1
	r.halts[run] = h
}

// rests reports whether it is too early to try a run again. A database that stores nothing may still let a server take
// over a run, and then each try would ask the model again.
func (r *registry) rests(run string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, is := r.halts[run]
	return is && time.Since(h.last) < h.pause()
}

// forgetHalt forgets the halt of a run that has ended.
func (r *registry) forgetHalt(run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.halts, run)
}

// keepHalts keeps only the halts of running runs that this server owns.
func (r *registry) keepHalts(server string, running []orphan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	owned := map[string]Halt{}
	for _, o := range running {
		if h, is := r.halts[o.ID]; is && o.Owner == server {
			owned[o.ID] = h
		}
	}
	r.halts = owned
}

// orphan is a run that no living server works on.
type orphan struct {
	Org   db.Org `db:"org"`
	ID    string `db:"id"`
	Owner string `db:"owner"`
}

// unconfirmed records messages that requests may have stored without confirming it to their clients, until the log
// records it. A client that then sends its request again, to any server, gets the outcome of the first one.
type unconfirmed struct {
	mu  sync.Mutex
	all map[int64]unconfirmedIn // by conversation key
}

// unconfirmedIn is the newest request of a conversation, with the messages that the client may not know of.
type unconfirmedIn struct {
	org          db.Org
	conversation recall.Conversation
	recall.Unconfirmed
}

// of returns the unconfirmed requests of an agent; of all agents if agentID is empty.
func (u *unconfirmed) of(agentID string) map[int64]unconfirmedIn {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := maps.Clone(u.all)
	maps.DeleteFunc(all, func(_ int64, in unconfirmedIn) bool {
		return agentID != "" && in.conversation.AgentID != agentID
	})
	return all
}

// drop forgets what the log now records, unless a later request has replaced it.
func (u *unconfirmed) drop(conversation int64, settled unconfirmedIn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now := u.all[conversation]; now.RunID == settled.RunID && slices.Equal(now.IDs, settled.IDs) {
		delete(u.all, conversation)
	}
}
