package server

import (
	"context"
	"net/http"
	"time"

	"github.com/loci-memory/loci/server/rest"
)

// Routes that the operators' programs poll: they need no key.
const (
	pathHealth = "/v1/health"
	pathReady  = "/v1/ready"
)

// readyPatience is how long the database may take to answer.
const readyPatience = 2 * time.Second

// Handler returns the API. Its document is at /openapi.json.
func (s *Server) Handler() http.Handler {
	api := rest.New(rest.Config{Title: "Loci", Version: s.Version, Log: s.Log, Timeout: s.Patience, Authenticate: s.authenticate})
	s.routes(api)
	return api.Handler()
}

func (s *Server) routes(a *rest.API) {
	rest.Get(a, pathHealth, "Say that the server runs", s.health)
	rest.Get(a, pathReady, "Say whether the database answers", s.ready)
	for _, register := range []func(*rest.API){
		s.agentRoutes, s.archiveRoutes, s.blockRoutes, s.captureRoutes, s.compactionRoutes, s.conversationRoutes, s.eventRoutes,
		s.eventStreamRoutes, s.fileStreamRoutes, s.folderRoutes, s.messageRoutes, s.messageSearchRoutes, s.modelRoutes, s.openFileRoutes,
		s.passageRoutes, s.passageBatchRoutes, s.promptRoutes, s.toolRoutes, s.uploadRoutes,
	} {
		register(a)
	}
}

// Health is whether the server works.
type Health struct {
	Version string `json:"version"`
	Status  string `json:"status"`
}

func (s *Server) health(context.Context, *struct{}) (Health, error) {
	return Health{Version: s.Version, Status: "ok"}, nil
}

func (s *Server) ready(ctx context.Context, _ *struct{}) (Health, error) {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	if err := s.Ping(ctx); err != nil {
		return Health{}, rest.Unavailable()
	}
	return s.health(ctx, nil)
}
