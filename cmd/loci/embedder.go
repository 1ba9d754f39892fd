package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/server/metrics"
)

// embedder connects the server to its embedding model.
type embedder struct {
	modelEndpoint
	next modelEndpoint // the model that 'loci reembed' switches to
	log  *slog.Logger
}

// embedder checks the settings, and probes the endpoints. It returns an error if an endpoint answers wrongly, but not
// if it does not answer.
func (c *serving) embedder(ctx context.Context, log *slog.Logger, counts *metrics.Metrics) (*embedder, error) {
	current, willBe, err := c.chosen(c.embedding, embedding(c.nextEmbedding))
	if err != nil {
		return nil, err
	}
	e := &embedder{log: log}
	switch current {
	case builtinModel, directoryModel:
		e.modelEndpoint, err = c.modelInside(current, c.Dir, log, counts)
	case endpointModel:
		e.modelEndpoint, err = c.endpoint(ctx, "LOCI_EMBEDDING_", log, counts)
	}
	if err == errNoKernel { //nolint:errorlint // the error is returned unwrapped
		log.Warn(err.Error())
		return e, nil
	} else if err != nil {
		return nil, err
	}
	switch willBe {
	case builtinModel, directoryModel:
		e.next, err = c.modelInside(willBe, c.NextDir, log, counts)
	case endpointModel:
		e.next, err = embedding(c.nextEmbedding).endpoint(ctx, "LOCI_EMBEDDING_NEXT_", log, counts)
	}
	if err != nil {
		return nil, settingError{fmt.Errorf("of the next model, LOCI_EMBEDDING_NEXT_*: %w", err)}
	}
	for _, model := range []modelEndpoint{e.modelEndpoint, e.next} {
		if c.Weight != 0 && model.endpoint != nil {
			model.endpoint.Weight = c.Weight
		}
	}
	return e, nil
}

// modelInside opens the built-in model, or the model in a directory.
func (v vectors) modelInside(kind, dir string, log *slog.Logger, counts *metrics.Metrics) (e modelEndpoint, err error) {
	m, err := openInside(dirOf(kind, dir))
	if err != nil {
		if kind == directoryModel && err != errNoKernel { //nolint:errorlint // the error is returned unwrapped
			err = settingError{err}
		}
		return e, err
	}
	return m.endpoint(v, log, counts), nil
}

// dirOf returns the directory of a model inside the program; empty for the built-in one.
func dirOf(kind, dir string) string {
	if kind == builtinModel {
		return ""
	}
	return dir
}

// endpoint checks the settings that have a prefix, and probes the endpoint that they name.
func (c embedding) endpoint(ctx context.Context, prefix string, log *slog.Logger, counts *metrics.Metrics) (
	e modelEndpoint, err error) {
	if c.BaseURL == "" {
		return e, settingError{fmt.Errorf("%sMODEL, _DIMENSIONS or _API_KEY is set without "+
			"%[1]sBASE_URL: set the URL of the endpoint, such as http://localhost:11434/v1, or none of them", prefix)}
	}
	config := endpoint.Config{BaseURL: c.BaseURL, APIKey: string(c.APIKey), Model: c.Model, Dimensions: c.Dimensions}
	client, err := endpoint.NewOpenAI(config)
	if err != nil {
		return e, settingError{err}
	}
	queries, err := endpoint.NewOpenAI(config)
	if err != nil {
		return e, settingError{err}
	}
	e = modelEndpoint{provider: strings.TrimRight(c.BaseURL, "/"), model: c.Model, wanted: c.Dimensions, client: client,
		dimension: c.Dimensions,
		endpoint: &endpoint.Endpoint{Embedder: countedEmbedder{client, "texts", counts},
			Queries: countedEmbedder{queries, "query", counts}, Log: log,
			Configured: endpoint.Space{Model: c.Model, Dimension: c.Dimensions}}}
	err = e.probe(ctx, startProbe)
	if _, ok := errors.AsType[*endpoint.SettingError](err); ok {
		return e, settingError{err}
	}
	if err != nil && prefix == "LOCI_EMBEDDING_" {
		log.Warn("the embeddings endpoint does not answer yet; files, messages and passages wait for their vectors, "+
			"and search ranks by words", "error", err)
	}
	return e, nil
}
