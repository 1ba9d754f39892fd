package embed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pgvector/pgvector-go"
)

// A search waits queryTimeout for the endpoint. After a failure, searches do not ask the endpoint for queryPause.
const (
	queryTimeout = 5 * time.Second
	queryPause   = 15 * time.Second
)

var errNoAnswer = errors.New("The embeddings endpoint did not answer")

// embedQuery returns the vector of a search's text in the active space, or nil if the search cannot rank by meaning.
// The note then says why, in a sentence for the model; it is empty if no endpoint is configured.
func (d *Endpoint) embedQuery(ctx context.Context, text string) (vector *pgvector.HalfVector, space Space,
	note string) {
	if d == nil {
		return nil, Space{}, ""
	}
	if _, ok := d.Space(); !ok {
		return nil, space, "The embeddings endpoint has not answered yet, so this was ranked by words alone."
	}
	from := d.source()
	space = from.space
	values, err := d.askForQuery(ctx, from, text)
	switch {
	case err != nil:
		return nil, space, byWordsNote(err)
	case values == nil:
		return nil, space, ""
	case len(values) != space.Dimension:
		return nil, space, "The embeddings endpoint answers with another model's vectors, so this was ranked by words alone."
	}
	return new(pgvector.NewHalfVector(values)), space, ""
}

// byWordsNote says why there is no ranking by meaning; empty without an error.
func byWordsNote(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%v, so this was ranked by words alone.", err)
}

// askForQuery asks the endpoint for the vector of a search's text.
func (d *Endpoint) askForQuery(ctx context.Context, from source, text string) ([]float32, error) {
	vectors, err := d.ask(ctx, from, []Item{{ID: 1, Text: text}})
	if len(vectors) == 0 {
		return nil, err
	}
	return vectors[0].Values, nil
}

// ask asks the endpoint for the vectors of a search. The text of an error begins a sentence.
func (d *Endpoint) ask(ctx context.Context, from source, items []Item) ([]Vector, error) {
	if until := d.rest.Load(); until != nil && time.Now().Before(*until) {
		return nil, errNoAnswer
	}
	limited, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	vectors, err := cmp.Or(from.of.Queries, from.of.Embedder).Embed(limited, items)
	if _, refused := errors.AsType[*RefusedError](err); refused {
		return nil, errors.New("The embeddings endpoint refused the query")
	}
	if err != nil {
		if ctx.Err() == nil {
			d.log(ctx, d.level(), "the embeddings endpoint fails; searches rank by words for a while", "error", err)
			d.rest.Store(new(time.Now().Add(queryPause)))
		}
		return nil, errNoAnswer
	}
	d.answered(ctx)
	return vectors, nil
}

// answered logs the end of an outage that only searches saw.
func (d *Endpoint) answered(ctx context.Context) {
	d.mu.Lock()
	again := d.warned && d.failures == 0
	d.warned = d.warned && !again
	d.mu.Unlock()
	if again {
		d.log(ctx, slog.LevelInfo, "the embeddings endpoint answers again")
	}
}
