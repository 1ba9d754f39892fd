// Package queuetest gives a test its own jobs in a database that other tests use, too.
package queuetest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/loci-memory/loci/db"
)

// Jobs returns a client for a test. Only clients of the same organization work on its jobs, whichever organizations the
// jobs are for. It does not log. In the job table, the names of its queues end in the organization's key. If org is 0,
// it is the organization of the context that inserts the job.
func Jobs(t testing.TB, pool *pgxpool.Pool, org db.Org, config river.Config) *river.Client[pgx.Tx] {
	t.Helper()
	var queues map[string]river.QueueConfig // nil for a client without queues, which has no workers
	for name, queue := range config.Queues {
		if queues == nil {
			queues = map[string]river.QueueConfig{}
		}
		queues[Name(org, name)] = queue
	}
	config.Queues, config.Logger = queues, slog.New(slog.DiscardHandler)
	// A client tells workers about jobs no more often than this.
	config.FetchCooldown = cmp.Or(config.FetchCooldown, time.Millisecond)
	config.Middleware = append(slices.Clip(config.Middleware), &ownQueues{org: org})
	jobs, err := river.NewClient(riverpgxv5.New(pool), &config)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// Name returns the name in the job table of a queue that was passed to Jobs.
func Name(org db.Org, queue string) string { return fmt.Sprintf("%s_%d", queue, org) }

// ownQueues is a middleware that appends an organization to the names of queues.
type ownQueues struct {
	river.MiddlewareDefaults
	org db.Org
}

// InsertMany implements rivertype.JobInsertMiddleware.
func (q *ownQueues) InsertMany(ctx context.Context, jobs []*rivertype.JobInsertParams,
	insert func(context.Context) ([]*rivertype.JobInsertResult, error)) ([]*rivertype.JobInsertResult, error) {
	for _, job := range jobs {
		job.Queue = Name(cmp.Or(q.org, db.OrgOf(ctx)), job.Queue)
	}
	return insert(ctx)
}
