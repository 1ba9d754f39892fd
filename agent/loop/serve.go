package loop

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/loci-memory/loci/db"
)

// Run works on runs until ctx ends, and waits for them to stop. It is called once. The next steps of these runs are
// another server's, or this one's when it runs again. present is closed when this server is announced; only then it
// takes over runs.
func (l *Loop) Run(ctx context.Context, present <-chan struct{}) {
	announced := false
	defer close(l.stopped)
	var working sync.WaitGroup
	defer working.Wait()
	adopt := time.NewTicker(adoptEvery)
	defer adopt.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-present:
			announced, present = true, nil
			l.Adopt(ctx, 0)
		case <-adopt.C:
			if announced {
				l.Adopt(ctx, 0)
			}
		case s := <-l.starts:
			working.Go(func() { l.work(ctx, s) })
		}
	}
}

// work works on a run until it ends, or until ctx does.
func (l *Loop) work(ctx context.Context, s *session) {
	defer l.release(s)
	defer s.close()
	ctx = db.WithProvenance(db.WithOrg(ctx, s.org), db.Provenance{KeyID: s.run.Options.KeyID, AgentID: s.run.AgentID,
		ConversationID: s.run.Conversation})
	w := &worker{Loop: l, session: s}
	err := w.work(db.WithNotice(ctx, cmp.Or(l.Patience, defaultPatience), s.waiting))
	switch {
	case err == nil:
		l.forgetHalt(s.run.ID)
	case ctx.Err() != nil:
		l.Log.InfoContext(ctx, "a run goes on when a server works again", "run", s.run.ID)
		s.interrupt()
	default:
		l.Log.ErrorContext(ctx, "a run stopped; it goes on later", "run", s.run.ID, "error", err)
		if !unavailable(err) {
			s.interrupt()
			return
		}
		l.halt(s.run.ID)
		s.add(interruption(OutageText(s.run.ID)))
	}
}

// defaultPatience is the Patience of a loop that has none. Until a wait is noticed some seconds may pass: 30 s in all.
const defaultPatience = 24 * time.Second
