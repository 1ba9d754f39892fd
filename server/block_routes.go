package server

import (
	"context"
	"errors"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) blockRoutes(a *rest.API) {
	rest.Post(a.For(rest.Write), "/v1/blocks", "create_block: Create a block.", s.createBlock)
	rest.Get(a.For(rest.Read), "/v1/blocks",
		"list_blocks: List blocks. All filters must hold. Filters by what Loci does not keep select nothing.", s.listBlocks)
	rest.Get(a.For(rest.Read), "/v1/blocks/count",
		"count_blocks: Count blocks. The filters are those of the list.", s.countBlocks)
	rest.Get(a.For(rest.Read), "/v1/blocks/{block_id}", "get_block: Get a block.", s.getBlock)
	rest.Patch(a.For(rest.Write), "/v1/blocks/{block_id}",
		"update_block: Change a block. With If-Match or expected_version, only if the block is still that version; else "+
			"a 409.",
		s.updateBlock)
	rest.Delete(a.For(rest.Write), "/v1/blocks/{block_id}",
		"delete_block: Delete a block. It leaves all agents that have it.",
		s.deleteBlock)
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/core-memory/blocks",
		"list_agent_blocks: List an agent's blocks.",
		withAgent(s, s.agentBlocks))
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/core-memory/blocks/{block_label}",
		"get_agent_block: Get an agent's block by its label.",
		withAgent(s, s.agentBlock))
	rest.Patch(a.For(rest.Write), "/v1/agents/{agent_id}/core-memory/blocks/{block_label}",
		"update_agent_block: Change an agent's block. As the change of the block itself.",
		withAgent(s, s.updateAgentBlock))
	rest.Patch(a.For(rest.Write), "/v1/agents/{agent_id}/core-memory/blocks/attach/{block_id}",
		"attach_block: Attach a block to an agent. A 409 if the agent has a block with that label.",
		thenState(s, s.attachBlock))
	rest.Patch(a.For(rest.Write), "/v1/agents/{agent_id}/core-memory/blocks/detach/{block_id}",
		"detach_block: Detach a block from an agent. The block stays.",
		thenState(s, s.detachBlock))
	rest.Get(a.For(rest.Read), "/v1/blocks/{block_id}/agents",
		"list_block_agents: List the agents that have a block.", s.blockAgents)
	rest.Get(a.For(rest.Read), "/v1/blocks/{block_id}/diff",
		"diff_block: Compare two versions of a block. The answer has a unified diff of the values.", s.blockDiff, rest.Own)
	rest.Get(a.For(rest.Read), "/v1/blocks/{block_id}/versions",
		"list_block_versions: List the versions of a block. The newest version first.",
		s.blockVersions, rest.Own)
	rest.Get(a.For(rest.Read), "/v1/blocks/{block_id}/versions/{version}", "get_block_version: Get a version of a block.",
		s.blockVersion, rest.Own)
	rest.Post(a.For(rest.Write), "/v1/blocks/{block_id}/versions/{version}/restore",
		"restore_block_version: Restore a version of a block. The restored text becomes a new version.",
		s.restoreBlock, rest.Own)
}

// OfBlock holds the path parameter of operations on a block.
type OfBlock struct {
	BlockID rest.BlockID `path:"block_id"`
}

// AgentBlock holds the path parameters of operations on an agent's block, named by its label.
type AgentBlock struct {
	rest.OfAgent
	Label string `path:"block_label"`
}

func (s *Server) createBlock(ctx context.Context, input *struct{ Body letta.CreateBlock }) (letta.Block, error) {
	b, err := s.Blocks.Create(ctx, rest.Org(ctx), block.OperatorAuthor, input.Body.New())
	return letta.BlockOf(b), err
}

func (s *Server) getBlock(ctx context.Context, input *OfBlock) (letta.Block, error) {
	b, err := s.Blocks.Block(ctx, rest.Org(ctx), string(input.BlockID))
	return letta.BlockOf(b), err
}

func (s *Server) updateBlock(ctx context.Context, input *struct {
	OfBlock
	letta.IfMatch
	Body letta.UpdateBlock
}) (letta.Block, error) {
	return s.changeBlock(ctx, string(input.BlockID), input.IfMatch, input.Body)
}

func (s *Server) changeBlock(
	ctx context.Context, id string, header letta.IfMatch, body letta.UpdateBlock,
) (letta.Block, error) {
	x, err := body.Expected(header)
	if err != nil {
		return letta.Block{}, err
	}
	b, err := s.Blocks.Update(ctx, rest.Org(ctx), block.Target{ID: id, Author: block.OperatorAuthor, Expected: x},
		body.Update())
	return letta.BlockOf(b), withCurrent(err)
}

// withCurrent adds the stored block to the error of a change that expected another value.
func withCurrent(err error) error {
	if mismatch, ok := errors.AsType[*block.MismatchError](err); ok {
		return rest.Conflict(mismatch.Error(), letta.BlockOf(mismatch.Current))
	}
	return err
}

func (s *Server) listBlocks(ctx context.Context, input *struct {
	letta.BlockFilter
	rest.Paging
}) ([]letta.Block, error) {
	list, err := s.Blocks.List(ctx, rest.Org(ctx), input.Filter(), input.Page(50, rest.OldestFirst))
	return rest.Each(list, letta.BlockOf), err
}

func (s *Server) countBlocks(ctx context.Context, input *letta.BlockFilter) (int, error) {
	return s.Blocks.Count(ctx, rest.Org(ctx), input.Filter())
}

func (s *Server) deleteBlock(ctx context.Context, input *OfBlock) (rest.Null, error) {
	return rest.Null{}, s.Blocks.Delete(ctx, rest.Org(ctx), string(input.BlockID))
}

func (s *Server) blockAgents(ctx context.Context, input *struct {
	OfBlock
	AgentPage
}) ([]letta.AgentState, error) {
	ids, err := s.Blocks.Agents(ctx, rest.Org(ctx), string(input.BlockID))
	return s.statesOf(ctx, input.AgentPage, ids, err)
}

func (s *Server) blockVersions(ctx context.Context, input *struct {
	OfBlock
	Before int `query:"before" minimum:"1" doc:"Versions before this one."`
	Limit  int `query:"limit" minimum:"1" maximum:"1000" default:"50"`
}) ([]block.Version, error) {
	return s.Blocks.Versions(ctx, rest.Org(ctx), string(input.BlockID), input.Before, input.Limit)
}

// OfVersion holds the path parameters of operations on a version of a block.
type OfVersion struct {
	OfBlock
	Version int `path:"version" minimum:"1"`
}

func (s *Server) blockVersion(ctx context.Context, input *OfVersion) (block.Version, error) {
	return s.Blocks.Version(ctx, rest.Org(ctx), string(input.BlockID), input.Version)
}

func (s *Server) blockDiff(ctx context.Context, input *struct {
	OfBlock
	From int `query:"from" minimum:"1" required:"true"`
	To   int `query:"to" minimum:"1" required:"true"`
}) (letta.BlockDiff, error) {
	text, err := s.Blocks.Diff(ctx, rest.Org(ctx), string(input.BlockID), input.From, input.To)
	return letta.BlockDiff{From: input.From, To: input.To, Diff: text}, err
}

func (s *Server) restoreBlock(ctx context.Context, input *struct {
	OfVersion
	letta.IfMatch
	Body letta.Precondition
}) (letta.Block, error) {
	x, err := input.Body.Expected(input.IfMatch)
	if err != nil {
		return letta.Block{}, err
	}
	b, err := s.Blocks.Restore(ctx, rest.Org(ctx), block.Target{ID: string(input.BlockID), Author: block.OperatorAuthor,
		Expected: x}, input.OfVersion.Version)
	return letta.BlockOf(b), withCurrent(err)
}

func (s *Server) agentBlocks(ctx context.Context, a agent.Agent, input *struct {
	rest.OfAgent
	rest.Paging
}) ([]letta.Block, error) {
	list, err := s.Blocks.OfAgent(ctx, rest.Org(ctx), a.ID)
	id := func(b block.Block) string { return b.ID }
	return rest.Each(rest.Paged(list, input.Page(100, rest.NewestFirst), id), letta.BlockOf), err
}

func (s *Server) agentBlock(ctx context.Context, a agent.Agent, input *AgentBlock) (letta.Block, error) {
	b, err := s.Blocks.Labelled(ctx, rest.Org(ctx), a.ID, input.Label)
	return letta.BlockOf(b), err
}

func (s *Server) updateAgentBlock(ctx context.Context, a agent.Agent, input *struct {
	AgentBlock
	letta.IfMatch
	Body letta.UpdateBlock
}) (letta.Block, error) {
	b, err := s.Blocks.Labelled(ctx, rest.Org(ctx), a.ID, input.Label)
	if err != nil {
		return letta.Block{}, err
	}
	return s.changeBlock(ctx, b.ID, input.IfMatch, input.Body)
}

// BlockOfAgent holds the path parameters for attaching and detaching a block.
type BlockOfAgent struct {
	rest.OfAgent
	OfBlock
}

func (s *Server) attachBlock(ctx context.Context, input *BlockOfAgent) (rest.Null, error) {
	return rest.Null{}, s.Blocks.Attach(ctx, rest.Org(ctx), string(input.AgentID), string(input.BlockID))
}

func (s *Server) detachBlock(ctx context.Context, input *BlockOfAgent) (rest.Null, error) {
	return rest.Null{}, s.Blocks.Detach(ctx, rest.Org(ctx), string(input.AgentID), string(input.BlockID))
}
