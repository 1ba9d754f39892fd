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

// Options are what a Server works on. All fields but Fixtures must be set.
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
	FilesEvery  time.Duration // between two looks at the files of agents whose clients are told of changes; 0 is 30 s

	// MustHave returns an ErrNotFound if an agent lacks a tool.
	MustHave func(ctx context.Context, org db.Org, a agent.Agent, name string) error

	// Remember appends turns to a conversation of an agent, all or none.
	Remember func(ctx context.Context, a agent.Agent, conversation string, turns []recall.Draft) ([]recall.Appended, error)

	// Fault returns a sentence on why a JSON value is not taken, wherever it stands in a message; empty if nothing is
	// wrong with it.
	Fault func(place string, value []byte) string

	// Explain returns the status and the sentence with which an error is answered over REST. It logs the server's own.
	Explain func(ctx context.Context, err error) (status int, sentence string)

	Fixtures *Fixtures // of the build for the conformance suite; nil for none
}

// Server serves MCP.
type Server struct {
	Options
	stateless, streaming http.Handler // of messages without a session: answers in JSON, and as a stream of events
	sessions             *db.Shares
	replay               *replay

	mu   sync.Mutex
	hubs map[hubKey]*hub
	keys map[hubKey]int // sessions by their keys, for whichever agent
}

// Caller is who sends a message, and for which agent.
type Caller struct {
	Org     db.Org
	AgentID string
	KeyID   string
	MayCall bool     // tools
	Only    []string // the tools that are shown; nil is all
}

// caller is a Caller with what a message needs.
type caller struct {
	Caller
	version string       // of the protocol, as the message or its header says; empty if they do not
	hub     *hub         // of the caller's sessions; nil for a message without one
	agent   *agent.Agent // nil where each message of a session reads it

	// atEnd calls a function once the HTTP request of a message has ended, until stop is called; nil for messages of a
	// session, whose clients may come back for the answers.
	atEnd func(func()) (stop func() bool)
}

type callerKey struct{}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// agentOf returns the agent of a caller, as it is now.
func (s *Server) agentOf(ctx context.Context, c caller) (agent.Agent, error) {
	if c.agent != nil {
		return *c.agent, nil
	}
	return s.Agents.Agent(ctx, c.Org, c.AgentID)
}

// shows reports whether a caller's choice of tools has one.
func (c Caller) shows(name string) bool { return c.Only == nil || slices.Contains(c.Only, name) }
