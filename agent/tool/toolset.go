package tool

import (
	"slices"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
)

// The named sets of tools, besides agent.EveryTool and agent.DefaultTools.
const (
	SmallSet    = "small"    // for small models: three file tools, the log, and one tool that edits blocks
	StandardSet = "standard" // Letta's base tools, the tools for archival memory, and all file tools
)

var sets = map[string][]string{
	SmallSet: {"open_files", "grep_files", "semantic_search_files", "conversation_search", "expand", "memory"},
	StandardSet: {"open_files", "grep_files", "semantic_search_files", "list_files", "close_files", "conversation_search",
		"expand", "memory_insert", "memory_replace", "memory_rethink", "archival_memory_insert", "archival_memory_search"},
	agent.EveryTool:    {agent.EveryTool},
	agent.DefaultTools: {agent.DefaultTools},
}

// NewAgent returns an agent before its tools are chosen. It has the small set, which includes Letta's file tools.
func NewAgent(madeFor string) agent.Agent {
	return agent.Agent{Settings: agent.Settings{Tools: sets[SmallSet], MadeFor: madeFor}}
}

// Choice is a caller's choice of an agent's tools. Nil and empty fields choose nothing.
type Choice struct {
	Set         string // small, standard, all or default; empty names no set
	IncludeBase *bool  // true adds Letta's default tools: those of its type to an agent made for Letta
	Names, IDs  []string
}

// Own removes the tools of the given definitions from the choice, and returns the ids of all definitions. If the choice
// names no tools at all, it is unchanged, and the ids are nil.
func (c Choice) Own(definitions []agent.CustomTool) (Choice, []string) {
	if c.Names == nil && c.IDs == nil {
		return c, nil
	}
	ids := []string{}
	for _, d := range definitions {
		c.Names = slices.DeleteFunc(slices.Clone(c.Names), func(name string) bool { return name == d.Name })
		c.IDs = slices.DeleteFunc(slices.Clone(c.IDs), func(id string) bool { return id == d.ID })
		ids = append(ids, d.ID)
	}
	if c.Names == nil && c.IDs == nil {
		c.Names = []string{}
	}
	return c, ids
}

// WithoutAbsent removes tools of Letta's that this server does not have from a choice, and returns their names.
func (c Choice) WithoutAbsent() (Choice, []string) {
	var names []string
	kept := slices.DeleteFunc(slices.Clone(c.Names), func(name string) bool {
		if WhyAbsent(name) != "" {
			names = append(names, name)
		}
		return WhyAbsent(name) != ""
	})
	if len(names) > 0 {
		c.Names = append([]string{}, kept...)
	}
	return c, names
}

// Choose returns the names of the built-in tools that an agent has after a choice; nil if the choice is empty. They are
// the named tools, the named set, and with IncludeBase Letta's default tools. An agent without a
// folder shows no file tools, so a choice without file tools keeps the file tools that the previous agent would have
// with a folder. ErrInvalid for an unknown set or tool, ErrNotFound for an unknown id.
func (s *Set) Choose(c Choice, previous agent.Agent, hasFolder bool) ([]string, error) {
	if c.Set == "" && c.IncludeBase == nil && c.Names == nil && c.IDs == nil {
		return nil, nil
	}
	chosen, err := s.base(c, previous)
	if err != nil {
		return nil, err
	}
	for _, name := range c.Names {
		if !slices.Contains(s.names(), name) {
			return nil, db.Invalid("tools: %s", s.unknown(name, s.names()))
		}
		chosen = append(chosen, name)
	}
	for _, id := range c.IDs {
		t, err := s.ByID(id)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, t.Name)
	}
	return s.withFileTools(chosen, previous, hasFolder), nil
}

// CheckNames returns ErrInvalid if a name in a field is no built-in tool's.
func (s *Set) CheckNames(field string, names []string) error {
	for _, name := range names {
		if !s.Has(name) {
			return db.Invalid("%s: %s", field, s.unknown(name, s.names()))
		}
	}
	return nil
}

// base returns the tools that a choice selects by sets.
func (s *Set) base(c Choice, previous agent.Agent) ([]string, error) {
	set, ok := sets[c.Set]
	if c.Set != "" && !ok {
		return nil, db.Invalid("tool_set: there is no set '%s'; the sets are default, small, standard and all", echo(c.Set))
	}
	chosen := append([]string{}, set...)
	switch {
	case c.IncludeBase == nil || !*c.IncludeBase:
	case previous.MadeFor() != agent.ForLetta:
		chosen = append(chosen, agent.LettaTools(agent.DefaultType)...)
	case c.Set != agent.DefaultTools:
		chosen = append(chosen, agent.DefaultTools)
	}
	return chosen, nil
}

func (s *Set) withFileTools(chosen []string, previous agent.Agent, hasFolder bool) []string {
	isFileTool := func(name string) bool {
		return slices.ContainsFunc(s.tools, func(t Tool) bool { return t.Name == name && t.NeedsFolder })
	}
	hasSome := func(name string) bool {
		return name == agent.EveryTool || name == agent.DefaultTools || isFileTool(name)
	}
	if hasFolder || slices.ContainsFunc(chosen, hasSome) {
		return chosen
	}
	for _, t := range s.tools {
		if t.NeedsFolder && previous.HasTool(t.Name) {
			chosen = append(chosen, t.Name)
		}
	}
	return chosen
}

// NameOf returns the name of the set that an agent has; empty if its tools are not a named set.
func (s *Set) NameOf(a agent.Agent) string {
	if slices.Equal(a.Settings.Tools, sets[agent.DefaultTools]) {
		return agent.DefaultTools
	}
	for _, name := range []string{agent.EveryTool, StandardSet, SmallSet} {
		other := agent.Agent{Settings: agent.Settings{Tools: sets[name]}}
		if !slices.ContainsFunc(s.tools, func(t Tool) bool {
			return !t.NeedsSkills && a.HasTool(t.Name) != other.HasTool(t.Name)
		}) {
			return name
		}
	}
	return ""
}

// With returns the tools of an agent after attaching one; nil if the agent already has that tool.
func (s *Set) With(a agent.Agent, name string) []string {
	if a.HasTool(name) {
		return nil
	}
	return append(s.namesOf(a), name)
}

// Without returns the tools of an agent after detaching one; nil if the agent does not have that tool.
func (s *Set) Without(a agent.Agent, name string) []string {
	if !a.HasTool(name) {
		return nil
	}
	return slices.DeleteFunc(s.namesOf(a), func(n string) bool { return n == name })
}

// namesOf returns the names of the tools that an agent has while a folder is attached to it, without those that come
// and go with folders of skills.
func (s *Set) namesOf(a agent.Agent) (names []string) {
	for _, t := range s.tools {
		if a.HasTool(t.Name) && !t.NeedsSkills {
			names = append(names, t.Name)
		}
	}
	return names
}

// Has reports whether there is a tool with the given name.
func (s *Set) Has(name string) bool { return slices.Contains(s.names(), name) }
