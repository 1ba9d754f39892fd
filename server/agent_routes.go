package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) agentRoutes(a *rest.API) {
	rest.Post(a.For(rest.Write), "/v1/agents",
		"create_agent: Create an agent. Without model and tools, it has the server's default model and the default tools.",
		s.createAgent)
	rest.Get(a.For(rest.Read), "/v1/agents",
		"list_agents: List agents. All filters must hold. Filters by what Loci does not keep select nothing.", s.listAgents)
	rest.Get(a.For(rest.Read), "/v1/agents/count",
		"count_agents: Count agents. The filters are those of the list.", s.countAgents)
	rest.Get(a.For(rest.Read), "/v1/agents/mixing-users",
		"list_agents_mixing_users: List the agents that show each user what others said. Their recall_scope is agent, and "+
			"several users have talked with each. The oldest come first, 20 at most.", s.agentsMixingUsers, rest.Own)
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}", "get_agent: Get an agent.", withAgent(s, s.getAgent))
	rest.Patch(a.For(rest.Write), "/v1/agents/{agent_id}",
		"update_agent: Change an agent. Fields that are absent stay; null restores a default where there is one.",
		s.updateAgent)
	rest.Delete(a.For(rest.Write), "/v1/agents/{agent_id}",
		"delete_agent: Delete an agent. Its messages, conversations and events go with it; blocks, archives and folders "+
			"stay.",
		s.deleteAgent)
	rest.Post(a.For(rest.Write), "/v1/agents/{agent_id}/recompile",
		"recompile_agent: Compile an agent's system prompt. It is the answer.", s.recompile)
	rest.Post(a.For(rest.Write), "/v1/agents/{agent_id}/system-prompt/recompile",
		"recompile_system_prompt: Compile an agent's system prompt. It is the answer.", s.recompile,
		rest.Deprecated)
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/core-memory",
		"get_core_memory: Get an agent's core memory. The blocks of the agent, and those of its open files.",
		withAgent(s, s.coreMemory),
		rest.Deprecated)
	rest.Get(a.For(rest.Read), "/v1/tags", "list_tags: List the tags of agents. In alphabetical order.", s.listTags)
}

func (s *Server) createAgent(ctx context.Context, input *struct {
	letta.Client
	Body letta.CreateAgent
}) (letta.AgentState, error) {
	request := input.Body.For(input.Client)
	n, err := request.New()
	if err != nil {
		return letta.AgentState{}, err
	}
	if err := s.Tools.CheckNames("gateway.tools", n.Settings.Gateway.Offers()); err != nil {
		return letta.AgentState{}, err
	}
	rest.Warn(ctx, request.LeftOut()...)
	before := tool.NewAgent(n.Settings.MadeFor)
	if n.Settings.Tools, n.ToolIDs, err = s.chosenTools(ctx, request.Choice(), before, false); err != nil {
		return letta.AgentState{}, err
	}
	if n.Settings.Tools == nil {
		before.Settings.Tools = []string{agent.DefaultTools}
		if n.Settings.Tools = before.ForPolicy(n.Settings.CompactionSettings); n.Settings.Tools == nil {
			n.Settings.Tools = before.Settings.Tools
		}
	}
	if n.RuleTools, err = s.ruleTools(ctx, n.Settings.ToolRules); err != nil {
		return letta.AgentState{}, err
	}
	n.Settings.ToolRules = s.withoutAbsent(ctx, n.Settings.ToolRules, n.RuleTools)
	if err := s.checkRules(n.Settings.ToolRules, n.RuleTools); err != nil {
		return letta.AgentState{}, err
	}
	created := agent.Agent{Type: n.Type, Settings: n.Settings}
	n.Settings.ToolRules = request.Rules(n.Settings.ToolRules, s.toolNames(created))
	a, err := s.Agents.Create(ctx, rest.Org(ctx), n)
	return s.shown(ctx, a, err)
}

// RetrievedAgent names an agent to return. Its state has all relations, including those that Included does not name.
type RetrievedAgent struct {
	rest.OfAgent
	letta.Included
}

func (s *Server) getAgent(ctx context.Context, a agent.Agent, _ *RetrievedAgent) (letta.AgentState, error) {
	return s.shown(ctx, a, nil)
}

func (s *Server) updateAgent(ctx context.Context, input *struct {
	rest.OfAgent
	Body letta.UpdateAgent
}) (letta.AgentState, error) {
	u, err := input.Body.Update()
	if err != nil {
		return letta.AgentState{}, err
	}
	if err := s.Tools.CheckNames("gateway.tools", u.Settings.Gateway.Offers()); err != nil {
		return letta.AgentState{}, err
	}
	// The tools are read before the agent is: if one is renamed meanwhile, the agent's rules follow its new name.
	if u.RuleTools, err = s.ruleTools(ctx, u.Settings.ToolRules); err != nil {
		return letta.AgentState{}, err
	}
	previous, err := s.Agents.Agent(ctx, rest.Org(ctx), string(input.AgentID))
	if err != nil {
		return letta.AgentState{}, err
	}
	rest.Warn(ctx, input.Body.LeftOut()...)
	u.Settings.ToolRules = s.withoutAbsent(ctx, u.Settings.ToolRules, u.RuleTools)
	known := slices.Concat(u.RuleTools, letta.ToolRuleNames(previous.Settings.ToolRules))
	if err := s.checkRules(u.Settings.ToolRules, known); err != nil {
		return letta.AgentState{}, err
	}
	previous.Settings.MadeFor = cmp.Or(u.Settings.MadeFor, previous.Settings.MadeFor)
	if scope := agent.DefaultScope(previous.Settings.MadeFor); input.Body.RecallScope.Null && scope != "" {
		u.Settings.RecallScope = scope
		u.Unset = slices.DeleteFunc(u.Unset, func(name string) bool { return name == "recall_scope" })
	}
	if u.Settings.Tools, u.ToolIDs, err = s.changedTools(ctx, previous, input.Body.Choice()); err != nil {
		return letta.AgentState{}, err
	}
	if u.Settings.Tools == nil {
		u.Settings.Tools = previous.ForPolicy(u.Settings.CompactionSettings)
	}
	a, err := s.Agents.Update(ctx, rest.Org(ctx), string(input.AgentID), u)
	return s.shown(ctx, a, err)
}

// withoutAbsent returns rules without those of Letta's tools that this server does not have, which a warning names. own
// are names that belong to definitions.
func (s *Server) withoutAbsent(ctx context.Context, rules json.RawMessage, own []string) json.RawMessage {
	kept, dropped := letta.WithoutTools(rules, func(name string) bool {
		return tool.WhyAbsent(name) != "" && !slices.Contains(own, name)
	})
	for _, name := range dropped {
		rest.Warn(ctx, "tool_rules: a rule is left out, as this server has no tool "+name+".")
	}
	return kept
}

// toolNames returns the names of the built-in tools that an agent has without a folder.
func (s *Server) toolNames(a agent.Agent) []string {
	return rest.Each(s.Tools.Of(a, false), func(t tool.Tool) string { return t.Name })
}

// shown returns an agent in Letta's shape, with the texts of its open files. It returns err if that is not nil.
func (s *Server) shown(ctx context.Context, a agent.Agent, err error) (letta.AgentState, error) {
	if err != nil {
		return letta.AgentState{}, err
	}
	states, err := s.states(ctx, []agent.Agent{a}, true)
	if err != nil {
		return letta.AgentState{}, err
	}
	return states[0], nil
}

// states returns agents in Letta's shape. withFiles adds the texts of their open files.
func (s *Server) states(ctx context.Context, agents []agent.Agent, withFiles bool) ([]letta.AgentState, error) {
	pending, err := s.Loop.Pending(ctx, rest.Org(ctx), agents...)
	if err != nil {
		return nil, err
	}
	states := make([]letta.AgentState, len(agents))
	for i, a := range agents {
		if states[i], err = s.state(ctx, a, withFiles); err != nil {
			return nil, err
		}
		if p, ok := pending[a.ID]; ok {
			states[i].PendingApproval = letta.PendingApprovalOf(p)
		}
	}
	return states, nil
}

// state returns an agent in Letta's shape, without the calls that wait for the agent's client.
func (s *Server) state(ctx context.Context, a agent.Agent, withFiles bool) (letta.AgentState, error) {
	r, err := s.Agents.Relations(ctx, rest.Org(ctx), a, withFiles)
	if err != nil {
		return letta.AgentState{}, err
	}
	a.System = a.Instructions(s.Tools.Definitions(a, len(r.Folders) > 0))
	tools, err := s.toolsOf(ctx, a, len(r.Folders) > 0)
	if err != nil {
		return letta.AgentState{}, err
	}
	state := letta.StateOf(a, r, tools)
	if set := s.Tools.NameOf(a); set != "" {
		state.ToolSet = &set
	}
	return state, nil
}

// AgentPage selects a page of the agents that share a block or an archive.
type AgentPage struct {
	letta.Included
	rest.Paging
}

// statesOf returns a page of the agents with these ids, in Letta's shape. It returns err if that is not nil.
func (s *Server) statesOf(ctx context.Context, p AgentPage, ids []string, err error) ([]letta.AgentState, error) {
	if err != nil {
		return nil, err
	}
	var agents []agent.Agent
	for _, id := range rest.Paged(ids, p.Page(50, rest.NewestFirst), func(id string) string { return id }) {
		a, err := s.Agents.Agent(ctx, rest.Org(ctx), id)
		if err != nil {
			return nil, err
		}
		agents = append(agents, a)
	}
	return s.states(ctx, agents, p.FileBlocks())
}

// thenState returns a handler that first calls operate, an operation on an agent, and then answers with the agent's
// state.
func thenState[I agentPath](s *Server, operate rest.Handler[I, rest.Null]) rest.Handler[I, letta.AgentState] {
	return func(ctx context.Context, input *I) (letta.AgentState, error) {
		if _, err := operate(ctx, input); err != nil {
			return letta.AgentState{}, err
		}
		a, err := s.Agents.Agent(ctx, rest.Org(ctx), (*input).Agent())
		return s.shown(ctx, a, err)
	}
}

// thenStateIfOld returns a handler that calls operate, and answers Letta's older clients with the agent's state, others
// with null.
func thenStateIfOld[I interface {
	agentPath
	WantsState() bool
}](s *Server, operate rest.Handler[I, rest.Null]) rest.Handler[I, *letta.AgentState] {
	withState := thenState(s, operate)
	return func(ctx context.Context, input *I) (*letta.AgentState, error) {
		if !(*input).WantsState() {
			_, err := operate(ctx, input)
			return nil, err
		}
		state, err := withState(ctx, input)
		return &state, err
	}
}

func (s *Server) listAgents(ctx context.Context, input *struct {
	letta.AgentFilter
	letta.Included
	rest.Paging
	OrderBy   string         `query:"order_by" enum:"created_at,updated_at,last_run_completion"`
	SortBy    string         `query:"sort_by" deprecated:"true" enum:"created_at,updated_at,last_run_completion"`
	Ascending rest.Opt[bool] `query:"ascending" deprecated:"true" doc:"The order, where order is absent."`
}) ([]letta.AgentState, error) {
	filter := input.Filter()
	if input.Order == "" && input.Ascending.Value {
		input.Order = rest.OldestFirst
	}
	switch cmp.Or(input.OrderBy, input.SortBy) {
	case "updated_at":
		filter.Order = agent.OrderByUpdate
	case "last_run_completion":
		filter.Order = agent.OrderByRun
	}
	agents, err := s.Agents.List(ctx, rest.Org(ctx), filter, input.Page(50, rest.NewestFirst))
	if err != nil {
		return nil, err
	}
	return s.states(ctx, agents, input.FileBlocks())
}

func (s *Server) countAgents(ctx context.Context, input *letta.AgentFilter) (int, error) {
	return s.Agents.Count(ctx, rest.Org(ctx), input.Filter())
}

func (s *Server) agentsMixingUsers(ctx context.Context, _ *struct{}) ([]agent.MixedAgent, error) {
	return agent.Mixed(ctx, s.DB, rest.Org(ctx))
}

func (s *Server) deleteAgent(ctx context.Context, input *rest.OfAgent) (letta.Message, error) {
	err := s.Children.DeleteOf(ctx, rest.Org(ctx), string(input.AgentID))
	if err == nil {
		err = s.Agents.Delete(ctx, rest.Org(ctx), string(input.AgentID))
	}
	return letta.Message{Message: fmt.Sprintf("Agent id=%s successfully deleted", input.AgentID)}, err
}

// Recompiling says how to compile a system prompt.
type Recompiling struct {
	Dry bool `query:"dry_run" doc:"Only compile it, and keep the present prompt."`
}

func (s *Server) recompile(ctx context.Context, input *struct {
	rest.OfAgent
	Recompiling
}) (string, error) {
	c, err := s.Recall.Conversation(ctx, rest.Org(ctx), string(input.AgentID), recall.DefaultConversation)
	if err != nil {
		return "", err
	}
	return s.Agents.Recompile(ctx, rest.Org(ctx), c, input.Dry)
}

func (s *Server) coreMemory(ctx context.Context, a agent.Agent, _ *rest.OfAgent) (letta.CoreMemory, error) {
	m, err := s.Agents.CoreMemory(ctx, rest.Org(ctx), a, true)
	return letta.CoreMemoryOf(a, m), err
}

func (s *Server) listTags(ctx context.Context, input *struct {
	rest.Paging
	OrderBy   string `query:"order_by" enum:"name" doc:"Tags are in alphabetical order."`
	Name      string `query:"name" doc:"Part of the tag, in any case."`
	QueryText string `query:"query_text" deprecated:"true"`
}) ([]string, error) {
	return s.Agents.Tags(ctx, rest.Org(ctx), cmp.Or(input.Name, input.QueryText), input.Page(50, rest.OldestFirst))
}
