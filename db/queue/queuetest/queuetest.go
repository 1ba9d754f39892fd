// Package queuetest gives a test jobs of its own in a database that other tests use, too.
package queuetest

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/loci-memory/loci/db"
)

// Jobs returns a client whose jobs, whatever organization they are of, only clients of the same organization work on.
// It does not log. In the job table a queue's name ends in the organization's key.
func Jobs(t testing.TB, pool *pgxpool.Pool, org db.Org, config river.Config) *river.Client[pgx.Tx] {
	t.Helper()
	own := suffix(org)
	queues := maps.Clone(config.Queues)
	for name, queue := range config.Queues {
		delete(queues, name)
		queues[own.name(name)] = queue
	}
	config.Queues, config.Logger = queues, slog.New(slog.DiscardHandler)
	config.Middleware = append(config.Middleware[:len(config.Middleware):len(config.Middleware)], own)
	jobs, err := river.NewClient(riverpgxv5.New(pool), &config)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// ownQueues is a middleware that puts jobs into queues whose names end in a suffix.
type ownQueues struct {
	river.MiddlewareDefaults
	suffix string
}

func suffix(org db.Org) *ownQueues { return &ownQueues{suffix: fmt.Sprintf("_%d", org)} }

func (q *ownQueues) name(queue string) string { return queue + q.suffix }

// InsertMany implements rivertype.JobInsertMiddleware.
func (q *ownQueues) InsertMany(ctx context.Context, jobs []*rivertype.JobInsertParams,
	insert func(context.Context) ([]*rivertype.JobInsertResult, error)) ([]*rivertype.JobInsertResult, error) {
	for _, job := range jobs {
		job.Queue = q.name(job.Queue)
	}
	return insert(ctx)
}
