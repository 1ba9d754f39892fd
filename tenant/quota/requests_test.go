package quota_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/tenant/quota"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// counter is a server that counts the requests of an organization. The test sets its clock, and may stop its
// statements.
type counter struct {
	quota.Requests
	db.DB
	t     *testing.T
	org   db.Org
	clock atomic.Int64 // nanoseconds since 1970

	before func(context.Context) context.Context // called before each statement, which gets its result; may be nil
}

func newCounter(t *testing.T, d db.DB, org db.Org, now time.Time) *counter {
	c := &counter{t: t, DB: d, org: org}
	c.Requests.DB, c.Now = c, func() time.Time { return time.Unix(0, c.clock.Load()) }
	c.clock.Store(now.UnixNano())
	return c
}

func (c *counter) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if c.before != nil {
		ctx = c.before(ctx)
	}
	return c.DB.Query(ctx, sql, args...)
}

func (c *counter) later(by time.Duration) { c.clock.Add(int64(by)) }

// count counts n requests, which must be let through.
func (c *counter) count(n int) {
	c.t.Helper()
	for range n {
		if err := c.Count(c.t.Context(), c.org, false); err != nil {
			c.t.Fatal(err)
		}
	}
}

// refused counts a request, which must be refused.
func (c *counter) refused(want db.QuotaError) {
	c.t.Helper()
	err := c.Count(c.t.Context(), c.org, false)
	if got, ok := errors.AsType[*db.QuotaError](err); !ok || *got != want {
		c.t.Errorf("got %+v, want %+v", err, want)
	}
}

// stored returns how many requests of a month are stored.
func (c *counter) stored(month time.Time) int64 {
	c.t.Helper()
	list, err := (&quota.Store{DB: c.DB}).Usages(c.t.Context(), c.org, false, month, db.Page{Limit: 1})
	if err != nil || len(list) != 1 {
		c.t.Fatalf("the usage: %v, %v", list, err)
	}
	return list[0].Requests
}

func (c *counter) limit(n int64) {
	c.t.Helper()
	quotas := &quota.Store{DB: c.DB}
	if _, err := quotas.Update(c.t.Context(), c.org, func(l *quota.Limits) { l.Requests = &n }); err != nil {
		c.t.Fatal(err)
	}
}

var (
	june = time.Date(2024, 6, 30, 23, 59, 50, 0, time.UTC) // ten seconds before July
	july = time.Date(2024, 7, 1, 0, 0, 0, 0, time.UTC)
)

// Requests that come while the count is being stored are counted, and do not wait for it.
func TestRequestsDuringAStoreAreCounted(t *testing.T) {
	t.Parallel()
	pool, org := dbtest.Org(t)
	c := newCounter(t, pool, org, june)
	c.count(1)
	c.later(5 * time.Second)
	entered, goOn := make(chan struct{}), make(chan struct{})
	stop := sync.OnceFunc(func() { close(entered); <-goOn })
	c.before = func(ctx context.Context) context.Context { stop(); return ctx }
	var storing sync.WaitGroup
	storing.Go(func() { c.count(1) })
	<-entered
	c.count(3)
	close(goOn)
	storing.Wait()
	c.Flush(t.Context())
	if got := c.stored(june); got != 5 {
		t.Errorf("%d requests are stored, want 5", got)
	}
	c.Flush(t.Context())
	if got := c.stored(june); got != 5 {
		t.Errorf("after another flush %d requests are stored, want 5", got)
	}
}

// A server lets exactly as many requests through as the quota has left. A new month begins at 0 in UTC, and the month
// before keeps its count.
func TestAQuotaOfRequestsIsOfAMonth(t *testing.T) {
	t.Parallel()
	pool, org := dbtest.Org(t)
	c := newCounter(t, pool, org, june)
	c.limit(3)
	c.count(3)
	beyond := db.QuotaError{Quota: db.QuotaRequests, Used: 3, Requested: 1, Limit: 3, Until: july}
	c.refused(beyond)
	c.refused(beyond) // a refused request is not counted
	if err := c.Count(t.Context(), org, true); err != nil {
		t.Errorf("a request without limit: %v", err)
	}
	beyond.Used = 4
	c.refused(beyond)
	c.later(10*time.Second - time.Nanosecond) // the last moment of June
	c.refused(beyond)
	c.later(time.Nanosecond)
	c.count(3)
	c.refused(db.QuotaError{Quota: db.QuotaRequests, Used: 3, Requested: 1, Limit: 3, Until: july.AddDate(0, 1, 0)})
	c.Flush(t.Context())
	if got := [2]int64{c.stored(june), c.stored(july)}; got != [2]int64{4, 3} {
		t.Errorf("June and July have %v requests, want 4 and 3", got)
	}
}

// Servers know each other's requests, and a changed quota, after five seconds; after Forget they read them at once.
func TestServersCountTogether(t *testing.T) {
	t.Parallel()
	pool, org := dbtest.Org(t)
	one, two := newCounter(t, pool, org, june), newCounter(t, pool, org, june)
	one.count(2)
	two.count(2)
	one.limit(4)
	one.later(5*time.Second - time.Nanosecond)
	one.count(1) // of the quota and of the other server's requests it knows nothing yet
	one.later(time.Nanosecond)
	one.count(1) // stores 3; the other server has stored none of its 2
	one.refused(db.QuotaError{Quota: db.QuotaRequests, Used: 4, Requested: 1, Limit: 4, Until: july})
	two.later(5 * time.Second)
	two.refused(db.QuotaError{Quota: db.QuotaRequests, Used: 5, Requested: 1, Limit: 4, Until: july})
	two.limit(6)
	two.refused(db.QuotaError{Quota: db.QuotaRequests, Used: 5, Requested: 1, Limit: 4, Until: july})
	two.Forget(org)
	two.count(1)
}

// Requests are let through while counts cannot be stored. They are stored once that is possible.
func TestRequestsOutliveAFailureToStoreThem(t *testing.T) {
	t.Parallel()
	pool, org := dbtest.Org(t)
	c := newCounter(t, pool, org, june)
	var failures []error
	c.Failed = func(err error) { failures = append(failures, err) }
	ended, end := context.WithCancel(t.Context())
	end()
	c.before = func(context.Context) context.Context { return ended }
	c.count(2)
	if len(failures) != 1 || !errors.Is(failures[0], context.Canceled) {
		t.Errorf("got the failures %v, want one: it tries again after five seconds", failures)
	}
	c.before = nil
	c.later(5 * time.Second)
	c.count(1)
	c.Flush(t.Context())
	if got := c.stored(june); got != 3 {
		t.Errorf("%d requests are stored, want 3", got)
	}
}
