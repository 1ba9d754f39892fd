package loop

import (
	"time"

	"github.com/loci-memory/loci/db"
)

// Halt says that a run stopped on this server because the database could not serve.
type Halt struct {
	Since time.Time // time of the first halt in a series; within it each follows the one before within haltsApart
	Times int       // number of halts in the series
	Works bool      // the run is being tried again

	last time.Time
}

const (
	haltsApart = 3 * time.Minute
	longHalt   = 15 * time.Second // the longest pause before a run is tried again
)

// pause returns how long a run rests: not at all after its first halt, and then longer each time.
func (h Halt) pause() time.Duration {
	if h.Times > 5 {
		return longHalt
	}
	return min(adoptEvery<<(h.Times-1)-adoptEvery, longHalt)
}

// endsRun reports whether an error ends a run that has halted before. After so many halts, a schema that was being
// rebuilt is complete again, so an error about the schema is a fault of Loci.
func (h Halt) endsRun(err error) bool { return h.Times >= maxRebuilding && db.LacksSchema(err) }

// maxRebuilding is how often a run waits for a schema that is being rebuilt: 24 minutes in all.
const maxRebuilding = 100

// adoptEvery is how often the server looks for runs of servers that are gone.
const adoptEvery = 2 * time.Second
