package files

import (
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
	active   atomic.Pointer[embed.Space]
	rest     atomic.Pointer[time.Time] // until when searches leave the endpoint alone

	mu       sync.Mutex
	failures int       // of jobs, since one succeeded
	until    time.Time // when jobs may try again
}

// resting is how long jobs leave the endpoint alone.
func (d *Dense) resting() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Until(d.until)
}

// tried tells what came of a job's call. All jobs wait after a failure, longer after each: one endpoint serves them all.
func (d *Dense) tried(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		d.failures, d.until = 0, time.Time{}
		return
	}
	if time.Now().After(d.until) { // those that were under way count as one
		d.failures++
		d.until = time.Now().Add(pause(d.failures))
	}
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
	vectors, err := d.Embedder.Embed(waiting, []embed.Item{{ID: 1, Text: text}})
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
