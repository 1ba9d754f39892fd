package llm

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"

	"github.com/loci-memory/loci/db"
)

// fuseKey is an organization, as returned by db.OrgOf, and a model's name. Failures for one organization do not affect
// the others.
type fuseKey struct {
	org   db.Org
	model string
}

// A model gets no requests from an organization for the time pause after maxFailures requests in a row failed in all
// attempts, or after one request timed out. Then a single request tries it again. A provider that says when it may be
// asked again is asked then, and one that has too many requests after busyPause.
const (
	pause       = 5 * time.Minute
	busyPause   = 10 * time.Second
	maxFailures = 3
)

// fuse says whether a model may be asked.
type fuse struct {
	breaker circuitbreaker.CircuitBreaker[any]

	mu    sync.Mutex
	until time.Time // the provider asked for a pause until then
	last  error     // the last failure
}

func (c *Client) fuse(key fuseKey) *fuse {
	f, _ := c.fuses.LoadOrStore(key, &fuse{breaker: circuitbreaker.NewBuilder[any]().WithDelay(pause).
		WithFailureThreshold(maxFailures).WithSuccessThreshold(1).Build()}) // new or present
	return f.(*fuse)
}

// blown returns for how long the model is not asked, and the failure that is the reason; 0 if it may be asked.
func (f *fuse) blown(now time.Time) (rest time.Duration, last error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if rest = f.until.Sub(now); rest > 0 {
		return rest, f.last
	}
	if !f.breaker.TryAcquirePermit() {
		return max(f.breaker.RemainingDelay(), time.Second), f.last
	}
	return 0, nil
}

// record counts the outcome of a request. Failures caused by the caller or by the request itself do not count. told is
// the failure in words, and after the pause that the provider asked for; 0 if it did not.
func (f *fuse) record(o outcome, told error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = told
	var timeout interface{ Timeout() bool }
	hung := errors.Is(o.err, context.DeadlineExceeded) || errors.As(o.err, &timeout) && timeout.Timeout()
	busy := o.after > 0 || o.status == http.StatusTooManyRequests
	switch {
	case o.err != nil && busy && !o.ours:
		f.until = o.now.Add(min(cmp.Or(o.after, busyPause), pause))
		f.breaker.RecordSuccess() // it answers
	case hung, o.err != nil && f.breaker.IsHalfOpen():
		f.breaker.Open()
	case o.err != nil && !o.ours:
		f.breaker.RecordFailure()
	default:
		f.breaker.RecordSuccess()
	}
}

// outcome says how a request ended.
type outcome struct {
	err    error
	status int           // of the answer; 0: none
	after  time.Duration // pause that the provider asked for; 0: none
	ours   bool          // the caller or the request caused the failure
	now    time.Time
}
