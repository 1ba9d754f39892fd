package embed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loci-memory/loci/db"
)

// Endpoint is an embeddings endpoint and the space of its vectors. The space is known once the endpoint has answered;
// until then, and with a nil *Endpoint, search ranks by words.
type Endpoint struct {
	Embedder Embedder
	Queries  Embedder // of searches, which are not to wait for those of jobs; nil is Embedder

	// FirstPause is how long jobs leave the endpoint alone after it failed; each further failure doubles it, up to
	// MaxPause. Zeros are a second and a minute.
	FirstPause, MaxPause time.Duration

	active atomic.Pointer[Space]
	rest   atomic.Pointer[time.Time] // until when searches leave the endpoint alone

	mu       sync.Mutex
	failures int           // of jobs, since one succeeded
	until    time.Time     // when a job may try again
	trying   bool          // one does
	changed  chan struct{} // closed when any of these changes
	stopped  bool
	limit    int // texts that the endpoint has time for in one job, 0 as many as there are
	streak   int // of jobs that succeeded at that limit
}

// MaxAsked is the longest pause that an endpoint may ask for.
const MaxAsked = 5 * time.Minute

// waitInHand is how long a job waits for the endpoint before it gives its place to another: jobs in the queue keep
// their turn.
const waitInHand = 20 * time.Second

// Permit is a job's leave to ask the endpoint.
type Permit struct {
	endpoint *Endpoint
	trial    bool // nobody else asks until it is told what came of it
	asked    bool
}

// Await waits for the job's turn: it comes at once while the endpoint answers, and after that failed when the pause is
// over, to one job at a time, for one endpoint serves them all. Without a turn, away is how long the job should stay
// away. The caller ends the turn.
func (d *Endpoint) Await(ctx context.Context) (turn *Permit, away time.Duration) {
	patience := time.NewTimer(waitInHand)
	defer patience.Stop()
	for {
		rest, trial, changed := d.enter()
		if rest == 0 {
			return &Permit{endpoint: d, trial: trial}, 0
		}
		if d.isStopped() {
			return nil, time.Second
		}
		over := time.NewTimer(rest)
		select {
		case <-changed:
		case <-over.C:
		case <-patience.C:
			over.Stop()
			return nil, max(rest, time.Second)
		case <-ctx.Done():
			over.Stop()
			return nil, max(rest, time.Second)
		}
		over.Stop()
	}
}

// Embed makes the vectors of texts, at most Size of them, and tells all jobs of the endpoint's state. Texts that the
// endpoint refuses go without, and are returned with the reasons; an error means that it made no vectors, or those of
// another dimension than the space's: a server that knows that from before may meet another model under the same name.
func (t *Permit) Embed(ctx context.Context, items []Item) (vectors []Vector, refused []*RefusedError, err error) {
	t.asked = true
	told := false
	defer func() {
		if !told { // it panicked
			t.endpoint.tried(len(items), errors.New("the endpoint's client panicked"))
		}
	}()
	vectors, err = t.endpoint.Embedder.Embed(ctx, items)
	if _, some := errors.AsType[*RefusedError](err); some {
		refused, err = Refusals(err), nil
	}
	if err == nil {
		err = t.endpoint.fits(vectors)
	}
	told = true
	t.endpoint.tried(len(items), err)
	if err != nil {
		return nil, nil, err
	}
	return vectors, refused, nil
}

func (d *Endpoint) fits(vectors []Vector) error {
	space, _ := d.Space()
	for _, v := range vectors {
		if len(v.Values) != space.Dimension {
			return fmt.Errorf("the endpoint gives vectors of %d numbers now, and gave ones of %d before: restart the server to use them",
				len(v.Values), space.Dimension)
		}
	}
	return nil
}

// Asked says whether the endpoint was asked.
func (t *Permit) Asked() bool { return t.asked }

// End gives up a trial that did not come to ask the endpoint.
func (t *Permit) End() {
	if t.asked || !t.trial {
		return
	}
	t.endpoint.mu.Lock()
	defer t.endpoint.mu.Unlock()
	t.endpoint.trying = false
	t.endpoint.tell()
}

// enter takes the place of the one that tries; if it may not, it says for how long, and what tells of a change before.
func (d *Endpoint) enter() (rest time.Duration, trial bool, changed <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changed == nil {
		d.changed = make(chan struct{})
	}
	rest = time.Until(d.until)
	switch {
	case d.failures == 0:
		return 0, false, d.changed
	case rest <= 0 && !d.trying:
		d.trying = true
		return 0, true, d.changed
	}
	return max(rest, d.Pause(1)), false, d.changed
}

// Stop sends the jobs that wait for the endpoint back to the queue.
func (d *Endpoint) Stop() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	d.tell()
}

func (d *Endpoint) isStopped() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stopped
}

func (d *Endpoint) tell() {
	if d.changed != nil {
		close(d.changed)
	}
	d.changed = make(chan struct{})
}

// Pause is how long the endpoint is left alone after so many failures.
func (d *Endpoint) Pause(failures int) time.Duration {
	first, most := cmp.Or(d.FirstPause, time.Second), cmp.Or(d.MaxPause, time.Minute)
	return min(first<<min(max(failures-1, 0), 20), most)
}

// tried tells what came of a job's call with so many texts. All jobs wait after a failure, longer after each, or as
// long as the endpoint asks. One that ran out of time is asked for half as much from then on, and for more again after
// it kept up.
func (d *Endpoint) tried(texts int, err error) {
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
	if time.Now().After(d.until) { // those that were under way count as one
		d.failures++
		d.until = time.Now().Add(d.Pause(d.failures))
	}
	if later, ok := errors.AsType[*LaterError](err); ok {
		if until := time.Now().Add(min(later.After, MaxAsked)); until.After(d.until) {
			d.until = until
		}
	}
}

// A job embeds so many texts at most, and should not ask for more tokens: enough that the requests, several at a time,
// take longer than what is around them. An endpoint that is too slow for that in a job's time is asked for fewer.
const (
	MostTexts  = 128
	MostTokens = 38_400
)

// growAfter is how many jobs in a row an endpoint must keep up with before it is asked for twice as much.
const growAfter = 16

func (d *Endpoint) grow() {
	if d.streak++; d.limit == 0 || d.streak < growAfter {
		return
	}
	if d.streak, d.limit = 0, d.limit*2; d.limit >= MostTexts {
		d.limit = 0
	}
}

// Size is how many texts a job may ask for at once.
func (d *Endpoint) Size() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return cmp.Or(d.limit, MostTexts)
}

// Use makes space the one that texts are embedded into and searched in.
func (d *Endpoint) Use(space Space) { d.active.Store(&space) }

// Space is the active space, if there is one.
func (d *Endpoint) Space() (Space, bool) {
	if d == nil {
		return Space{}, false
	}
	space := d.active.Load()
	if space == nil {
		return Space{}, false
	}
	return *space, true
}

// spaceLife is how long the vectors of a space are kept that no server uses: whoever goes back to a model within that
// time finds them.
const spaceLife = 7 * 24 * time.Hour

// Unused notes that the active space is in use, and returns those that no server has used for a week: their vectors are
// to be cleared away.
func (d *Endpoint) Unused(ctx context.Context, pool db.DB) ([]Space, error) {
	active, ok := d.Space()
	if !ok {
		return nil, nil
	}
	if err := InUse(ctx, pool, active); err != nil {
		return nil, err
	}
	return Unused(ctx, pool, spaceLife)
}
