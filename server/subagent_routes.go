package server

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/subagent"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) subagentRoutes(a *rest.API) {
	const path = "/v1/agents/{agent_id}/children"
	rest.Post(a.For(rest.Write), path,
		"create_child: Hand a task to a sub-agent. It is an agent of its own, or a copy of the conversation. A request that "+
			"is sent again with its otid makes no other one.",
		withAgent(s, s.createChild), rest.Own)
	rest.Get(a.For(rest.ReadAgent), path, "list_children: List the sub-agents of an agent.", withAgent(s, s.listChildren),
		rest.Own)
	rest.Get(a.For(rest.ReadAgent), path+"/{child_id}", "get_child: Get a sub-agent of an agent.", s.getChild, rest.Own)
	rest.Post(a.For(rest.Write), path+"/{child_id}/return",
		"close_child: Bring the result of a sub-agent to its parent's log. It ends the sub-agent's run. A sub-agent that "+
			"has returned does not change; one that was cancelled is a 409.",
		s.returnChild, rest.Own)
	rest.Post(a.For(rest.Write), path+"/{child_id}/cancel",
		"cancel_child: Cancel a sub-agent, and those that work for it. Their runs end; nothing is brought to the parent's "+
			"log, and a call that waits for the result stays open. A sub-agent that has ended does not change.",
		s.cancelChild, rest.Own)
}

// ChildGrant is something of the parent that the sub-agent may use too.
type ChildGrant struct {
	ID       rest.Opt[string] `json:"id,omitzero" doc:"Of a block, or its label; of a memory tree."`
	ReadOnly rest.Opt[bool]   `json:"read_only,omitzero" doc:"The sub-agent cannot change it; true if absent."`
}

func (g ChildGrant) grant() subagent.Grant {
	return subagent.Grant{ID: g.ID.Value, ReadOnly: g.ReadOnly.Pointer() == nil || g.ReadOnly.Value}
}

// CreateChild describes a new sub-agent.
type CreateChild struct {
	Mode rest.Opt[string] `json:"mode,omitzero" enum:"blank,brief,fork" doc:"What it is told; else the definition's."`
	Task string           `json:"task" minLength:"1" doc:"What it is told to do: its first message." example:"Count them."`
	Name rest.Opt[string] `json:"name,omitzero"`

	Definition rest.Opt[string] `json:"definition,omitzero" doc:"Of the parent's: it says what is given, and the mode."`

	ConversationID rest.Opt[string] `json:"conversation_id,omitzero" doc:"The parent's; its default one if absent."`
	ToolCallID     rest.Opt[string] `json:"tool_call_id,omitzero" doc:"The parent's open call that the result answers."`
	OTID           rest.Opt[string] `json:"otid,omitzero" doc:"The caller's own id of the request."`
	Run            rest.Opt[bool]   `json:"run,omitzero" doc:"The server runs it, and brings its result."`

	Tools      rest.Opt[[]string]     `json:"tools,omitzero" doc:"Names of the parent's that it may call; else all."`
	Blocks     rest.Opt[[]ChildGrant] `json:"blocks,omitzero" doc:"Of the parent's. Not of a fork, which has all."`
	Default    rest.Opt[bool]         `json:"default_grants,omitzero" doc:"Also AGENTS, TOOLS and SOUL, to read."`
	Folders    rest.Opt[[]string]     `json:"folders,omitzero" doc:"Ids or names, of the parent's. Not of a fork."`
	Skills     rest.Opt[[]string]     `json:"skills,omitzero" doc:"Names, of the parent's; they begin its conversation."`
	Files      rest.Opt[[]string]     `json:"files,omitzero" doc:"Of brief: files (folder/name) that are open at first."`
	MemoryTree rest.Opt[ChildGrant]   `json:"memory_tree,omitzero" doc:"The parent's memory files. Not of a fork."`

	Model      rest.Opt[string]                   `json:"model,omitzero" doc:"The parent's if absent. Not of a fork."`
	System     rest.Opt[string]                   `json:"system,omitzero" doc:"Its instructions. Not of a fork."`
	Window     rest.Opt[int]                      `json:"context_window_limit,omitzero" minimum:"1" doc:"The parent's if absent."`   //nolint:lll // a tag is one line
	Compaction rest.Opt[letta.CompactionSettings] `json:"compaction_settings,omitzero" doc:"The parent's if absent. Not of a fork."` //nolint:lll // a tag is one line
}

func (b CreateChild) toNew(parentID string) subagent.New {
	n := subagent.New{ParentID: parentID, Conversation: cmp.Or(b.ConversationID.Value, recall.DefaultConversation),
		Mode: b.Mode.Value, Task: b.Task, Name: b.Name.Value, Definition: b.Definition.Value, OTID: b.OTID.Pointer(),
		CallID: b.ToolCallID.Pointer(), Runs: b.Run.Value, OnlyTools: b.Tools.Value, WindowLimit: b.Window.Pointer(),
		Grants: subagent.Grants{Default: b.Default.Value, Folders: b.Folders.Value,
			Skills: b.Skills.Value, Files: b.Files.Value,
			Model: b.Model.Pointer(), System: b.System.Pointer(), Compaction: json.RawMessage(b.Compaction.Value.Object)}}
	for _, g := range b.Blocks.Value {
		n.Blocks = append(n.Blocks, g.grant())
	}
	if n.Model != nil && *n.Model == "" { // like null: an empty model keeps the parent's
		n.Model = nil
	}
	if g := b.MemoryTree.Pointer(); g != nil {
		tree := g.grant()
		n.Tree = &tree
	}
	return n
}

func (s *Server) createChild(ctx context.Context, a agent.Agent, input *struct {
	rest.OfAgent
	Body CreateChild
}) (subagent.Child, error) {
	if err := input.Body.Compaction.Value.Check(); err != nil {
		return subagent.Child{}, err
	}
	c, err := s.Children.Create(ctx, rest.Org(ctx), input.Body.toNew(a.ID))
	return c, runProblem(err)
}

func (s *Server) listChildren(ctx context.Context, a agent.Agent, input *struct {
	rest.OfAgent
	rest.Paging
	ConversationID string `query:"conversation_id" doc:"Of the parent."`
	Status         string `query:"status" enum:"working,returned,failed,cancelled"`
}) ([]subagent.Child, error) {
	f := subagent.Filter{ParentID: a.ID, Status: input.Status}
	if input.ConversationID != "" {
		c, err := s.Recall.Conversation(ctx, rest.Org(ctx), a.ID, input.ConversationID)
		if err != nil {
			return nil, err
		}
		f.Conversation = c.ID
	}
	return s.Children.List(ctx, rest.Org(ctx), f, input.Page(50, rest.NewestFirst))
}

// OfChild holds the path parameters of operations on a sub-agent.
type OfChild struct {
	rest.OfAgent
	ChildID rest.ChildID `path:"child_id"`
}

func (s *Server) getChild(ctx context.Context, input *OfChild) (subagent.Child, error) {
	return s.Children.Child(ctx, rest.Org(ctx), string(input.AgentID), string(input.ChildID))
}

func (s *Server) returnChild(ctx context.Context, input *struct {
	OfChild
	Body struct {
		Result  rest.Opt[string] `json:"result,omitzero" doc:"What the sub-agent said last, if absent."`
		IsError rest.Opt[bool]   `json:"is_error,omitzero" doc:"It failed."`

		ToolCallID rest.Opt[string] `json:"tool_call_id,omitzero" doc:"The one with which it was started, or none."`
	}
}) (subagent.Child, error) {
	org := rest.Org(ctx)
	c, err := s.Children.Child(ctx, org, string(input.AgentID), string(input.ChildID))
	if err != nil {
		return c, err
	}
	if call := input.Body.ToolCallID.Value; call != "" && (c.ToolCallID == nil || *c.ToolCallID != call) {
		return c, rest.Unprocessable("body.tool_call_id", "A call belongs in the request that starts the sub-agent "+
			"(POST /v1/agents/{agent_id}/children): its result then answers that call. Nothing was returned")
	}
	given, ended := input.Body.Result.Pointer(), c.Status != subagent.Working
	c, err = s.Children.Return(ctx, org, c.ParentAgentID, c.ID,
		subagent.Result{Text: given, Failed: input.Body.IsError.Value})
	if err != nil {
		return c, runProblem(err)
	}
	if ended && given != nil && c.Result != nil && *given != *c.Result {
		rest.Warn(ctx, "The sub-agent had returned before: it keeps its first result, and this one was not taken")
	}
	_, err = s.Loop.Stop(ctx, org, c.ConversationID, nil)
	return c, err
}

func (s *Server) cancelChild(ctx context.Context, input *OfChild) (subagent.Child, error) {
	c, err := s.Children.Cancel(ctx, rest.Org(ctx), string(input.AgentID), string(input.ChildID))
	if err == nil {
		_, err = s.Loop.Stop(ctx, rest.Org(ctx), c.ConversationID, nil)
	}
	return c, err
}
