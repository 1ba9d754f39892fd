package server

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/agent"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/tool"
)

func (s *Server) toolRoutes(a *rest.API) {
	rest.Get(a, "/v1/agents/{agent_id}/tools", "List an agent's tools", withAgent(s, s.agentTools))
	rest.Post(a, "/v1/agents/{agent_id}/tools/{tool_name}/run", "Run one of an agent's tools", withAgent(s, s.runTool))
	rest.Get(a, "/v1/tools", "List tools", s.listTools)
	rest.Get(a, "/v1/tools/count", "Count tools", s.countTools)
	rest.Get(a, "/v1/tools/{tool_id}", "Get a tool", s.getTool)
}

func (s *Server) toolNames() (names []string) {
	for _, t := range s.Tools.Tools() {
		names = append(names, t.Name)
	}
	return names
}

// toolsOf returns an agent's tools. It has the file tools while it has a folder.
func (s *Server) toolsOf(hasFolder bool) []letta.Tool {
	return letta.ToolsOf(s.Tools.Tools(), hasFolder)
}

func toolKey(t letta.Tool) string { return t.ID }

func (s *Server) agentTools(ctx context.Context, a agent.Agent, in *struct {
	rest.OfAgent
	rest.Paging
}) ([]letta.Tool, error) {
	has, err := s.Files.HasFolder(ctx, rest.Org(ctx), a.ID)
	return rest.Paged(s.toolsOf(has), in.Page(10, rest.NewestFirst), toolKey), err
}

func (s *Server) runTool(ctx context.Context, a agent.Agent, in *struct {
	rest.OfAgent
	ToolName string `path:"tool_name"`
	Body     letta.RunTool
}) (letta.ToolRun, error) {
	org := rest.Org(ctx)
	if err := s.mustHaveTool(ctx, org, a, in.ToolName); err != nil {
		return letta.ToolRun{}, err
	}
	args := in.Body.Args.Value
	if args == nil {
		args = rest.Object("{}")
	}
	result, err := s.Tools.Run(ctx, org, a, in.ToolName, json.RawMessage(args))
	run := letta.ToolRun{Status: "success", Return: result.Text, Files: result.Files}
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

func (s *Server) listTools(_ context.Context, in *struct {
	letta.ToolFilter
	rest.Paging
}) ([]letta.Tool, error) {
	return rest.Paged(slices.DeleteFunc(s.toolsOf(true), in.Excludes), in.Page(50, rest.NewestFirst), toolKey), nil
}

func (s *Server) countTools(_ context.Context, in *letta.ToolFilter) (int, error) {
	return len(slices.DeleteFunc(s.toolsOf(true), in.Excludes)), nil
}

func (s *Server) getTool(_ context.Context, in *struct {
	ToolID rest.ToolID `path:"tool_id"`
}) (letta.Tool, error) {
	tools := s.toolsOf(true)
	i := slices.IndexFunc(tools, func(t letta.Tool) bool { return t.ID == string(in.ToolID) })
	if i < 0 {
		return letta.Tool{}, db.NotFound("Tool with ID %s not found", in.ToolID)
	}
	return tools[i], nil
}
