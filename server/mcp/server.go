package mcp

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/handover"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/recall"
)

// Options are the parts that a Server needs. All fields except Fixtures must be set.
type Options struct {
	DB          db.DB
	Agents      *agent.Store
	Tools       *tool.Set
	Files       *files.Store
	Recall      *recall.Store
	Blocks      *block.Store
	MemoryFiles *memoryfile.Store
	Handovers   *handover.Store
	Followers   *event.Followers
	Version     string
	Log         *slog.Logger
	Timeout     time.Duration // of each call
	FilesEvery  time.Duration // how often the files of agents with listening clients are checked; 30 s if 0

	// Lacks returns a sentence for the model if an agent lacks a tool, or if there is no such tool. Empty: it has the
	// tool.
	Lacks func(ctx context.Context, org db.Org, a agent.Agent, name string) (string, error)

	// InForce returns an agent with the policy in force in its default conversation.
	InForce func(ctx context.Context, org db.Org, a agent.Agent) (agent.Agent, error)

	// Remember appends all turns to a conversation of an agent, or none.
	Remember func(ctx context.Context, a agent.Agent, conversation string, turns []recall.Draft) ([]recall.Appended, error)

	// Fault says in a sentence why a JSON value is refused. place is the value's place in a message. Empty for a good
	// value.
	Fault func(place string, value []byte) string

	// Explain returns the status and the sentence that REST would answer for an error. It logs the server's own failures.
	Explain func(ctx context.Context, err error) (status int, sentence string)

	Fixtures *Fixtures // for builds that run the conformance suite; otherwise nil
}

// Server serves MCP.
type Server struct {
	Options
	stateless, streaming http.Handler // for messages without a session: answer in JSON, or with a stream of events
	sessions             *db.Shares
	replay               *streamBuffer

	mu   sync.Mutex
	hubs map[hubKey]*hub
	keys map[hubKey]int // number of sessions by key, for all agents together
}

// Caller says who sent a message, and for which agent.
type Caller struct {
	Org     db.Org
	AgentID string
	KeyID   string
	User    int64    // key of the identity for whom the request works; 0: for none
	MayCall bool     // the caller may call tools
	Only    []string // the tools that are listed; nil lists all
}

// caller is a Caller with the context of one message.
type caller struct {
	Caller
	version string       // protocol version from the message or its header; empty if neither names one
	hub     *hub         // hub of the caller's sessions; nil for a message outside of a session
	agent   *agent.Agent // nil in sessions, where each message reads the agent

	// atEnd calls a function when the HTTP request of a message has ended, unless stop was called before. It is nil for
	// messages in a session, because their clients may come back for the answers.
	atEnd func(func()) (stop func() bool)
}

type callerKey struct{}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// agentOf returns the caller's agent in its current state.
func (s *Server) agentOf(ctx context.Context, c caller) (agent.Agent, error) {
	if c.agent != nil {
		return *c.agent, nil
	}
	return s.Agents.Agent(ctx, c.Org, c.AgentID)
}

// users returns whose memories a caller reads.
func (s *Server) users(ctx context.Context, c Caller) (db.UserScope, error) {
	if c.User != 0 {
		return db.OfUser(c.User), nil
	}
	a, err := s.Agents.Agent(ctx, c.Org, c.AgentID)
	return a.Users(recall.Conversation{}), err
}

// shows reports whether the caller's choice of tools includes a tool.
func (c Caller) shows(name string) bool { return c.Only == nil || slices.Contains(c.Only, name) }
