package rest

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/apikey"
)

// lookups finds the keys of requests. A stranger is a caller with a key that the server has not seen, or with none.
// Strangers must not hold back known callers: the look-up of a known key counts for its organization, and only a few
// strangers are looked up at once.
type lookups struct {
	keys *Keys

	mu    sync.Mutex
	known map[[sha256.Size]byte]db.Org // organizations of valid keys, by the SHA-256 of the secret

	strangers chan struct{} // strangers that are being looked up
	waiting   chan struct{} // these, and the strangers that wait for a look-up
	refusals  pacer
}

const (
	maxStrangers        = 4
	maxWaitingStrangers = 1000
	maxKnownKeys        = 100_000
)

func newLookups(keys *Keys) *lookups {
	return &lookups{keys: keys, known: map[[sha256.Size]byte]db.Org{}, strangers: make(chan struct{}, maxStrangers),
		waiting: make(chan struct{}, maxWaitingStrangers)}
}

// pacer delays the answers to refused callers, so that a flood of refusals leaves the processors to others.
type pacer struct {
	mu   sync.Mutex
	next time.Time // when the next answer may go
}

const (
	betweenRefusals = 2 * time.Millisecond
	maxRefusalDelay = 2 * time.Second
)

// wait waits until an answer may go.
func (p *pacer) wait(ctx context.Context) {
	p.mu.Lock()
	now := time.Now()
	delay := min(max(p.next.Sub(now), 0), maxRefusalDelay)
	p.next = now.Add(delay + betweenRefusals)
	p.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
	}
}

// key returns the key that has a secret; errors as Keys.Lookup. A *Problem of status 429 if too many strangers wait.
func (l *lookups) key(ctx context.Context, secret string) (apikey.Key, error) {
	sum := sha256.Sum256([]byte(secret))
	l.mu.Lock()
	org, known := l.known[sum]
	l.mu.Unlock()
	if known {
		ctx = db.WithOrg(ctx, org)
	} else {
		leave, err := l.enter(ctx)
		if err != nil {
			return apikey.Key{}, err
		}
		defer leave()
	}
	key, err := l.keys.Lookup(ctx, secret)
	l.remember(sum, key.Org, err)
	return key, err
}

// open calls Keys.OpenOrg. A caller without a key is a stranger.
func (l *lookups) open(ctx context.Context) (db.Org, error) {
	leave, err := l.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	return l.keys.OpenOrg(ctx)
}

// remember notes the result of a look-up.
func (l *lookups) remember(sum [sha256.Size]byte, org db.Org, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		if len(l.known) >= maxKnownKeys {
			clear(l.known)
		}
		l.known[sum] = org
	case errors.Is(err, db.ErrNotFound) || errors.Is(err, apikey.ErrExpired):
		delete(l.known, sum)
	}
}

// enter waits until the look-up of another stranger may begin. leave ends the look-up.
func (l *lookups) enter(ctx context.Context) (leave func(), err error) {
	select {
	case l.waiting <- struct{}{}:
	default:
		return nil, retryLater(codeTooMany,
			"Too many requests without a key that this server knows; try again in a moment", "1")
	}
	select {
	case l.strangers <- struct{}{}:
		return func() { <-l.strangers; <-l.waiting }, nil
	case <-ctx.Done():
		<-l.waiting
		return nil, ctx.Err()
	}
}
