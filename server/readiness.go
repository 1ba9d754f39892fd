package server

import (
	"cmp"
	"context"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
)

const (
	readyTimeout = 2 * time.Second // time for the database to store a row
	readyEvery   = 3 * time.Second // between two stored rows
)

// ready returns a handler that answers with the result of checkReady.
func (s *Server) ready(a *rest.API) rest.Handler[struct{}, Readiness] {
	return func(ctx context.Context, _ *struct{}) (Readiness, error) { return s.checkReady(ctx, a, time.Time{}) }
}

// checkReady stores a row to see whether the database stores changes: one that answers may still store nothing. The
// error says why not. It may return the last result instead, if that is younger than readyEvery and its check began
// after since.
func (s *Server) checkReady(ctx context.Context, a *rest.API, since time.Time) (Readiness, error) {
	shared := &s.readiness
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if time.Now().Before(shared.until) && shared.began.After(since) {
		return shared.last, shared.err
	}
	shared.began = time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	duration, err := s.Probe(ctx)
	if err == nil {
		err = a.CheckRoom(ctx, s.DB)
	} else if !db.Unavailable(err) {
		s.Log.WarnContext(ctx, "no row could be stored", "error", err)
		err = rest.Unavailable()
	}
	shared.last, shared.err = Readiness{Health{s.Version, "ok"}, float64(duration.Microseconds()) / 1000,
		time.Now().UTC()}, err
	shared.until = time.Now().Add(cmp.Or(s.ReadyEvery, readyEvery))
	return shared.last, shared.err
}

func (s *Server) health(context.Context, *struct{}) (Health, error) {
	return Health{Version: s.Version, Status: "ok"}, nil
}
