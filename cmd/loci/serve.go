package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"golang.org/x/sync/errgroup"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/db/queue"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/files/document/child"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
	"github.com/loci-memory/loci/server"
	"github.com/loci-memory/loci/server/agent"
	"github.com/loci-memory/loci/server/apikey"
	"github.com/loci-memory/loci/server/block"
	"github.com/loci-memory/loci/server/tool"
)

// serveCmd serves the REST API until it is told to stop.
type serveCmd struct {
	database
	Addr           string `env:"LOCI_ADDR" default:"127.0.0.1:8283" help:"Address to listen on. Other than on loopback it needs an API key."`
	APIKey         secret `name:"api-key" env:"LOCI_API_KEY" help:"An API key to register for the default organization."`
	MaxUploadBytes int64  `env:"LOCI_MAX_UPLOAD_BYTES" default:"52428800" help:"Largest upload, in bytes."`
	LogLevel       string `env:"LOCI_LOG_LEVEL" default:"info" help:"debug, info, warn or error."`
	RedactEntropy  bool   `env:"LOCI_REDACT_ENTROPY" help:"Take what looks random for a secret in messages, too; it takes hashes and ids for secrets."`
	Demo           bool   `help:"Fill an empty database with a small demonstration."`

	RequestPatience time.Duration `hidden:"" default:"30s" help:"How long a request may take that streams nothing."`
	embedding
	language
	documents
}

// Times of the server's life.
const (
	stopPatience   = 8 * time.Second  // for requests and jobs in hand, when told to stop: less than containers are given
	headerPatience = 10 * time.Second // for a request's headers
	idlePatience   = 2 * time.Minute  // of a connection without a request
	jobTimeout     = time.Minute
	rescueAfter    = 2 * time.Minute      // of a job that no living server admits to
	fetchPause     = 5 * time.Millisecond // between two looks for jobs while there are some
	jobsKept       = time.Hour            // after they are done: a hundred thousand uploads leave as many
	lookEvery      = 10 * time.Second
	progressEvery  = 500 * time.Millisecond // between two reads of the progress of followed files
	followEvery    = 100 * time.Millisecond // between two reads of the newest events of followed agents
	backfillEvery  = time.Minute
	callEvery      = time.Second      // between two looks for messages and passages that lack their vectors
	indexEvery     = 15 * time.Second // between two looks for text that grep's index lacks
	pruneEvery     = 10 * time.Minute // between two looks for what it has of files that are gone
	retryEvery     = 5 * time.Second  // what needs the database or the endpoint back
)

// Run implements the command.
func (c *serveCmd) Run(ctx context.Context, s streams) (err error) {
	log, err := logger(s, c.LogLevel)
	if err != nil {
		return err
	}
	boundMemory()
	loopback, err := listenAddress(ctx, c.Addr)
	if err != nil {
		return err
	}
	if c.MaxUploadBytes < 1 {
		return settingError{fmt.Errorf("LOCI_MAX_UPLOAD_BYTES is %d; it must be at least 1", c.MaxUploadBytes)}
	}
	dense, err := c.dense(ctx, log)
	if err != nil {
		return err
	}
	models, err := c.models()
	if err != nil {
		return err
	}
	reader, err := c.reader(c.database, log)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return settingError{fmt.Errorf("LOCI_ADDR: %w", err)}
	}
	defer listener.Close()
	pg, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pg.close()) }()
	pool, err := db.Open(ctx, pg.url)
	if err != nil {
		return err
	}
	defer pool.Close()
	keys := &apikey.Store{DB: pool}
	if err := c.register(ctx, keys, loopback); err != nil {
		return err
	}
	p := &process{serveCmd: c, log: log, out: s, pg: pg, pool: pool, keys: keys, dense: dense, reader: reader, models: models,
		id: "loci-" + uuid.NewString(), loopback: loopback}
	return p.serve(ctx, listener)
}

// register makes LOCI_API_KEY a key, and refuses to serve other machines without any.
func (c *serveCmd) register(ctx context.Context, keys *apikey.Store, loopback bool) error {
	if c.APIKey != "" {
		if err := keys.Register(ctx, string(c.APIKey)); errors.Is(err, db.ErrInvalid) {
			return settingError{fmt.Errorf("LOCI_API_KEY: %w", err)}
		} else if err != nil {
			return err
		}
	}
	if loopback {
		return nil
	}
	any, err := keys.Any(ctx)
	if err == nil && !any {
		err = settingError{fmt.Errorf("LOCI_ADDR is '%s', which other machines can reach, and there is no API key: "+
			"set LOCI_API_KEY, run 'loci keys create', or listen on 127.0.0.1", c.Addr)}
	}
	return err
}

// process is a running server.
type process struct {
	*serveCmd
	log      *slog.Logger
	out      streams
	pg       opened
	pool     *pgxpool.Pool
	keys     *apikey.Store
	dense    *endpoint
	reader   *child.Reader
	models   func(context.Context, string) *compaction.Model
	id       string // of this server among those on the database
	inFlight queue.InFlight

	loopback bool // only this machine reaches it
}

// serve runs everything that outlives a call, and waits for all of it.
func (p *process) serve(ctx context.Context, listener net.Listener) error {
	store, err := files.New(p.pool, files.Options{MaxUploadBytes: p.MaxUploadBytes, Dense: p.dense.space(), Limits: agent.LimitsOf,
		PromptChars: agent.PromptChars, Read: p.reader.Read})
	if err != nil {
		return err
	}
	messages := recall.New(p.pool, recall.Options{Entropy: p.RedactEntropy, Dense: p.dense.space()})
	blocks, passages := &block.Store{DB: p.pool}, archival.New(p.pool, archival.Options{Dense: p.dense.space()})
	tools := tool.New(tool.Memories{Files: store, Recall: messages, Blocks: blocks, Archival: passages})
	agents := &agent.Store{Tools: tools.Definitions, DB: p.pool, Files: store, Recall: messages, Blocks: blocks, Archival: passages,
		Compaction: &compaction.Store{DB: p.pool, Recall: messages, Models: p.models, Extracted: extracted(p.log)}, Tokens: tokens.New()}
	if p.Demo {
		if err := seed(ctx, store, agents); err != nil {
			return fmt.Errorf("fill the demonstration: %w", err)
		}
	}
	progress, followers := store.NewProgressPoller(progressEvery), event.NewFollowers(p.pool, followEvery)
	api := &server.Server{Agents: agents, Files: store, Recall: messages, Blocks: blocks, Archival: passages, Progress: progress, DB: p.pool,
		Followers: followers, Tools: tools, Keys: p.keys, Log: p.log, Version: version(), MaxUploadBytes: p.MaxUploadBytes, Ping: p.pool.Ping,
		Loopback: p.loopback, Patience: p.RequestPatience}
	jobs, err := p.jobs(store, messages, passages, agents)
	if err != nil {
		return err
	}
	agents.Jobs = jobs
	group, ctx := errgroup.WithContext(ctx)
	present := make(chan struct{})
	group.Go(func() error { return p.keepPresent(ctx, present) })
	group.Go(func() error { return p.work(ctx, jobs, present) })
	group.Go(func() error {
		return p.dense.connect(ctx, p.pool, vectors{files: store, messages: messages, passages: passages, jobs: jobs})
	})
	group.Go(func() error { return p.indexText(ctx, store) })
	group.Go(func() error { return p.watchPostgres(ctx) })
	group.Go(func() error { return p.giveMemoryBack(ctx) })
	group.Go(func() error {
		progress.Run(ctx, func(err error) { p.log.Warn("the progress of files is not known", "error", err) })
		return nil
	})
	group.Go(func() error {
		followers.Run(ctx, func(err error) { p.log.Warn("the events of agents are not known", "error", err) })
		return nil
	})
	group.Go(func() error { return p.tend(ctx, store, messages, passages) })
	group.Go(func() error { return p.listen(ctx, listener, api.Handler()) }) //nolint:contextcheck // each request has its own
	p.greet(listener.Addr().String())
	return group.Wait()
}

// jobs is the client that works on the queue.
func (p *process) jobs(store *files.Store, messages *recall.Store, passages *archival.Store, agents *agent.Store) (*river.Client[pgx.Tx], error) {
	workers, queues := river.NewWorkers(), files.Queues()
	maps.Copy(queues, agent.Queues())
	agents.Work(workers)
	store.Work(workers)
	messages.Work(workers)
	passages.Work(workers)
	if p.dense != nil {
		maps.Copy(queues, recall.Queues())
		maps.Copy(queues, archival.Queues())
	}
	return river.NewClient(riverpgxv5.New(p.pool), &river.Config{
		ID: p.id, Workers: workers, Logger: slog.New(quiet{p.log.Handler()}), JobTimeout: jobTimeout, RescueStuckJobsAfter: rescueAfter,
		FetchCooldown: fetchPause, CompletedJobRetentionPeriod: jobsKept,
		Queues: queues, Middleware: []rivertype.Middleware{&p.inFlight},
	})
}

// keepPresent holds this server's lock on the database, and takes it again when the connection was lost.
func (p *process) keepPresent(ctx context.Context, ready chan struct{}) error {
	once := func() {
		select {
		case <-ready:
		default:
			close(ready)
		}
	}
	presence := queue.Presence{URL: p.pg.url, ID: p.id, Every: lookEvery, InFlight: &p.inFlight}
	for {
		if err := presence.Keep(ctx, once); err != nil && ctx.Err() == nil {
			p.log.Warn("the server's lock on the database was lost", "error", err)
		}
		if !wait(ctx, retryEvery) {
			return nil
		}
	}
}

// work works on jobs until ctx ends, once the server is known to be alive, and then lets those in hand finish.
func (p *process) work(ctx context.Context, jobs *river.Client[pgx.Tx], present <-chan struct{}) error {
	select {
	case <-present:
	case <-ctx.Done():
		return nil
	}
	for {
		err := jobs.Start(context.WithoutCancel(ctx))
		if err == nil {
			break
		}
		p.log.Warn("no work on jobs yet", "error", err) // the database may have gone away this very moment
		if !wait(ctx, retryEvery) {
			return nil
		}
	}
	<-ctx.Done()
	p.dense.space().Stop()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
	defer cancel()
	if err := jobs.Stop(stopping); err != nil {
		return jobs.StopAndCancel(context.WithoutCancel(ctx))
	}
	return nil
}

// listen answers requests until ctx ends, and then those in hand.
func (p *process) listen(ctx context.Context, listener net.Listener, handler http.Handler) error {
	web := &http.Server{Handler: handler, ReadHeaderTimeout: headerPatience, IdleTimeout: idlePatience,
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelDebug)}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
	defer cancel()
	if err := web.Shutdown(stopping); err != nil {
		err = web.Close() // whoever still talks has talked too long
		return errors.Join(err, ignoreClosed(<-served))
	}
	return ignoreClosed(<-served)
}

// ignoreClosed takes the way a web server ends when it is told to for no error.
func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// wait pauses; it says no if ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
