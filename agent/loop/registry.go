package loop

import (
	"sync"
	"time"

	"github.com/loci-memory/loci/db"
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
	delete(r.active, s.run.ID)
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
