package files

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loci-memory/loci/embed"
)

// Dense is an embeddings endpoint and the space of its vectors. The space is known once the endpoint has answered; until then, and
// with a nil *Dense, search ranks by words.
type Dense struct {
	Embedder embed.Embedder
	Queries  embed.Embedder // of searches, which are not to wait for those of jobs; nil is Embedder

	// FirstPause is how long jobs leave the endpoint alone after it failed; each further failure doubles it, up to MaxPause. Zeros are a
	// second and a minute.
	FirstPause, MaxPause time.Duration

	active atomic.Pointer[embed.Space]
	rest   atomic.Pointer[time.Time] // until when searches leave the endpoint alone

	mu       sync.Mutex
	failures int           // of jobs, since one succeeded
	until    time.Time     // when a job may try again
	trying   bool          // one does
	changed  chan struct{} // closed when any of these changes
	stopped  bool
	limit    int // chunks that the endpoint has time for in one job, 0 as many as there are
	streak   int // of jobs that succeeded at that limit
}

// MaxAsked is the longest pause that an endpoint may ask for.
const MaxAsked = 5 * time.Minute

// waitInHand is how long a job waits for the endpoint before it gives its place to another: jobs in the queue keep their turn.
const waitInHand = 20 * time.Second

// await returns 0 when a job may ask the endpoint: at once while that answers, and after it failed when the pause is over, one job at a
// time, for one endpoint serves them all: that one's is a trial. Else it returns how long the job should stay away.
func (d *Dense) await(ctx context.Context) (away time.Duration, trial bool) {
	patience := time.NewTimer(waitInHand)
	defer patience.Stop()
	for {
		rest, trial, changed := d.enter()
		if rest == 0 {
			return 0, trial
		}
		if d.isStopped() {
			return time.Second, false
		}
		over := time.NewTimer(rest)
		select {
		case <-changed:
		case <-over.C:
		case <-patience.C:
			over.Stop()
			return max(rest, time.Second), false
		case <-ctx.Done():
			over.Stop()
			return max(rest, time.Second), false
		}
		over.Stop()
	}
}

// enter takes the place of the one that tries; if it may not, it says for how long, and what tells of a change before.
func (d *Dense) enter() (rest time.Duration, trial bool, changed <-chan struct{}) {
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
	return max(rest, d.pause(1)), false, d.changed
}

// pass gives up a trial that did not come to ask the endpoint.
func (d *Dense) pass() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trying = false
	d.tell()
}

// Stop sends the jobs that wait for the endpoint back to the queue.
func (d *Dense) Stop() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	d.tell()
}

func (d *Dense) isStopped() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stopped
}

func (d *Dense) tell() {
	if d.changed != nil {
		close(d.changed)
	}
	d.changed = make(chan struct{})
}

// pause is how long the endpoint is left alone after so many failures.
func (d *Dense) pause(failures int) time.Duration {
	first, most := cmp.Or(d.FirstPause, time.Second), cmp.Or(d.MaxPause, maxPause)
	return min(first<<min(max(failures-1, 0), 20), most)
}

// tried tells what came of a job's call with so many chunks. All jobs wait after a failure, longer after each, or as long as the
// endpoint asks. One that ran out of time is asked for half as much from then on, and for more again after it kept up.
func (d *Dense) tried(chunks int, err error) {
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
	if errors.Is(err, context.DeadlineExceeded) && chunks > 1 {
		d.limit = chunks / 2
	}
	if time.Now().After(d.until) { // those that were under way count as one
		d.failures++
		d.until = time.Now().Add(d.pause(d.failures))
	}
	if later, ok := errors.AsType[*embed.LaterError](err); ok {
		if until := time.Now().Add(min(later.After, MaxAsked)); until.After(d.until) {
			d.until = until
		}
	}
}

// growAfter is how many jobs in a row an endpoint must keep up with before it is asked for twice as much.
const growAfter = 16

func (d *Dense) grow() {
	if d.streak++; d.limit == 0 || d.streak < growAfter {
		return
	}
	if d.streak, d.limit = 0, d.limit*2; d.limit >= embedBatch {
		d.limit = 0
	}
}

// size is how many chunks a job may ask for.
func (d *Dense) size() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return cmp.Or(d.limit, embedBatch)
}

// A search does not wait long for the endpoint, and after it failed, for a while not at all.
const (
	queryWait = 5 * time.Second
	restAfter = 15 * time.Second
)

// query embeds the text of a search; nil where no endpoint is configured. An error is the beginning of a sentence for a model.
func (d *Dense) query(ctx context.Context, text string) ([]float32, error) {
	if d == nil {
		return nil, nil
	}
	if _, ok := d.Space(); !ok {
		return nil, errors.New("The embeddings endpoint has not answered yet")
	}
	if until := d.rest.Load(); until != nil && time.Now().Before(*until) {
		return nil, errNoAnswer
	}
	waiting, cancel := context.WithTimeout(ctx, queryWait)
	defer cancel()
	vectors, err := d.queries().Embed(waiting, []embed.Item{{ID: 1, Text: text}})
	if _, refused := errors.AsType[*embed.RefusedError](err); refused {
		return nil, errors.New("The embeddings endpoint refused the query")
	}
	if err != nil {
		if ctx.Err() == nil {
			until := time.Now().Add(restAfter)
			d.rest.Store(&until)
		}
		return nil, errNoAnswer
	}
	if len(vectors) == 0 {
		return nil, nil
	}
	return vectors[0].Values, nil
}

var errNoAnswer = errors.New("The embeddings endpoint did not answer")

func (d *Dense) queries() embed.Embedder {
	if d.Queries != nil {
		return d.Queries
	}
	return d.Embedder
}

// Use makes space the one that chunks are embedded into and searched in.
func (d *Dense) Use(space embed.Space) { d.active.Store(&space) }

// Space is the active space, if there is one.
func (d *Dense) Space() (embed.Space, bool) {
	if d == nil {
		return embed.Space{}, false
	}
	space := d.active.Load()
	if space == nil {
		return embed.Space{}, false
	}
	return *space, true
}
