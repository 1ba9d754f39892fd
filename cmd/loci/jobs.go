package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/handover"
	"github.com/loci-memory/loci/agent/subagent"
	"github.com/loci-memory/loci/compaction/replay"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
	"github.com/loci-memory/loci/files"
)

const (
	jobTimeout    = time.Minute
	rescueAfter   = 2 * time.Minute      // of a job that no living server claims
	fetchPause    = 5 * time.Millisecond // between two fetches of jobs while there are some
	jobsKept      = time.Hour            // after they are done: a hundred thousand uploads leave as many
	presenceEvery = 10 * time.Second     // between two looks for the jobs of dead servers
)

// jobs returns the River client that works on the queues of all stores.
func (p *process) jobs(s stores) (*river.Client[pgx.Tx], error) {
	workers, queues := river.NewWorkers(), files.Queues()
	maps.Copy(queues, agent.Queues())
	maps.Copy(queues, subagent.Queues())
	maps.Copy(queues, handover.Queues())
	maps.Copy(queues, replay.Queues())
	s.handover.Work(workers)
	s.replays.Work(workers)
	s.agents.Work(workers)
	s.children.Work(workers)
	s.files.Work(workers)
	for _, vectors := range s.ownerQueues() {
		vectors.Work(workers)
		if p.embedder.endpoint != nil {
			maps.Copy(queues, vectors.Queues())
		}
	}
	var reindex river.PeriodicSchedule // nil: every day
	if p.owner != p.pool {
		reindex = river.NeverSchedule() // only an owner may: see maintain
	}
	return river.NewClient(riverpgxv5.New(p.pool), &river.Config{
		ReindexerSchedule: reindex,
		ID:                p.id, Workers: workers, FetchCooldown: fetchPause,
		Logger:     slog.New(quiet{p.log.Handler()}),
		JobTimeout: jobTimeout, RescueStuckJobsAfter: rescueAfter, CompletedJobRetentionPeriod: jobsKept,
		Queues: queues, Middleware: append(p.tracing.jobs(), &p.inFlight, &queue.ForOrg{}, &queue.Provenance{}),
	})
}

// keepPresent holds this server's lock on the database until ctx ends. It takes the lock again when the connection was
// lost, at once: other servers take over the runs of one without a lock. It closes ready when the lock is held for the
// first time. It returns an error if another program changed the schema meanwhile.
func (p *process) keepPresent(ctx context.Context, ready chan struct{}) error {
	presence := queue.Presence{URL: p.pg.urls.Server, ID: p.id, Every: presenceEvery, InFlight: &p.inFlight}
	once := sync.OnceFunc(func() { close(ready) })
	said := ""     // the error that was logged last, until the lock is held again
	began := false // the lock was held: a schema that is missing then may be rebuilt
	for {
		held := false
		err := presence.Keep(ctx, func() { said, held, began = "", true, true; once() })
		if wrong, is := errors.AsType[*db.SchemaError](err); is && (wrong.IsAnother() || !began) {
			return err
		}
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			p.log.Warn("the server's lock on the database was lost", "error", err)
		}
		again := time.Duration(0)
		if !held {
			again = retryEvery
		}
		if !db.Pause(ctx, again) {
			return nil
		}
	}
}

// work works on jobs from the moment the server is present until ctx ends, and then lets the jobs in flight end.
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
		p.log.Warn("no work on jobs yet", "error", err) // the database may have gone away since
		if !db.Pause(ctx, retryEvery) {
			return nil
		}
	}
	<-ctx.Done()
	p.embedder.endpoint.Stop()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.StopTimeout)
	defer cancel()
	if err := jobs.Stop(stopping); err != nil {
		return jobs.StopAndCancel(context.WithoutCancel(ctx))
	}
	return nil
}
