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

// Shares divides a number of equal units, such as connections or bytes, between organizations. An organization that is
// alone may take everything but the reserve. It gets units of the reserve only while it has none, or has no more than
// the total divided by (number of organizations that have or want units, plus one). Waiting organizations are served in
// the order of how little they have; requests of one organization in the order of their arrival.
type Shares struct {
	total, reserve int64

	// halves: units of the reserve are given to an organization only up to half of what the others leave, so that there is
	// always something for one more.
	halves bool

	// contended is the most that Take gives an organization while others are active; 0 means no such limit. An
	// organization is active until lingers after it last took or gave back a unit. An organization that waits and has
	// taken no unit for patience gets one more than contended, so that its long work does not hold up its short work for
	// longer.
	contended         int64
	lingers, patience time.Duration

	// yields is how long a waiting organization gives way to one that has all units it needs. The waiting organization
	// gets its next unit when the other one has given its units back, or after yields.
	yields   time.Duration
	yielding bool // a timer of yields is running

	mu      sync.Mutex
	taken   int64
	orgs    map[Org]*share
	arrived int64     // number of waiters so far
	latest  [2]active // the organization that was active last, and the last other one
}

// share is the part of one organization.
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

// NewShares returns shares of a total. No single organization gets the reserve alone.
func NewShares(total, reserve int64) *Shares {
	return &Shares{total: total, reserve: reserve, orgs: map[Org]*share{}}
}

// NewHalvingShares returns shares of a total. Units of the reserve are given to an organization only up to half of what
// the others leave. An organization that has no unit always gets one while there is one.
func NewHalvingShares(total, reserve int64) *Shares {
	s := NewShares(total, reserve)
	s.halves = true
	return s
}

// TryTake takes units for an organization. It returns false if the organization may not have them now. have is the
// number of units that the same piece of work took before. If that is all the organization has, its work may use the
// whole reserve.
func (s *Shares) TryTake(org Org, units, have int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	orgShare := s.of(org)
	defer s.forget(org)
	if !s.admits(orgShare, units, have) {
		return false
	}
	s.take(org, orgShare, units)
	return true
}

// Take takes units for an organization, at most the total. It waits until the organization may have them. It returns
// only ctx's error.
func (s *Shares) Take(ctx context.Context, org Org, units int64) error {
	s.mu.Lock()
	orgShare := s.of(org)
	if len(orgShare.waiting) == 0 && s.admitsNow(org, orgShare, units) {
		s.take(org, orgShare, units)
		s.mu.Unlock()
		return nil
	}
	s.arrived++
	w := &waiter{number: s.arrived, units: units, served: make(chan struct{})}
	orgShare.waiting = append(orgShare.waiting, w)
	s.mu.Unlock()
	if err := s.await(ctx, org, orgShare, w); err != nil {
		s.stopWaiting(org, orgShare, w)
		return err
	}
	return nil
}

// await waits until a waiter is served. It returns only ctx's error.
func (s *Shares) await(ctx context.Context, org Org, orgShare *share, w *waiter) error {
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
			s.serveOverdue(org, orgShare)
		}
	}
}

// serveOverdue serves an organization that has taken nothing for patience.
func (s *Shares) serveOverdue(org Org, of *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(of.waiting) > 0 && time.Since(of.tookAt) >= s.patience && s.admits(of, of.waiting[0].units, 0) {
		s.serve(org, of)
	}
}

// stopWaiting removes a waiter. If the waiter was served meanwhile, it gives the units back.
func (s *Shares) stopWaiting(org Org, orgShare *share, w *waiter) {
	s.mu.Lock()
	i := slices.Index(orgShare.waiting, w)
	if i >= 0 {
		orgShare.waiting = slices.Delete(orgShare.waiting, i, i+1)
		s.forget(org)
	}
	s.mu.Unlock()
	if i < 0 {
		s.Give(org, w.units)
	}
}

// Waiting returns the number of waiters.
func (s *Shares) Waiting() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, orgShare := range s.orgs {
		n += len(orgShare.waiting)
	}
	return n
}

// Taken returns the number of taken units.
func (s *Shares) Taken() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// Give gives back units that an organization took.
func (s *Shares) Give(org Org, units int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	orgShare := s.of(org)
	s.taken, orgShare.taken = s.taken-units, orgShare.taken-units
	s.note(org)
	for s.serveNext() {
	}
	s.forget(org)
}

// of returns the share of an organization, and creates it if needed. The caller holds s.mu, and calls forget
// afterwards.
func (s *Shares) of(org Org) *share {
	if s.orgs[org] == nil {
		s.orgs[org] = &share{}
	}
	return s.orgs[org]
}

// forget drops the share of an organization that has no units and waits for none.
func (s *Shares) forget(org Org) {
	if of := s.orgs[org]; of != nil && of.taken == 0 && len(of.waiting) == 0 {
		delete(s.orgs, org)
	}
}

// admits reports whether an organization may take units.
func (s *Shares) admits(orgShare *share, units, have int64) bool {
	after := s.taken + units
	fair := s.total / int64(len(s.orgs)+1)
	if s.halves {
		fair = (s.total - s.taken + orgShare.taken) / 2
	}
	return after <= s.total && (after <= s.total-s.reserve || orgShare.taken == have || orgShare.taken+units <= fair)
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

// note records that an organization is active.
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

// serve gives the organization's first waiter its units.
func (s *Shares) serve(org Org, of *share) {
	s.take(org, of, of.waiting[0].units)
	close(of.waiting[0].served)
	of.waiting = slices.Delete(of.waiting, 0, 1)
}

// serveNext gives a unit to a waiting organization that may have one; among several, to the one with the fewest units.
// It reports whether there was one.
func (s *Shares) serveNext() bool {
	var next *share
	var nextOrg Org
	for org, orgShare := range s.orgs {
		if len(orgShare.waiting) > 0 && s.givesWay(org, orgShare) {
			s.serveLater()
			continue
		}
		if len(orgShare.waiting) > 0 && s.admitsNow(org, orgShare, orgShare.waiting[0].units) &&
			(next == nil || orgShare.taken < next.taken ||
				orgShare.taken == next.taken && orgShare.waiting[0].number < next.waiting[0].number) {
			next, nextOrg = orgShare, org
		}
	}
	if next == nil {
		return false
	}
	s.serve(nextOrg, next)
	return true
}

// givesWay reports whether a waiting organization gives way to another, which has units and does not wait.
func (s *Shares) givesWay(org Org, orgShare *share) bool {
	if s.yields == 0 || time.Since(orgShare.tookAt) >= s.yields {
		return false
	}
	for other, otherShare := range s.orgs {
		if other != org && otherShare.taken > 0 && len(otherShare.waiting) == 0 {
			return true
		}
	}
	return false
}

// serveLater serves waiters after yields.
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

// WithOrg returns a context of work for an organization. Database connections taken with it count as the
// organization's.
func WithOrg(ctx context.Context, org Org) context.Context {
	return context.WithValue(ctx, orgKey{}, org)
}

// OrgOf returns the organization that ctx works for, or 0 if there is none.
func OrgOf(ctx context.Context) Org {
	org, _ := ctx.Value(orgKey{}).(Org)
	return org
}

// connections shares the connections of a pool between organizations. Work without an organization is not counted.
type connections struct {
	shares *Shares
	users  sync.Map // *pgx.Conn → Org
}

type takenKey struct{}

// TraceAcquireStart implements pgxpool.AcquireTracer. It waits until the organization may have one more connection.
func (c *connections) TraceAcquireStart(
	ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData,
) context.Context {
	org := OrgOf(ctx)
	if org == 0 || c.shares.Take(ctx, org, 1) != nil { // the pool returns ctx's error
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

// shareConnections lets organizations share a pool's connections. A quarter of them is the reserve. While several
// organizations are active, each may have one connection less than this machine has processors, so that an organization
// that sends much leaves a processor to the others.
func shareConnections(config *pgxpool.Config) *connections {
	most := int64(config.MaxConns)
	shared := &connections{shares: NewShares(most, most/4)}
	shared.shares.contended = max(1, int64(runtime.GOMAXPROCS(0))-1)
	shared.shares.lingers, shared.shares.patience = connectionLingers, connectionPatience
	shared.shares.yields = connectionYields
	return shared
}
