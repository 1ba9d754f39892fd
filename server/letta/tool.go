package letta

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/tool"
)

// Tool is a tool in Letta's shape. Loci's tools have no source code to show, and cannot be changed.
type Tool struct {
	ID                      string          `json:"id"`
	Name                    string          `json:"name"`
	Description             string          `json:"description"`
	SourceCode              rest.Null       `json:"source_code"`
	SourceType              string          `json:"source_type"`
	JSONSchema              json.RawMessage `json:"json_schema" doc:"For the model: name, description and parameters."`
	ArgsJSONSchema          rest.Null       `json:"args_json_schema"`
	Tags                    []string        `json:"tags"`
	ToolType                string          `json:"tool_type"`
	ReturnCharLimit         int             `json:"return_char_limit"`
	PipRequirements         rest.Null       `json:"pip_requirements"`
	NPMRequirements         rest.Null       `json:"npm_requirements"`
	DefaultRequiresApproval rest.Null       `json:"default_requires_approval"`
	EnableParallelExecution bool            `json:"enable_parallel_execution"`
	Metadata                rest.Null       `json:"metadata_"`
	ProjectID               rest.Null       `json:"project_id"`
	CreatedByID             rest.Null       `json:"created_by_id"`
	LastUpdatedByID         rest.Null       `json:"last_updated_by_id"`
}

// Letta's types of tools: those that come with a folder, and those that every agent has.
const (
	typeFiles = "letta_files_core"
	typeCore  = "letta_core"
)

// ToolOf returns a tool in Letta's shape.
func ToolOf(t tool.Tool) Tool {
	kind := typeCore
	if t.NeedsFolder {
		kind = typeFiles
	}
	return Tool{ID: t.ID, Name: t.Name, Description: t.Description, JSONSchema: t.Schema,
		SourceType: "python", Tags: []string{}, ToolType: kind, ReturnCharLimit: tool.MaxChars}
}

// RunTool is a request to run a tool.
type RunTool struct {
	Args rest.Opt[rest.Object] `json:"args,omitzero" doc:"As the tool's schema says; an empty object if absent."`

	Conversation rest.Opt[string] `json:"conversation_id,omitzero" doc:"Where the model calls it; default if absent."`
	RecallScope  rest.Opt[string] `json:"recall_scope,omitzero" enum:"agent,conversation" doc:"Narrows the agent's."`
}

// ToolRun is the result of a tool. Files are those that the tool opened, for callers who keep their own prompt.
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
	Name    string   `query:"name"`
	Names   []string `query:"names,explode"`
	IDs     []string `query:"tool_ids,explode"`
	Search  string   `query:"search" doc:"Part of the name, in any case."`
	Types   []string `query:"tool_types,explode"`
	Without []string `query:"exclude_tool_types,explode"`
}

// Excludes reports whether the list lacks a tool.
func (f ToolFilter) Excludes(t Tool) bool {
	return f.Name != "" && t.Name != f.Name ||
		len(f.Names) > 0 && !slices.Contains(f.Names, t.Name) ||
		len(f.IDs) > 0 && !slices.Contains(f.IDs, t.ID) ||
		!strings.Contains(t.Name, strings.ToLower(f.Search)) ||
		len(f.Types) > 0 && !slices.Contains(f.Types, t.ToolType) ||
		slices.Contains(f.Without, t.ToolType)
}
