package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

// latencies are the durations of repeated calls, in seconds.
type latencies struct {
	seconds []float64
	took    time.Duration // of the whole measurement
}

func (l latencies) p50() float64  { return median(l.seconds) }
func (l latencies) rate() float64 { return float64(len(l.seconds)) / l.took.Seconds() }

// repeat lets each client call run repeatedly for a duration.
func repeat(ctx context.Context, clients int, d time.Duration, run func(client, n int) error) (latencies, error) {
	var mu sync.Mutex
	var all latencies
	var failed error
	begin := time.Now()
	var clientsDone sync.WaitGroup
	for client := range clients {
		clientsDone.Go(func() {
			var seconds []float64
			var err error
			for n := 0; err == nil && ctx.Err() == nil && (n == 0 || time.Since(begin) < d); n++ {
				start := time.Now()
				err = run(client, n)
				seconds = append(seconds, time.Since(start).Seconds())
			}
			mu.Lock()
			defer mu.Unlock()
			all.seconds = append(all.seconds, seconds...)
			failed = errors.Join(failed, err)
		})
	}
	clientsDone.Wait()
	all.took = time.Since(begin)
	return all, errors.Join(failed, ctx.Err())
}
