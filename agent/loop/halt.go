package loop

import "time"

// Halt is that of a run which stopped on this server because the database could not serve.
type Halt struct {
	Since time.Time // of the first of the halts of which each followed the one before within haltsApart
	Times int       // how many these are
	Works bool      // the run is tried again

	last time.Time
}

const (
	haltsApart = 3 * time.Minute
	longHalt   = 15 * time.Second // the longest pause before a run is tried again
)

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

// pause returns how long a run rests: not after its first halt, and then ever longer.
func (h Halt) pause() time.Duration {
	if h.Times > 5 {
		return longHalt
	}
	return min(adoptEvery<<(h.Times-1)-adoptEvery, longHalt)
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
