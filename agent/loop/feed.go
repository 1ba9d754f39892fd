package loop

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errClosed means that no more events come.
var errClosed = errors.New("the run has no more events")

// Feed holds the events of a run for the clients on this server.
type Feed struct {
	run    string // its id
	mu     sync.Mutex
	events []Event
	closed bool
	waits  int           // statements of the run that wait for the database too long
	more   chan struct{} // is closed when there is more
}

func newFeed(run string) *Feed { return &Feed{run: run, more: make(chan struct{})} }

func (f *Feed) add(e Event) { f.change(func() { f.events = append(f.events, e) }) }

// shown returns the ids of the messages that clients were shown.
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

// waiting notes that a statement of the run waits for the database too long, or that one does no more.
func (f *Feed) waiting(more bool) {
	f.change(func() {
		if more {
			f.waits++
		} else {
			f.waits--
		}
	})
}

// change makes a change, and wakes the clients.
func (f *Feed) change(apply func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	apply()
	close(f.more)
	f.more = make(chan struct{})
}

// Next returns the events from a number on, waiting for the first for a time at most. The last one is an End, of the
// failure Interrupted if the run goes on later. While the run waits for the database too long, clients get such an End,
// which those who come later do not.
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
