package subagent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
)

// PutDefinition creates a definition of an agent's sub-agents, or replaces the one of its name. ErrInvalid if it breaks
// a rule, or names a tool or a skill that the agent does not have.
func (s *Store) PutDefinition(ctx context.Context, org db.Org, parent agent.Agent, d agent.SubagentDefinition) (
	agent.SubagentDefinition, error) {
	if _, err := s.toolsOf(ctx, org, parent, d.Given.Tools); err != nil {
		return d, err
	}
	if err := s.Agents.CheckSkills(ctx, org, parent, d.Given.Skills); err != nil {
		return d, err
	}
	return s.Agents.PutSubagentDefinition(ctx, org, parent.ID, d)
}

// defined returns a request with what its definition says. ErrInvalid if there is no such definition, or if the request
// itself says what the sub-agent is given.
func (s *Store) defined(ctx context.Context, org db.Org, parent agent.Agent, n New) (New, error) {
	if n.Definition == "" {
		return n, nil
	}
	if n.OnlyTools != nil || n.Default || n.Blocks != nil || n.Folders != nil || n.Skills != nil || n.Tree != nil ||
		n.Model != nil || n.System != nil || n.Compaction != nil || n.WindowLimit != nil {
		return n, db.Invalid("the definition %s says what the sub-agent is given: leave out tools, blocks, default_grants, "+
			"folders, skills, memory_tree, model, system, context_window_limit and compaction_settings", db.Short(n.Definition))
	}
	d, err := s.Agents.SubagentDefinition(ctx, org, parent.ID, n.Definition)
	if errors.Is(err, db.ErrNotFound) {
		return n, db.Invalid("definition: there is no definition %q of sub-agents; there is %s", db.Short(n.Definition),
			cmp.Or(strings.Join(definitionsOf(parent), ", "), "none"))
	}
	if err != nil {
		return n, err
	}
	return n.with(d), nil
}

func definitionsOf(parent agent.Agent) (names []string) {
	for _, d := range parent.Subagents {
		names = append(names, d.Name)
	}
	return names
}

// with returns the request with what a definition says. The request's mode, name and files are its own.
func (n New) with(d agent.SubagentDefinition) New {
	g := d.Given
	n.Definition = ""
	n.Mode, n.Name = cmp.Or(n.Mode, g.Mode, Blank), cmp.Or(n.Name, d.Name)
	n.OnlyTools, n.Compaction, n.Model, n.WindowLimit = g.Tools, g.Policy, g.Model, g.Window
	if g.Prompt != "" {
		n.System = &g.Prompt
	}
	n.Default, n.Folders, n.Skills = g.Grants.Default, g.Grants.Folders, g.Skills
	if n.Mode == Brief {
		n.Files = slices.Concat(g.Grants.Files, n.Files)
	}
	for _, b := range g.Grants.Blocks {
		n.Blocks = append(n.Blocks, Grant(b))
	}
	if t := g.Grants.MemoryTree; t != nil {
		n.Tree = new(Grant(*t))
	}
	return n
}
