package endpoint

import (
	"context"
	"slices"
	"sync"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// batchSlots limits how many batches run at a time. Bulk work comes after all other batches. Among the rest, the
// organization with the fewest running batches comes first, then the one that was served longest ago, then the batch
// that has waited longest.
type batchSlots struct {
	mu      sync.Mutex
	free    int // set by the first batch that takes a turn
	arrived int64
	served  int64
	orgs    map[db.Org]*orgSlots // organizations with batches that run or wait
	waiting []*waiter
	closed  chan struct{} // closes when the server ends
}

// orgSlots is the state of an organization.
type orgSlots struct {
	working, waiting int
	latest           int64 // number of its latest batch among all that were served
}

// waiter is a batch that waits for its turn.
type waiter struct {
	org    db.Org
	bulk   bool
	number int64         // in the order of arrival
	served chan struct{} // closes when its turn comes
}

// take waits for the turn of a batch of ctx's organization; at most most batches run at a time. It reports whether the
// turn came: it returns false if ctx or the server ends first. give ends the turn.
func (t *batchSlots) take(ctx context.Context, most int) bool {
	org := db.OrgOf(ctx)
	t.mu.Lock()
	if t.orgs == nil {
		t.free, t.orgs = most, map[db.Org]*orgSlots{}
	}
	closed := t.ending()
	w := &waiter{org: org, bulk: embed.IsBulk(ctx), number: t.arrived, served: make(chan struct{})}
	t.arrived++
	t.of(org).waiting++
	t.waiting = append(t.waiting, w)
	t.serve()
	t.mu.Unlock()
	select {
	case <-w.served:
		return true
	case <-ctx.Done():
	case <-closed:
	}
	return t.stopWaiting(w)
}

// stopWaiting removes a waiter. It reports whether its turn came in the meantime.
func (t *batchSlots) stopWaiting(w *waiter) (served bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting, w)
	if i < 0 {
		return true
	}
	t.waiting = slices.Delete(t.waiting, i, i+1)
	t.orgs[w.org].waiting--
	t.forget(w.org)
	return false
}

// give ends a turn of an organization.
func (t *batchSlots) give(org db.Org) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free++
	t.orgs[org].working--
	t.forget(org)
	t.serve()
}

// serve gives free turns to the first waiters. t.mu must be held.
func (t *batchSlots) serve() {
	for t.free > 0 && len(t.waiting) > 0 {
		next := slices.MinFunc(t.waiting, t.compare)
		t.waiting = slices.DeleteFunc(t.waiting, func(w *waiter) bool { return w == next })
		t.free--
		t.served++
		served := t.orgs[next.org]
		served.waiting, served.working, served.latest = served.waiting-1, served.working+1, t.served
		close(next.served)
	}
}

// compare is negative if a's turn comes before b's.
func (t *batchSlots) compare(a, b *waiter) int {
	ofA, ofB := t.orgs[a.org], t.orgs[b.org]
	switch {
	case a.bulk != b.bulk && b.bulk:
		return -1
	case a.bulk != b.bulk:
		return 1
	case ofA.working != ofB.working:
		return ofA.working - ofB.working
	case ofA.latest != ofB.latest:
		return int(ofA.latest - ofB.latest)
	}
	return int(a.number - b.number)
}

// of returns the state of an organization. t.mu must be held. Call forget when a batch has ended.
func (t *batchSlots) of(org db.Org) *orgSlots {
	if t.orgs[org] == nil {
		t.orgs[org] = &orgSlots{}
	}
	return t.orgs[org]
}

// forget drops an organization without batches.
func (t *batchSlots) forget(org db.Org) {
	if of := t.orgs[org]; of.working == 0 && of.waiting == 0 {
		delete(t.orgs, org)
	}
}

// close sends all waiters away, now and later.
func (t *batchSlots) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.ending():
	default:
		close(t.closed)
	}
}

// ending returns the channel that close closes. t.mu must be held.
func (t *batchSlots) ending() <-chan struct{} {
	if t.closed == nil {
		t.closed = make(chan struct{})
	}
	return t.closed
}
