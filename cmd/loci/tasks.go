package main

import (
	"context"
	"runtime/pprof"
	"sync"

	"github.com/loci-memory/loci/server"
)

// task is a part of a server that runs as long as the server. If it fails, the server ends.
type task struct {
	name string // label "task" in profiles
	run  func(context.Context) error
}

func (t task) do(ctx context.Context) (err error) {
	pprof.Do(ctx, pprof.Labels("task", t.name), func(ctx context.Context) { err = t.run(ctx) })
	return err
}

// unfailing returns a task that cannot fail.
func unfailing(name string, run func(context.Context)) task {
	return task{name, func(ctx context.Context) error {
		run(ctx)
		return nil
	}}
}

// tasks returns what a server does besides answering requests.
func (p *process) tasks(s stores, api *server.Server) []task {
	present := make(chan struct{}) // closed when other servers know of this one
	return []task{
		{"presence", func(ctx context.Context) error { return p.keepPresent(ctx, present) }},
		{"jobs", func(ctx context.Context) error { return p.work(ctx, s.agents.Jobs, present) }},
		unfailing("runs of agents", func(ctx context.Context) { s.loop.Run(ctx, present) }),
		{"embeddings endpoint", func(ctx context.Context) error { return p.embedder.connect(ctx, p.pool, s) }},
		unfailing("re-embedding", func(ctx context.Context) { p.embedder.reembed(ctx, s) }),
		unfailing("uses of files", func(ctx context.Context) {
			s.files.RecordUses(ctx, p.warn("uses of files by searches are not recorded"))
		}),
		unfailing("index of text", func(ctx context.Context) { p.indexText(ctx, s.files) }),
		unfailing("statistics of tables", p.analyzeTables),
		unfailing("indexes of words", func(ctx context.Context) { p.indexWords(ctx, s) }),
		unfailing("indexes of vectors", func(ctx context.Context) { p.indexVectors(ctx, s) }),
		unfailing("weights of words", func(ctx context.Context) { p.reweighWords(ctx, s) }),
		unfailing("maintenance", func(ctx context.Context) { p.maintain(ctx, s) }),
		unfailing("deleted organizations", p.clearOrganizations),
		unfailing("counts of requests", func(ctx context.Context) { p.countUsage(ctx, api.Requests) }),
		unfailing("erasures", func(ctx context.Context) { p.erase(ctx, s.erasures) }),
		unfailing("free memory", p.freeMemory),
		unfailing("outages", p.watchOutages),
		{"Postgres", p.keepPostgres},
		unfailing("progress of files", func(ctx context.Context) {
			api.Progress.Run(ctx, p.warn("the progress of files is not known"))
		}),
		unfailing("events of agents", func(ctx context.Context) {
			api.Followers.Run(ctx, p.warn("the events of agents are not known"))
		}),
	}
}

// watchOutages logs when outages end, until ctx ends.
func (p *process) watchOutages(ctx context.Context) {
	var watches sync.WaitGroup
	all := p.outages.list()
	for i, o := range all {
		watches.Go(func() { o.watch(ctx, p.log, all[:i]...) })
	}
	watches.Wait()
}
