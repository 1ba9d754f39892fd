package loop

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/loci-memory/loci/db"
)

// Run works on runs until ctx ends, and waits until they have stopped. It is called once. Their next steps are left to
// other servers, or to this one when it runs again. Only after present is closed, because this server is announced,
// does Run take over runs.
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

// work works on a run until the run or ctx ends.
func (l *Loop) work(ctx context.Context, s *localRun) {
	defer l.release(s)
	defer s.close()
	ctx = db.WithProvenance(db.WithOrg(ctx, s.org), db.Provenance{KeyID: s.run.Options.KeyID, AgentID: s.run.AgentID,
		ConversationID: s.run.Conversation})
	w := &worker{Loop: l, localRun: s}
	noticed := db.WithNotice(ctx, cmp.Or(l.Patience, defaultPatience), s.waiting)
	err := w.work(noticed)
	if errors.Is(err, errTaken) {
		err = w.showElsewhere(noticed)
	}
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

// defaultPatience is the Patience of a loop without one. It may take some seconds until a wait is noticed: 30 s in all.
const defaultPatience = 24 * time.Second

// showElsewhere shows a run's clients how it ended on another server that has taken it over. Clients of a background
// run read that from the database.
func (w *worker) showElsewhere(ctx context.Context) error {
	w.release(w.localRun) // this server may have to take it over again
	if w.run.Background {
		return nil
	}
	w.Log.InfoContext(ctx, "another server works on a run; its clients wait for that", "run", w.run.ID)
	look := time.NewTicker(elsewhereLooks)
	defer look.Stop()
	for {
		r, err := w.RunByID(ctx, w.org, w.run.ID)
		switch {
		case errors.Is(err, db.ErrNotFound):
			w.add(Event{End: &End{StopReason: StopCancelled}})
			return nil
		case err != nil:
			return err
		case r.Status != Running:
			return w.showRest(ctx, r)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// elsewhereLooks is the interval at which a server checks whether another server has ended one of its runs.
const elsewhereLooks = 200 * time.Millisecond

// showRest shows the clients of a finished run what they have not seen yet.
func (w *worker) showRest(ctx context.Context, ended Run) error {
	all, err := w.storedFeed(ctx, w.org, ended)
	if err != nil {
		return err
	}
	if w.unstored != "" {
		w.add(Event{Withdrawn: w.unstored})
	}
	shown := w.shown()
	for _, e := range all.events {
		if e.Message == nil || !shown[e.Message.ID] {
			w.add(e)
		}
	}
	return nil
}
