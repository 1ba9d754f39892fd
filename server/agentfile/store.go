package agentfile

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

// Store exports and imports the agents of a server. All fields but the readers must be set.
type Store struct {
	Agents  *agent.Store
	Tools   *tool.Set
	Version string // of the server, which files name

	readAgent  *rest.ListReader[letta.CreateAgent]
	readBlock  *rest.ListReader[letta.CreateBlock]
	readSource *rest.ListReader[letta.CreateFolder]
	readTool   *rest.ListReader[letta.ToolFields]

	readIdentity *rest.ListReader[letta.NewIdentity]
}

// New returns a store whose files are checked against the API's schemas.
func New(a *rest.API, agents *agent.Store, tools *tool.Set, version string) *Store {
	return &Store{Agents: agents, Tools: tools, Version: version,
		readAgent:    rest.NewListReader[letta.CreateAgent](a, listAgents).Large(),
		readBlock:    rest.NewListReader[letta.CreateBlock](a, listBlocks),
		readSource:   rest.NewListReader[letta.CreateFolder](a, listSources),
		readTool:     rest.NewListReader[letta.ToolFields](a, listTools),
		readIdentity: rest.NewListReader[letta.NewIdentity](a, listIdentities)}
}

// snapshot calls do in a transaction that reads one state of the database, whatever others write meanwhile.
func (s *Store) snapshot(ctx context.Context, do func(*Store) error) error {
	return db.Snapshot(ctx, s.Agents.DB, func(tx pgx.Tx) error { return do(s.with(tx)) })
}

// with returns the store with all statements in tx.
func (s *Store) with(tx pgx.Tx) *Store {
	in := *s
	in.Agents = s.Agents.With(tx)
	return &in
}
