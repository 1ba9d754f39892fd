package mcp_test

import (
	"context"
	"testing"

	"github.com/loci-memory/loci/server/mcp"
)

// asked is a context that notices when somebody begins to wait for it.
type asked struct {
	context.Context
	asked func()
}

func (a asked) Done() <-chan struct{} {
	a.asked()
	return a.Context.Done()
}

// If a cancellation arrives while its request is on the way to the SDK, it is passed on when the SDK has read the
// request.
func TestACancellationWaitsForItsRequest(t *testing.T) {
	t.Parallel()
	calls := mcp.NewCalls()
	name, end := calls.Begin("session", "1")
	waited := false
	calls.Cancel(asked{t.Context(), func() { waited = true; calls.Arrived(name) }}, "session", "1")
	if !waited || !calls.IsCancelled(name) {
		t.Errorf("the cancellation waited: %v; the request is cancelled: %v", waited, calls.IsCancelled(name))
	}
	end()
	_, end = calls.Begin("session", "2")
	waited = false
	calls.Cancel(asked{t.Context(), func() { waited = true; end() }}, "session", "2") // answered before it is read
	if !waited {
		t.Error("the cancellation of a request that is not read did not wait for its end")
	}
}

// The number of remembered requests is bounded.
func TestFewCallsAreRemembered(t *testing.T) {
	t.Parallel()
	calls := mcp.NewCalls()
	for i := range 3 * mcp.MaxRememberedCalls {
		id := string(rune('a'+i%20)) + string(rune(i+1000))
		calls.Cancel(t.Context(), "session", `"`+id+`"`)
	}
	if n := calls.Known(); n > mcp.MaxRememberedCalls {
		t.Errorf("%d requests are remembered, want at most %d", n, mcp.MaxRememberedCalls)
	}
}
