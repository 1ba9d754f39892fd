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
	active map[string]*session // by the ids of their runs
	halts  map[string]Halt     // by the ids of their runs
}

func newRegistry() *registry {
	return &registry{active: map[string]*session{}, halts: map[string]Halt{}}
}

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
	if r.active[s.run.ID] == s {
		delete(r.active, s.run.ID)
	}
}

func (r *registry) held(id string) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.active[id]
}

// Halted returns the halt of a run that stopped on this server and has not ended since; false if it has none.
func (r *registry) Halted(run string) (Halt, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, is := r.halts[run]
	h.Works = r.active[run] != nil
	return h, is
}

// halt notes that a run stopped.
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

// rests reports whether a run is not to be tried again yet: a database that stores nothing may still take a run over,
// and then each try asks the model again.
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

// keepHalts forgets the halts of all runs but those that a server owns.
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

// untold holds what requests may have stored without telling their clients, until the log says so: a client that sends
// its request again, to any server, gets what became of the first one.
type untold struct {
	mu  sync.Mutex
	all map[int64]untoldIn // by the keys of conversations
}

// untoldIn is what the newest request in a conversation may have stored.
type untoldIn struct {
	org          db.Org
	conversation recall.Conversation
	recall.Untold
}

// of returns what is untold of an agent; of all if it is empty.
func (u *untold) of(agentID string) map[int64]untoldIn {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := maps.Clone(u.all)
	maps.DeleteFunc(all, func(_ int64, in untoldIn) bool {
		return agentID != "" && in.conversation.AgentID != agentID
	})
	return all
}

// drop forgets what is in the log now, unless a later request took its place.
func (u *untold) drop(conversation int64, settled untoldIn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now := u.all[conversation]; now.RunID == settled.RunID && slices.Equal(now.IDs, settled.IDs) {
		delete(u.all, conversation)
	}
}
