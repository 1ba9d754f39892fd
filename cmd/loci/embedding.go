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

// embedding holds the settings of the embeddings endpoint.
type embedding struct {
	BaseURL    string `env:"BASE_URL" help:"OpenAI-compatible endpoint: http://localhost:11434/v1. Empty: built-in model."`
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

// nextEmbedding holds the settings of the embeddings endpoint that 'loci reembed' makes vectors with.
type nextEmbedding struct {
	BaseURL    string `env:"BASE_URL" help:"Endpoint of the model that 'loci reembed' switches to."`
	APIKey     secret `name:"api-key" env:"API_KEY" help:"Key of that endpoint, if it asks for one."`
	Model      string `env:"MODEL" help:"Model that 'loci reembed' switches to."`
	Dimensions int    `env:"DIMENSIONS" help:"Dimension of its vectors (default: the model's own)."`
}

// modelEndpoint is a configured model, at its endpoint or built in.
type modelEndpoint struct {
	provider  string // in its space
	model     string
	wanted    int // the dimension that is configured; 0 is the model's own
	client    prober
	endpoint  *embed.Endpoint // nil if none is configured
	dimension int             // 0 until the endpoint has answered, unless it is configured
}

// prober returns the dimension of a model's vectors.
type prober interface {
	Probe(ctx context.Context) (int, error)
}

// embedder connects the server to its embedding model.
type embedder struct {
	modelEndpoint
	next modelEndpoint // that 'loci reembed' switches to
	log  *slog.Logger
}

// embedder checks the settings and probes the endpoints. It returns an error if one answers wrongly, but not if it does
// not answer.
func (c *serving) embedder(ctx context.Context, log *slog.Logger, counts *metrics.Metrics) (*embedder, error) {
	is, willBe, err := c.chosen(c.embedding, embedding(c.nextEmbedding))
	if err != nil {
		return nil, err
	}
	e := &embedder{log: log}
	switch is {
	case builtinModel, directoryModel:
		e.modelEndpoint, err = c.modelInside(is, c.Dir, log, counts)
	case endpointModel:
		e.modelEndpoint, err = c.endpoint(ctx, "LOCI_EMBEDDING_", log, counts)
	}
	if err == errNoKernel { //nolint:errorlint // it is returned bare
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

// modelInside opens the built-in model, or the one in a directory.
func (v vectors) modelInside(kind, dir string, log *slog.Logger, counts *metrics.Metrics) (e modelEndpoint, err error) {
	m, err := openInside(dirOf(kind, dir))
	if err != nil {
		if kind == directoryModel && err != errNoKernel { //nolint:errorlint // it is returned bare
			err = settingError{err}
		}
		return e, err
	}
	return m.endpoint(v, log, counts), nil
}

// dirOf returns the directory of a model inside the program; none for the built-in one.
func dirOf(kind, dir string) string {
	if kind == builtinModel {
		return ""
	}
	return dir
}

// endpoint checks the settings with a prefix, and probes the endpoint that they name.
func (c embedding) endpoint(ctx context.Context, prefix string, log *slog.Logger, counts *metrics.Metrics) (
	e modelEndpoint, err error) {
	if c.BaseURL == "" {
		return e, settingError{fmt.Errorf("%sMODEL, _DIMENSIONS or _API_KEY is set without "+
			"%[1]sBASE_URL: set the URL of the endpoint, such as http://localhost:11434/v1, or none of them", prefix)}
	}
	config := embed.Config{BaseURL: c.BaseURL, APIKey: string(c.APIKey), Model: c.Model, Dimensions: c.Dimensions}
	client, err := embed.NewOpenAI(config)
	if err != nil {
		return e, settingError{err}
	}
	queries, err := embed.NewOpenAI(config)
	if err != nil {
		return e, settingError{err}
	}
	e = modelEndpoint{provider: strings.TrimRight(c.BaseURL, "/"), model: c.Model, wanted: c.Dimensions, client: client,
		dimension: c.Dimensions,
		endpoint: &embed.Endpoint{Embedder: countedEmbedder{client, "texts", counts},
			Queries: countedEmbedder{queries, "query", counts}, Log: log,
			Configured: embed.Space{Model: c.Model, Dimension: c.Dimensions}}}
	err = e.probe(ctx, startProbe)
	if _, ok := errors.AsType[*embed.SettingError](err); ok {
		return e, settingError{err}
	}
	if err != nil && prefix == "LOCI_EMBEDDING_" {
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

func (e *modelEndpoint) probe(ctx context.Context, timeout time.Duration) error {
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
		e.log.Warn("the embedding model is not in use yet", "error", err)
		if !wait(ctx, retryEvery) {
			return nil
		}
	}
	for looked := time.Now(); wait(ctx, callEvery); {
		if err := e.follow(ctx, s); err != nil && ctx.Err() == nil {
			e.log.Warn("it is not known whether searches switch to the next model", "error", err)
		}
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

// use makes the endpoint's space the active one, or that of the next endpoint if searches have switched to it.
func (e *embedder) use(ctx context.Context, d db.DB, s stores) error {
	space, err := e.space(ctx, d)
	if err != nil {
		return err
	}
	to, switched, err := s.reembed.Switched(ctx, space, e.next.named)
	if err != nil {
		return err
	}
	if switched {
		e.switchTo(to)
	} else {
		if err := s.reembed.Adopt(ctx, space); err != nil {
			return err
		}
		e.endpoint.Use(space)
		e.log.Info("embedding", "model", space.Model, "dimension", space.Dimension)
	}
	return e.backfill(ctx, s, 0)
}

// follow switches to the next endpoint's space once all its vectors are made.
func (e *embedder) follow(ctx context.Context, s stores) error {
	if now, _ := e.endpoint.Space(); e.next.endpoint == nil || e.next.named(now) {
		return nil
	}
	from, _ := e.endpoint.Space()
	to, switched, err := s.reembed.Switched(ctx, from, e.next.named)
	if err != nil || !switched {
		return err
	}
	e.switchTo(to)
	return e.backfill(ctx, s, 0)
}

func (e *embedder) switchTo(space embed.Space) {
	e.next.endpoint.Use(space)
	e.endpoint.Switch(e.next.endpoint)
	e.log.Info("embedding with the model of LOCI_EMBEDDING_NEXT; give its settings to LOCI_EMBEDDING before the next "+
		"start", "model", space.Model, "dimension", space.Dimension)
}

// reembed works on the vectors of the next endpoint's space, whenever an operator started that, until ctx ends.
func (e *embedder) reembed(ctx context.Context, s stores) {
	if e.next.endpoint == nil {
		return
	}
	for wait(ctx, callEvery) {
		if now, ok := e.endpoint.Space(); !ok || e.next.named(now) {
			continue
		}
		if err := s.reembed.Run(ctx, e.next.named); err != nil && ctx.Err() == nil {
			e.log.Warn("the vectors of the next model are not made; it is tried again", "error", err)
			wait(ctx, retryEvery)
		}
	}
}

// named reports whether a space is of the endpoint's model.
func (e *modelEndpoint) named(space embed.Space) bool {
	return space.Provider == e.provider && space.Model == e.model && (e.wanted == 0 || e.wanted == space.Dimension)
}

// space returns the endpoint's space. An endpoint that does not answer has the dimension that it had.
func (e *modelEndpoint) space(ctx context.Context, d db.DB) (embed.Space, error) {
	if e.dimension == 0 {
		if known, err := embed.KnownSpace(ctx, d, e.provider, e.model); err == nil {
			e.dimension = known.Dimension
		} else if err := e.probe(ctx, laterProbe); err != nil {
			return embed.Space{}, err
		}
	}
	return embed.UseSpace(ctx, d, e.provider, e.model, e.dimension)
}

// probed returns the space of an endpoint that answers now.
func (e *modelEndpoint) probed(ctx context.Context, d db.DB) (embed.Space, error) {
	probe := *e // requests ask at the same time
	if err := probe.probe(ctx, laterProbe); err != nil {
		return embed.Space{}, err
	}
	return probe.space(ctx, d)
}
