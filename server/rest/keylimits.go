package rest

import (
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/loci-memory/loci/tenant/apikey"
)

// usedEvery is how often the last use of a key is stored.
const usedEvery = time.Minute

// keyUsage is the usage of all keys that were used within the last minutes.
type keyUsage struct {
	defaults apikey.Limits

	mu      sync.Mutex
	of      map[string]*usage
	sweepAt int // the number of keys at which idle keys are dropped
}

// usage is the usage of one key.
type usage struct {
	running int
	next    time.Time // when the next request would begin if requests came evenly spaced
	last    time.Time // when the last request began
	stored  time.Time // when the last use was stored in the database
}

// minSweep is the least number of keys at which idle keys are dropped.
const minSweep = 1024

func newKeyUsage(defaults apikey.Limits) *keyUsage {
	return &keyUsage{defaults: defaults, of: map[string]*usage{}, sweepAt: minSweep}
}

// begin counts a request of a key until end is called. A *Problem of status 429 if the key has as many requests as it
// may have. store says that the caller should store the key's use.
func (k *keyUsage) begin(key apikey.Key, now time.Time) (end func(), store bool, err error) {
	limits := key.Limits(k.defaults)
	k.mu.Lock()
	defer k.mu.Unlock()
	u := k.of[key.ID]
	if u == nil {
		k.sweep(now)
		u = &usage{}
		k.of[key.ID] = u
	}
	if store = now.Sub(u.stored) >= usedEvery; store {
		u.stored = now
	}
	u.last = now
	if limits.AtOnce > 0 && u.running >= limits.AtOnce {
		return nil, store, retryLater(codeKeyLimit, fmt.Sprintf("The API key has %s under way, which is the most it "+
			"may have at once: wait until one is answered", requests(u.running)), "1")
	}
	if wait := u.take(limits.PerMinute, now); wait > 0 {
		return nil, store, tooFast(limits.PerMinute, wait)
	}
	u.running++
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		u.running--
	}, store, nil
}

// take counts a request against the limit per minute. If the limit is reached, take returns how long to wait instead.
func (u *usage) take(perMinute int, now time.Time) time.Duration {
	if perMinute == 0 {
		return 0
	}
	next := now
	if u.next.After(now) {
		next = u.next
	}
	next = next.Add(time.Minute / time.Duration(perMinute))
	if wait := next.Sub(now) - time.Minute; wait > 0 {
		return wait
	}
	u.next = next
	return 0
}

// sweep drops the keys that had no request for a minute. Their next request may use the full limits again.
func (k *keyUsage) sweep(now time.Time) {
	if len(k.of) < k.sweepAt {
		return
	}
	for id, u := range k.of {
		if u.running == 0 && now.Sub(u.last) > time.Minute {
			delete(k.of, id)
		}
	}
	k.sweepAt = max(minSweep, 2*len(k.of))
}

// tooFast is the problem of a request that comes before the key's rate allows it. Letta's clients wait for Retry-After
// if it is below a minute; otherwise they wait too short, so they are told not to retry.
func tooFast(perMinute int, wait time.Duration) *Problem {
	seconds := int(math.Ceil(wait.Seconds()))
	p := retryLater(codeKeyLimit, fmt.Sprintf("The API key may send %s a minute; send the next one in %d s",
		requests(perMinute), seconds), strconv.Itoa(seconds))
	if seconds >= 60 {
		p.header.Set("X-Should-Retry", "false")
	}
	return p
}

func requests(n int) string {
	if n == 1 {
		return "1 request"
	}
	return fmt.Sprintf("%d requests", n)
}
