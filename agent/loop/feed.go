package loop

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errClosed means that no more events will come.
var errClosed = errors.New("the run has no more events")

// Feed holds the events of a run for clients on this server.
type Feed struct {
	run    string // the run's id
	mu     sync.Mutex
	events []Event
	closed bool
	waits  int           // statements of the run that have waited too long for the database
	more   chan struct{} // closed when there is more
}

func newFeed(run string) *Feed { return &Feed{run: run, more: make(chan struct{})} }

func (f *Feed) add(e Event) { f.change(func() { f.events = append(f.events, e) }) }

// shown returns the ids of messages that clients were shown.
func (f *Feed) shown() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := map[string]bool{}
	for _, e := range f.events {
		if e.Message != nil {
			ids[e.Message.ID] = true
		}
	}
	return ids
}

func (f *Feed) close() { f.change(func() { f.closed = true }) }

// waiting counts a statement of the run that has waited too long for the database; with more false, one that no longer
// waits.
func (f *Feed) waiting(more bool) {
	f.change(func() {
		if more {
			f.waits++
		} else {
			f.waits--
		}
	})
}

// change applies a change, and wakes the clients.
func (f *Feed) change(apply func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	apply()
	close(f.more)
	f.more = make(chan struct{})
}

// Next returns the events from a number on. It waits for the first one, at most for patience. The last event is an End;
// its failure is Interrupted if the run goes on later. While the run has waited too long for the database, waiting
// clients get such an End, too; the feed does not store it, so later clients do not.
func (f *Feed) Next(ctx context.Context, from int, patience time.Duration) ([]Event, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		f.mu.Lock()
		events, closed, more := f.events[from:len(f.events):len(f.events)], f.closed, f.more
		waits := f.waits > 0
		f.mu.Unlock()
		switch {
		case len(events) > 0:
			return events, nil
		case closed:
			return nil, errClosed
		case waits:
			return []Event{interruption(OutageText(f.run))}, nil
		}
		select {
		case <-more:
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
