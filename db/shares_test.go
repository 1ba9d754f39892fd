package db_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
)

// An organization that is alone takes everything but the reserve. Others take from the reserve while they have little.
func TestSharesKeepAReserve(t *testing.T) {
	t.Parallel()
	s := db.NewShares(16, 4)
	takes := func(org db.Org, want int) {
		t.Helper()
		got := 0
		for s.TryTake(org, 1, 0) {
			got++
		}
		if got != want {
			t.Errorf("organization %d takes %d units, want %d", org, got, want)
		}
	}
	takes(1, 12) // all but the reserve
	takes(2, 4)  // less than 16 / (2 + 1), because no more are left
	takes(3, 0)
	s.Give(1, 6)
	takes(3, 4) // a quarter of 16
	takes(1, 0)
	takes(2, 0)
	s.Give(2, 4)
	s.Give(3, 4)
	takes(1, 6)
	s.Give(1, 12)
	takes(2, 12)
}

// An organization's only piece of work may use the whole reserve; a second piece may not.
func TestSharesTakeOneLargePieceOfWork(t *testing.T) {
	t.Parallel()
	s := db.NewShares(100, 40)
	if !s.TryTake(1, 60, 0) || s.TryTake(1, 1, 0) {
		t.Fatal("an organization takes all but the reserve")
	}
	if !s.TryTake(2, 20, 0) || !s.TryTake(2, 20, 20) || s.TryTake(2, 1, 40) {
		t.Error("another's only piece of work takes the reserve, step by step")
	}
	s.Give(2, 20)
	if s.TryTake(2, 20, 0) {
		t.Error("a second piece of work takes more than its share of the reserve")
	}
}

// Waiters are served in the order of how little their organization has.
func TestSharesServeWhoHasLeast(t *testing.T) {
	t.Parallel()
	s := db.NewShares(4, 0)
	if !s.TryTake(1, 4, 0) {
		t.Fatal("nothing is taken yet")
	}
	served := make(chan db.Org, 10)
	var waiting sync.WaitGroup
	for _, org := range []db.Org{1, 1, 1, 2, 2, 3} {
		entered := s.Waiting()
		waiting.Go(func() {
			if err := s.Take(t.Context(), org, 1); err != nil {
				t.Error(err)
			}
			served <- org
		})
		for s.Waiting() == entered {
			continue
		}
	}
	for _, want := range []db.Org{2, 3, 1} {
		s.Give(1, 1)
		if got := <-served; got != want {
			t.Errorf("served %d, want %d", got, want)
		}
	}
	s.Give(1, 2)
	s.Give(2, 1)
	waiting.Wait()
}

// A waiter that gives up leaves nothing behind. Units are neither lost nor created.
func TestSharesLoseNothing(t *testing.T) {
	t.Parallel()
	s := db.NewShares(5, 1)
	var taken, most atomic.Int64
	var all sync.WaitGroup
	for org := db.Org(1); org <= 4; org++ {
		for range 4 {
			all.Go(func() {
				for range 200 {
					ctx, cancel := context.WithCancel(t.Context())
					if rand.IntN(3) == 0 { // #nosec G404
						cancel()
					}
					if s.Take(ctx, org, 1) == nil {
						most.Store(max(most.Load(), taken.Add(1)))
						taken.Add(-1)
						s.Give(org, 1)
					}
					cancel()
				}
			})
		}
	}
	all.Wait()
	if most.Load() > 5 || !s.TryTake(1, 4, 0) || !s.TryTake(2, 1, 0) {
		t.Errorf("%d units of 5 were taken at once, or some are lost", most.Load())
	}
}

// One organization's requests leave connections of the pool to others. Work without an organization is not held up.
func TestOrganizationsShareConnections(t *testing.T) {
	t.Parallel()
	pool, err := db.Connect(t.Context(), sharedURL(t, "pool_max_conns=8"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	flood, other := db.WithOrg(t.Context(), 1), db.WithOrg(t.Context(), 2)
	held := make([]*pgxpool.Conn, 6) // all but the reserve of a quarter
	for i := range held {
		if held[i], err = pool.Acquire(flood); err != nil {
			t.Fatal(err)
		}
	}
	impatient, cancel := context.WithCancel(flood)
	refused := make(chan error, 1)
	go func() {
		_, err := pool.Exec(impatient, `SELECT 1`)
		refused <- err
	}()
	for _, ctx := range []context.Context{other, t.Context()} {
		if _, err := pool.Exec(ctx, `SELECT 1`); err != nil {
			t.Errorf("while another organization floods: %v", err)
		}
	}
	cancel()
	if err := <-refused; !errors.Is(err, context.Canceled) {
		t.Errorf("one connection more than its share: got %v", err)
	}
	for _, conn := range held {
		conn.Release()
	}
	if _, err := pool.Exec(flood, `SELECT 1`); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	_, broken := pool.Exec(flood, `SELECT nothing`)
	tx, err := pool.Begin(flood)
	if err != nil || broken == nil {
		t.Fatal(err, broken)
	}
	if err := tx.Rollback(flood); err != nil {
		t.Fatal(err)
	}
}

// However many organizations take all they can get, one more still gets something.
func TestHalvesOfTheReserveAreLeftToOthers(t *testing.T) {
	t.Parallel()
	s := db.NewHalvingShares(1024, 256)
	var got []int
	for org := db.Org(1); org <= 6; org++ {
		n := 0
		for s.TryTake(org, 1, 0) {
			n++
		}
		got = append(got, n)
	}
	if want := []int{768, 128, 64, 32, 16, 8}; !slices.Equal(got, want) {
		t.Errorf("the organizations got %v, want %v", got, want)
	}
	for range 700 {
		s.Give(1, 1)
	}
	n := 8
	for s.TryTake(6, 1, 0) {
		n++
	}
	if want := 460; n != want {
		t.Errorf("when the first one has 68, the last one gets %d, want %d", n, want)
	}
}
