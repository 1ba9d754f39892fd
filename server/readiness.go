package server

import (
	"cmp"
	"context"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
)

const (
	readyTimeout = 2 * time.Second // for the database to store a row
	readyEvery   = 3 * time.Second // between two rows
)

// ready answers as checkReady says.
func (s *Server) ready(a *rest.API) rest.Handler[struct{}, Readiness] {
	return func(ctx context.Context, _ *struct{}) (Readiness, error) { return s.checkReady(ctx, a, time.Time{}) }
}

// checkReady stores a row of its own, because a database that answers may still store nothing. The error says why a
// change would not be stored now. A result from before a time does not count.
func (s *Server) checkReady(ctx context.Context, a *rest.API, since time.Time) (Readiness, error) {
	of := &s.readiness
	of.mu.Lock()
	defer of.mu.Unlock()
	if time.Now().Before(of.until) && of.began.After(since) {
		return of.last, of.err
	}
	of.began = time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	took, err := s.Probe(ctx)
	if err == nil {
		err = a.CheckRoom(ctx, s.DB)
	} else if !db.Unavailable(err) {
		s.Log.WarnContext(ctx, "no row could be stored", "error", err)
		err = rest.Unavailable()
	}
	of.last, of.err = Readiness{Health{s.Version, "ok"}, float64(took.Microseconds()) / 1000, time.Now().UTC()}, err
	of.until = time.Now().Add(cmp.Or(s.ReadyEvery, readyEvery))
	return of.last, of.err
}

func (s *Server) health(context.Context, *struct{}) (Health, error) {
	return Health{Version: s.Version, Status: "ok"}, nil
}
