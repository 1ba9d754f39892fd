package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/server/metrics"
)

// embedding holds the settings of the embeddings endpoint. Without a base URL there are no vectors, and search ranks by
// words.
type embedding struct {
	BaseURL    string `env:"BASE_URL" help:"OpenAI-compatible endpoint: http://localhost:11434/v1. Empty: rank by words."`
	APIKey     secret `name:"api-key" env:"API_KEY" help:"Key of the embeddings endpoint, if it asks for one."`
	Model      string `env:"MODEL" help:"Model that the embeddings endpoint is asked for."`
	Dimensions int    `env:"DIMENSIONS" help:"Dimension of the vectors to ask for (default: the model's own)."`
}

// How long the endpoint has for an answer: at the start, which an endpoint that hangs does not hold up, and later.
const (
	startProbe = 2 * time.Second
	laterProbe = 10 * time.Second
)

const (
	backfillEvery = time.Minute
	callEvery     = time.Second // between two looks for texts that lack their vectors
)

// embedder connects the server to its embeddings endpoint.
type embedder struct {
	settings  embedding
	client    *embed.OpenAI
	endpoint  *embed.Endpoint // nil if none is configured
	dimension int             // 0 until the endpoint has answered, unless it is configured
	log       *slog.Logger
}

// embedder checks the settings and probes the endpoint. It returns an error if the endpoint answers wrongly, but not if
// it does not answer.
func (c embedding) embedder(ctx context.Context, log *slog.Logger, counts *metrics.Metrics) (*embedder, error) {
	if c == (embedding{}) {
		return &embedder{}, nil
	}
	if c.BaseURL == "" {
		return nil, settingError{errors.New("LOCI_EMBEDDING_MODEL, _DIMENSIONS or _API_KEY is set without " +
			"LOCI_EMBEDDING_BASE_URL: set the URL of the endpoint, such as http://localhost:11434/v1, or none of them")}
	}
	config := embed.Config{BaseURL: c.BaseURL, APIKey: string(c.APIKey), Model: c.Model, Dimensions: c.Dimensions}
	client, err := embed.NewOpenAI(config)
	if err != nil {
		return nil, settingError{err}
	}
	queries, err := embed.NewOpenAI(config)
	if err != nil {
		return nil, settingError{err}
	}
	e := &embedder{settings: c, client: client, dimension: c.Dimensions, log: log,
		endpoint: &embed.Endpoint{Embedder: countedEmbedder{client, "texts", counts},
			Queries: countedEmbedder{queries, "query", counts}, Log: log,
			Configured: embed.Space{Model: c.Model, Dimension: c.Dimensions}}}
	err = e.probe(ctx, startProbe)
	if _, ok := errors.AsType[*embed.SettingError](err); ok {
		return nil, settingError{err}
	}
	if err != nil {
		log.Warn("the embeddings endpoint does not answer yet; files, messages and passages wait for their vectors, "+
			"and search ranks by words", "error", err)
	}
	return e, nil
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
	if _, some := errors.AsType[*embed.RefusedError](err); some {
		failed = nil // the endpoint answered
	}
	c.counts.EmbeddingCall(c.use, failed, len(items), time.Since(began))
	return vectors, err
}

func (e *embedder) probe(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	dimension, err := e.client.Probe(ctx)
	if err == nil {
		e.dimension = dimension
	}
	return err
}

// ownerQueue is an *embed.Queue.
type ownerQueue interface {
	vectorStore
	Call(ctx context.Context, jobs *river.Client[pgx.Tx]) (int, error)
	Backfill(ctx context.Context, idle time.Duration) (owners int, err error)
	Queues() map[string]river.QueueConfig
	Work(workers *river.Workers)
}

// ownerQueues returns the queues of vectors by the names of their owners.
func (s stores) ownerQueues() map[string]ownerQueue {
	return map[string]ownerQueue{"conversations": s.messages.Queue(), "archives": s.passages.Queue(),
		"memory trees": s.memoryFiles.Queue()}
}

// connect makes the endpoint's space the active one as soon as its dimension is known, and then queues the vectors that
// the space lacks until ctx ends: messages and passages are stored without them, and other servers may store files
// without them.
func (e *embedder) connect(ctx context.Context, d db.DB, s stores) error {
	if e.endpoint == nil {
		return nil
	}
	for {
		err := e.use(ctx, d, s)
		if err == nil {
			break
		}
		e.log.Warn("the embeddings endpoint is not in use yet", "error", err)
		if !wait(ctx, retryEvery) {
			return nil
		}
	}
	for looked := time.Now(); wait(ctx, callEvery); {
		for owners, queue := range s.ownerQueues() {
			if _, err := queue.Call(ctx, s.agents.Jobs); err != nil && ctx.Err() == nil {
				e.log.Warn("vectors are not queued", "of", owners, "error", err)
			}
		}
		if time.Since(looked) > backfillEvery {
			looked = time.Now()
			if err := e.backfill(ctx, s, embed.IdleSpace); err != nil && ctx.Err() == nil {
				e.log.Warn("missing vectors are not queued", "error", err)
			}
		}
	}
	return nil
}

// backfill queues the vectors that the active space lacks, and takes over the owners whose space no server has used for
// idle.
func (e *embedder) backfill(ctx context.Context, s stores, idle time.Duration) error {
	batches, err := s.files.Backfill(ctx)
	if err != nil {
		return fmt.Errorf("queue the missing vectors of files: %w", err)
	}
	if batches > 0 {
		e.log.Info("missing vectors of files are queued", "batches", batches)
	}
	for owners, queue := range s.ownerQueues() {
		n, err := queue.Backfill(ctx, idle)
		if err != nil {
			return fmt.Errorf("take over the %s of another model: %w", owners, err)
		}
		if n > 0 {
			e.log.Info("the "+owners+" of another model are taken over", "number", n)
		}
	}
	return nil
}

// use makes the endpoint's space the active one. An endpoint that does not answer has the dimension that it had.
func (e *embedder) use(ctx context.Context, d db.DB, s stores) error {
	provider := strings.TrimRight(e.settings.BaseURL, "/")
	if e.dimension == 0 {
		if known, err := embed.KnownSpace(ctx, d, provider, e.settings.Model); err == nil {
			e.dimension = known.Dimension
		} else if err := e.probe(ctx, laterProbe); err != nil {
			return err
		}
	}
	space, err := embed.UseSpace(ctx, d, provider, e.settings.Model, e.dimension)
	if err != nil {
		return err
	}
	e.endpoint.Use(space)
	e.log.Info("embedding", "model", space.Model, "dimension", space.Dimension)
	return e.backfill(ctx, s, 0)
}
