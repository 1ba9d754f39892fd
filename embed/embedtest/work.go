package embedtest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// Patience bounds the waits of tests; reaching it is a failure.
const Patience = 3 * time.Minute

// Jobs is a client that makes jobs, and works on those that it is configured for.
func Jobs(t testing.TB, pool *pgxpool.Pool, config river.Config) *river.Client[pgx.Tx] {
	t.Helper()
	config.Logger = slog.New(slog.DiscardHandler)
	jobs, err := river.NewClient(riverpgxv5.New(pool), &config)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// Work calls and works on a queue as a server does, until stop is called or the test ends.
func Work(t testing.TB, pool *pgxpool.Pool, memory Queue, queues map[string]river.QueueConfig) (stop func()) {
	t.Helper()
	workers := river.NewWorkers()
	memory.Work(workers)
	jobs := Jobs(t, pool, river.Config{Workers: workers, Queues: queues, FetchCooldown: 5 * time.Millisecond,
		FetchPollInterval: 100 * time.Millisecond})
	if err := jobs.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var calls sync.WaitGroup
	calls.Go(func() {
		for tick := time.Tick(25 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick:
			}
			if _, err := memory.Call(ctx, jobs); err != nil && ctx.Err() == nil {
				t.Errorf("call: %v", err)
			}
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		calls.Wait()
		bounded, done := context.WithTimeout(context.Background(), Patience)
		defer done()
		if err := jobs.StopAndCancel(bounded); err != nil {
			t.Errorf("stop the workers: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Eventually looks until something is so.
func Eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	deadline := time.After(Patience)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !is() {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		}
	}
}
