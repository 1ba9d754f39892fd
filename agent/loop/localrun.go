package loop

import (
	"sync"

	"github.com/loci-memory/loci/db"
)

// localRun is a run on this server.
type localRun struct {
	*Feed
	org    db.Org
	run    Run
	model  Model // its client is nil if the run began on another server
	cancel chan struct{}
	once   sync.Once
}

func newLocalRun(org db.Org, r Run, m Model) *localRun {
	return &localRun{Feed: newFeed(r.ID), org: org, run: r, model: m, cancel: make(chan struct{})}
}

// stop ends the run at once, together with everything it waits for.
func (s *localRun) stop() { s.once.Do(func() { close(s.cancel) }) }

// interrupt ends the run for its clients, because this server stops.
func (s *localRun) interrupt() { s.add(interruption(InterruptedText(s.run.ID))) }

// isCancelled reports whether a client cancelled the run on this server.
func (s *localRun) isCancelled() bool {
	select {
	case <-s.cancel:
		return true
	default:
		return false
	}
}
