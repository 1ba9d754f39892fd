// Package endpoint makes the vectors of texts: it asks OpenAI-compatible endpoints and the built-in model, keeps the
// table of embedding spaces, works off the queue of texts that wait for vectors, and embeds all rows again for another
// model.
//
// Each file uses those that are named before it:
//   - the requests that take turns: turns.go
//   - the client of an endpoint: openai.go refusal.go batch.go spaces.go batchsize.go pace.go endpoint.go
//     queryvector.go recent.go made.go
//   - vectors of rows, and the queue of texts that wait for them: queue.go vectorindex.go
//   - vectors of another model: remade.go reembed.go reembedprogress.go reembedslice.go reembedrun.go
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

// Endpoint is what makes vectors, an embeddings endpoint or a model in this process, and the space of its vectors. The
// space is known once it has answered; until then, and with a nil *Endpoint, search ranks by words.
type Endpoint struct {
	Embedder embed.Embedder
	Queries  embed.Embedder // for searches, so that they do not wait for jobs; nil is Embedder

	Name            string // in sentences; empty is "the embeddings endpoint"
	RefusesByNature bool   // texts that it is not made for, which is no news to the operator
	JobTexts        int    // the most of a job; 0 is MostTexts
	Jobs            int    // batches that are at work at a time; 0 is jobsAtOnce

	// Configured is what the settings say of the space that will be used: its model, and its dimension if they set one.
	Configured Space

	// Weight is how much search by meaning counts, from 0.05 to 2. With 0 each question is judged by what it finds, so
	// that a poor model does not spoil what words find.
	Weight float64

	// FirstPause is how long jobs leave the endpoint alone after it failed; each further failure doubles it, up to
	// MaxPause. Zeros are a second and a minute.
	FirstPause, MaxPause time.Duration

	Log *slog.Logger // gets what failures and refusals say, which organizations do not; nil drops it

	active atomic.Pointer[source]
	rest   atomic.Pointer[pause] // of searches

	stopped atomic.Bool
	pace    pace  // of jobs
	turns   turns // of jobs

	mu       sync.Mutex
	failures int           // of jobs, since one succeeded
	warned   bool          // of these failures
	until    time.Time     // when a job may try again
	trying   bool          // one does
	changed  chan struct{} // closed when any of these changes
	limit    int           // texts of a job, halved after a timeout; 0 is MostTexts
	streak   int           // of jobs that succeeded at that limit
}

// source is a space with the endpoint that makes its vectors.
type source struct {
	space Space
	of    *Endpoint
}

// maxAsked is the longest pause that an endpoint may ask for.
const maxAsked = 5 * time.Minute

// maxAwait is how long a job waits for the endpoint before it goes back to the queue.
const maxAwait = 20 * time.Second

// Permit lets a job ask the endpoint for vectors of the space that is in use when it is given. The caller ends it.
type Permit struct {
	endpoint *Endpoint
	source   source
	org      db.Org
	trial    bool // no other job asks until this one has
	asked    bool
}

// jobsAtOnce is enough that an endpoint always has a request to answer while other batches are read and stored.
const jobsAtOnce = 8

// Await returns a permit when the job's turn comes, in the order of turns: at once while the endpoint answers, and
// after a failure to one job when the pause is over. Without a permit, away is how long the job should wait in the
// queue. WithBulk says that others go first.
func (d *Endpoint) Await(ctx context.Context) (permit *Permit, away time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, maxAwait)
	defer cancel()
	if !d.turns.take(ctx, cmp.Or(d.source().of.Jobs, jobsAtOnce)) {
		return nil, time.Second
	}
	permit, away = d.await(ctx)
	if permit == nil {
		d.turns.give(db.OrgOf(ctx))
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

// Embed makes the vectors of texts, at most Size of them, and records for all jobs whether the endpoint answered. It
// returns the texts that the endpoint refuses with the reasons. An error means that there are no vectors, or that their
// dimension is not the space's, because another model has the name of the space's model.
func (p *Permit) Embed(ctx context.Context, items []embed.Item) (vectors []embed.Vector, refused []*RefusedError,
	err error) {
	if len(items) == 0 {
		return nil, nil, nil
	}
	p.asked, err = true, errors.New("the endpoint's client panicked")
	of := p.source.of
	defer func() {
		if p.endpoint.note(len(items), err) {
			p.endpoint.log(ctx, slog.LevelInfo, of.name()+" answers again")
		}
	}()
	p.endpoint.pace.begin(time.Now())
	vectors, err = of.Embedder.Embed(ctx, items)
	p.endpoint.pace.end(time.Now(), len(vectors)+len(Refusals(err)))
	if _, some := errors.AsType[*RefusedError](err); some {
		refused, err = Refusals(err), nil
		level := slog.LevelWarn
		if of.RefusesByNature {
			level = slog.LevelDebug
		}
		p.endpoint.log(ctx, level, of.name()+" refuses texts", "number", len(refused), "error", refused[0].Detail)
	}
	if err == nil {
		err = p.source.space.checkDimension(vectors)
	}
	if err != nil {
		p.endpoint.log(ctx, p.endpoint.level(), of.name()+" fails; texts wait for their vectors", "error", err)
		return nil, nil, err
	}
	return vectors, refused, nil
}

// name begins no sentence; see asSentence.
func (d *Endpoint) name() string { return cmp.Or(d.Name, "the embeddings endpoint") }

// asSentence returns text with a capital letter.
func asSentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// log tells the operator of an event, unless it is only the end of a job.
func (d *Endpoint) log(ctx context.Context, level slog.Level, message string, args ...any) {
	if d.Log != nil && !errors.Is(ctx.Err(), context.Canceled) {
		d.Log.Log(ctx, level, message, args...)
	}
}

// level is that of a failure: the first since the endpoint answered is a warning.
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

// End ends the turn, and a trial that has not asked the endpoint, so that another job may try.
func (p *Permit) End() {
	defer p.endpoint.turns.give(p.org)
	if p.asked || !p.trial {
		return
	}
	p.endpoint.mu.Lock()
	defer p.endpoint.mu.Unlock()
	p.endpoint.trying = false
	p.endpoint.tell()
}

// enter returns a rest of 0 if the job may ask; after a failure it asks as a trial. Otherwise rest is how long it must
// wait, unless changed is closed before.
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
	d.turns.close()
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

// note records the outcome of a job's request, and reports whether the endpoint answers again after failures. After a
// failure all jobs wait, longer after each one, or as long as the endpoint asks for. After a timeout, jobs have half as
// many texts until growAfter of them succeed.
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
		return false // the job's own end
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
	return false
}

// Use makes space the active one, which texts are embedded into and searched in.
func (d *Endpoint) Use(space Space) { d.active.Store(&source{space, d}) }

// Switch makes the space that another endpoint uses the active one, whose vectors that endpoint makes. A search that
// has begun is answered from the space before.
func (d *Endpoint) Switch(to *Endpoint) {
	d.active.Store(new(to.source()))
	d.rest.Store(nil)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failures, d.until, d.limit = 0, time.Time{}, 0
	d.tell()
}

// source returns the active space with its endpoint; before there is one, the endpoint alone.
func (d *Endpoint) source() source {
	if active := d.active.Load(); active != nil {
		return *active
	}
	return source{of: d}
}

// MeaningWeight returns the Weight of the endpoint whose space is searched.
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

// Named returns the active space, or what is known of it before the endpoint has answered; false without an endpoint.
func (d *Endpoint) Named() (Space, bool) {
	if space, ok := d.Space(); ok || d == nil {
		return space, ok
	}
	return d.Configured, d.Configured.Model != ""
}

// Problem returns a sentence on why texts have no vectors now; empty while the endpoint answers, and without one.
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
