package mcp_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/loci-memory/loci/server/mcp"
)

// A session ends after an hour without messages. An open stream keeps it, and each message gives it another hour.
func TestIdleSessionsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ended time.Duration
		began := time.Now()
		begin := mcp.NewIdle(time.Hour, func() { ended = time.Since(began) })
		time.Sleep(59 * time.Minute)
		stream := begin()
		time.Sleep(10 * time.Hour)
		message := begin()
		stream()
		time.Sleep(2 * time.Hour)
		message()
		time.Sleep(59 * time.Minute)
		begin()()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if want := 59*time.Minute + 12*time.Hour + 59*time.Minute + time.Hour; ended != want {
			t.Errorf("the session ended after %s, want %s", ended, want)
		}
	})
}

// The number of sessions of a key is bounded. Other keys of the organization have their own bound.
func TestSessionsOfAKeyAreBounded(t *testing.T) {
	t.Parallel()
	take := mcp.NewSessions()
	for i := range mcp.MaxKeySessions {
		if !take(1, "a") {
			t.Fatalf("session %d is refused", i)
		}
	}
	if take(1, "a") || !take(1, "b") || !take(2, "") {
		t.Errorf("a key has more than %d sessions, or another one none", mcp.MaxKeySessions)
	}
}
