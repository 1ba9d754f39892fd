package server

import (
	"context"
	"fmt"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/agent"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) agentRoutes(a *rest.API) {
	rest.Post(a, "/v1/agents", "Create an agent", s.createAgent)
	rest.Get(a, "/v1/agents", "List agents", s.listAgents)
	rest.Get(a, "/v1/agents/count", "Count agents", s.countAgents)
	rest.Get(a, "/v1/agents/{agent_id}", "Get an agent", s.getAgent)
	rest.Patch(a, "/v1/agents/{agent_id}", "Change an agent", s.updateAgent)
	rest.Delete(a, "/v1/agents/{agent_id}", "Delete an agent", s.deleteAgent)
	rest.Post(a, "/v1/agents/{agent_id}/recompile", "Compile an agent's system prompt", s.recompile)
	rest.Post(a, "/v1/agents/{agent_id}/system-prompt/recompile", "Compile an agent's system prompt", s.recompile, rest.Deprecated)
	rest.Get(a, "/v1/agents/{agent_id}/core-memory", "Get an agent's core memory", s.coreMemory, rest.Deprecated)
	rest.Get(a, "/v1/tags", "List the tags of agents", s.listTags)
}

func (s *Server) createAgent(ctx context.Context, in *struct{ Body letta.CreateAgent }) (letta.AgentState, error) {
	n, err := in.Body.New(s.toolNames())
	if err != nil {
		return letta.AgentState{}, err
	}
	a, err := s.Agents.Create(ctx, rest.Org(ctx), n)
	return s.shown(ctx, a, err)
}

func (s *Server) getAgent(ctx context.Context, in *rest.OfAgent) (letta.AgentState, error) {
	a, err := s.Agents.Agent(ctx, rest.Org(ctx), string(in.AgentID))
	return s.shown(ctx, a, err)
}

func (s *Server) updateAgent(ctx context.Context, in *struct {
	rest.OfAgent
	Body letta.UpdateAgent
}) (letta.AgentState, error) {
	u, err := in.Body.Update()
	if err != nil {
		return letta.AgentState{}, err
	}
	a, err := s.Agents.Update(ctx, rest.Org(ctx), string(in.AgentID), u)
	return s.shown(ctx, a, err)
}

// shown is the state of an agent that a call of the store returned, or the call's error.
func (s *Server) shown(ctx context.Context, a agent.Agent, err error) (letta.AgentState, error) {
	if err != nil {
		return letta.AgentState{}, err
	}
	return s.state(ctx, rest.Org(ctx), a, true)
}

func (s *Server) listAgents(ctx context.Context, in *struct {
	letta.AgentFilter
	letta.Included
	rest.Paging
	OrderBy string `query:"order_by" enum:"created_at,updated_at,last_run_completion"`
}) ([]letta.AgentState, error) {
	filter := in.Filter()
	filter.ByUpdate = in.OrderBy == "updated_at"
	agents, err := s.Agents.List(ctx, rest.Org(ctx), filter, in.Page(50, rest.NewestFirst))
	if err != nil {
		return nil, err
	}
	states := make([]letta.AgentState, len(agents))
	for i, a := range agents {
		if states[i], err = s.state(ctx, rest.Org(ctx), a, in.FileBlocks()); err != nil {
			return nil, err
		}
	}
	return states, nil
}

func (s *Server) countAgents(ctx context.Context, in *letta.AgentFilter) (int, error) {
	return s.Agents.Count(ctx, rest.Org(ctx), in.Filter())
}

func (s *Server) deleteAgent(ctx context.Context, in *rest.OfAgent) (letta.Message, error) {
	err := s.Agents.Delete(ctx, rest.Org(ctx), string(in.AgentID))
	return letta.Message{Message: fmt.Sprintf("Agent id=%s successfully deleted", in.AgentID)}, err
}

// Recompiling is how a system prompt is to be compiled.
type Recompiling struct {
	Dry bool `query:"dry_run" doc:"Only compile it: the prompt in force stays."`
}

func (s *Server) recompile(ctx context.Context, in *struct {
	rest.OfAgent
	Recompiling
}) (string, error) {
	c, err := s.Recall.Conversation(ctx, rest.Org(ctx), string(in.AgentID), recall.DefaultConversation)
	if err != nil {
		return "", err
	}
	return s.Agents.Recompile(ctx, rest.Org(ctx), c, in.Dry)
}

func (s *Server) coreMemory(ctx context.Context, in *rest.OfAgent) (letta.CoreMemory, error) {
	a, err := s.Agents.Agent(ctx, rest.Org(ctx), string(in.AgentID))
	if err != nil {
		return letta.CoreMemory{}, err
	}
	return s.memory(ctx, rest.Org(ctx), a, true)
}

func (s *Server) listTags(ctx context.Context, in *struct {
	rest.Paging
	Name      string `query:"name" doc:"Part of the tag, in any case."`
	QueryText string `query:"query_text" deprecated:"true"`
}) ([]string, error) {
	contains := in.Name
	if contains == "" {
		contains = in.QueryText
	}
	return s.Agents.Tags(ctx, rest.Org(ctx), contains, in.Page(50, rest.OldestFirst))
}
