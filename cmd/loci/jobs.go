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
	rescueAfter   = 2 * time.Minute      // for a job that no living server claims
	fetchPause    = 5 * time.Millisecond // between two fetches while there are jobs
	jobsKept      = time.Hour            // after completion; a hundred thousand uploads leave as many jobs
	presenceEvery = 10 * time.Second     // between two searches for jobs of dead servers
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
	var reindex river.PeriodicSchedule // nil means every day
	if p.owner != p.pool {
		reindex = river.NeverSchedule() // only the schema's owner may: see maintain
	}
	return river.NewClient(riverpgxv5.New(p.pool), &river.Config{
		ReindexerSchedule: reindex,
		ID:                p.id, Workers: workers, FetchCooldown: fetchPause,
		Logger:     slog.New(quiet{p.log.Handler()}),
		JobTimeout: jobTimeout, RescueStuckJobsAfter: rescueAfter, CompletedJobRetentionPeriod: jobsKept,
		Queues: queues, Middleware: append(p.tracing.jobs(), &p.inFlight, &queue.ForOrg{}, &queue.Provenance{}),
	})
}

// keepPresent holds this server's lock on the database until ctx ends. If the connection is lost, it takes the lock
// again at once, because other servers take over the runs of a server without a lock. It closes ready when it holds the
// lock for the first time. It returns an error if another program changed the schema meanwhile.
func (p *process) keepPresent(ctx context.Context, ready chan struct{}) error {
	presence := queue.Presence{URL: p.pg.urls.Server, ID: p.id, Every: presenceEvery, InFlight: &p.inFlight,
		Writes: p.models != nil}
	markReady := sync.OnceFunc(func() { close(ready) })
	logged := ""     // the last logged error, until the lock is held again
	wasHeld := false // whether the lock was held once; a schema that is missing afterwards may be rebuilt
	for {
		locked := false
		err := presence.Keep(ctx, func() { logged, locked, wasHeld = "", true, true; markReady() })
		if mismatch, ok := errors.AsType[*db.SchemaError](err); ok && (mismatch.IsAnother() || !wasHeld) {
			return err
		}
		if err != nil && ctx.Err() == nil && err.Error() != logged {
			logged = err.Error()
			p.log.Warn("the server's lock on the database was lost", "error", err)
		}
		pause := time.Duration(0)
		if !locked {
			pause = retryEvery
		}
		if !db.Pause(ctx, pause) {
			return nil
		}
	}
}

// work runs jobs from the moment the server is present until ctx ends, and then waits for the running jobs.
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
		p.log.Warn("no work on jobs yet", "error", err) // the database may have gone away meanwhile
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
