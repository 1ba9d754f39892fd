package letta

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/rest"
)

// Tool is a tool in Letta's shape. Built-in tools have no source code, and cannot be changed.
type Tool struct {
	ID                      string          `json:"id"`
	Name                    string          `json:"name"`
	Description             string          `json:"description"`
	SourceCode              *string         `json:"source_code" doc:"Kept for its readers; it is never run."`
	SourceType              string          `json:"source_type"`
	JSONSchema              json.RawMessage `json:"json_schema" doc:"For the model: name, description and parameters."`
	ArgsJSONSchema          json.RawMessage `json:"args_json_schema"`
	Tags                    []string        `json:"tags"`
	ToolType                string          `json:"tool_type"`
	ReturnCharLimit         int             `json:"return_char_limit"`
	PipRequirements         json.RawMessage `json:"pip_requirements"`
	NPMRequirements         json.RawMessage `json:"npm_requirements"`
	DefaultRequiresApproval *bool           `json:"default_requires_approval"`
	EnableParallelExecution bool            `json:"enable_parallel_execution"`
	Metadata                json.RawMessage `json:"metadata_"`
	ProjectID               rest.Null       `json:"project_id"`
	CreatedByID             rest.Null       `json:"created_by_id"`
	LastUpdatedByID         rest.Null       `json:"last_updated_by_id"`
	db.Makers
}

// Letta's types of tools: tools that come with a folder, those of agents that keep memory in order, other built-in
// tools, and an organization's own tools.
const (
	typeFiles     = "letta_files_core"
	typeSleeptime = "letta_sleeptime_core"
	typeCore      = "letta_core"
	typeCustom    = "custom"
)

// ToolOf returns a built-in tool in Letta's shape.
func ToolOf(t tool.Tool) Tool {
	kind := typeCore
	switch {
	case t.NeedsFolder:
		kind = typeFiles
	case slices.Contains(agent.LettaTools(agent.Sleeptime), t.Name):
		kind = typeSleeptime
	}
	return Tool{ID: t.ID, Name: t.Name, Description: t.Description, JSONSchema: t.Schema,
		SourceType: "python", Tags: []string{kind}, ToolType: kind, ReturnCharLimit: tool.MaxChars}
}

// CustomToolOf returns a custom tool in Letta's shape.
func CustomToolOf(t agent.CustomTool) Tool {
	return Tool{ID: t.ID, Name: t.Name, Description: t.Description, SourceCode: t.Source, SourceType: t.SourceType,
		JSONSchema: t.Schema, ArgsJSONSchema: t.ArgsSchema, Tags: t.Tags, ToolType: typeCustom,
		ReturnCharLimit: t.ReturnCharLimit, PipRequirements: t.Pip, NPMRequirements: t.NPM,
		DefaultRequiresApproval: t.RequiresApproval, EnableParallelExecution: t.Parallel != nil && *t.Parallel,
		Metadata: t.Metadata, Makers: t.Makers}
}

// RunTool is a request to run a tool.
type RunTool struct {
	Args rest.Opt[Arguments] `json:"args,omitzero" doc:"As the tool's schema says; an empty object if absent."`

	Conversation rest.Opt[string] `json:"conversation_id,omitzero" doc:"Where the model calls it; default if absent."`
	RecallScope  rest.Opt[string] `json:"recall_scope,omitzero" enum:"agent,user,conversation" doc:"Narrows the agent's."`
}

// Arguments are the arguments of a call as a model wrote them: an object, or its JSON as a text. A result with an error
// tells the model what is wrong with others.
type Arguments json.RawMessage

// UnmarshalJSON implements json.Unmarshaler.
func (a *Arguments) UnmarshalJSON(raw []byte) error { return (*json.RawMessage)(a).UnmarshalJSON(raw) }

// Schema implements huma.SchemaProvider.
func (Arguments) Schema(rest.Registry) *rest.Schema { return &rest.Schema{} }

// ToolRun is the result of a tool. Files are the files that the tool opened, for callers that build their own prompt.
type ToolRun struct {
	Status      string         `json:"status" enum:"success,error"`
	Return      string         `json:"func_return"`
	Stdout      rest.Null      `json:"stdout"`
	Stderr      rest.Null      `json:"stderr"`
	AgentState  rest.Null      `json:"agent_state"`
	Fingerprint rest.Null      `json:"sandbox_config_fingerprint"`
	Files       []files.Opened `json:"files,omitempty"`
}

// ToolFilter narrows a list of tools.
type ToolFilter struct {
	Name      string   `query:"name"`
	Names     []string `query:"names,explode"`
	IDs       []string `query:"tool_ids,explode"`
	Search    string   `query:"search" doc:"Part of the name, in any case."`
	Types     []string `query:"tool_types,explode" doc:"Repeated, or with commas."`
	Without   []string `query:"exclude_tool_types,explode" doc:"Repeated, or with commas."`
	OnlyLetta bool     `query:"return_only_letta_tools" doc:"Only built-in tools."`
}

// toolTypes are Letta's types of tools.
var toolTypes = []string{typeCustom, typeCore, "letta_memory_core", "letta_multi_agent_core", typeSleeptime,
	"letta_voice_sleeptime_core", "letta_builtin", typeFiles, "external_langchain", "external_composio", "external_mcp"}

// Filter returns the filter for custom tools, and the built-in tools that match. ErrInvalid for a type that Letta does
// not have.
func (f ToolFilter) Filter(builtin []tool.Tool) (agent.ToolFilter, []Tool, error) {
	var err error
	if f.Types, err = readToolTypes("tool_types", f.Types); err != nil {
		return agent.ToolFilter{}, nil, err
	}
	if f.Without, err = readToolTypes("exclude_tool_types", f.Without); err != nil {
		return agent.ToolFilter{}, nil, err
	}
	matching := slices.DeleteFunc(rest.Each(builtin, ToolOf), f.excludes)
	custom := agent.ToolFilter{Names: f.Names, IDs: f.IDs, Contains: f.Search,
		None: f.OnlyLetta || f.lacksType(typeCustom)}
	if f.Name != "" {
		custom.None = custom.None || len(f.Names) > 0 && !slices.Contains(f.Names, f.Name)
		custom.Names = []string{f.Name}
	}
	for _, t := range matching {
		custom.Builtin = append(custom.Builtin, t.ID)
	}
	return custom, matching, nil
}

func readToolTypes(name string, values []string) (types []string, err error) {
	for _, list := range values {
		for kind := range strings.SplitSeq(list, ",") {
			if kind = strings.TrimSpace(kind); kind == "" {
				continue
			}
			if !slices.Contains(toolTypes, kind) {
				return nil, db.Invalid("%s: there is no type %q; the types are %s", name, db.Short(kind),
					strings.Join(toolTypes, ", "))
			}
			types = append(types, kind)
		}
	}
	return types, nil
}

func (f ToolFilter) lacksType(kind string) bool {
	return len(f.Types) > 0 && !slices.Contains(f.Types, kind) || slices.Contains(f.Without, kind)
}

// excludes reports whether the filter rejects a built-in tool.
func (f ToolFilter) excludes(t Tool) bool {
	return f.Name != "" && t.Name != f.Name ||
		len(f.Names) > 0 && !slices.Contains(f.Names, t.Name) ||
		len(f.IDs) > 0 && !slices.Contains(f.IDs, t.ID) ||
		!strings.Contains(t.Name, strings.ToLower(f.Search)) || f.lacksType(t.ToolType)
}
