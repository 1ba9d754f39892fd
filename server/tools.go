package server

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/agent"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/tool"
)

// Tool is a tool in Letta's shape. This server's are its own: they have no source code to show, and cannot be changed.
type Tool struct {
	ID                      string          `json:"id"`
	Name                    string          `json:"name"`
	Description             string          `json:"description"`
	SourceCode              rest.Null       `json:"source_code"`
	SourceType              string          `json:"source_type"`
	JSONSchema              json.RawMessage `json:"json_schema" doc:"What a model is given: name, description and parameters."`
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

// allTools are the server's tools, in the order in which a model should read them.
func (s *Server) allTools() []Tool {
	tools := []Tool{}
	for _, t := range s.Tools.Tools() {
		kind := typeCore
		if t.NeedsFolder {
			kind = typeFiles
		}
		tools = append(tools, Tool{ID: t.ID, Name: t.Name, Description: t.Description, JSONSchema: t.Schema, SourceType: "python",
			Tags: []string{}, ToolType: kind, ReturnCharLimit: tool.MaxChars})
	}
	return tools
}

func (s *Server) toolNames() (names []string) {
	for _, t := range s.Tools.Tools() {
		names = append(names, t.Name)
	}
	return names
}

// toolsOf are an agent's tools: the file tools come with its first folder and go with its last.
func (s *Server) toolsOf(hasFolder bool) []Tool {
	return slices.DeleteFunc(s.allTools(), func(t Tool) bool { return t.ToolType == typeFiles && !hasFolder })
}

func toolKey(t Tool) string { return t.ID }

func (s *Server) agentTools(ctx context.Context, in *struct {
	rest.OfAgent
	rest.Paging
}) ([]Tool, error) {
	if _, err := s.Agents.Agent(ctx, rest.Org(ctx), string(in.AgentID)); err != nil {
		return nil, err
	}
	has, err := s.Files.HasFolder(ctx, rest.Org(ctx), string(in.AgentID))
	return rest.Paged(s.toolsOf(has), in.Page(10, rest.NewestFirst), toolKey), err
}

// RunTool is what a tool is run with.
type RunTool struct {
	Args rest.Opt[rest.Object] `json:"args,omitzero" doc:"As the tool's schema says; an empty object if absent."`
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

func (s *Server) runTool(ctx context.Context, in *struct {
	rest.OfAgent
	ToolName string `path:"tool_name"`
	Body     RunTool
}) (ToolRun, error) {
	org := rest.Org(ctx)
	a, err := s.Agents.Agent(ctx, org, string(in.AgentID))
	if err != nil {
		return ToolRun{}, err
	}
	if err := s.mustHaveTool(ctx, org, a, in.ToolName); err != nil {
		return ToolRun{}, err
	}
	args := in.Body.Args.Value
	if args == nil {
		args = rest.Object("{}")
	}
	result, err := s.Tools.Run(ctx, org, a, in.ToolName, json.RawMessage(args))
	run := ToolRun{Status: "success", Return: result.Text, Files: result.Files}
	if result.IsError {
		run.Status = "error"
	}
	return run, err
}

// mustHaveTool returns ErrNotFound unless an agent has a tool.
func (s *Server) mustHaveTool(ctx context.Context, org db.Org, a agent.Agent, name string) error {
	has, err := s.Files.HasFolder(ctx, org, a.ID)
	needsFolder := func(t tool.Tool) bool { return t.Name == name && t.NeedsFolder }
	if err != nil || has || !slices.ContainsFunc(s.Tools.Tools(), needsFolder) {
		return err // an unknown name is the tools' own error
	}
	return db.NotFound("Tool %s is not attached to agent %s: the file tools come with a folder, so attach one first "+
		"(PATCH /v1/agents/%s/folders/attach/{folder_id})", name, a.ID, a.ID)
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

func (f ToolFilter) refuses(t Tool) bool {
	return f.Name != "" && t.Name != f.Name ||
		len(f.Names) > 0 && !slices.Contains(f.Names, t.Name) ||
		len(f.IDs) > 0 && !slices.Contains(f.IDs, t.ID) ||
		!strings.Contains(t.Name, strings.ToLower(f.Search)) ||
		len(f.Types) > 0 && !slices.Contains(f.Types, t.ToolType) ||
		slices.Contains(f.Without, t.ToolType)
}

func (s *Server) listTools(_ context.Context, in *struct {
	ToolFilter
	rest.Paging
}) ([]Tool, error) {
	return rest.Paged(slices.DeleteFunc(s.allTools(), in.refuses), in.Page(50, rest.NewestFirst), toolKey), nil
}

func (s *Server) countTools(_ context.Context, in *ToolFilter) (int, error) {
	return len(slices.DeleteFunc(s.allTools(), in.refuses)), nil
}

func (s *Server) getTool(_ context.Context, in *struct {
	ToolID rest.ToolID `path:"tool_id"`
}) (Tool, error) {
	tools := s.allTools()
	i := slices.IndexFunc(tools, func(t Tool) bool { return t.ID == string(in.ToolID) })
	if i < 0 {
		return Tool{}, db.NotFound("Tool with ID %s not found", in.ToolID)
	}
	return tools[i], nil
}
