package loop

import (
	"slices"
	"time"
)

// items are the events of a background run that wait to be stored.
type items struct {
	waiting []Event
	flushed time.Time
	last    int64           // number of the last stored item; 0 before it is known
	asked   map[string]bool // ids of calls whose deltas are the client's to run
}

func (i *items) ask(callID string) {
	if i.asked == nil {
		i.asked = map[string]bool{}
	}
	i.asked[callID] = true
}

// dropDeltas drops the deltas that wait to be stored.
func (i *items) dropDeltas() {
	i.waiting = slices.DeleteFunc(slices.Clone(i.waiting), func(e Event) bool { return e.Delta != nil })
}
