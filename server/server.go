// Package server is Loci's REST API: it binds requests, calls the memories and agents, and renders their answers in the
// shapes and with the errors that Letta's clients know.
package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/handover"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/subagent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/compaction/replay"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/mcp"
	"github.com/loci-memory/loci/server/metrics"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/tenant/apikey"
	"github.com/loci-memory/loci/tenant/erase"
	"github.com/loci-memory/loci/tenant/quota"
	"github.com/loci-memory/loci/tenant/retention"
)

// Server answers the API's requests. All fields but MinBodyRate, Settings, KeyLimits, KeyAge, PageWait, RequestTimeout,
// ReadyEvery, MCPFixtures, MCPFilesEvery and OpenOrg must be set.
type Server struct {
	Agents         *agent.Store
	Files          *files.Store
	Recall         *recall.Store
	Blocks         *block.Store
	Archival       *archival.Store
	Working        *working.Store
	MemoryFiles    *memoryfile.Store
	Handovers      *handover.Store
	Erasures       *erase.Store
	Replays        *replay.Store
	Retention      *retention.Store
	Quotas         *quota.Store
	Requests       *quota.Requests       // flushed by the owner of the server
	Progress       *files.ProgressPoller // run by the owner of the server
	DB             db.DB                 // where the events of agents are
	Followers      *event.Followers      // run by the owner of the server
	Tools          *tool.Set
	Endpoint       *embed.Endpoint // the embeddings endpoint; nil ranks tools by words alone
	Reembed        *embed.Reembed  // run by the owner of the server
	Loop           *loop.Loop      // run by the owner of the server
	Children       *subagent.Store
	Keys           *apikey.Store
	Log            *slog.Logger
	Metrics        *metrics.Metrics // the API adds its own
	Version        string
	MaxUploadBytes int64
	MaxImportBytes int64 // of a file of agents; 0 is DefaultMaxImportBytes
	MinBodyRate    int64 // as rest.BodyPace has it
	// Probe stores a row in a new session of the database, and returns how long that took.
	Probe func(ctx context.Context) (time.Duration, error)

	Settings          []Setting                              // that the server runs with
	Examine           func(ctx context.Context) []db.Finding // all that the server needs
	ExamineEmbeddings func(ctx context.Context) db.Finding
	ExamineModel      func(ctx context.Context) db.Finding

	KeyLimits apikey.Limits // of keys without limits of their own
	KeyAge    time.Duration // as rest.Config has it
	PageWait  time.Duration // as console.New has it

	MCPFixtures   *mcp.Fixtures // of the build for MCP's conformance suite; nil for none
	MCPFilesEvery time.Duration // as mcp.Options has it

	// ReadyEvery is the least time between two rows that GET /v1/ready stores.
	ReadyEvery time.Duration
	// RequestTimeout limits each request but uploads, downloads and streams, which have limits of their own.
	// 0 is rest.DefaultTimeout.
	RequestTimeout time.Duration

	// OpenOrg returns the organization of requests without a key, as rest.Keys has it; nil needs a key for every request.
	OpenOrg func(ctx context.Context) (db.Org, error)

	readiness readiness
}

// agentPath is the input of an operation on an agent.
type agentPath interface{ Agent() string }

// withAgent makes a handler of a function that needs the agent of its path. ErrNotFound if it does not exist.
func withAgent[I agentPath, O any](
	s *Server, handle func(context.Context, agent.Agent, *I) (O, error),
) rest.Handler[I, O] {
	return func(ctx context.Context, in *I) (O, error) {
		a, err := s.Agents.Agent(ctx, rest.Org(ctx), (*in).Agent())
		if err != nil {
			var none O
			return none, err
		}
		return handle(ctx, a, in)
	}
}
