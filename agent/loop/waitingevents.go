package loop

import (
	"slices"
	"time"
)

// items are a background run's events that wait to be stored.
type waitingEvents struct {
	waiting []Event
	flushed time.Time
	last    int64           // number of the last stored item; 0 if not known yet
	asked   map[string]bool // ids of calls that the client must run or approve
}

func (i *waitingEvents) ask(callID string) {
	if i.asked == nil {
		i.asked = map[string]bool{}
	}
	i.asked[callID] = true
}

// dropDeltas drops the waiting deltas.
func (i *waitingEvents) dropDeltas() {
	i.waiting = slices.DeleteFunc(slices.Clone(i.waiting), func(e Event) bool { return e.Delta != nil })
}
