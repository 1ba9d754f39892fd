package db_test

import (
	"context"
	"testing"
	"time"

	"github.com/loci-memory/loci/db"
)

// A lease is renewed again and again. After stop returns, renew is not running.
func TestALeaseIsRenewedUntilItEnds(t *testing.T) {
	t.Parallel()
	calls, working := make(chan struct{}), false
	stop := db.Renew(t.Context(), 4*time.Millisecond, func(ctx context.Context) {
		working = true
		select {
		case calls <- struct{}{}:
		case <-ctx.Done():
		}
		working = false
	})
	for range 3 {
		<-calls
	}
	if stop(); working {
		t.Error("a lease that ended is being renewed")
	}
}
