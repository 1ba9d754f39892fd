package db

import (
	"context"
	"sync"
	"time"
)

// Renew calls renew every quarter of a lease until stop is called or ctx ends. While its lease lasts, no other server
// takes the holder's work. A call makes up for one before it that failed.
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
