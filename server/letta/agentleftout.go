package letta

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db"
)

// LeftOut returns a sentence for each part of a request that an agent here does not get.
func (f AgentFields) LeftOut() (all []string) {
	for _, field := range []struct {
		name string
		size int
		why  string
	}{
		{"secrets", len(f.Secrets.Value), noSecrets},
		{"tool_exec_environment_variables", len(f.Environment.Value), noSecrets},
		{"include_multi_agent_tools", sizeOf(f.MultiAgent), "this server has no tools for several agents"},
		{"enable_sleeptime", sizeOf(f.Sleeptime.Value), "this server runs no second agent that edits memory meanwhile"},
		{"project", sizeOf(f.Project), "this server has no projects"},
		{"project_id", sizeOf(f.ProjectID), "this server has no projects"},
		{"include_default_source", sizeOf(f.DefaultSource), "Loci makes no folder with an agent"},
	} {
		if field.size > 0 {
			all = append(all, leftOut(field.name, field.why))
		}
	}
	for i, rule := range f.ToolRules.Value {
		_, names := withoutArguments(rule.Object)
		for _, name := range names {
			all = append(all, leftOut(fmt.Sprintf("tool_rules[%d].%s", i, name), "this server sets no arguments of calls, "+
				"which are what the model writes"))
		}
	}
	return all
}

const noSecrets = "this server runs no custom tools and stores no secrets"

func leftOut(place, why string) string { return fmt.Sprintf("%s: left out, as %s.", place, why) }

// LeftOut returns a sentence for each part of a request that an agent here does not get.
func (c CreateAgent) LeftOut() []string {
	all := c.AgentFields.LeftOut()
	if name := string(c.Type.Value); agent.IsLabel(name) {
		all = append(all, fmt.Sprintf("agent_type: %s is only a label here: the agent runs as a %s.", name,
			agent.DefaultType))
	}
	return all
}

// LeftOutTools returns a sentence for each tool of Letta's that this server does not have.
func LeftOutTools(names []string) (all []string) {
	for _, name := range names {
		all = append(all, leftOut(fmt.Sprintf("tools: %s", db.Short(name)), tool.WhyAbsent(name)))
	}
	return all
}

// Rules returns the rules of a new agent with these tools: those of the request, and Letta's of its base tools.
func (c CreateAgent) Rules(rules json.RawMessage, tools []string) json.RawMessage {
	if !c.withRules(cmp.Or(c.Model.Value, readLLMConfig(c.LLMConfig.Value).Model)) {
		return rules
	}
	return WithBaseRules(rules, tools)
}

// noBaseRules are parts of the names of models whose agents get no rules for base tools in Letta, because they
// know when to go on.
var noBaseRules = []string{"claude-4-sonnet", "claude-3-5-sonnet", "gpt-5", "gemini-2.5-pro"}

// withRules reports whether the base tools of a new agent bring rules, as in Letta.
func (c CreateAgent) withRules(model string) bool {
	has := func(part string) bool { return strings.Contains(model, part) }
	switch {
	case c.IncludeRules.Set && !c.IncludeRules.Null:
		return c.IncludeRules.Value
	case c.MadeFor.Value != agent.ForLetta, c.isDefault() && c.withBase() && len(c.ToolRules.Value) == 0:
		return false
	case string(c.Type.Value) == agent.Sleeptime, agent.SpeaksByTool(string(c.Type.Value)), has("mini"):
		return true
	}
	return !slices.ContainsFunc(noBaseRules, has)
}
