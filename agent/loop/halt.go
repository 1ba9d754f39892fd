package loop

import (
	"time"

	"github.com/loci-memory/loci/db"
)

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

// pause returns how long a run rests: not after its first halt, and then ever longer.
func (h Halt) pause() time.Duration {
	if h.Times > 5 {
		return longHalt
	}
	return min(adoptEvery<<(h.Times-1)-adoptEvery, longHalt)
}

// endsRun reports whether an error ends a run that halted before: a schema that is rebuilt is whole again by then, so
// that a statement of Loci is wrong.
func (h Halt) endsRun(err error) bool { return h.Times >= maxRebuilding && db.LacksSchema(err) }

// maxRebuilding is how many times a run waits for a schema that is rebuilt: 24 minutes.
const maxRebuilding = 100

// adoptEvery is the time between two looks for the runs of servers that are gone.
const adoptEvery = 2 * time.Second
