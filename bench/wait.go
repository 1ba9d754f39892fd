package main

import (
	"context"
	"time"
)

// poll calls ask periodically until it returns true.
func poll(ctx context.Context, interval time.Duration, ask func() (bool, error)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if yes, err := ask(); err != nil || yes {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// lookEvery is how often an ingestion's progress is checked. More checks would slow it down.
const lookEvery = 200 * time.Millisecond
