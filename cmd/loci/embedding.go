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

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
)

// embedding says where vectors come from. Without a base URL there are none, and search ranks by words.
type embedding struct {
	BaseURL    string `name:"embedding-base-url" env:"LOCI_EMBEDDING_BASE_URL" help:"OpenAI-compatible embeddings endpoint, such as http://localhost:11434/v1. Empty: rank by words alone."`
	Key        secret `name:"embedding-api-key" env:"LOCI_EMBEDDING_API_KEY" help:"Key of the embeddings endpoint, if it asks for one."`
	Model      string `name:"embedding-model" env:"LOCI_EMBEDDING_MODEL" help:"Model that the embeddings endpoint is asked for."`
	Dimensions int    `name:"embedding-dimensions" env:"LOCI_EMBEDDING_DIMENSIONS" help:"Dimension of the vectors to ask for (default: the model's own)."`
}

// How long the endpoint may take to say what it is: a start does not wait for one that hangs, and looks again once the server runs.
const (
	startProbe    = 2 * time.Second
	probePatience = 10 * time.Second
)

const (
	backfillEvery = time.Minute
	callEvery     = time.Second // between two looks for messages and passages that lack their vectors
)

// embedder connects the server to its embeddings endpoint.
type embedder struct {
	settings  embedding
	client    *embed.OpenAI
	endpoint  *embed.Endpoint // nil if none is configured
	dimension int             // 0 until the endpoint has answered, unless it is configured
	log       *slog.Logger
}

// embedder checks the settings and probes the endpoint. One that answers wrongly is refused; one that does not answer is waited for.
func (c embedding) embedder(ctx context.Context, log *slog.Logger) (*embedder, error) {
	if c.BaseURL == "" {
		if c.Model != "" || c.Dimensions != 0 || c.Key != "" {
			return nil, settingError{errors.New("LOCI_EMBEDDING_MODEL, _DIMENSIONS or _API_KEY is set without LOCI_EMBEDDING_BASE_URL: " +
				"set the URL of the endpoint, such as http://localhost:11434/v1, or none of them")}
		}
		return &embedder{}, nil
	}
	config := embed.Config{BaseURL: c.BaseURL, APIKey: string(c.Key), Model: c.Model, Dimensions: c.Dimensions}
	client, err := embed.NewOpenAI(config)
	if err != nil {
		return nil, settingError{err}
	}
	queries, err := embed.NewOpenAI(config)
	if err != nil {
		return nil, settingError{err}
	}
	e := &embedder{settings: c, client: client, endpoint: &embed.Endpoint{Embedder: client, Queries: queries}, dimension: c.Dimensions, log: log}
	return e, e.probe(ctx)
}

func (e *embedder) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startProbe)
	defer cancel()
	dimension, err := e.client.Probe(ctx)
	if _, ok := errors.AsType[*embed.SettingError](err); ok {
		return settingError{err}
	}
	if err != nil {
		e.log.Warn("the embeddings endpoint does not answer yet; files, messages and passages wait for their vectors, and search ranks by words", "error", err)
		return nil
	}
	e.dimension = dimension
	return nil
}

// vectors are what the endpoint is for, and what works on it.
type vectors struct {
	files    *files.Store
	messages *recall.Store
	passages *archival.Store
	jobs     *river.Client[pgx.Tx]
}

// connect makes the endpoint's space the active one as soon as its dimension is known, and keeps queueing the vectors that it lacks: other
// servers may store files without them, and messages and passages are stored without them always.
func (e *embedder) connect(ctx context.Context, d db.DB, v vectors) error {
	if e.endpoint == nil {
		return nil
	}
	for {
		err := e.use(ctx, d, v)
		if err == nil {
			break
		}
		e.log.Warn("the embeddings endpoint is not in use yet", "error", err)
		if !wait(ctx, retryEvery) {
			return nil
		}
	}
	for looked := time.Now(); wait(ctx, callEvery); {
		if _, err := v.messages.Queue().Call(ctx, v.jobs); err != nil && ctx.Err() == nil {
			e.log.Warn("messages are not queued to be embedded", "error", err)
		}
		if _, err := v.passages.Queue().Call(ctx, v.jobs); err != nil && ctx.Err() == nil {
			e.log.Warn("passages are not queued to be embedded", "error", err)
		}
		if time.Since(looked) > backfillEvery {
			looked = time.Now()
			e.backfill(ctx, v)
		}
	}
	return nil
}

func (e *embedder) backfill(ctx context.Context, v vectors) {
	batches, err := v.files.Backfill(ctx)
	if err == nil {
		_, err = v.messages.Queue().Backfill(ctx, embed.IdleSpace)
	}
	if err == nil {
		_, err = v.passages.Queue().Backfill(ctx, embed.IdleSpace)
	}
	if err != nil && ctx.Err() == nil {
		e.log.Warn("missing vectors are not queued", "error", err)
	} else if batches > 0 {
		e.log.Info("missing vectors are queued", "batches", batches)
	}
}

func (e *embedder) use(ctx context.Context, d db.DB, v vectors) error {
	provider := strings.TrimRight(e.settings.BaseURL, "/")
	if e.dimension == 0 { // what it was before it went away
		if known, err := embed.KnownSpace(ctx, d, provider, e.settings.Model); err == nil {
			e.dimension = known.Dimension
		}
	}
	if e.dimension == 0 {
		probing, cancel := context.WithTimeout(ctx, probePatience)
		defer cancel()
		dimension, err := e.client.Probe(probing)
		if err != nil {
			return err
		}
		e.dimension = dimension
	}
	space, err := embed.UseSpace(ctx, d, provider, e.settings.Model, e.dimension)
	if err != nil {
		return err
	}
	if err := embed.InUse(ctx, d, space); err != nil {
		return err
	}
	e.endpoint.Use(space)
	batches, err := v.files.Backfill(ctx)
	if err != nil {
		return fmt.Errorf("queue the vectors that are missing: %w", err)
	}
	conversations, err := v.messages.Queue().Backfill(ctx, 0)
	if err != nil {
		return fmt.Errorf("take over the conversations of another model: %w", err)
	}
	archives, err := v.passages.Queue().Backfill(ctx, 0)
	if err != nil {
		return fmt.Errorf("take over the archives of another model: %w", err)
	}
	e.log.Info("embedding", "model", space.Model, "dimension", space.Dimension, "batches_queued", batches,
		"conversations_taken_over", conversations, "archives_taken_over", archives)
	return nil
}
