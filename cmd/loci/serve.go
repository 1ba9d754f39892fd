package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"golang.org/x/sync/errgroup"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/handover"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/subagent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/agent/tool/jq"
	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/replay"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/db/queue"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/files/document/child"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
	"github.com/loci-memory/loci/server"
	"github.com/loci-memory/loci/server/metrics"
	"github.com/loci-memory/loci/tenant/apikey"
	"github.com/loci-memory/loci/tenant/erase"
	"github.com/loci-memory/loci/tenant/quota"
	"github.com/loci-memory/loci/tenant/retention"
)

// serveCmd serves the REST API until a signal ends it.
type serveCmd struct {
	serving
	Demo bool `help:"Fill an empty database with a small demonstration."`
}

// serving holds the settings of a server.
type serving struct {
	database
	Addr           string `env:"LOCI_ADDR" default:"127.0.0.1:8283" help:"Address to listen on."`
	MetricsAddr    string `env:"LOCI_METRICS_ADDR" help:"Address that serves /metrics without a key: 127.0.0.1:9283."`
	APIKey         secret `name:"api-key" env:"LOCI_API_KEY" help:"An API key to register for the default organization."`
	Reopen         bool   `env:"LOCI_REOPEN" help:"Answer this machine without a key again, if every key is revoked."`
	MaxUploadBytes int64  `env:"LOCI_MAX_UPLOAD_BYTES" default:"52428800" help:"Largest upload, in bytes."`
	MaxRuns        int    `env:"LOCI_MAX_RUNS" default:"100" help:"Runs of agents at the same time, per organization."`
	MaxImportBytes int64  `env:"LOCI_MAX_IMPORT_BYTES" default:"1073741824" help:"Largest agent file, in bytes."`
	MinBodyRate    int64  `env:"LOCI_MIN_BODY_RATE" default:"65536" help:"Bytes a second of bodies above 1 MiB; 0: any."`
	LogLevel       string `env:"LOCI_LOG_LEVEL" default:"info" help:"debug, info, warn or error."`
	LogFormat      string `env:"LOCI_LOG_FORMAT" default:"text" help:"text or json."`
	RedactEntropy  bool   `env:"LOCI_REDACT_ENTROPY" help:"Redact random-looking strings, hashes and ids in messages."`
	Policy         string `env:"LOCI_POLICY" help:"How windows are kept where nobody says: a policy's name, or its JSON."`

	RequestTimeout time.Duration `hidden:"" default:"30s" help:"How long a request may take that streams nothing."`
	StopTimeout    time.Duration `hidden:"" default:"8s" help:"For requests and jobs to end. Containers are given 10 s."`
	vectors
	embedding     `prefix:"embedding-" envprefix:"LOCI_EMBEDDING_"`
	nextEmbedding `prefix:"embedding-next-" envprefix:"LOCI_EMBEDDING_NEXT_"`
	reranking
	language
	anthropic
	documents
	keyLimits `prefix:"key-requests-"`
}

const (
	retryEvery    = 5 * time.Second        // between two tries of what needs the database or the endpoint back
	progressEvery = 500 * time.Millisecond // between two reads of the progress of followed files
	followEvery   = 100 * time.Millisecond // between two reads of the newest events of followed agents
)

// Run implements the command.
func (c *serveCmd) Run(ctx context.Context, command *kong.Context, s streams) (err error) {
	log, err := logger(s, c.LogLevel, c.LogFormat)
	if err != nil {
		return err
	}
	unknown := unknownSettings(command.Model, os.Environ())
	for _, name := range unknown {
		log.Warn(notASetting(name))
	}
	limitMemory()
	ofPostgres, known := log, &outages{}
	log = slog.New(duringOutages{newSparing(log.Handler()), known})
	configured, err := c.configure(ctx, log)
	if err != nil {
		return err
	}
	defer configured.tracing.close(ctx)
	queries, err := jqRunner()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return settingError{fmt.Errorf("LOCI_ADDR: %w", err)}
	}
	defer listener.Close()
	metricsListener, err := c.listenMetrics(ctx)
	if err != nil {
		return err
	} else if metricsListener != nil {
		defer metricsListener.Close()
	}
	pg, err := c.open(ctx, ofPostgres)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pg.close()) }()
	pool, err := db.OpenWith(ctx, pg.urls, db.Options{Tracer: configured.tracing.statements(), Changed: pg.changed,
		Away: pg.away})
	if err != nil {
		return err
	}
	defer pool.Close()
	owner, err := db.OpenOwner(ctx, pg.urls, pool)
	if err != nil {
		return err
	}
	if owner != nil {
		defer owner.Close()
	}
	known.Store(&[]*outage{newOutage(noAnswer(), pg.ping(pool)), newOutage(noFiles(), pg.probe(pool)),
		newOutage(noStoring(), func(ctx context.Context) error { return db.CheckRoom(ctx, pool) }),
		newOutage(noLocks(), pg.probe(pool))}) // the worst first
	keys := &apikey.Store{DB: pool}
	if err := c.register(ctx, keys, log, configured.loopback); err != nil {
		return err
	}
	if err := warnIfClosed(ctx, keys, log); err != nil {
		return err
	}
	p := &process{serveCmd: c, configured: configured, log: log, out: s, pg: pg, pool: pool, owner: owner, keys: keys,
		settings: settingsOf(command, os.LookupEnv), unknown: unknown, jq: queries, metrics: metricsListener,
		outages: known, id: "loci-" + uuid.NewString()}
	return p.serve(ctx, listener)
}

// configured is what the settings of a server make, before it opens its database.
type configured struct {
	loopback  bool // only this machine reaches the server
	counts    *metrics.Metrics
	embedder  *embedder
	reranker  *embed.Reranker // nil if none is named
	models    func(context.Context, string) *compaction.Model
	answering func(handle string) (loop.Model, error)
	reader    *child.Reader
	tracing   *tracing // nil without a collector
}

// configure checks the settings and returns what they make. It returns the errors of all of them.
func (c *serving) configure(ctx context.Context, log *slog.Logger) (m configured, err error) {
	var errs [9]error
	m.counts = metrics.New(version())
	m.loopback, errs[0] = listenAddress(ctx, c.Addr)
	errs[1], errs[2] = c.checkBounds(), c.check()
	m.embedder, errs[3] = c.embedder(ctx, log, m.counts)
	m.models, errs[4] = c.models(m.counts)
	m.answering, errs[5] = c.answering(m.counts)
	m.reader, errs[6] = c.reader(c.database, log)
	m.tracing, errs[7] = newTracing(ctx, log, os.Getenv)
	m.reranker, errs[8] = c.reranker(log)
	return m, errors.Join(errs[:]...)
}

// checkBounds returns an error for a bound that lets nothing through.
func (c *serving) checkBounds() error {
	for name, bound := range map[string]int64{"LOCI_MAX_IMPORT_BYTES": c.MaxImportBytes,
		"LOCI_MAX_UPLOAD_BYTES": c.MaxUploadBytes, "LOCI_MAX_RUNS": int64(c.MaxRuns),
		"LOCI_LLM_MAX_ANSWER_BYTES": c.MaxAnswerBytes} {
		if bound < 1 {
			return settingError{fmt.Errorf("%s is %d; it must be at least 1", name, bound)}
		}
	}
	if c.MinBodyRate < 0 {
		return settingError{fmt.Errorf("LOCI_MIN_BODY_RATE is %d; it must not be negative", c.MinBodyRate)}
	}
	if c.LimitPatience < 0 {
		return settingError{fmt.Errorf("LOCI_LLM_LIMIT_PATIENCE is %v; it must not be negative", c.LimitPatience)}
	}
	if err := policy.Check(c.policy()); err != nil {
		return settingError{fmt.Errorf("LOCI_POLICY: %w", err)}
	}
	return nil
}

// bodyRate returns LOCI_MIN_BODY_RATE as rest.BodyPace has it.
func (c *serving) bodyRate() int64 {
	if c.MinBodyRate == 0 {
		return -1
	}
	return c.MinBodyRate
}

// policy returns LOCI_POLICY as JSON; nil if it is not set.
func (c *serving) policy() json.RawMessage {
	if c.Policy == "" || json.Valid([]byte(c.Policy)) {
		return json.RawMessage(c.Policy)
	}
	return fmt.Appendf(nil, "%q", c.Policy)
}

// register makes LOCI_API_KEY a key, and returns an error if other machines can reach the server and there is no key.
func (c *serving) register(ctx context.Context, keys *apikey.Store, log *slog.Logger, loopback bool) error {
	if c.APIKey != "" {
		revoked, err := keys.Register(ctx, string(c.APIKey))
		if errors.Is(err, db.ErrInvalid) {
			return settingError{fmt.Errorf("LOCI_API_KEY: %w", err)}
		} else if err != nil {
			return err
		}
		if revoked {
			log.Warn("LOCI_API_KEY is a key that was revoked, and stays revoked: requests with it are refused. Set another " +
				"one, or leave it out")
		}
	}
	if c.Reopen {
		if err := reopen(ctx, keys, log); err != nil {
			return err
		}
	}
	return c.checkReachable(ctx, keys, loopback)
}

// checkReachable returns an error if other machines can reach the server and there is no key.
func (c *serving) checkReachable(ctx context.Context, keys *apikey.Store, loopback bool) error {
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

// reopen answers this machine without a key again, or logs why not.
func reopen(ctx context.Context, keys *apikey.Store, log *slog.Logger) error {
	if err := keys.Reopen(ctx); err != nil {
		return err
	}
	any, err := keys.Any(ctx)
	if err == nil && any {
		log.Warn("LOCI_REOPEN opens nothing: there are API keys, and one that has expired counts until it is revoked. " +
			"'loci keys list' shows them, 'loci keys revoke' revokes one")
	}
	return err
}

// warnIfClosed logs that nobody can use the server, if every key is revoked or has expired.
func warnIfClosed(ctx context.Context, keys *apikey.Store, log *slog.Logger) error {
	any, err := keys.AnyValid(ctx)
	if err != nil || any {
		return err
	}
	if _, err = keys.OpenOrg(ctx); errors.Is(err, db.ErrNotFound) {
		log.Warn("every API key is revoked or has expired, and every request is refused: run 'loci keys create', set " +
			"LOCI_API_KEY, or, once all are revoked, start with --reopen (LOCI_REOPEN) to answer this machine without one again")
		return nil
	}
	return err
}

// process is a running server.
type process struct {
	*serveCmd
	configured
	log      *slog.Logger
	out      streams
	pg       opened
	pool     *pgxpool.Pool
	owner    *pgxpool.Pool // of the role that owns the schema; nil if the server knows none
	keys     *apikey.Store
	outages  *outages     // of the database
	metrics  net.Listener // of LOCI_METRICS_ADDR; nil if it is not set
	settings []server.Setting
	unknown  []string // variables that are called like settings and are none
	jq       *jq.Runner
	id       string // of this server among the servers of the database

	inFlight queue.InFlight
}

// stores are the memories and the agents of a server.
type stores struct {
	files    *files.Store
	messages *recall.Store
	blocks   *block.Store
	passages *archival.Store
	working  *working.Store
	agents   *agent.Store
	handover *handover.Store
	replays  *replay.Store
	tools    *tool.Set
	loop     *loop.Loop

	memoryFiles *memoryfile.Store
	children    *subagent.Store
	erasures    *erase.Store
	reembed     *embed.Reembed
}

func (p *process) stores() (s stores, err error) {
	s.files, err = files.New(p.pool, files.Options{MaxUploadBytes: p.MaxUploadBytes, Endpoint: p.embedder.endpoint,
		Reranker: p.reranker, Limits: agent.LimitsOf, PromptTokens: tokens.Estimate,
		Read: p.reader.Read, Failed: p.fileFailed})
	if err != nil {
		return s, err
	}
	s.messages = recall.New(p.pool, recall.Options{Entropy: p.RedactEntropy, Endpoint: p.embedder.endpoint,
		Reranker: p.reranker})
	s.blocks, s.passages = &block.Store{DB: p.pool}, archival.New(p.pool, archival.Options{
		Endpoint: p.embedder.endpoint, Reranker: p.reranker})
	s.working = &working.Store{DB: p.pool, Recall: s.messages, Files: s.files}
	s.memoryFiles = memoryfile.New(p.pool, memoryfile.Options{Endpoint: p.embedder.endpoint,
		Reranker: p.reranker, Redactor: s.messages.Redactor})
	s.reembed = &embed.Reembed{DB: p.pool, Owner: p.owner, Endpoint: p.embedder.endpoint, Next: p.embedder.next.endpoint,
		Memories:  []embed.Remade{s.files.Remade(), s.messages.Remade(), s.passages.Remade(), s.memoryFiles.Remade()},
		Log:       p.log,
		NextSpace: func(ctx context.Context) (embed.Space, error) { return p.embedder.next.probed(ctx, p.pool) }}
	compactions := &compaction.Store{DB: p.pool, Recall: s.messages, Models: p.models, Extracted: extracted(p.log),
		Made: p.compacted}
	s.erasures = &erase.Store{DB: p.pool, Recall: s.messages, Files: s.files, Archival: s.passages,
		Compaction: compactions, MemoryFiles: s.memoryFiles, Owner: p.owner, InBackground: true}
	s.agents = &agent.Store{DB: p.pool, Policy: p.policy(), Files: s.files, Recall: s.messages, Blocks: s.blocks,
		Archival: s.passages, Working: s.working, MemoryFiles: s.memoryFiles, Tokens: tokens.New(),
		Compaction: compactions}
	s.tools = tool.New(tool.Memories{Files: s.files, Recall: s.messages, Blocks: s.blocks, Archival: s.passages,
		Working: s.working, MemoryFiles: s.memoryFiles, Erasures: s.erasures, Models: p.models, Agents: s.agents,
		JQ: p.jq, Child: subagent.LogOf(p.pool)})
	s.tools.Observe = p.called
	s.agents.Tools = s.tools.Definitions
	s.handover = &handover.Store{DB: p.pool, Agents: s.agents}
	s.replays = &replay.Store{DB: p.pool, Recall: s.messages, Models: p.models,
		Jobs: func() *river.Client[pgx.Tx] { return s.agents.Jobs }}
	s.agents.Begun = handover.Begun(s.agents)
	s.loop = loop.New(loop.Loop{DB: p.pool, Agents: s.agents, Recall: s.messages, Tools: s.tools, Server: p.id, Log: p.log,
		Models: p.answering, Render: server.RunItems, MaxRuns: p.MaxRuns,
		LimitPatience: p.LimitPatience, Patience: p.RequestTimeout / 10 * 8})
	s.children = &subagent.Store{DB: p.pool, Agents: s.agents, Loop: s.loop}
	s.loop.Ended = s.children.RunEnded
	s.agents.Jobs, err = p.jobs(s)
	return s, err
}

// serve runs everything that outlives a call, and waits for all of it.
func (p *process) serve(ctx context.Context, listener net.Listener) error {
	s, err := p.stores()
	if err != nil {
		return err
	}
	if p.Demo {
		if err := seed(ctx, s.files, s.agents); err != nil {
			return fmt.Errorf("fill the demonstration: %w", err)
		}
	}
	api := &server.Server{Agents: s.agents, Files: s.files, Recall: s.messages, Blocks: s.blocks,
		Archival: s.passages, Working: s.working, MemoryFiles: s.memoryFiles, Handovers: s.handover, Erasures: s.erasures,
		Replays: s.replays, Tools: s.tools, Loop: s.loop, Endpoint: p.embedder.endpoint, Reembed: s.reembed,
		Retention: &retention.Store{DB: p.pool}, Quotas: &quota.Store{DB: p.pool}, Requests: p.requests(),
		Children: s.children, Progress: s.files.NewProgressPoller(progressEvery),
		Followers: event.NewFollowers(p.pool, followEvery), DB: p.pool, Keys: p.keys, Log: p.log,
		Metrics: p.counts, Version: version(),
		Settings: p.settings, Examine: p.examineItself, ExamineEmbeddings: p.examineEmbeddings,
		ExamineModel:   p.language.examine,
		MaxUploadBytes: p.MaxUploadBytes, MaxImportBytes: p.MaxImportBytes, MinBodyRate: p.bodyRate(),
		Probe:          p.probe,
		RequestTimeout: p.RequestTimeout, KeyLimits: p.limits(), MCPFixtures: fixtures()}
	if p.loopback { // only this machine reaches the server
		api.OpenOrg = p.keys.OpenOrg
	}
	p.counts.Database(p.pool)
	handler := p.tracing.requests(api.Handler()) //nolint:contextcheck // each request has its own
	group, ctx := errgroup.WithContext(ctx)
	tasks := p.tasks(s, api)
	tasks = append(tasks,
		task{"requests", func(ctx context.Context) error { return p.listen(ctx, listener, handler) }},
		task{"requests for metrics", func(ctx context.Context) error {
			return p.listenForMetrics(ctx, api) //nolint:contextcheck // the same
		}})
	for _, t := range tasks {
		group.Go(func() error { return t.do(ctx) })
	}
	p.greet(listener.Addr().String())
	return group.Wait()
}

// examineItself examines what the server needs, with its own settings and its own database.
func (p *process) examineItself(ctx context.Context) (list []db.Finding) {
	for _, name := range p.unknown {
		list = append(list, db.MakeFinding("settings", db.Advice, "in the environment of the server "+notASetting(name),
			"correct its name, or unset it"))
	}
	return append(list, p.examine(ctx, p.loopback, func(context.Context) (opened, error) {
		return opened{urls: p.pg.urls, close: func() error { return nil }}, nil
	})...)
}

// warn returns a function that logs errors under a message.
func (p *process) warn(message string) func(error) {
	return func(err error) { p.log.Warn(message, "error", err) }
}

// wait pauses, and reports whether ctx lasted for the pause.
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
