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
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/tools",
		"list_agent_tools: List an agent's tools.", withAgent(s, s.agentTools))
	rest.Patch(a.For(rest.Write), "/v1/agents/{agent_id}/tools/attach/{tool_id}",
		"attach_tool: Attach a tool to an agent. Again changes nothing.", s.attachTool)
	rest.Patch(a.For(rest.Write), "/v1/agents/{agent_id}/tools/detach/{tool_id}",
		"detach_tool: Detach a tool from an agent. Again changes nothing.", s.detachTool)
	rest.Post(a.For(rest.Tools), "/v1/agents/{agent_id}/tools/{tool_name}/run",
		"run_tool: Run one of an agent's tools. An error of the tool is a 200 with the status 'error', for the model to "+
			"read.",
		withAgent(s, s.runTool))
	rest.Get(a.For(rest.Read), "/v1/tools", "list_tools: List tools.", s.listTools)
	rest.Get(a.For(rest.Read), "/v1/tools/count",
		"count_tools: Count tools. The filters are those of the list.", s.countTools)
	rest.Get(a.For(rest.Read), "/v1/tools/{tool_id}", "get_tool: Get a tool.", s.getTool)
}

func toolKey(t letta.Tool) string { return t.ID }

func (s *Server) agentTools(ctx context.Context, a agent.Agent, in *struct {
	rest.OfAgent
	rest.Paging
}) ([]letta.Tool, error) {
	has, err := s.Files.HasFolder(ctx, rest.Org(ctx), a.ID)
	tools := rest.Each(s.Tools.Of(a, has), letta.ToolOf)
	return rest.Paged(tools, in.Page(10, rest.NewestFirst), toolKey), err
}

// chosenTools returns the tools that an agent has after a choice, nil if it chooses nothing.
func (s *Server) chosenTools(ctx context.Context, agentID string, c tool.Choice) ([]string, error) {
	a, err := s.Agents.Agent(ctx, rest.Org(ctx), agentID)
	if err != nil {
		return nil, err
	}
	has, err := s.Files.HasFolder(ctx, rest.Org(ctx), agentID)
	if err != nil {
		return nil, err
	}
	return s.Tools.Choose(c, a, has)
}

// AgentTool is the path of an agent's tool.
type AgentTool struct {
	rest.OfAgent
	ToolID rest.ToolID `path:"tool_id"`
}

func (s *Server) attachTool(ctx context.Context, in *AgentTool) (rest.Null, error) {
	return rest.Null{}, s.changeTools(ctx, in, s.Tools.With)
}

func (s *Server) detachTool(ctx context.Context, in *AgentTool) (rest.Null, error) {
	return rest.Null{}, s.changeTools(ctx, in, s.Tools.Without)
}

func (s *Server) changeTools(ctx context.Context, in *AgentTool, change func(agent.Agent, string) []string) error {
	t, err := s.Tools.ByID(string(in.ToolID))
	if err != nil {
		return err
	}
	return s.Agents.ChangeTools(ctx, rest.Org(ctx), string(in.AgentID), func(a agent.Agent) []string {
		return change(a, t.Name)
	})
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
	caller := caller(ctx, a)
	caller.Confined = caller.Confined || in.Body.RecallScope.Value == agent.ScopeConversation
	if id := in.Body.Conversation.Value; id != "" && id != a.ID {
		c, err := s.Recall.Conversation(ctx, org, a.ID, id)
		if err != nil {
			return letta.ToolRun{}, err
		}
		if !c.IsDefault {
			caller.Conversation = c.ID
		}
	}
	result, err := s.Tools.Run(ctx, caller, in.ToolName, json.RawMessage(args))
	run := letta.ToolRun{Status: "success", Return: result.Text, Files: result.Files}
	if result.IsError {
		run.Status = "error"
	}
	return run, err
}

// caller returns an agent as the caller of tools in its default conversation.
func caller(ctx context.Context, a agent.Agent) tool.Caller {
	return tool.Caller{Org: rest.Org(ctx), Agent: a, Confined: a.Settings.RecallScope == agent.ScopeConversation}
}

// mustHaveTool returns ErrNotFound if an agent lacks a tool. It returns nil for an unknown name, which Set.Run reports.
func (s *Server) mustHaveTool(ctx context.Context, org db.Org, a agent.Agent, name string) error {
	tools := s.Tools.Tools()
	i := slices.IndexFunc(tools, func(t tool.Tool) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	if !a.HasTool(name) {
		return db.NotFound("Tool %s is detached from agent %s: attach it first (PATCH /v1/agents/%s/tools/attach/%s)",
			name, a.ID, a.ID, tools[i].ID)
	}
	if !tools[i].NeedsFolder {
		return nil
	}
	if has, err := s.Files.HasFolder(ctx, org, a.ID); err != nil || has {
		return err
	}
	return db.NotFound("Tool %s is not attached to agent %s: the file tools come with a folder, so attach one first "+
		"(PATCH /v1/agents/%s/folders/attach/{folder_id})", name, a.ID, a.ID)
}

func (s *Server) listTools(_ context.Context, in *struct {
	letta.ToolFilter
	rest.Paging
}) ([]letta.Tool, error) {
	return rest.Paged(s.toolsIn(in.ToolFilter), in.Page(50, rest.NewestFirst), toolKey), nil
}

func (s *Server) countTools(_ context.Context, in *letta.ToolFilter) (int, error) {
	return len(s.toolsIn(*in)), nil
}

func (s *Server) toolsIn(f letta.ToolFilter) []letta.Tool {
	return slices.DeleteFunc(rest.Each(s.Tools.Tools(), letta.ToolOf), f.Excludes)
}

func (s *Server) getTool(_ context.Context, in *struct {
	ToolID rest.ToolID `path:"tool_id"`
}) (letta.Tool, error) {
	t, err := s.Tools.ByID(string(in.ToolID))
	return letta.ToolOf(t), err
}
