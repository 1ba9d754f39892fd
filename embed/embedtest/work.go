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

// Patience is how long a test waits before it fails.
const Patience = 3 * time.Minute

// Jobs returns a client that queues jobs, and works on the queues in config.
func Jobs(t testing.TB, pool *pgxpool.Pool, config river.Config) *river.Client[pgx.Tx] {
	t.Helper()
	config.Logger = slog.New(slog.DiscardHandler)
	jobs, err := river.NewClient(riverpgxv5.New(pool), &config)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// Work calls a queue and works on it as a server does, until stop is called or the test ends.
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

// Eventually waits until happened returns true.
func Eventually(t testing.TB, event string, happened func() bool) {
	t.Helper()
	deadline := time.After(Patience)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !happened() {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatalf("not in time: %s", event)
		}
	}
}
