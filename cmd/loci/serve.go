package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"golang.org/x/sync/errgroup"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/handover"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/subagent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/compaction/replay"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
	"github.com/loci-memory/loci/server"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/tenant/apikey"
	"github.com/loci-memory/loci/tenant/erase"
	"github.com/loci-memory/loci/tenant/quota"
	"github.com/loci-memory/loci/tenant/retention"
)

func (c *serveCmd) Run(ctx context.Context, s streams) (err error) {
	log, err := logger(s, c.LogLevel, c.LogFormat)
	if err != nil {
		return err
	}
	unknown := unknownSettings(c.Line.Root(), os.Environ())
	for _, name := range unknown {
		log.Warn(notASetting(name))
	}
	limitMemory()
	ofPostgres, outageList := log, &outages{}
	log = slog.New(duringOutages{newSparing(log.Handler()), outageList})
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
	defer closeWithin(cutTimeout, pool.Close)
	owner, err := db.OpenOwner(ctx, pg.urls, pool)
	if err != nil {
		return err
	}
	if owner != nil {
		defer closeWithin(cutTimeout, owner.Close)
	}
	parts, err := db.PartsOf(ctx, pool)
	if err != nil {
		return err
	}
	outageList.Store(pg.outages(pool, parts))
	keys := &apikey.Store{DB: pool}
	if err := c.register(ctx, keys, log, configured.loopback); err != nil {
		return err
	}
	if err := warnIfClosed(ctx, keys, log); err != nil {
		return err
	}
	p := &process{serveCmd: c, configured: configured, log: log, out: s, pg: pg, pool: pool, parts: parts, owner: owner,
		keys: keys, settings: settingsOf(c.Line, os.LookupEnv), unknown: unknown, jq: queries, metrics: metricsListener,
		outages: outageList, id: "loci-" + uuid.NewString()}
	return p.serve(ctx, listener)
}

func (p *process) stores() (s stores, err error) {
	s.files, err = files.New(p.pool, files.Options{MaxUploadBytes: p.MaxUploadBytes, Endpoint: p.embedder.endpoint,
		Reranker: p.reranker, Limits: agent.LimitsOf, PromptTokens: tokens.Estimate,
		Read: p.reader.Read, Accepts: p.reader.Accepted(), Failed: p.fileFailed})
	if err != nil {
		return s, err
	}
	s.messages = recall.New(p.pool, recall.Options{Entropy: p.RedactEntropy, Endpoint: p.embedder.endpoint,
		Reranker: p.reranker})
	s.blocks, s.passages = &block.Store{DB: p.pool}, archival.New(p.pool, archival.Options{
		Endpoint: p.embedder.endpoint, Reranker: p.reranker, Similar: p.Similar})
	s.working = &working.Store{DB: p.pool, Recall: s.messages, Files: s.files}
	s.memoryFiles = memoryfile.New(p.pool, memoryfile.Options{Endpoint: p.embedder.endpoint,
		Reranker: p.reranker, Redactor: s.messages.Redactor})
	s.reembed = &endpoint.Reembed{DB: p.pool, Owner: p.owner, Endpoint: p.embedder.endpoint,
		Next: p.embedder.next.endpoint,
		Memories: []endpoint.ReembedSource{s.files.ReembedSource(), s.messages.ReembedSource(),
			s.passages.ReembedSource(), s.memoryFiles.ReembedSource()},
		Log:       p.log,
		NextSpace: func(ctx context.Context) (endpoint.Space, error) { return p.embedder.next.probed(ctx, p.pool) }}
	compactions := compaction.New(p.pool, s.messages)
	compactions.Models, compactions.Extracted, compactions.Made = p.models, extracted(p.log), p.compacted
	s.erasures = &erase.Store{DB: p.pool, Recall: s.messages, Files: s.files, Archival: s.passages,
		Compaction: compactions, MemoryFiles: s.memoryFiles, Owner: p.owner, InBackground: true}
	s.agents = &agent.Store{DB: p.pool, Policy: p.policy(), Files: s.files, Recall: s.messages, Blocks: s.blocks,
		Archival: s.passages, Working: s.working, MemoryFiles: s.memoryFiles, Tokens: tokens.New(),
		Compaction: compactions,
		HasWriter:  func(ctx context.Context) (bool, error) { return db.HasWriter(ctx, p.pool) }}
	s.tools = tool.New(tool.Memories{Files: s.files, Recall: s.messages, Blocks: s.blocks, Archival: s.passages,
		Working: s.working, MemoryFiles: s.memoryFiles, Erasures: s.erasures, Models: p.models, Agents: s.agents,
		JQ: p.jq, Child: subagent.LogOf(p.pool)})
	s.tools.Observe = p.called
	s.agents.Tools, s.agents.Recalled = s.tools.Definitions, s.tools.Recalled
	s.handover = &handover.Store{DB: p.pool, Agents: s.agents}
	s.replays = &replay.Store{DB: p.pool, Recall: s.messages, Models: p.models,
		Jobs: func() *river.Client[pgx.Tx] { return s.agents.Jobs }}
	s.agents.Begun = handover.Begun(s.agents)
	s.loop = loop.New(loop.Loop{DB: p.pool, Agents: s.agents, Recall: s.messages, Tools: s.tools, Server: p.id, Log: p.log,
		Models: p.answering, Render: server.RunItems, MaxRuns: p.MaxRuns,
		LimitPatience: p.LimitPatience, Patience: p.RequestTimeout / 10 * 8})
	s.children = &subagent.Store{DB: p.pool, Agents: s.agents, Loop: s.loop}
	s.loop.Ended, s.tools.Subagents = s.children.RunEnded, s.children.ForTool()
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
		RequestTimeout: p.RequestTimeout, KeyLimits: p.limits(), TurnPatience: p.TurnPatience,
		Origins: rest.Origins(p.CORSOrigins), MCPFixtures: fixtures(),
		Gateway: server.Gateway{Upstreams: p.upstreams, Mode: p.GatewayMode,
			OnFailure: p.GatewayOnFailure}}
	if p.loopback { // only this machine can reach the server
		api.OpenOrg = p.keys.OpenOrg
	}
	p.counts.Database(p.pool)
	handler := p.tracing.requests(api.Handler()) //nolint:contextcheck // each request has its own
	group, ctx := errgroup.WithContext(ctx)
	tasks := p.tasks(s, api)
	tasks = append(tasks,
		task{"requests", func(ctx context.Context) error { return p.listen(ctx, listener, handler) }},
		task{"requests for metrics", func(ctx context.Context) error {
			return p.listenForMetrics(ctx, api) //nolint:contextcheck // likewise
		}})
	for _, t := range tasks {
		group.Go(func() error { return t.do(ctx) })
	}
	p.greet(listener.Addr().String())
	return group.Wait()
}

// examineItself examines what the server needs, with its own settings and database.
func (p *process) examineItself(ctx context.Context) (list []db.Finding) {
	for _, name := range p.unknown {
		list = append(list, db.MakeFinding("settings", db.Advice, "in the environment of the server "+notASetting(name),
			"correct its name, or unset it"))
	}
	return append(list, p.examine(ctx, p.loopback, func(context.Context) (opened, error) {
		return opened{urls: p.pg.urls, close: func() error { return nil }}, nil
	})...)
}
