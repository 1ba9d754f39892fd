package loop

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/recall"
)

// Event is something that happened in a run, for its client. One of Message, Delta, Withdrawn, Dropped and End is set.
type Event struct {
	Message  *recall.Message // was appended to the log
	Streamed bool            // with Message: its deltas were sent

	Delta     *Delta
	Withdrawn string   // the id of a message of which deltas were sent, and which is not stored
	Dropped   []string // the ids of calls of which deltas were sent, and which the stored message does not have
	End       *End
}

// Delta is a piece of an answer before it is stored.
type Delta struct {
	model.Delta
	MessageID string // of the answer
	StepID    string
	Asked     bool // a call is the client's to run or to approve
	At        time.Time
}

// End is the end of a run.
type End struct {
	StopReason string
	Usage      Usage
	Failure    *Failure // nil unless the run failed
}

// Failure says why a run failed. Status and Detail are those of a provider's failure.
type Failure struct {
	Type   string `json:"type"`
	Text   string `json:"message"`
	Status int    `json:"status,omitempty"` // by which a request without a stream is answered; 0 for others
	Detail string `json:"detail,omitempty"` // the provider's own words, redacted

	// After is the pause that the provider asks for with a limit of requests; 0 if it asks for none, and in the log.
	After time.Duration `json:"-"`
}

// Usage is what the models of a run counted, in tokens.
type Usage struct {
	Steps      int `db:"steps"`
	Prompt     int `db:"prompt_tokens"`
	Completion int `db:"completion_tokens"`
	Cached     int `db:"cached_tokens"`
	CacheWrite int `db:"cache_write_tokens"`
	Reasoning  int `db:"reasoning_tokens"`
	Context    int `db:"context_tokens"` // of the last prompt, and of its answer
}

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
