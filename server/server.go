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
	const get, post, put, patch, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete

	rest.Route(a, get, pathHealth, "Say that the server runs", s.health)
	rest.Route(a, get, pathReady, "Say whether the database answers", s.ready)

	rest.Route(a, post, "/v1/agents", "Create an agent", s.createAgent)
	rest.Route(a, get, "/v1/agents", "List agents", s.listAgents)
	rest.Route(a, get, "/v1/agents/count", "Count agents", s.countAgents)
	rest.Route(a, get, "/v1/agents/{agent_id}", "Get an agent", s.getAgent)
	rest.Route(a, patch, "/v1/agents/{agent_id}", "Change an agent", s.updateAgent)
	rest.Route(a, del, "/v1/agents/{agent_id}", "Delete an agent", s.deleteAgent)
	rest.Route(a, get, "/v1/agents/{agent_id}/context", "Show what fills an agent's context window", s.agentContext)
	rest.Route(a, get, "/v1/agents/{agent_id}/prompt", "Hand out the next request to an agent's model", s.agentPrompt, rest.Slow(modelTimeout))
	rest.Route(a, post, "/v1/agents/{agent_id}/recompile", "Compile an agent's system prompt", s.recompile)
	rest.Route(a, post, "/v1/agents/{agent_id}/system-prompt/recompile", "Compile an agent's system prompt", s.recompile, rest.Deprecated)
	rest.Route(a, get, "/v1/agents/{agent_id}/core-memory", "Get an agent's core memory", s.coreMemory, rest.Deprecated)

	rest.Route(a, get, "/v1/agents/{agent_id}/folders", "List an agent's folders", s.agentFolders)
	rest.Route(a, patch, "/v1/agents/{agent_id}/folders/attach/{folder_id}", "Attach a folder to an agent", s.attachFolder)
	rest.Route(a, patch, "/v1/agents/{agent_id}/folders/detach/{folder_id}", "Detach a folder from an agent", s.detachFolder)
	rest.Route(a, get, "/v1/agents/{agent_id}/sources", "List an agent's folders", s.agentFolders, rest.Deprecated)
	rest.Route(a, patch, "/v1/agents/{agent_id}/sources/attach/{folder_id}", "Attach a folder to an agent", s.attachSource, rest.Deprecated)
	rest.Route(a, patch, "/v1/agents/{agent_id}/sources/detach/{folder_id}", "Detach a folder from an agent", s.detachSource, rest.Deprecated)

	rest.Route(a, get, "/v1/agents/{agent_id}/files", "List the files of an agent's folders", s.agentFiles)
	rest.Route(a, patch, "/v1/agents/{agent_id}/files/close-all", "Close all of an agent's open files", s.closeAllFiles)
	rest.Route(a, patch, "/v1/agents/{agent_id}/files/{file_id}/open", "Open a file for an agent", s.openFile)
	rest.Route(a, patch, "/v1/agents/{agent_id}/files/{file_id}/close", "Close a file for an agent", s.closeFile)

	rest.Route(a, get, "/v1/agents/{agent_id}/events", "Read an agent's events", s.agentEvents)
	rest.Route(a, get, "/v1/agents/{agent_id}/consumers", "List the named readers of an agent's events", s.listConsumers)
	rest.Route(a, get, "/v1/agents/{agent_id}/consumers/{consumer_name}", "Say how far a named reader has come", s.getConsumer)
	rest.Route(a, put, "/v1/agents/{agent_id}/consumers/{consumer_name}", "Store how far a named reader has come", s.commitConsumer)
	rest.Route(a, del, "/v1/agents/{agent_id}/consumers/{consumer_name}", "Forget a named reader", s.deleteConsumer, rest.NoContent)

	rest.Route(a, get, "/v1/agents/{agent_id}/tools", "List an agent's tools", s.agentTools)
	rest.Route(a, post, "/v1/agents/{agent_id}/tools/{tool_name}/run", "Run one of an agent's tools", s.runTool)
	rest.Route(a, post, "/v1/agents/{agent_id}/messages/capture", "Keep turns that were made elsewhere", s.capture, rest.BodyUpTo(maxCaptureBytes), rest.Unchecked)
	rest.Route(a, get, "/v1/agents/{agent_id}/expand/{clip_id}", "Read a text that the log has only the beginning of", s.expand)
	rest.Route(a, get, "/v1/tools", "List tools", s.listTools)
	rest.Route(a, get, "/v1/tools/count", "Count tools", s.countTools)
	rest.Route(a, get, "/v1/tools/{tool_id}", "Get a tool", s.getTool)

	s.blockRoutes(a)
	s.archivalRoutes(a)

	s.folderRoutes(a, "/v1/folders", twin{order: rest.NewestFirst})
	rest.Route(a, get, "/v1/folders", "List folders", s.listFolders)
	s.folderRoutes(a, "/v1/sources", twin{order: rest.OldestFirst}, rest.Deprecated)
	rest.Route(a, get, "/v1/sources", "List folders", s.listSources, rest.Deprecated)

	s.messageRoutes(a)
	s.compactionRoutes(a)

	rest.Route(a, get, "/v1/models", "List language models", s.listModels)
	rest.Route(a, get, "/v1/models/embedding", "List embedding models", s.listEmbeddingModels)
	rest.Route(a, get, "/v1/tags", "List the tags of agents", s.listTags)
	s.uploadRoutes(a)
	s.streamRoutes(a)
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
