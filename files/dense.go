package files

import (
	"context"
	"fmt"
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
}

// A search does not wait long for the endpoint, and after it failed, for a while not at all.
const (
	queryWait = 5 * time.Second
	restAfter = 15 * time.Second
)

// query embeds the text of a search.
func (d *Dense) query(ctx context.Context, text string) ([]float32, error) {
	if until := d.rest.Load(); until != nil && time.Now().Before(*until) {
		return nil, fmt.Errorf("it failed a moment ago")
	}
	waiting, cancel := context.WithTimeout(ctx, queryWait)
	defer cancel()
	vectors, err := d.Embedder.Embed(waiting, []embed.Item{{ID: 1, Text: text}})
	if err != nil {
		if ctx.Err() == nil {
			until := time.Now().Add(restAfter)
			d.rest.Store(&until)
		}
		return nil, err
	}
	if len(vectors) == 0 {
		return nil, nil
	}
	return vectors[0].Values, nil
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
