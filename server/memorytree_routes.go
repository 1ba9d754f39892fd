package server

import (
	"context"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) memoryTreeRoutes(a *rest.API) {
	rest.Post(a.For(rest.Write), "/v1/memory-trees", "create_memory_tree: Create a tree of memory files.",
		s.createMemoryTree, rest.Own)
	rest.Get(a.For(rest.Read), "/v1/memory-trees", "list_memory_trees: List trees of memory files.",
		s.listMemoryTrees, rest.Own)
	rest.Get(a.For(rest.Read), "/v1/memory-trees/{tree_id}", "get_memory_tree: Get a tree of memory files.",
		s.getMemoryTree, rest.Own)
	rest.Patch(a.For(rest.Write), "/v1/memory-trees/{tree_id}",
		"update_memory_tree: Change a tree of memory files. Fields that are absent or null stay.",
		s.updateMemoryTree, rest.Own)
	rest.Delete(a.For(rest.Write), "/v1/memory-trees/{tree_id}",
		"delete_memory_tree: Delete a tree with all versions of its files. It leaves its agents.",
		s.deleteMemoryTree, rest.Own)
	rest.Get(a.For(rest.Read), "/v1/memory-trees/{tree_id}/agents",
		"list_memory_tree_agents: List the agents that have a tree.", s.memoryTreeAgents, rest.Own)
	rest.Patch(a.For(rest.Write), "/v1/agents/{agent_id}/memory-trees/attach/{tree_id}",
		"attach_memory_tree: Attach a tree to an agent. A 409 if it has another one. Again changes read_only only.",
		s.attachMemoryTree, rest.Own)
	rest.Patch(a.For(rest.Write), "/v1/agents/{agent_id}/memory-trees/detach/{tree_id}",
		"detach_memory_tree: Detach a tree from an agent. The tree stays.", s.detachMemoryTree, rest.Own)
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/memory-tree",
		"get_agent_memory_tree: Get the tree of memory files of an agent. A 404 before its first file.",
		withAgent(s, s.agentMemoryTree), rest.Own)
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/memory-tree/lint",
		"get_agent_memory_lint: Check the state of the memory files of an agent. As for a tree.",
		withAgent(s, s.lintAgentMemory), rest.Own)
	rest.Post(a.For(rest.Tools), "/v1/agents/{agent_id}/memory-tree/command",
		"run_memory_command: Run a command of Anthropic's memory tool on an agent's files. The body is the input of the "+
			"call; an error of the tool is a 200 with is_error, for the model to read.",
		withAgent(s, s.runMemoryCommand), rest.Own)
}

// OfTree holds the path parameter of operations on a tree of memory files.
type OfTree struct {
	TreeID rest.TreeID `path:"tree_id"`
}

func (o OfTree) at(ctx context.Context) memoryfile.At {
	return memoryfile.At{Org: rest.Org(ctx), Tree: string(o.TreeID), Author: db.Provenance{KeyID: rest.KeyOf(ctx)}}
}

func (s *Server) createMemoryTree(ctx context.Context, input *struct {
	Body letta.CreateMemoryTree
}) (letta.MemoryTree, error) {
	t, err := s.MemoryFiles.CreateTree(ctx, rest.Org(ctx), input.Body.Name, input.Body.Update())
	return letta.MemoryTreeOf(t), err
}

func (s *Server) listMemoryTrees(ctx context.Context, input *struct{ rest.Paging }) ([]letta.MemoryTree, error) {
	list, err := s.MemoryFiles.Trees(ctx, rest.Org(ctx), input.Page(50, rest.NewestFirst))
	return rest.Each(list, letta.MemoryTreeOf), err
}

func (s *Server) getMemoryTree(ctx context.Context, input *OfTree) (letta.MemoryTree, error) {
	t, err := s.MemoryFiles.Tree(ctx, rest.Org(ctx), string(input.TreeID))
	return letta.MemoryTreeOf(t), err
}

func (s *Server) updateMemoryTree(ctx context.Context, input *struct {
	OfTree
	Body letta.UpdateMemoryTree
}) (letta.MemoryTree, error) {
	t, err := s.MemoryFiles.UpdateTree(ctx, rest.Org(ctx), string(input.TreeID), input.Body.Update())
	return letta.MemoryTreeOf(t), err
}

func (s *Server) deleteMemoryTree(ctx context.Context, input *OfTree) (rest.Null, error) {
	return rest.Null{}, s.MemoryFiles.DeleteTree(ctx, rest.Org(ctx), string(input.TreeID))
}

func (s *Server) memoryTreeAgents(ctx context.Context, input *struct {
	OfTree
	AgentPage
}) ([]letta.AgentState, error) {
	ids, err := s.MemoryFiles.Agents(ctx, rest.Org(ctx), string(input.TreeID))
	return s.statesOf(ctx, input.AgentPage, ids, err)
}

func (s *Server) attachMemoryTree(ctx context.Context, input *struct {
	rest.OfAgent
	OfTree
	ReadOnly bool `query:"read_only" doc:"The agent's tool cannot change the files."`
}) (rest.Null, error) {
	return rest.Null{}, s.MemoryFiles.Attach(ctx, rest.Org(ctx), string(input.AgentID), string(input.TreeID),
		input.ReadOnly)
}

func (s *Server) detachMemoryTree(ctx context.Context, input *struct {
	rest.OfAgent
	OfTree
}) (rest.Null, error) {
	return rest.Null{}, s.MemoryFiles.Detach(ctx, rest.Org(ctx), string(input.AgentID), string(input.TreeID))
}

func (s *Server) agentMemoryTree(ctx context.Context, a agent.Agent, _ *rest.OfAgent) (letta.AgentMemoryTree,
	error) {
	t, err := s.MemoryFiles.OfAgent(ctx, rest.Org(ctx), a.ID)
	return letta.AgentMemoryTree{Attached: t}, err
}

func (s *Server) lintAgentMemory(ctx context.Context, a agent.Agent, _ *rest.OfAgent) (letta.MemoryLint, error) {
	t, err := s.MemoryFiles.OfAgent(ctx, rest.Org(ctx), a.ID)
	if err != nil {
		return letta.MemoryLint{}, err
	}
	l, err := s.MemoryFiles.Lint(ctx, rest.Org(ctx), t.ID)
	return letta.MemoryLint{Lint: l}, err
}

func (s *Server) runMemoryCommand(ctx context.Context, a agent.Agent, input *struct {
	rest.OfAgent
	Body rest.Object
}) (letta.MemoryResult, error) {
	name := "memory_files"
	if !a.HasTool(name) && a.HasTool("memory") {
		name = "memory"
	}
	if err := s.mustHaveTool(ctx, rest.Org(ctx), a, name); err != nil {
		return letta.MemoryResult{}, err
	}
	result, err := s.Tools.Run(ctx, caller(ctx, a), name, []byte(input.Body))
	return letta.MemoryResult{Content: result.Text, IsError: result.IsError}, err
}
