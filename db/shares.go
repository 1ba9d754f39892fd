package db

import (
	"context"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Shares divides a number of equal units, such as connections or bytes, between organizations. One organization alone
// may take all but the reserve. Of the reserve it gets units only while it has none, or while it has no more than the
// total divided by the number of organizations that use it and one. Those who wait are served in the order of how
// little their organization has, and of one organization in the order in which they came.
type Shares struct {
	total, reserve int64

	mu      sync.Mutex
	taken   int64
	orgs    map[Org]*share
	arrived int64 // how many have waited
}

// share is what one organization has.
type share struct {
	taken   int64
	waiting []*waiter
}

type waiter struct {
	number int64
	served chan struct{} // closed when the unit is taken
}

// NewShares returns shares of a total, of which a reserve stays for other organizations than one.
func NewShares(total, reserve int64) *Shares {
	return &Shares{total: total, reserve: reserve, orgs: map[Org]*share{}}
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
	s.taken, of.taken = s.taken+units, of.taken+units
	return true
}

// Take takes a unit for an organization, and waits until it may have it. The error is that of ctx.
func (s *Shares) Take(ctx context.Context, org Org) error {
	s.mu.Lock()
	of := s.of(org)
	if len(of.waiting) == 0 && s.admits(of, 1, 0) {
		s.taken, of.taken = s.taken+1, of.taken+1
		s.mu.Unlock()
		return nil
	}
	s.arrived++
	w := &waiter{number: s.arrived, served: make(chan struct{})}
	of.waiting = append(of.waiting, w)
	s.mu.Unlock()
	select {
	case <-w.served:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	i := slices.Index(of.waiting, w)
	if i >= 0 {
		of.waiting = slices.Delete(of.waiting, i, i+1)
		s.forget(org)
	}
	s.mu.Unlock()
	if i < 0 { // it was served at the same moment
		s.Give(org, 1)
	}
	return ctx.Err()
}

// Give returns units that an organization took.
func (s *Shares) Give(org Org, units int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.of(org)
	s.taken, of.taken = s.taken-units, of.taken-units
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
	return after <= s.total && (after <= s.total-s.reserve || of.taken == have ||
		of.taken+units <= s.total/int64(len(s.orgs)+1))
}

// serveNext takes a unit for the organization that has the least of those that wait and may have it, and reports
// whether there is one.
func (s *Shares) serveNext() bool {
	var next *share
	for _, of := range s.orgs {
		if len(of.waiting) > 0 && s.admits(of, 1, 0) && (next == nil || of.taken < next.taken ||
			of.taken == next.taken && of.waiting[0].number < next.waiting[0].number) {
			next = of
		}
	}
	if next == nil {
		return false
	}
	s.taken, next.taken = s.taken+1, next.taken+1
	close(next.waiting[0].served)
	next.waiting = slices.Delete(next.waiting, 0, 1)
	return true
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
	if org == 0 || c.shares.Take(ctx, org) != nil { // the pool returns the error of ctx
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

// shareConnections lets the organizations share the pool's connections; a quarter of them is the reserve.
func shareConnections(config *pgxpool.Config, tracer pgx.QueryTracer) {
	most := int64(config.MaxConns)
	shared := &connections{shares: NewShares(most, most/4)}
	config.ConnConfig.Tracer = shared
	if tracer != nil {
		config.ConnConfig.Tracer = multitracer.New(shared, tracer)
	}
}
