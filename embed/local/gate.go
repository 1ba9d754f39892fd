package local

import (
	"context"
	"slices"
	"sync"
)

// gate limits how many pieces of work run at a time.
type gate struct {
	mu      sync.Mutex
	free    int
	arrived int
	waiting []*waiter
}

// place is the place of a call's pieces in the line.
type place struct {
	bulk   bool // after all places that are not bulk
	number int  // of the call, in the order of arrival
}

type waiter struct {
	place
	served chan struct{} // closed when the waiter may enter
}

func newGate(most int) *gate { return &gate{free: max(1, most)} }

// arrive returns the place of a new call.
func (g *gate) arrive(bulk bool) place {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.arrived++
	return place{bulk, g.arrived}
}

// enter waits until a piece of a call may run. It returns ctx's error if ctx ends.
func (g *gate) enter(ctx context.Context, p place) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	g.mu.Lock()
	if g.free > 0 {
		g.free--
		g.mu.Unlock()
		return nil
	}
	w := &waiter{p, make(chan struct{})}
	g.waiting = append(g.waiting, w)
	g.mu.Unlock()
	select {
	case <-w.served:
		return nil
	case <-ctx.Done():
		g.stopWaiting(w)
		return ctx.Err()
	}
}

// stopWaiting removes a waiter. If it was served in the meantime, the next one enters.
func (g *gate) stopWaiting(w *waiter) {
	g.mu.Lock()
	i := slices.Index(g.waiting, w)
	if i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	g.mu.Unlock()
	if i < 0 {
		g.leave()
	}
}

// leave ends a piece of work, and lets the first waiter enter.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.free++
		return
	}
	next := slices.MinFunc(g.waiting, func(a, b *waiter) int { return a.compare(b.place) })
	g.waiting = slices.DeleteFunc(g.waiting, func(w *waiter) bool { return w == next })
	close(next.served)
}

// compare is negative if p is before the other place.
func (p place) compare(other place) int {
	if p.bulk != other.bulk {
		if other.bulk {
			return -1
		}
		return 1
	}
	return p.number - other.number
}
