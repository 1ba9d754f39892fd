package loop

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/loci-memory/loci/agent/loop/model"
)

const (
	// maxAttempts bounds how often a model is asked for one answer, not counting limits of requests.
	maxAttempts = 3

	firstPause = 500 * time.Millisecond
	// pauseGrowth is the factor by which each further pause is longer.
	pauseGrowth = 4
	// maxGrowths bounds how often pauses get longer.
	maxGrowths = 16
	// limitedPauses is the factor by which pauses are longer if a provider has no room for requests.
	limitedPauses = 10
	// maxLimitPause is the longest pause after a limit of requests if the provider names no pause.
	maxLimitPause = 8 * time.Second
	// maxPause is the longest pause that is waited for if a provider asks for one.
	maxPause = time.Minute
)

// limiting is the time left for a provider that limits requests, with status 429.
type limiting struct {
	patience time.Duration // counted from the first limit
	until    time.Time     // zero before the first limit
	times    int           // how often the provider limited requests
}

// isLimited reports whether a provider takes no more requests for the key at present. LimitPatience bounds how long it
// is asked again, and nothing bounds how often.
func isLimited(f *model.Fault) bool { return f.Again && f.Status == http.StatusTooManyRequests }

// pause waits before a model is asked again. It returns the fault if the wait would be longer than allowed, and ctx's
// error if ctx ends.
func (l *limiting) pause(ctx context.Context, loop *Loop, f *model.Fault, attempt int) error {
	most := maxPause
	if isLimited(f) {
		if l.times++; l.times == 1 {
			l.until = time.Now().Add(l.patience)
		}
		attempt, most = l.times, time.Until(l.until)
	}
	wait := pauseAfter(f, attempt, cmp.Or(loop.FirstPause, firstPause))
	if f.After > most || most <= 0 {
		return f
	}
	timer := time.NewTimer(min(wait, most))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pauseAfter returns the pause after a failed attempt; attempts count from 1. It is the pause that the provider asks
// for plus up to a tenth, or one that grows with the attempts, minus a random part of up to a half.
func pauseAfter(f *model.Fault, attempt int, first time.Duration) time.Duration {
	if f.After > 0 {
		return f.After + random(f.After/10)
	}
	full := first
	for range min(attempt, maxGrowths) - 1 {
		full *= pauseGrowth
	}
	if isLimited(f) {
		full = min(full, maxLimitPause)
	}
	if f.Limited && f.Status != http.StatusTooManyRequests {
		full *= limitedPauses
	}
	return full/2 + random(full/2)
}

// random returns a random duration of at most most.
func random(most time.Duration) time.Duration {
	return rand.N(most + 1) //nolint:gosec // spreads retries, guards nothing
}
