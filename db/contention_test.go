package db_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/loci-memory/loci/db"
)

// While other organizations are active, an organization may take less than when it is alone. Afterwards it may take
// everything again.
func TestSharesAreSmallerWhileOthersAreActive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := db.NewContendedShares(16, 4, 2)
		take := func(org db.Org) <-chan error {
			served := make(chan error, 1)
			go func() { served <- s.Take(t.Context(), org, 1) }()
			synctest.Wait()
			return served
		}
		for range 12 {
			if err := s.Take(t.Context(), 1, 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Take(t.Context(), 2, 1); err != nil {
			t.Fatal(err)
		}
		s.Give(2, 1)
		waits := take(1)
		s.Give(1, 10)
		if synctest.Wait(); len(waits) != 0 {
			t.Error("an organization with two units gets a third while another was active a moment ago")
		}
		s.Give(1, 1)
		if synctest.Wait(); len(waits) != 1 {
			t.Error("an organization with one unit gets no second one")
		}
		time.Sleep(db.ConnectionLingers)
		for range 10 {
			if len(take(1)) != 1 {
				t.Fatal("an organization does not get all but the reserve when the others are gone")
			}
		}
	})
}

// An organization with long work gets one more unit per span of patience, up to its overall share.
func TestLongWorkDoesNotHoldUpItsOrganization(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := db.NewContendedShares(4, 1, 1)
		served := make(chan int, 8)
		if err := s.Take(t.Context(), 2, 1); err != nil { // another organization is active all the time
			t.Fatal(err)
		}
		began := time.Now()
		for range 4 {
			go func() {
				if s.Take(t.Context(), 1, 1) == nil {
					served <- int(time.Since(began) / db.ConnectionPatience)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(10 * db.ConnectionPatience)
		// Of 4 units, one is the other organization's and one is the reserve.
		for want := range 2 {
			if got := <-served; got != want {
				t.Errorf("unit %d is taken after %d spans, want %d", want, got, want)
			}
		}
		if len(served) != 0 {
			t.Error("the organization takes the reserve")
		}
		s.Give(1, 2)
		s.Give(2, 1)
		synctest.Wait()
		s.Give(1, 1)
		synctest.Wait()
	})
}

// An organization with several pieces of work starts its next piece only after another organization with enough units
// has finished, or after yields.
func TestTheBusyGiveWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := db.NewContendedShares(16, 4, 1)
		take := func(org db.Org) {
			if err := s.Take(t.Context(), org, 1); err != nil {
				t.Error(err)
			}
		}
		take(1)
		take(2)
		served := make(chan struct{}, 2)
		for range 2 {
			go func() {
				take(1)
				served <- struct{}{}
			}()
			synctest.Wait()
		}
		s.Give(1, 1)
		if synctest.Wait(); len(served) != 0 {
			t.Error("the next of an organization's begins while another organization's work runs")
		}
		s.Give(2, 1)
		if synctest.Wait(); len(served) != 1 {
			t.Error("the next of an organization's does not begin when the other's work is done")
		}
		take(2)
		s.Give(1, 1)
		if time.Sleep(db.ConnectionYields / 2); len(served) != 1 {
			t.Error("the organization does not give way a second time")
		}
		if time.Sleep(db.ConnectionYields); len(served) != 2 {
			t.Error("the organization gives way for longer than yields")
		}
		s.Give(1, 1)
		s.Give(2, 1)
	})
}
