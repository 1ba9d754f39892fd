package db

import (
	"context"
	"sync"
	"time"
)

// Renew calls renew every quarter of a lease until stop is called or ctx ends. While the lease lasts, no other server
// takes over the holder's work. If one call fails, the next one makes up for it.
func Renew(ctx context.Context, lease time.Duration, renew func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		ticker := time.NewTicker(lease / 4)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				renew(ctx)
			}
		}
	})
	return func() { cancel(); renewing.Wait() }
}
