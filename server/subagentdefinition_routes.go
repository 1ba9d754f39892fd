package server

import (
	"context"
	"encoding/json"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) definitionRoutes(a *rest.API) {
	const path = "/v1/agents/{agent_id}/subagents"
	rest.Get(a.For(rest.ReadAgent), path, "list_subagents: List an agent's definitions of sub-agents. Sorted by name.",
		withAgent(s, s.listDefinitions), rest.Own)
	rest.Get(a.For(rest.ReadAgent), path+"/{subagent_name}", "get_subagent: Get a definition of sub-agents.",
		withAgent(s, s.getDefinition), rest.Own)
	rest.Put(a.For(rest.Write), path+"/{subagent_name}",
		"upsert_subagent: Create a definition of sub-agents, or replace the one of its name. The agent's model sees the "+
			"name and the description in its tool start_subagent. Sub-agents that were started before stay as they are.",
		withAgent(s, s.putDefinition), rest.Own)
	rest.Delete(a.For(rest.Write), path+"/{subagent_name}",
		"delete_subagent: Delete a definition of sub-agents. Sub-agents that were started by its name stay.",
		withAgent(s, s.deleteDefinition), rest.Own)
}

// SubagentDefinition is a definition of sub-agents.
type SubagentDefinition struct {
	agent.SubagentDefinition
	SubagentGiven
}

// SubagentGiven is what the sub-agents of a definition are given.
type SubagentGiven struct {
	Mode   string            `json:"mode" enum:"blank,brief"`
	Prompt string            `json:"prompt" doc:"Its instructions; empty: those of every sub-agent."`
	Tools  []string          `json:"tools" doc:"Names of the parent's that it may call; null: all."`
	Skills []string          `json:"skills" nullable:"false" doc:"Of the parent's; they begin its conversation."`
	Policy *rest.Object      `json:"policy" doc:"Its compaction settings; null: the parent's."`
	Model  *string           `json:"model" doc:"Null: the parent's."`
	Window *int              `json:"context_window_limit" doc:"Null: the parent's."`
	Grants agent.GivenGrants `json:"grants" doc:"Memories of the parent."`
}

func definitionOf(d agent.SubagentDefinition) SubagentDefinition {
	g := d.Given
	shown := SubagentDefinition{SubagentDefinition: d, SubagentGiven: SubagentGiven{Mode: g.Mode, Prompt: g.Prompt,
		Tools: g.Tools, Skills: append([]string{}, g.Skills...), Model: g.Model, Window: g.Window, Grants: g.Grants}}
	if g.Policy != nil {
		shown.Policy = new(rest.Object(g.Policy))
	}
	return shown
}

// PutSubagent describes a definition of sub-agents.
type PutSubagent struct {
	Description rest.Opt[string]      `json:"description,omitzero" doc:"What it is for; the agent's model reads it."`
	Mode        rest.Opt[string]      `json:"mode,omitzero" enum:"blank,brief" doc:"What it is told; blank if absent."`
	Prompt      rest.Opt[string]      `json:"prompt,omitzero" doc:"Its instructions." example:"You count ships."`
	Tools       rest.Opt[[]string]    `json:"tools,omitzero" doc:"Names of the agent's that it may call; else all."`
	Skills      rest.Opt[[]string]    `json:"skills,omitzero" doc:"Of the agent's; they begin its conversation."`
	Policy      rest.Opt[rest.Object] `json:"policy,omitzero" doc:"Compaction settings; the agent's if absent."`
	Model       rest.Opt[string]      `json:"model,omitzero" doc:"The agent's if absent."`
	Window      rest.Opt[int]         `json:"context_window_limit,omitzero" minimum:"1" doc:"The agent's if absent."`
	Grants      rest.Opt[PutGrants]   `json:"grants,omitzero" doc:"Memories of the agent; the default ones if absent."`
}

// PutGrants are the memories that the sub-agents of a definition get.
type PutGrants struct {
	Default    rest.Opt[bool]         `json:"default,omitzero" doc:"AGENTS, TOOLS and SOUL; true if absent."`
	Blocks     rest.Opt[[]ChildGrant] `json:"blocks,omitzero" doc:"By label or id."`
	Folders    rest.Opt[[]string]     `json:"folders,omitzero" doc:"By name or id."`
	Files      rest.Opt[[]string]     `json:"files,omitzero" doc:"Of brief: files (folder/name) that are open at first."`
	MemoryTree rest.Opt[ChildGrant]   `json:"memory_tree,omitzero" doc:"The agent's memory files."`
}

func (b PutSubagent) definition(name string) agent.SubagentDefinition {
	asked := b.Grants.Value
	grants := agent.GivenGrants{Default: asked.Default.Pointer() == nil || asked.Default.Value,
		Blocks: []agent.GivenGrant{}, Folders: append([]string{}, asked.Folders.Value...),
		Files: append([]string{}, asked.Files.Value...)}
	for _, g := range asked.Blocks.Value {
		grants.Blocks = append(grants.Blocks, agent.GivenGrant(g.grant()))
	}
	if g := asked.MemoryTree.Pointer(); g != nil {
		grants.MemoryTree = new(agent.GivenGrant(g.grant()))
	}
	given := agent.Given{Mode: b.Mode.Value, Prompt: b.Prompt.Value, Tools: b.Tools.Value,
		Skills: b.Skills.Value, Policy: json.RawMessage(b.Policy.Value), Window: b.Window.Pointer(), Grants: grants}
	if b.Model.Value != "" {
		given.Model = &b.Model.Value
	}
	return agent.SubagentDefinition{Name: name, Description: b.Description.Value, Given: given}
}

// OfSubagent holds the path parameters of operations on a definition of sub-agents.
type OfSubagent struct {
	rest.OfAgent
	Name string `path:"subagent_name" doc:"Letters, digits, '_' and '-', at most 64." example:"scout"`
}

func (s *Server) listDefinitions(ctx context.Context, a agent.Agent, _ *rest.OfAgent) ([]SubagentDefinition, error) {
	all, err := s.Agents.SubagentDefinitions(ctx, rest.Org(ctx), a.ID)
	return rest.Each(all, definitionOf), err
}

func (s *Server) getDefinition(ctx context.Context, a agent.Agent, input *OfSubagent) (SubagentDefinition, error) {
	d, err := s.Agents.SubagentDefinition(ctx, rest.Org(ctx), a.ID, input.Name)
	return definitionOf(d), err
}

func (s *Server) putDefinition(ctx context.Context, a agent.Agent, input *struct {
	OfSubagent
	Body PutSubagent
}) (SubagentDefinition, error) {
	d, err := s.Children.PutDefinition(ctx, rest.Org(ctx), a, input.Body.definition(input.Name))
	return definitionOf(d), err
}

func (s *Server) deleteDefinition(ctx context.Context, a agent.Agent, input *OfSubagent) (rest.Null, error) {
	return rest.Null{}, s.Agents.DeleteSubagentDefinition(ctx, rest.Org(ctx), a.ID, input.Name)
}
