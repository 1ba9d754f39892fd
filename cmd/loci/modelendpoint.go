package main

import (
	"context"
	"errors"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/server/metrics"
)

// How long an endpoint may take to answer a probe: at the start, where a hanging endpoint must not delay the server,
// and later.
const (
	startProbe = 2 * time.Second
	laterProbe = 10 * time.Second
)

// modelEndpoint is a configured model, at an endpoint or inside the program.
type modelEndpoint struct {
	provider  string // the provider in the model's space
	model     string
	wanted    int // the configured dimension; 0 means the model's own
	client    prober
	endpoint  *endpoint.Endpoint // nil if none is configured
	dimension int                // 0 until the endpoint has answered, unless it is configured
}

// prober returns the dimension of a model's vectors.
type prober interface {
	Probe(ctx context.Context) (int, error)
}

// countedEmbedder counts the requests to an endpoint.
type countedEmbedder struct {
	embed.Embedder
	use    string
	counts *metrics.Metrics
}

// Embed implements embed.Embedder.
func (c countedEmbedder) Embed(ctx context.Context, items []embed.Item) ([]embed.Vector, error) {
	ctx, span := startSpan(ctx, "embed "+c.use)
	start := time.Now()
	vectors, err := c.Embedder.Embed(ctx, items)
	endSpan(span, err)
	failed := err
	if _, partly := errors.AsType[*endpoint.RefusedError](err); partly {
		failed = nil // the endpoint answered
	}
	c.counts.EmbeddingCall(c.use, failed, len(items), time.Since(start))
	return vectors, err
}

func (e *modelEndpoint) probe(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	dimension, err := e.client.Probe(ctx)
	if err == nil {
		e.dimension = dimension
	}
	return err
}

// named reports whether a space belongs to the endpoint's model.
func (e *modelEndpoint) named(space endpoint.Space) bool {
	return space.Provider == e.provider && space.Model == e.model && (e.wanted == 0 || e.wanted == space.Dimension)
}

// space returns the endpoint's space. If the endpoint does not answer, space uses the dimension that is known for it.
func (e *modelEndpoint) space(ctx context.Context, d db.DB) (endpoint.Space, error) {
	if e.dimension == 0 {
		if stored, err := endpoint.KnownSpace(ctx, d, e.provider, e.model); err == nil {
			e.dimension = stored.Dimension
		} else if err := e.probe(ctx, laterProbe); err != nil {
			return endpoint.Space{}, err
		}
	}
	return endpoint.UseSpace(ctx, d, e.provider, e.model, e.dimension)
}

// probed returns the space of an endpoint, after checking that it answers now.
func (e *modelEndpoint) probed(ctx context.Context, d db.DB) (endpoint.Space, error) {
	probe := *e // a copy, because requests use e at the same time
	if err := probe.probe(ctx, laterProbe); err != nil {
		return endpoint.Space{}, err
	}
	return probe.space(ctx, d)
}
