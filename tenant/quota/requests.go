package quota

import (
	"context"
	"sync"
	"time"

	"github.com/loci-memory/loci/db"
)

// Requests counts the requests of organizations. Each server has one, and sees the other servers' requests up to Every
// later.
type Requests struct {
	DB  db.DB
	Now func() time.Time // nil: the system clock

	// Every is how long a server counts on its own before it stores its count and reads the total; 0 means 5 seconds.
	Every time.Duration
	// Failed receives the errors of storing counts; it may be nil. Requests are let through despite such errors.
	Failed func(error)

	mu   sync.Mutex
	orgs map[db.Org]*counted
}

// counted is one organization's number of requests in a month, as far as this server knows.
type counted struct {
	mu      sync.Mutex // held while the count is being stored
	month   time.Time
	stored  int64  // requests to all servers, as last read
	pending int64  // by this server, since then
	limit   *int64 // as last read
	readAt  time.Time
}

const (
	storeEvery   = 5 * time.Second
	storeTimeout = 5 * time.Second
)

func (r *Requests) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}

// Count counts a request of an organization. *db.QuotaError if the organization has used its quota and unlimited is not
// set; that request is not counted.
func (r *Requests) Count(ctx context.Context, org db.Org, unlimited bool) error {
	c, now := r.of(org), r.now()
	if r.stale(c, now) {
		r.sync(ctx, org, c, false)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if used := c.stored + c.pending; !unlimited && c.limit != nil && used >= *c.limit {
		return &db.QuotaError{Quota: db.QuotaRequests, Used: used, Requested: 1, Limit: *c.limit,
			Until: c.month.AddDate(0, 1, 0)}
	}
	c.pending++
	return nil
}

func (r *Requests) of(org db.Org) *counted {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.orgs == nil {
		r.orgs = map[db.Org]*counted{}
	}
	if r.orgs[org] == nil {
		r.orgs[org] = &counted{month: monthOf(r.now())}
	}
	return r.orgs[org]
}

// stale reports whether an organization's count should be stored and read again.
func (r *Requests) stale(c *counted, now time.Time) bool {
	every := r.Every
	if every == 0 {
		every = storeEvery
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Sub(c.readAt) >= every || !c.month.Equal(monthOf(now))
}

// sync stores this server's count and reads the total of all servers. It does nothing if another request has just done
// so, unless always is set. Meanwhile the organization's other requests go on, except before the first total is read.
func (r *Requests) sync(ctx context.Context, org db.Org, c *counted, always bool) {
	r.mu.Lock()
	known := !c.readAt.IsZero()
	r.mu.Unlock()
	if !c.mu.TryLock() {
		if known && !always {
			return
		}
		c.mu.Lock()
	}
	defer c.mu.Unlock()
	now := r.now()
	if !always && !r.stale(c, now) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	r.mu.Lock()
	pending, month := c.pending, c.month
	r.mu.Unlock()
	stored, limit, err := r.store(ctx, org, month, pending)
	r.mu.Lock()
	defer r.mu.Unlock()
	c.readAt = now
	if err != nil {
		if r.Failed != nil {
			r.Failed(err)
		}
		return
	}
	c.pending -= pending
	if c.stored, c.limit = stored, limit; !month.Equal(monthOf(now)) {
		c.month, c.stored, c.readAt = monthOf(now), 0, time.Time{}
	}
}

// store adds requests to a month. It returns the month's total and the quota.
func (r *Requests) store(ctx context.Context, org db.Org, month time.Time, more int64) (int64, *int64, error) {
	type row struct {
		Requests int64  `db:"requests"`
		Limit    *int64 `db:"allowed"`
	}
	got, err := db.One[row](ctx, r.DB, `
		WITH added AS (
			INSERT INTO request_counts AS r (org, month, requests)
			SELECT org, $2, $3 FROM organizations WHERE org = $1 AND deleted_at IS NULL
			ON CONFLICT (org, month) DO UPDATE SET requests = r.requests + excluded.requests
			RETURNING requests
		)
		SELECT coalesce((SELECT requests FROM added), 0) AS requests,
		       (SELECT requests_per_month FROM quotas WHERE org = $1) AS allowed`, org, month, more)
	return got.Requests, got.Limit, err
}

// Flush stores the requests that this server has counted, so that usage reports include them.
func (r *Requests) Flush(ctx context.Context) {
	r.mu.Lock()
	waiting := map[db.Org]*counted{}
	for org, c := range r.orgs {
		if c.pending > 0 {
			waiting[org] = c
		}
	}
	r.mu.Unlock()
	for org, c := range waiting {
		r.sync(db.WithOrg(ctx, org), org, c, true)
	}
}

// Forget makes the next request of an organization read its quota again.
func (r *Requests) Forget(org db.Org) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.orgs[org]; c != nil {
		c.readAt = time.Time{}
	}
}
