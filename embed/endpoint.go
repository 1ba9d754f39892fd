package embed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Endpoint is an embeddings endpoint and the space of its vectors. The space is known once the endpoint has answered;
// until then, and with a nil *Endpoint, search ranks by words.
type Endpoint struct {
	Embedder Embedder
	Queries  Embedder // for searches, so that they do not wait for jobs; nil is Embedder

	// FirstPause is how long jobs leave the endpoint alone after it failed; each further failure doubles it, up to
	// MaxPause. Zeros are a second and a minute.
	FirstPause, MaxPause time.Duration

	Log *slog.Logger // gets what failures and refusals say, which organizations do not; nil drops it

	active atomic.Pointer[Space]
	rest   atomic.Pointer[time.Time] // until when searches leave the endpoint alone

	stopped atomic.Bool

	mu       sync.Mutex
	failures int           // of jobs, since one succeeded
	until    time.Time     // when a job may try again
	trying   bool          // one does
	changed  chan struct{} // closed when any of these changes
	limit    int           // texts that the endpoint has time for in one job; 0 is MostTexts
	streak   int           // of jobs that succeeded at that limit
}

// maxAsked is the longest pause that an endpoint may ask for.
const maxAsked = 5 * time.Minute

// maxAwait is how long a job waits for the endpoint before it gives its place to another: jobs in the queue keep their
// turn.
const maxAwait = 20 * time.Second

// Permit is a job's leave to ask the endpoint. The caller ends it.
type Permit struct {
	endpoint *Endpoint
	trial    bool // nobody else asks until this job has
	asked    bool
}

// Await returns a permit: at once while the endpoint answers; after a failure when the pause is over, to one job at a
// time. Without a permit, away is how long the job should stay away.
func (d *Endpoint) Await(ctx context.Context) (permit *Permit, away time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, maxAwait)
	defer cancel()
	for {
		rest, trial, changed := d.enter()
		if rest == 0 {
			return &Permit{endpoint: d, trial: trial}, 0
		}
		if d.stopped.Load() {
			return nil, time.Second
		}
		select {
		case <-changed:
		case <-time.After(rest):
		case <-ctx.Done():
			return nil, max(rest, time.Second)
		}
	}
}

// Embed makes the vectors of texts, at most Size of them, and notes for all jobs whether the endpoint answered. Texts
// that it refuses are returned with the reasons. An error means that it made no vectors, or vectors of another
// dimension than the space's, which a known space meets when another model has its name.
func (p *Permit) Embed(ctx context.Context, items []Item) (vectors []Vector, refused []*RefusedError, err error) {
	if len(items) == 0 {
		return nil, nil, nil
	}
	p.asked, err = true, errors.New("the endpoint's client panicked")
	defer func() { p.endpoint.note(len(items), err) }()
	vectors, err = p.endpoint.Embedder.Embed(ctx, items)
	if _, some := errors.AsType[*RefusedError](err); some {
		refused, err = Refusals(err), nil
		p.endpoint.log(ctx, "the embeddings endpoint refuses texts", "number", len(refused), "error", refused[0].Detail)
	}
	if err == nil {
		err = p.endpoint.checkDimension(vectors)
	}
	if err != nil {
		p.endpoint.log(ctx, "the embeddings endpoint fails; texts wait for their vectors", "error", err)
		return nil, nil, err
	}
	return vectors, refused, nil
}

// log tells the operator of a failure, unless it is only the end of a job.
func (d *Endpoint) log(ctx context.Context, message string, args ...any) {
	if d.Log != nil && !errors.Is(ctx.Err(), context.Canceled) {
		d.Log.WarnContext(ctx, message, args...)
	}
}

func (d *Endpoint) checkDimension(vectors []Vector) error {
	space, _ := d.Space()
	for _, v := range vectors {
		if len(v.Values) != space.Dimension {
			return fmt.Errorf("the endpoint gives vectors of %d numbers now, and gave ones of %d before: "+
				"restart the server to use them", len(v.Values), space.Dimension)
		}
	}
	return nil
}

// End gives up a trial that did not come to ask the endpoint.
func (p *Permit) End() {
	if p.asked || !p.trial {
		return
	}
	p.endpoint.mu.Lock()
	defer p.endpoint.mu.Unlock()
	p.endpoint.trying = false
	p.endpoint.tell()
}

// enter returns 0 if the job may ask, as a trial after a failure. Else it returns for how long it may not, unless
// changed is closed before.
func (d *Endpoint) enter() (rest time.Duration, trial bool, changed <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changed == nil {
		d.changed = make(chan struct{})
	}
	rest = time.Until(d.until)
	switch {
	case d.failures == 0:
		return 0, false, nil
	case rest <= 0 && !d.trying:
		d.trying = true
		return 0, true, nil
	}
	return max(rest, d.Pause(1)), false, d.changed
}

// Stop sends the jobs that wait for the endpoint back to the queue.
func (d *Endpoint) Stop() {
	if d == nil {
		return
	}
	d.stopped.Store(true)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tell()
}

func (d *Endpoint) tell() {
	if d.changed != nil {
		close(d.changed)
	}
	d.changed = make(chan struct{})
}

// Pause returns how long jobs leave the endpoint alone after a number of failures.
func (d *Endpoint) Pause(failures int) time.Duration {
	first, most := cmp.Or(d.FirstPause, time.Second), cmp.Or(d.MaxPause, time.Minute)
	return min(first<<min(max(failures-1, 0), 20), most)
}

// note keeps the outcome of a job's call with some texts. After a failure all jobs wait, longer after each, or as long
// as the endpoint asks. An endpoint that ran out of time is asked for half as much, until it keeps up.
func (d *Endpoint) note(texts int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.tell()
	d.trying = false
	if err == nil {
		d.failures, d.until = 0, time.Time{}
		d.grow()
		return
	}
	if errors.Is(err, context.Canceled) {
		return // the job's own end
	}
	d.streak = 0
	if errors.Is(err, context.DeadlineExceeded) && texts > 1 {
		d.limit = texts / 2
	}
	if time.Now().After(d.until) { // calls that were under way count as one
		d.failures++
		d.until = time.Now().Add(d.Pause(d.failures))
	}
	if later, ok := errors.AsType[*LaterError](err); ok {
		if until := time.Now().Add(min(later.After, maxAsked)); until.After(d.until) {
			d.until = until
		}
	}
}

// Use makes space the active one, which texts are embedded into and searched in.
func (d *Endpoint) Use(space Space) { d.active.Store(&space) }

// Space returns the active space, if there is one.
func (d *Endpoint) Space() (Space, bool) {
	if d == nil || d.active.Load() == nil {
		return Space{}, false
	}
	return *d.active.Load(), true
}
