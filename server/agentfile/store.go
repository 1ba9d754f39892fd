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

// Store exports and imports agents. All fields except the readers must be set.
type Store struct {
	Agents  *agent.Store
	Tools   *tool.Set
	Version string // the server's version, which files name

	readAgent  *rest.ListReader[letta.CreateAgent]
	readBlock  *rest.ListReader[letta.CreateBlock]
	readSource *rest.ListReader[letta.CreateFolder]
	readTool   *rest.ListReader[letta.ToolFields]

	readIdentity *rest.ListReader[letta.NewIdentity]
}

// New returns a store that checks files against the API's schemas.
func New(a *rest.API, agents *agent.Store, tools *tool.Set, version string) *Store {
	return &Store{Agents: agents, Tools: tools, Version: version,
		readAgent:    rest.NewListReader[letta.CreateAgent](a, listAgents).Large(),
		readBlock:    rest.NewListReader[letta.CreateBlock](a, listBlocks),
		readSource:   rest.NewListReader[letta.CreateFolder](a, listSources),
		readTool:     rest.NewListReader[letta.ToolFields](a, listTools),
		readIdentity: rest.NewListReader[letta.NewIdentity](a, listIdentities)}
}

// snapshot calls use with a store in a transaction that sees one state of the database, whatever others write
// meanwhile.
func (s *Store) snapshot(ctx context.Context, use func(*Store) error) error {
	return db.Snapshot(ctx, s.Agents.DB, func(tx pgx.Tx) error { return use(s.with(tx)) })
}

// with returns a store that runs all statements in tx.
func (s *Store) with(tx pgx.Tx) *Store {
	copied := *s
	copied.Agents = s.Agents.With(tx)
	return &copied
}
