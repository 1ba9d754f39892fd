package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/agent"
)

// Included are the relations that a caller of a list asks for beside the agents themselves.
type Included struct {
	Include []string `query:"include,explode" doc:"agent.blocks fills memory.file_blocks; everything else is always there."`
	Legacy  []string `query:"include_relationships,explode" deprecated:"true"`
}

func (i Included) fileBlocks() bool {
	return slices.Contains(i.Include, "agent.blocks") || slices.Contains(i.Legacy, "memory")
}

// AgentFilter narrows a list of agents.
type AgentFilter struct {
	Name         string   `query:"name" doc:"The exact name."`
	QueryText    string   `query:"query_text" doc:"Part of the name, in any case."`
	Tags         []string `query:"tags,explode"`
	MatchAllTags bool     `query:"match_all_tags" doc:"All of the tags, not any."`
	Hidden       bool     `query:"show_hidden_agents"`
}

func (f AgentFilter) filter() agent.Filter {
	return agent.Filter{Name: f.Name, Contains: f.QueryText, Tags: f.Tags, AllTags: f.MatchAllTags, Hidden: f.Hidden}
}

// Message is the answer to what leaves nothing to show.
type Message struct {
	Message string `json:"message"`
}

func (s *Server) createAgent(ctx context.Context, in *struct{ Body CreateAgent }) (AgentState, error) {
	n, err := in.Body.create(s.toolNames())
	if err != nil {
		return AgentState{}, err
	}
	a, err := s.Agents.Create(ctx, orgOf(ctx), n)
	return s.shown(ctx, a, err)
}

func (s *Server) getAgent(ctx context.Context, in *OfAgent) (AgentState, error) {
	a, err := s.Agents.Agent(ctx, orgOf(ctx), string(in.AgentID))
	return s.shown(ctx, a, err)
}

func (s *Server) updateAgent(ctx context.Context, in *struct {
	OfAgent
	Body UpdateAgent
}) (AgentState, error) {
	u, err := in.Body.update()
	if err != nil {
		return AgentState{}, err
	}
	a, err := s.Agents.Update(ctx, orgOf(ctx), string(in.AgentID), u)
	return s.shown(ctx, a, err)
}

// shown is the state of an agent that a call of the store returned, or the call's error.
func (s *Server) shown(ctx context.Context, a agent.Agent, err error) (AgentState, error) {
	if err != nil {
		return AgentState{}, err
	}
	return s.state(ctx, orgOf(ctx), a, true)
}

func (s *Server) listAgents(ctx context.Context, in *struct {
	AgentFilter
	Included
	Paging
	OrderBy string `query:"order_by" enum:"created_at,updated_at,last_run_completion"`
}) ([]AgentState, error) {
	filter := in.filter()
	filter.ByUpdate = in.OrderBy == "updated_at"
	agents, err := s.Agents.List(ctx, orgOf(ctx), filter, in.page(50, newestFirst))
	if err != nil {
		return nil, err
	}
	states := make([]AgentState, len(agents))
	for i, a := range agents {
		if states[i], err = s.state(ctx, orgOf(ctx), a, in.fileBlocks()); err != nil {
			return nil, err
		}
	}
	return states, nil
}

func (s *Server) countAgents(ctx context.Context, in *AgentFilter) (int, error) {
	return s.Agents.Count(ctx, orgOf(ctx), in.filter())
}

func (s *Server) deleteAgent(ctx context.Context, in *OfAgent) (Message, error) {
	err := s.Agents.Delete(ctx, orgOf(ctx), string(in.AgentID))
	return Message{fmt.Sprintf("Agent id=%s successfully deleted", in.AgentID)}, err
}

// Recompiling is how a system prompt is to be compiled.
type Recompiling struct {
	Dry bool `query:"dry_run" doc:"Only compile it: the prompt in force stays."`
}

func (s *Server) recompile(ctx context.Context, in *struct {
	OfAgent
	Recompiling
}) (string, error) {
	c, err := s.Recall.Conversation(ctx, orgOf(ctx), string(in.AgentID), recall.DefaultConversation)
	if err != nil {
		return "", err
	}
	return s.Agents.Recompile(ctx, orgOf(ctx), c, in.Dry)
}

func (s *Server) coreMemory(ctx context.Context, in *OfAgent) (CoreMemory, error) {
	a, err := s.Agents.Agent(ctx, orgOf(ctx), string(in.AgentID))
	if err != nil {
		return CoreMemory{}, err
	}
	return s.memory(ctx, orgOf(ctx), a, true)
}

func (s *Server) listTags(ctx context.Context, in *struct {
	Paging
	Name      string `query:"name" doc:"Part of the tag, in any case."`
	QueryText string `query:"query_text" deprecated:"true"`
}) ([]string, error) {
	contains := in.Name
	if contains == "" {
		contains = in.QueryText
	}
	return s.Agents.Tags(ctx, orgOf(ctx), contains, in.page(50, oldestFirst))
}
