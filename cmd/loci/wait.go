package main

import (
	"context"
	"time"
)

const (
	retryEvery    = 5 * time.Second        // between two tries of what needs the database or the endpoint back
	progressEvery = 500 * time.Millisecond // between two reads of the progress of followed files
	followEvery   = 100 * time.Millisecond // between two reads of the newest events of followed agents
)

// wait pauses, and reports whether ctx lasted for the pause.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
