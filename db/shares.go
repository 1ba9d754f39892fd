package db

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Shares divides a number of equal units, such as connections or bytes, between organizations. One organization alone
// may take all but the reserve. Of the reserve it gets units only while it has none, or while it has no more than the
// total divided by the number of organizations that use it and one. Those who wait are served in the order of how
// little their organization has, and of one organization in the order in which they came.
type Shares struct {
	total, reserve int64

	// halves says that an organization gets at most half of what the others leave, where that is in the reserve, so that
	// there is always something for one more.
	halves bool

	// contended is the most that Take gives an organization while others are active; 0 is no such limit. An organization
	// is active until lingers after it took or gave back a unit. One that waits and has taken no unit for patience gets
	// one beyond contended, so that its long work holds up its short work for no longer.
	contended         int64
	lingers, patience time.Duration

	// yields is how long an organization whose pieces of work wait for each other gives way to one whose work has what it
	// needs: the next of those that wait is served when that one has given its units back, or after yields.
	yields   time.Duration
	yielding bool // a timer of yields runs

	mu      sync.Mutex
	taken   int64
	orgs    map[Org]*share
	arrived int64     // how many have waited
	latest  [2]active // the organization that was active last, and the last one of the others
}

// share is what one organization has.
type share struct {
	taken   int64
	tookAt  time.Time
	waiting []*waiter
}

// active is an organization, and when it last took or gave back a unit.
type active struct {
	org Org
	at  time.Time
}

type waiter struct {
	number, units int64
	served        chan struct{} // closed when the units are taken
}

// NewShares returns shares of a total, of which a reserve stays for other organizations than one.
func NewShares(total, reserve int64) *Shares {
	return &Shares{total: total, reserve: reserve, orgs: map[Org]*share{}}
}

// NewHalvingShares returns shares of a total, of which a reserve stays for other organizations than one. Of the reserve
// each of them gets at most half of what the others leave, and one unit that is its only one in any case.
func NewHalvingShares(total, reserve int64) *Shares {
	s := NewShares(total, reserve)
	s.halves = true
	return s
}

// TryTake takes units for an organization, and reports false if it may not have them now. have are the units that the
// same piece of work has taken before: an organization's only piece of work may use the reserve as far as it goes.
func (s *Shares) TryTake(org Org, units, have int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.of(org)
	defer s.forget(org)
	if !s.admits(of, units, have) {
		return false
	}
	s.take(org, of, units)
	return true
}

// Take takes units for an organization, at most the total, and waits until it may have them. The error is that of ctx.
func (s *Shares) Take(ctx context.Context, org Org, units int64) error {
	s.mu.Lock()
	of := s.of(org)
	if len(of.waiting) == 0 && s.admitsNow(org, of, units) {
		s.take(org, of, units)
		s.mu.Unlock()
		return nil
	}
	s.arrived++
	w := &waiter{number: s.arrived, units: units, served: make(chan struct{})}
	of.waiting = append(of.waiting, w)
	s.mu.Unlock()
	if err := s.await(ctx, org, of, w); err != nil {
		s.stopWaiting(org, of, w)
		return err
	}
	return nil
}

// await waits until a waiter is served. The error is that of ctx.
func (s *Shares) await(ctx context.Context, org Org, of *share, w *waiter) error {
	var overdue <-chan time.Time
	if s.contended > 0 {
		timer := time.NewTicker(s.patience)
		defer timer.Stop()
		overdue = timer.C
	}
	for {
		select {
		case <-w.served:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-overdue:
			s.serveOverdue(org, of)
		}
	}
}

// serveOverdue serves an organization that has taken nothing for the patience.
func (s *Shares) serveOverdue(org Org, of *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(of.waiting) > 0 && time.Since(of.tookAt) >= s.patience && s.admits(of, of.waiting[0].units, 0) {
		s.serve(org, of)
	}
}

// stopWaiting removes a waiter; if it was served meanwhile, it gives the unit back.
func (s *Shares) stopWaiting(org Org, of *share, w *waiter) {
	s.mu.Lock()
	i := slices.Index(of.waiting, w)
	if i >= 0 {
		of.waiting = slices.Delete(of.waiting, i, i+1)
		s.forget(org)
	}
	s.mu.Unlock()
	if i < 0 {
		s.Give(org, w.units)
	}
}

// Waiting returns how many wait.
func (s *Shares) Waiting() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.orgs {
		n += len(of.waiting)
	}
	return n
}

// Taken returns how many units are taken.
func (s *Shares) Taken() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// Give returns units that an organization took.
func (s *Shares) Give(org Org, units int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.of(org)
	s.taken, of.taken = s.taken-units, of.taken-units
	s.note(org)
	for s.serveNext() {
	}
	s.forget(org)
}

// of returns the share of an organization. s.mu must be held, and forget be called afterwards.
func (s *Shares) of(org Org) *share {
	if s.orgs[org] == nil {
		s.orgs[org] = &share{}
	}
	return s.orgs[org]
}

// forget drops the share of an organization that has nothing and waits for nothing.
func (s *Shares) forget(org Org) {
	if of := s.orgs[org]; of != nil && of.taken == 0 && len(of.waiting) == 0 {
		delete(s.orgs, org)
	}
}

// admits reports whether an organization may take units.
func (s *Shares) admits(of *share, units, have int64) bool {
	after := s.taken + units
	fair := s.total / int64(len(s.orgs)+1)
	if s.halves {
		fair = (s.total - s.taken + of.taken) / 2
	}
	return after <= s.total && (after <= s.total-s.reserve || of.taken == have || of.taken+units <= fair)
}

// admitsNow reports whether Take may give an organization units at once.
func (s *Shares) admitsNow(org Org, of *share, units int64) bool {
	return s.admits(of, units, 0) && (s.contended == 0 || of.taken+units <= s.contended || s.alone(org))
}

// alone reports whether no other organization is active.
func (s *Shares) alone(org Org) bool {
	for other := range s.orgs {
		if other != org {
			return false
		}
	}
	for _, other := range s.latest {
		if other.org != org && time.Since(other.at) < s.lingers {
			return false
		}
	}
	return true
}

// note notes that an organization is active.
func (s *Shares) note(org Org) {
	if s.contended == 0 {
		return
	}
	if s.latest[0].org != org {
		s.latest[1] = s.latest[0]
	}
	s.latest[0] = active{org, time.Now()}
}

// take takes units for an organization that may have them.
func (s *Shares) take(org Org, of *share, units int64) {
	s.taken, of.taken = s.taken+units, of.taken+units
	of.tookAt = time.Now()
	s.note(org)
}

// serve takes the units for which the first of an organization waits.
func (s *Shares) serve(org Org, of *share) {
	s.take(org, of, of.waiting[0].units)
	close(of.waiting[0].served)
	of.waiting = slices.Delete(of.waiting, 0, 1)
}

// serveNext serves the organization that has the least of those that wait and may be served, and reports whether there
// is one.
func (s *Shares) serveNext() bool {
	var next *share
	var nextOrg Org
	for org, of := range s.orgs {
		if len(of.waiting) > 0 && s.givesWay(org, of) {
			s.serveLater()
			continue
		}
		if len(of.waiting) > 0 && s.admitsNow(org, of, of.waiting[0].units) && (next == nil || of.taken < next.taken ||
			of.taken == next.taken && of.waiting[0].number < next.waiting[0].number) {
			next, nextOrg = of, org
		}
	}
	if next == nil {
		return false
	}
	s.serve(nextOrg, next)
	return true
}

// givesWay reports whether an organization that waits gives way to another, which has units and does not wait.
func (s *Shares) givesWay(org Org, of *share) bool {
	if s.yields == 0 || time.Since(of.tookAt) >= s.yields {
		return false
	}
	for other, has := range s.orgs {
		if other != org && has.taken > 0 && len(has.waiting) == 0 {
			return true
		}
	}
	return false
}

// serveLater serves those who wait after yields.
func (s *Shares) serveLater() {
	if s.yielding {
		return
	}
	s.yielding = true
	time.AfterFunc(s.yields, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.yielding = false
		for s.serveNext() {
		}
	})
}

type orgKey struct{}

// WithOrg returns a context of work for an organization, whose connections to the database count as the organization's.
func WithOrg(ctx context.Context, org Org) context.Context {
	return context.WithValue(ctx, orgKey{}, org)
}

// OrgOf returns the organization that ctx works for; 0 for work that is no organization's.
func OrgOf(ctx context.Context) Org {
	org, _ := ctx.Value(orgKey{}).(Org)
	return org
}

// connections shares the connections of a pool. Work that is no organization's is not counted.
type connections struct {
	shares *Shares
	users  sync.Map // the Org by *pgx.Conn
}

type takenKey struct{}

// TraceAcquireStart implements pgxpool.AcquireTracer: it waits until the organization may have one connection more.
func (c *connections) TraceAcquireStart(
	ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData,
) context.Context {
	org := OrgOf(ctx)
	if org == 0 || c.shares.Take(ctx, org, 1) != nil { // the pool returns the error of ctx
		return ctx
	}
	return context.WithValue(ctx, takenKey{}, org)
}

// TraceAcquireEnd implements pgxpool.AcquireTracer.
func (c *connections) TraceAcquireEnd(ctx context.Context, _ *pgxpool.Pool, end pgxpool.TraceAcquireEndData) {
	org, taken := ctx.Value(takenKey{}).(Org)
	switch {
	case taken && end.Conn == nil:
		c.shares.Give(org, 1)
	case taken:
		c.users.Store(end.Conn, org)
	}
}

// TraceRelease implements pgxpool.ReleaseTracer.
func (c *connections) TraceRelease(_ *pgxpool.Pool, released pgxpool.TraceReleaseData) {
	if org, taken := c.users.LoadAndDelete(released.Conn); taken {
		c.shares.Give(org.(Org), 1)
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (*connections) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*connections) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

const (
	connectionLingers  = time.Second
	connectionPatience = time.Second
	connectionYields   = 20 * time.Millisecond
)

// shareConnections lets the organizations share the pool's connections; a quarter of them is the reserve. While several
// organizations are active, each has fewer connections than this machine has processors (but one), so that those of
// one that sends much leave a processor to the others.
func shareConnections(config *pgxpool.Config) *connections {
	most := int64(config.MaxConns)
	shared := &connections{shares: NewShares(most, most/4)}
	shared.shares.contended = max(1, int64(runtime.GOMAXPROCS(0))-1)
	shared.shares.lingers, shared.shares.patience = connectionLingers, connectionPatience
	shared.shares.yields = connectionYields
	return shared
}
