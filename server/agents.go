package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/agent"
	"github.com/loci-memory/loci/server/rest"
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
	a, err := s.Agents.Create(ctx, rest.Org(ctx), n)
	return s.shown(ctx, a, err)
}

func (s *Server) getAgent(ctx context.Context, in *rest.OfAgent) (AgentState, error) {
	a, err := s.Agents.Agent(ctx, rest.Org(ctx), string(in.AgentID))
	return s.shown(ctx, a, err)
}

func (s *Server) updateAgent(ctx context.Context, in *struct {
	rest.OfAgent
	Body UpdateAgent
}) (AgentState, error) {
	u, err := in.Body.update()
	if err != nil {
		return AgentState{}, err
	}
	a, err := s.Agents.Update(ctx, rest.Org(ctx), string(in.AgentID), u)
	return s.shown(ctx, a, err)
}

// shown is the state of an agent that a call of the store returned, or the call's error.
func (s *Server) shown(ctx context.Context, a agent.Agent, err error) (AgentState, error) {
	if err != nil {
		return AgentState{}, err
	}
	return s.state(ctx, rest.Org(ctx), a, true)
}

func (s *Server) listAgents(ctx context.Context, in *struct {
	AgentFilter
	Included
	rest.Paging
	OrderBy string `query:"order_by" enum:"created_at,updated_at,last_run_completion"`
}) ([]AgentState, error) {
	filter := in.filter()
	filter.ByUpdate = in.OrderBy == "updated_at"
	agents, err := s.Agents.List(ctx, rest.Org(ctx), filter, in.Page(50, rest.NewestFirst))
	if err != nil {
		return nil, err
	}
	states := make([]AgentState, len(agents))
	for i, a := range agents {
		if states[i], err = s.state(ctx, rest.Org(ctx), a, in.fileBlocks()); err != nil {
			return nil, err
		}
	}
	return states, nil
}

func (s *Server) countAgents(ctx context.Context, in *AgentFilter) (int, error) {
	return s.Agents.Count(ctx, rest.Org(ctx), in.filter())
}

func (s *Server) deleteAgent(ctx context.Context, in *rest.OfAgent) (Message, error) {
	err := s.Agents.Delete(ctx, rest.Org(ctx), string(in.AgentID))
	return Message{fmt.Sprintf("Agent id=%s successfully deleted", in.AgentID)}, err
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

func (s *Server) coreMemory(ctx context.Context, in *rest.OfAgent) (CoreMemory, error) {
	a, err := s.Agents.Agent(ctx, rest.Org(ctx), string(in.AgentID))
	if err != nil {
		return CoreMemory{}, err
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
