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

// How long the endpoint has for an answer: at the start, which an endpoint that hangs does not hold up, and later.
const (
	startProbe = 2 * time.Second
	laterProbe = 10 * time.Second
)

// modelEndpoint is a configured model, at its endpoint or built in.
type modelEndpoint struct {
	provider  string // in its space
	model     string
	wanted    int // the dimension that is configured; 0 is the model's own
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
	began := time.Now()
	vectors, err := c.Embedder.Embed(ctx, items)
	endSpan(span, err)
	failed := err
	if _, some := errors.AsType[*endpoint.RefusedError](err); some {
		failed = nil // the endpoint answered
	}
	c.counts.EmbeddingCall(c.use, failed, len(items), time.Since(began))
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

// named reports whether a space is of the endpoint's model.
func (e *modelEndpoint) named(space endpoint.Space) bool {
	return space.Provider == e.provider && space.Model == e.model && (e.wanted == 0 || e.wanted == space.Dimension)
}

// space returns the endpoint's space. An endpoint that does not answer has the dimension that it had.
func (e *modelEndpoint) space(ctx context.Context, d db.DB) (endpoint.Space, error) {
	if e.dimension == 0 {
		if known, err := endpoint.KnownSpace(ctx, d, e.provider, e.model); err == nil {
			e.dimension = known.Dimension
		} else if err := e.probe(ctx, laterProbe); err != nil {
			return endpoint.Space{}, err
		}
	}
	return endpoint.UseSpace(ctx, d, e.provider, e.model, e.dimension)
}

// probed returns the space of an endpoint that answers now.
func (e *modelEndpoint) probed(ctx context.Context, d db.DB) (endpoint.Space, error) {
	probe := *e // requests ask at the same time
	if err := probe.probe(ctx, laterProbe); err != nil {
		return endpoint.Space{}, err
	}
	return probe.space(ctx, d)
}
