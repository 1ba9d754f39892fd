package agentfile

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

// lettasTools are the built-in tools that Letta has too. Letta's schema refuses other tools of its own types.
var lettasTools = []string{"open_files", "grep_files", "semantic_search_files", "conversation_search",
	"core_memory_append", "core_memory_replace", "memory_insert", "memory_replace", "memory_rethink", "memory_apply_patch",
	"memory", "archival_memory_insert", "archival_memory_search", agent.SendMessage, agent.MemoryFinishEdits}

// fileTool holds the fields of a tool in a file that say which kind of tool it is.
type fileTool struct {
	ID   json.RawMessage
	Name string
	Type string `json:"tool_type"`
}

// schemaFields are the fields of a tool's schema that its definition has.
var schemaFields = []string{"name", "description", "parameters", "strict"}

// typeCustom is Letta's type for tools with a definition.
const typeCustom = "custom"

// readTools finds the built-in tools of the file that Loci has, and creates the custom tools.
func (i *imports) readTools(ctx context.Context) error {
	i.tools, i.custom = map[string]string{}, map[string]string{}
	for it, err := range i.file.items(listTools) {
		if err != nil {
			return err
		}
		var t fileTool
		if err := decode(it.place, it.raw, &t); err != nil {
			return err
		}
		name := ""
		if i.Tools.Has(t.Name) {
			name = t.Name
		}
		if err := remember(i.tools, it.place, t.ID, name); err != nil {
			return err
		}
		switch {
		case name != "":
		case t.Type != typeCustom:
			i.leaveOut("%s: the tool %q is left out. It is none of Loci's; create a definition with POST /v1/tools if your "+
				"program runs it.", it.place, db.Short(t.Name))
		default:
			if err := i.createTool(ctx, it, t); err != nil {
				return err
			}
		}
	}
	for n, t := range i.file.own.Tools {
		if _, ok := i.tools[t.Of]; !ok {
			return db.Invalid("loci.tools[%d].of: the file has no tool %q", n, db.Short(t.Of))
		}
	}
	return nil
}

// createTool creates a custom tool. If the tool's definition is too poor for a model, the tool is left out, unless Loci
// wrote the file.
func (i *imports) createTool(ctx context.Context, it item, t fileTool) error {
	definition, err := i.definition(it)
	if problem, ok := errors.AsType[*rest.Problem](err); ok && len(i.file.own.Agents) == 0 && t.Name != "" {
		i.leaveOut("%s: the tool %q is left out. %s", it.place, db.Short(t.Name), problem.Detail)
		return nil
	}
	if err != nil {
		return at(it.place, err)
	}
	var id string
	_ = json.Unmarshal(t.ID, &id) // remember has decoded it before
	if n := slices.IndexFunc(i.file.own.Tools, func(o lociTool) bool { return o.Of == id }); n >= 0 {
		stored := i.file.own.Tools[n]
		definition.Parallel = stored.Parallel
		if i.file.own.Full {
			definition.CreatedAt, definition.UpdatedAt, definition.FormerNames = stored.CreatedAt, stored.UpdatedAt,
				stored.Former
			definition.Makers = stored.Makers
			if err := i.makers(&definition.Makers); err != nil {
				return at(it.place, err)
			}
			if definition.ID, err = i.ids.of("tool-", stored.ID); err != nil {
				return at(it.place, err)
			}
		}
	}
	created, err := i.Agents.RestoreTool(ctx, i.org, definition, !i.KeepTools)
	if err != nil {
		return at(it.place, err)
	}
	if slices.Contains(slices.Collect(maps.Values(i.custom)), created) {
		return db.Invalid("%s: the file has two custom tools %s", it.place, definition.Name)
	}
	i.custom[id] = created
	return nil
}

// definition reads the definition of a custom tool as POST /v1/tools does. A schema without fields counts as absent.
func (i *imports) definition(it item) (agent.CustomTool, error) {
	raw, removed, err := without(it.place, it.raw, "id", "name", "tool_type", "created_by_id", "last_updated_by_id",
		"project_id", "json_schema")
	if err != nil {
		return agent.CustomTool{}, err
	}
	var schema map[string]json.RawMessage
	if json.Unmarshal(removed["json_schema"], &schema) != nil || len(schema) > 0 {
		fields := map[string]json.RawMessage{}
		if err := decode(it.place, raw, &fields); err != nil {
			return agent.CustomTool{}, err
		}
		fields["json_schema"] = orNull(removed["json_schema"])
		if len(schema) > 0 { // older servers wrote more fields, such as required, beside the parameters
			if fields["json_schema"], err = encode(kept(schema, schemaFields)); err != nil {
				return agent.CustomTool{}, err
			}
		}
		if raw, err = encode(fields); err != nil {
			return agent.CustomTool{}, err
		}
	}
	request, err := i.readTool.Item(it.place, raw, &i.file.warnings)
	if err != nil {
		return agent.CustomTool{}, err
	}
	definition, err := request.New()
	if err == nil && i.Tools.Has(definition.Name) {
		err = db.Invalid("%s is the name of a built-in tool", definition.Name)
	}
	return definition, err
}

// toolsOf returns the names of an agent's built-in tools, nil for every tool, and the ids of its custom tools.
func (i *imports) toolsOf(a agentOf) (names, ids []string, err error) {
	names = []string{}
	if a.own != nil { // tools that Letta lacks
		names = slices.DeleteFunc(slices.Clone(a.own.Tools), func(n string) bool { return slices.Contains(lettasTools, n) })
	}
	for n, id := range a.fields.ToolIDs {
		name, ok := i.tools[id]
		switch custom := i.custom[id]; {
		case !ok:
			return nil, nil, db.Invalid("%s.tool_ids[%d]: the file has no tool %q", a.place, n, db.Short(id))
		case name != "":
			names = append(names, name)
		case slices.Contains(ids, custom):
			return nil, nil, db.Invalid("%s.tool_ids[%d]: the agent has the tool %q twice", a.place, n, db.Short(id))
		case custom != "":
			ids = append(ids, custom)
		}
	}
	for n, name := range a.fields.Tools {
		if i.Tools.Has(name) {
			names = append(names, name)
			continue
		}
		i.leaveOut("%s.tools[%d]: the tool %q is left out. The file has no definition of it.", a.place, n, db.Short(name))
	}
	if a.own != nil && (i.file.own.Full || a.own.Tools == nil || slices.Contains(a.own.Tools, agent.DefaultTools)) {
		return i.ownTools(a), ids, nil
	}
	return names, ids, nil
}

// ownTools returns the names of an agent's built-in tools, from a file that Loci wrote.
func (i *imports) ownTools(a agentOf) []string {
	for _, name := range a.own.Tools {
		if name != agent.EveryTool && name != agent.DefaultTools && !i.Tools.Has(name) {
			i.leaveOut("%s: the tool %q is left out. It is none of this server's.", a.place, db.Short(name))
		}
	}
	return a.own.Tools
}

// knownRules returns an agent's tool rules without rules for tools that the import lacks.
func (i *imports) knownRules(ctx context.Context, a agentOf) (json.RawMessage, error) {
	var rules []rest.Object
	if len(a.Settings.ToolRules) == 0 {
		return nil, nil
	}
	if err := decode(a.place+".tool_rules", a.Settings.ToolRules, &rules); err != nil {
		return nil, err
	}
	definitions, err := i.Agents.ToolsNamed(ctx, i.org, nil, a.ToolIDs)
	if err != nil {
		return nil, err
	}
	hasTool := func(name string) bool {
		return i.Tools.Has(name) ||
			slices.ContainsFunc(definitions, func(t agent.CustomTool) bool { return t.Name == name })
	}
	usable := []rest.Object{}
	for n, rule := range rules {
		encoded, err := encode([]rest.Object{rule})
		if err != nil {
			return nil, err
		}
		lacks := slices.IndexFunc(letta.ToolRuleNames(encoded), func(name string) bool { return !hasTool(name) })
		if lacks < 0 {
			usable = append(usable, rule)
			continue
		}
		i.leaveOut("%s.tool_rules[%d]: left out, as the agent has no tool %q.", a.place, n,
			db.Short(letta.ToolRuleNames(encoded)[lacks]))
	}
	return encode(usable)
}
