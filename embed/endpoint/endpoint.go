// Package endpoint makes the vectors of texts: it asks OpenAI-compatible endpoints and the built-in model, keeps the
// table of embedding spaces, works off the queue of texts that wait for vectors, and embeds all rows again for another
// model.
// Each file uses only the files named before it:
//   - the requests that take turns: batchslots.go
//   - the client of an endpoint: openai.go refusal.go batch.go spaces.go batchsize.go pace.go endpoint.go
//     queryvector.go recent.go textvectors.go
//   - vectors of rows, and the queue of texts that wait for them: queue.go vectorindex.go
//   - vectors of another model: reembedsource.go reembed.go reembedprogress.go reembedslice.go reembedrun.go
package endpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// Endpoint makes vectors with an embeddings endpoint or a model in this process. It knows the space of its vectors once
// it has answered. Until then, and if the *Endpoint is nil, searches rank by words.
type Endpoint struct {
	Embedder embed.Embedder
	Queries  embed.Embedder // for searches, so that they do not wait for jobs; nil: Embedder

	Name            string // name in sentences; empty: "the embeddings endpoint"
	RefusesByNature bool   // the endpoint refuses some texts by design; the operator is not told of them
	JobTexts        int    // the most texts of a job; 0: MostTexts
	Jobs            int    // batches that run at a time; 0: jobsAtOnce

	// Configured is the space in the settings: its model, and its dimension if the settings have one.
	Configured Space

	// Weight is how much search by meaning counts, from 0.05 to 2. With 0, each question's hits decide, so that a poor
	// model does not spoil what words find.
	Weight float64

	// FirstPause is how long jobs leave the endpoint alone after a failure. Each further failure doubles it, up to
	// MaxPause. 0 means a second for FirstPause and a minute for MaxPause.
	FirstPause, MaxPause time.Duration

	Log *slog.Logger // gets the details of failures and refusals, which organizations do not see; nil drops them

	active atomic.Pointer[source]
	rest   atomic.Pointer[pause] // pause of searches

	stopped atomic.Bool
	pace    pace       // pace of jobs
	slots   batchSlots // turns of jobs

	mu       sync.Mutex
	failures int           // failed jobs since one succeeded
	warned   bool          // the log has a warning about these failures
	until    time.Time     // when a job may try again
	trying   bool          // a job is trying
	changed  chan struct{} // closes when one of these fields changes
	limit    int           // most texts of a job, halved after a timeout; 0: MostTexts
	streak   int           // jobs in a row that succeeded at that limit
}

// source is a space, with the endpoint that makes its vectors.
type source struct {
	space Space
	of    *Endpoint
}

// maxAsked is the longest pause that an endpoint may ask for.
const maxAsked = 5 * time.Minute

// maxAwait is how long a job waits for the endpoint before it goes back to the queue.
const maxAwait = 20 * time.Second

// Permit lets a job ask the endpoint for vectors of the space that is in use when the permit is given. The caller calls
// End.
type Permit struct {
	endpoint *Endpoint
	source   source
	org      db.Org
	trial    bool // a trial request; other jobs wait for its result
	asked    bool
}

// jobsAtOnce is large enough that an endpoint always has a request to answer while other batches are read and stored.
const jobsAtOnce = 8

// Await returns a permit when it is the job's turn. While the endpoint answers, that is at once if a turn is free;
// after a failure only one job gets a permit when the pause is over. Without a permit, away is how long the job should
// wait in the queue. With WithBulk, other jobs go first.
func (d *Endpoint) Await(ctx context.Context) (permit *Permit, away time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, maxAwait)
	defer cancel()
	if !d.slots.take(ctx, cmp.Or(d.source().of.Jobs, jobsAtOnce)) {
		return nil, time.Second
	}
	permit, away = d.await(ctx)
	if permit == nil {
		d.slots.give(db.OrgOf(ctx))
	}
	return permit, away
}

func (d *Endpoint) await(ctx context.Context) (permit *Permit, away time.Duration) {
	for {
		rest, trial, changed := d.enter()
		if rest == 0 {
			return &Permit{endpoint: d, source: d.source(), org: db.OrgOf(ctx), trial: trial}, 0
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

// Embed makes the vectors of at most Size texts, and records for all jobs whether the endpoint answered. It returns the
// refused texts with the reasons. An error means that there are no vectors, or that they do not have the space's
// dimension, because another model now has the name of the space's model.
func (p *Permit) Embed(ctx context.Context, items []embed.Item) (vectors []embed.Vector, refused []*RefusedError,
	err error) {
	if len(items) == 0 {
		return nil, nil, nil
	}
	p.asked, err = true, errors.New("the endpoint's client panicked")
	maker := p.source.of
	defer func() {
		if p.endpoint.note(len(items), err) {
			p.endpoint.log(ctx, slog.LevelInfo, maker.name()+" answers again")
		}
	}()
	p.endpoint.pace.begin(time.Now())
	vectors, err = maker.Embedder.Embed(ctx, items)
	p.endpoint.pace.end(time.Now(), len(vectors)+len(Refusals(err)))
	if _, some := errors.AsType[*RefusedError](err); some {
		refused, err = Refusals(err), nil
		level := slog.LevelWarn
		if maker.RefusesByNature {
			level = slog.LevelDebug
		}
		p.endpoint.log(ctx, level, maker.name()+" refuses texts", "number", len(refused), "error", refused[0].Detail)
	}
	if err == nil {
		err = p.source.space.checkDimension(vectors)
	}
	if err != nil {
		p.endpoint.log(ctx, p.endpoint.level(), maker.name()+" fails; texts wait for their vectors", "error", err)
		return nil, nil, err
	}
	return vectors, refused, nil
}

// name returns the name for the middle of a sentence; asSentence makes it fit the beginning.
func (d *Endpoint) name() string { return cmp.Or(d.Name, "the embeddings endpoint") }

// asSentence returns text with a capital letter.
func asSentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// log logs an event, unless the job itself was cancelled.
func (d *Endpoint) log(ctx context.Context, level slog.Level, message string, args ...any) {
	if d.Log != nil && !errors.Is(ctx.Err(), context.Canceled) {
		d.Log.Log(ctx, level, message, args...)
	}
}

// level returns the level for a failure: the first one since the endpoint answered is a warning, the others are debug.
func (d *Endpoint) level() slog.Level {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.warned {
		return slog.LevelDebug
	}
	d.warned = true
	return slog.LevelWarn
}

func (space Space) checkDimension(vectors []embed.Vector) error {
	for _, v := range vectors {
		if len(v.Values) != space.Dimension {
			return fmt.Errorf("the endpoint gives vectors of %d numbers now, and gave ones of %d before: "+
				"restart the server to use them", len(v.Values), space.Dimension)
		}
	}
	return nil
}

// End ends the turn. If this was a trial and the endpoint was not asked, another job may try.
func (p *Permit) End() {
	defer p.endpoint.slots.give(p.org)
	if p.asked || !p.trial {
		return
	}
	p.endpoint.mu.Lock()
	defer p.endpoint.mu.Unlock()
	p.endpoint.trying = false
	p.endpoint.tell()
}

// enter returns a rest of 0 if the job may ask; after a failure it asks as a trial. Otherwise the job must wait for
// rest, or until changed closes.
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
	d.slots.close()
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

// note records the result of a job's request. It reports whether the endpoint answers again after failures. After a
// failure all jobs wait: longer after each one, or as long as the endpoint asks. After a timeout, jobs have half as
// many texts until growAfter of them have succeeded.
func (d *Endpoint) note(texts int, err error) (again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.tell()
	d.trying = false
	if err == nil {
		again = d.warned
		d.failures, d.warned, d.until = 0, false, time.Time{}
		d.grow()
		return again
	}
	if errors.Is(err, context.Canceled) {
		return false // the job itself was cancelled
	}
	d.streak = 0
	if errors.Is(err, context.DeadlineExceeded) && texts > 1 {
		d.limit = texts / 2
	}
	if time.Now().After(d.until) { // requests that ran at the same time count as one failure
		d.failures++
		d.until = time.Now().Add(d.Pause(d.failures))
	}
	if later, ok := errors.AsType[*LaterError](err); ok {
		if until := time.Now().Add(min(later.After, maxAsked)); until.After(d.until) {
			d.until = until
		}
	}
	return false
}

// Use makes space the active one: texts are embedded into it and searched in it.
func (d *Endpoint) Use(space Space) { d.active.Store(&source{space, d}) }

// Switch makes the space of another endpoint the active one, and lets that endpoint make its vectors. A search that has
// already begun uses the old space.
func (d *Endpoint) Switch(to *Endpoint) {
	d.active.Store(new(to.source()))
	d.rest.Store(nil)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failures, d.until, d.limit = 0, time.Time{}, 0
	d.tell()
}

// source returns the active space with its endpoint, or only the endpoint if there is no active space yet.
func (d *Endpoint) source() source {
	if active := d.active.Load(); active != nil {
		return *active
	}
	return source{of: d}
}

// MeaningWeight returns the Weight of the endpoint that makes the searched space's vectors.
func (d *Endpoint) MeaningWeight() float64 {
	if d == nil {
		return 0
	}
	return d.source().of.Weight
}

// Space returns the active space, if there is one.
func (d *Endpoint) Space() (Space, bool) {
	if d == nil || d.active.Load() == nil {
		return Space{}, false
	}
	return d.active.Load().space, true
}

// Named returns the active space, or Configured if the endpoint has not answered yet. It returns false if there is
// neither.
func (d *Endpoint) Named() (Space, bool) {
	if space, ok := d.Space(); ok || d == nil {
		return space, ok
	}
	return d.Configured, d.Configured.Model != ""
}

// Problem returns a sentence that says why texts get no vectors now. It returns "" while the endpoint answers, and if
// there is no endpoint.
func (d *Endpoint) Problem() string {
	if d == nil {
		return ""
	}
	const meanwhile = ": texts wait for their vectors, and search ranks by words."
	if _, ok := d.Space(); !ok {
		return asSentence(d.name()) + " has given no vectors yet" + meanwhile
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if rest := d.rest.Load(); d.failures > 0 || rest != nil && time.Now().Before(rest.until) {
		return asSentence(d.source().of.name()) + " fails" + meanwhile
	}
	return ""
}
