// Package server is Loci's REST API: it decodes requests, calls the memories and agents, and encodes their answers, in
// the shapes and with the errors that Letta's clients expect.
//
// Each file uses those that are named before it:
//   - the server, and what its requests share: health.go setting.go server.go limits.go requesttimeout.go named.go
//     visibleorgs.go readiness.go runproblem.go users.go
//   - files: messagesearch_routes.go folder_routes.go filestream_routes.go upload_routes.go
//   - agents, their tools and blocks: tool_routes.go agent_routes.go agentfile_routes.go block_routes.go
//     identity_routes.go openfile_routes.go prompt_routes.go absent_routes.go
//   - messages, conversations, and what leaves their views: handover_routes.go message_routes.go
//     conversation_routes.go compaction_routes.go event_routes.go policy_routes.go preview_routes.go replay_routes.go
//     result_routes.go
//   - runs: cancel_routes.go runstream.go loop_routes.go run_routes.go subagent_routes.go
//     subagentdefinition_routes.go capture_routes.go step_routes.go
//   - passages: shownpassages.go archive_routes.go passage_routes.go passagebatch_routes.go embedding_routes.go
//   - other memories: memorytree_routes.go memoryfile_routes.go memorysearch_routes.go workingmemory_routes.go
//   - organizations and their keys: caller_routes.go session_routes.go key_routes.go organization_routes.go
//     quota_routes.go retention_routes.go erasure_routes.go usermemory_routes.go backgroundjob_routes.go
//   - the providers' own APIs as a door: gateway_routes.go
//   - the operation of the server: metrics_routes.go model_routes.go setting_routes.go
//   - all of them: mcp_routes.go routes.go
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
	"github.com/loci-memory/loci/embed/endpoint"
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

// Server answers the API's requests. All fields must be set except MinBodyRate, Settings, KeyLimits, KeyAge, PageWait,
// RequestTimeout, ReadyEvery, MCPFixtures, MCPFilesEvery and OpenOrg.
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
	Requests       *quota.Requests       // the server's owner flushes it
	Progress       *files.ProgressPoller // the server's owner runs it
	DB             db.DB                 // holds the events of agents
	Followers      *event.Followers      // the server's owner runs it
	Tools          *tool.Set
	Endpoint       *endpoint.Endpoint // the embeddings endpoint; if nil, tools are ranked by words alone
	Reembed        *endpoint.Reembed  // the server's owner runs it
	Loop           *loop.Loop         // the server's owner runs it
	Children       *subagent.Store
	Keys           *apikey.Store
	Log            *slog.Logger
	Metrics        *metrics.Metrics // the API adds its own metrics
	Version        string
	MaxUploadBytes int64
	MaxImportBytes int64 // most bytes of an agent file; DefaultMaxImportBytes if 0
	MinBodyRate    int64 // the Rate in rest.BodyPace
	// Probe stores a row over a new connection to the database, and returns how long that took.
	Probe func(ctx context.Context) (time.Duration, error)

	Settings          []Setting                              // the server's settings, to show
	Examine           func(ctx context.Context) []db.Finding // checks all that the server needs
	ExamineEmbeddings func(ctx context.Context) db.Finding
	ExamineModel      func(ctx context.Context) db.Finding

	// TurnPatience is how long a message waits for the end of the run that is working in its conversation; 0 refuses it at
	// once.
	TurnPatience time.Duration

	Gateway   Gateway
	Origins   rest.Origins  // whose pages may call the API from a browser
	KeyLimits apikey.Limits // limits of keys without limits of their own
	KeyAge    time.Duration // as in rest.Config
	PageWait  time.Duration // as in console.New

	MCPFixtures   *mcp.Fixtures // for builds that run MCP's conformance suite; otherwise nil
	MCPFilesEvery time.Duration // as in mcp.Options

	// ReadyEvery is the least time between two rows that GET /v1/ready stores.
	ReadyEvery time.Duration
	// RequestTimeout bounds each request except uploads, downloads and streams, which have bounds of their own. 0 means
	// rest.DefaultTimeout.
	RequestTimeout time.Duration

	// OpenOrg returns the organization for requests without a key, as in rest.Keys. If nil, every request needs a key.
	OpenOrg func(ctx context.Context) (db.Org, error)

	readiness readiness
}
