package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

// latencies are the seconds that each call of some clients took.
type latencies struct {
	seconds []float64
	took    time.Duration // all of them
}

func (l latencies) p50() float64  { return median(l.seconds) }
func (l latencies) rate() float64 { return float64(len(l.seconds)) / l.took.Seconds() }

// repeat lets each client call do again and again for a duration.
func repeat(ctx context.Context, clients int, d time.Duration, do func(client, n int) error) (latencies, error) {
	var mu sync.Mutex
	var all latencies
	var failed error
	began := time.Now()
	var clientsDone sync.WaitGroup
	for client := range clients {
		clientsDone.Go(func() {
			var own []float64
			var err error
			for n := 0; err == nil && ctx.Err() == nil && (n == 0 || time.Since(began) < d); n++ {
				start := time.Now()
				err = do(client, n)
				own = append(own, time.Since(start).Seconds())
			}
			mu.Lock()
			defer mu.Unlock()
			all.seconds = append(all.seconds, own...)
			failed = errors.Join(failed, err)
		})
	}
	clientsDone.Wait()
	all.took = time.Since(began)
	return all, errors.Join(failed, ctx.Err())
}
