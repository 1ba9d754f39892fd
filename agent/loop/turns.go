package loop

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// othersPause is the time between two looks at a run that works on another server.
const othersPause = 250 * time.Millisecond

// StartInTurn is Start for a request that waits while another run is working in its conversation: at most for patience,
// behind the requests that came to this server before it. *BusyError if its turn does not come, or if maxInLine
// requests wait before it. A request whose messages the working run was made from is given that run if it is on this
// server. The wait apart, StartInTurn takes no longer than limit for what it asks the database at once.
func (l *Loop) StartInTurn(ctx context.Context, org db.Org, r Request, patience, limit time.Duration) (Started, error) {
	c, started, busy, err := l.startNow(ctx, org, r, limit)
	if busy == nil {
		return started, err
	}
	turn, ok := l.lines.join(c.Key)
	if !ok {
		return Started{}, busy
	}
	defer l.lines.leave(c.Key, turn)
	waits, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-turn:
	case <-waits.Done():
		return Started{}, busy
	}
	for previous := ""; ; {
		if s := l.held(busy.RunID); s != nil && busy.RunID != previous {
			s.awaitEnd(waits)
		} else { // it works on another server, or goes on later
			pause(waits, othersPause)
		}
		previous = busy.RunID
		started, err := l.startWithin(ctx, org, r, limit)
		if waits.Err() != nil || !errors.As(err, &busy) {
			return started, err
		}
	}
}

// startNow starts a run unless another run is working or other requests wait. It returns the conversation, and with
// busy, why the request has to wait.
func (l *Loop) startNow(ctx context.Context, org db.Org, r Request, limit time.Duration) (c recall.Conversation,
	started Started, busy *BusyError, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if c, err = l.Recall.Conversation(ctx, org, r.AgentID, r.Conversation); err != nil {
		return c, started, nil, err
	}
	if l.lines.waiting(c.Key) {
		err = l.busy(ctx, org, c)
	} else {
		started, err = l.Start(ctx, org, r)
	}
	if !errors.As(err, &busy) {
		return c, started, nil, err
	}
	if s := l.held(busy.RunID); s != nil {
		if run, ok := l.sameAs(ctx, org, c, r, busy.RunID); ok {
			return c, Started{run, s.Feed}, nil, nil
		}
	}
	return c, started, busy, nil
}

func (l *Loop) startWithin(ctx context.Context, org db.Org, r Request, limit time.Duration) (Started, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return l.Start(ctx, org, r)
}

// sameAs returns a run if it was made from a request's messages and approvals: they have the same otids.
func (l *Loop) sameAs(ctx context.Context, org db.Org, c recall.Conversation, r Request, runID string) (Run, bool) {
	for _, d := range r.Input {
		if d.OTID == nil {
			return Run{}, false
		}
		m, err := l.Recall.ByOTID(ctx, org, c.AgentKey, *d.OTID)
		if err != nil || m.RunID == nil || *m.RunID != runID {
			return Run{}, false
		}
	}
	run, err := l.RunByID(ctx, org, runID)
	without := func(a Approval) bool { return a.OTID == "" }
	same := slices.Equal(r.Approvals, run.Options.Approvals) && !slices.ContainsFunc(r.Approvals, without)
	return run, err == nil && same
}

// awaitEnd waits for the end of the run, or of ctx.
func (f *Feed) awaitEnd(ctx context.Context) {
	for n := 0; ; {
		events, err := f.Next(ctx, n, time.Minute)
		if n += len(events); err != nil || len(events) > 0 && events[len(events)-1].End != nil {
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// InLine returns how many requests wait on this server for their turn.
func (l *Loop) InLine() (n int) {
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	for _, line := range l.lines.each {
		n += len(line)
	}
	return n
}
