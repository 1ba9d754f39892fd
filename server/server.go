// Package server is Loci's REST API: it binds requests, calls the memories and agents, and renders what they answer, in the shapes and
// with the errors that Letta's clients know.
package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/agent"
	"github.com/loci-memory/loci/server/apikey"
	"github.com/loci-memory/loci/server/block"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/tool"
)

// Server answers the API's requests. All fields but Patience and Loopback must be set.
type Server struct {
	Agents         *agent.Store
	Files          *files.Store
	Recall         *recall.Store
	Blocks         *block.Store
	Archival       *archival.Store
	Progress       *files.ProgressPoller // run by the owner of the server
	DB             db.DB                 // where the events of agents are
	Followers      *event.Followers      // run by the owner of the server
	Tools          *tool.Set
	Keys           *apikey.Store
	Log            *slog.Logger
	Version        string
	MaxUploadBytes int64
	Ping           func(ctx context.Context) error // of the database

	// Patience bounds every request but uploads, downloads and streams, which have bounds of their own. 0 is 30 seconds.
	Patience time.Duration

	// Loopback says that only this machine can reach the server. Elsewhere every request needs a key, even while there is none.
	Loopback bool
}

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
