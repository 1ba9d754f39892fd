package endpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pgvector/pgvector-go"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/provider"
)

// A search waits for the endpoint for queryTimeout. After a failure, searches do not ask the endpoint for queryPause.
const (
	queryTimeout = 5 * time.Second
	queryPause   = 15 * time.Second
)

// pause is a time in which searches do not ask an endpoint that failed.
type pause struct {
	until time.Time
	why   error // its text begins a sentence
}

// failed returns why a search is not ranked by meaning, as organizations may read it.
func failed(err error) error { return errors.New(asSentence(provider.Public(err))) }

// EmbedQuery returns the vector of a search's text in the active space, or nil if the search cannot rank by meaning.
// Then note is a sentence for the model that says why, or "" if no endpoint is configured.
func (d *Endpoint) EmbedQuery(ctx context.Context, text string) (vector *pgvector.HalfVector, space Space,
	note string) {
	if d == nil {
		return nil, Space{}, ""
	}
	if _, ok := d.Space(); !ok {
		return nil, space, asSentence(d.name()) + " has given no vectors yet, so this was ranked by words alone."
	}
	from := d.source()
	space = from.space
	values, err := d.askForQuery(ctx, from, text)
	switch {
	case err != nil:
		return nil, space, ByWordsNote(err)
	case values == nil:
		return nil, space, ""
	case len(values) != space.Dimension:
		return nil, space, asSentence(from.of.name()) + " answers with another model's vectors, so this was ranked by " +
			"words alone."
	}
	return new(pgvector.NewHalfVector(values)), space, ""
}

// ByWordsNote returns a sentence that says why there is no ranking by meaning, or "" for a nil error.
func ByWordsNote(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%v, so this was ranked by words alone.", err)
}

// askForQuery asks the endpoint for the vector of a search's text.
func (d *Endpoint) askForQuery(ctx context.Context, from source, text string) ([]float32, error) {
	vectors, err := d.ask(ctx, from, []embed.Item{{ID: 1, Text: text}})
	if len(vectors) == 0 {
		return nil, err
	}
	return vectors[0].Values, nil
}

// EmbedTexts asks for the vectors of a search's texts in the active space. The first item is the query.
func (d *Endpoint) EmbedTexts(ctx context.Context, items []embed.Item) ([]embed.Vector, error) {
	return d.ask(ctx, d.source(), items)
}

// ask asks the endpoint for the vectors of a search. The first item is the query. The text of an error begins a
// sentence.
func (d *Endpoint) ask(ctx context.Context, from source, items []embed.Item) ([]embed.Vector, error) {
	if rest := d.rest.Load(); rest != nil && time.Now().Before(rest.until) {
		return nil, rest.why
	}
	limited, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	vectors, err := cmp.Or(from.of.Queries, from.of.Embedder).Embed(limited, items)
	for _, refused := range Refusals(err) {
		refusedText := "the query"
		if refused.ID != items[0].ID {
			refusedText = "a text that is searched"
		}
		if refused.ID == items[0].ID || !from.of.RefusesByNature {
			return nil, fmt.Errorf("%s gives %s no vector (%s)", asSentence(from.of.name()), refusedText, refused.Reason)
		}
		err = nil // the other texts are ranked by meaning
	}
	if err != nil {
		why := failed(err)
		if ctx.Err() == nil {
			d.log(ctx, d.level(), from.of.name()+" fails; searches rank by words for a while", "error", err)
			d.rest.Store(&pause{until: time.Now().Add(queryPause), why: why})
		}
		return nil, why
	}
	d.answered(ctx)
	return vectors, nil
}

// answered logs the end of an outage that only searches noticed.
func (d *Endpoint) answered(ctx context.Context) {
	d.mu.Lock()
	again := d.warned && d.failures == 0
	d.warned = d.warned && !again
	d.mu.Unlock()
	if again {
		d.log(ctx, slog.LevelInfo, d.source().of.name()+" answers again")
	}
}
