package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// listTools lists the tools that a caller may call.
func (s *Server) listTools(ctx context.Context, r *sdk.ListToolsRequest) (*sdk.ListToolsResult, error) {
	after := ""
	if r.Params != nil {
		after = r.Params.Cursor
	}
	scope := cursorScope(callerOf(ctx), "tools")
	at, err := parseCursor(after, scope, 1)
	if err != nil {
		return nil, err
	}
	all, err := s.toolsOf(ctx, callerOf(ctx))
	if err != nil {
		return nil, s.problem(ctx, err)
	}
	from := 1 + slices.IndexFunc(all, func(t *sdk.Tool) bool { return t.Name == at.after })
	if from == 0 && at.after != "" {
		return nil, errCursor
	}
	to := min(from+pageSize, len(all))
	out := &sdk.ListToolsResult{Tools: append([]*sdk.Tool{}, all[from:to]...), Cacheable: uncached}
	if to < len(all) {
		out.NextCursor = cursor{0, all[to-1].Name}.in(scope)
	}
	return out, nil
}

// toolsOf returns the tools that a caller may call: those of the agent that the server runs, and remember_turns. There
// is none for a key that may only read.
func (s *Server) toolsOf(ctx context.Context, c caller) (all []*sdk.Tool, err error) {
	if !c.MayCall {
		return nil, nil
	}
	a, err := s.agentOf(ctx, c)
	if err != nil {
		return nil, err
	}
	has, err := s.Files.HasFolder(ctx, c.Org, a.ID)
	if err != nil {
		return nil, err
	}
	for _, t := range s.Tools.Of(a, has) {
		if !t.ByClient && c.shows(t.Name) {
			all = append(all, described(t))
		}
	}
	if c.shows(RememberTurns) {
		all = append(all, rememberTool)
	}
	return all, nil
}

// described returns a built-in tool as MCP describes it.
func described(t tool.Tool) *sdk.Tool {
	var schema struct{ Parameters json.RawMessage }
	_ = json.Unmarshal(t.Schema, &schema) // it is part of the program
	h := t.Hints()
	return &sdk.Tool{Name: t.Name, Title: h.Title, Description: t.Description, InputSchema: schema.Parameters,
		OutputSchema: outputSchema, Annotations: &sdk.ToolAnnotations{Title: h.Title, ReadOnlyHint: h.ReadOnly,
			DestructiveHint: new(h.Destructive), IdempotentHint: h.Idempotent, OpenWorldHint: new(false)}}
}

// callTool runs a tool for a caller. A mistake of the model is a result that says so.
func (s *Server) callTool(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	c := callerOf(ctx)
	if !c.MayCall {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "The API key lacks the scope tools or write, " +
			"which calls of tools need. Use another key"}
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	a, err := s.agentOf(ctx, c)
	if err != nil {
		return nil, s.problem(ctx, err)
	}
	args := r.Params.Arguments
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	if fault := s.Fault(argumentsPlace, args); fault != "" {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{
			Text: strings.TrimPrefix(fault, argumentsPlace+".")}}}, nil
	}
	defer progress(ctx, r)()
	out, err := s.run(ctx, c, a, r.Params.Name, args)
	if err != nil {
		return nil, s.problem(ctx, err)
	}
	answer := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: out.Text}}, IsError: out.IsError}
	if !out.IsError {
		answer.StructuredContent = ToolResult{out.Text, out.Files}
	}
	return answer, nil
}

// run runs a tool that the caller is shown.
func (s *Server) run(ctx context.Context, c caller, a agent.Agent, name string, args json.RawMessage) (tool.Result,
	error) {
	if !c.shows(name) {
		return tool.Result{}, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the tool " +
			db.Short(name) + " is not among those that this connection chose with ?tools="}
	}
	if name == RememberTurns {
		return s.remember(ctx, a, args)
	}
	err := s.MustHave(ctx, c.Org, a, name)
	if lacked := errors.Is(err, db.ErrNotFound); lacked || !s.Tools.Has(name) && err == nil {
		return s.lacks(ctx, c, name, lacked)
	}
	if err != nil {
		return tool.Result{}, err
	}
	return s.Tools.Run(ctx, toolCaller(c, a), name, args)
}

// toolCaller returns an agent as the caller of tools. Its model is the client's, which sees nothing of the agent's
// prompt.
func toolCaller(c caller, a agent.Agent) tool.Caller {
	of := tool.CallerIn(c.Org, a, recall.Conversation{IsDefault: true})
	of.Unprompted = true
	return of
}

// lacks says which tools a caller may call instead of one that it is not shown: of a tool that is not attached to the
// agent as a result, which its model reads, and of one that there is not as an error.
func (s *Server) lacks(ctx context.Context, c caller, name string, exists bool) (tool.Result, error) {
	all, err := s.toolsOf(ctx, c)
	if err != nil {
		return tool.Result{}, err
	}
	has := "You have no tools."
	if len(all) > 0 {
		names := make([]string, len(all))
		for i, t := range all {
			names[i] = t.Name
		}
		has = "Your tools are " + strings.Join(names, ", ") + "."
	}
	if exists {
		return tool.Result{Text: "The tool " + name + " is not attached to you. " + has, IsError: true}, nil
	}
	return tool.Result{}, wrong("There is no tool %s. %s", db.Short(name), has)
}

// progressEvery is the time between two notifications that a tool still runs.
const progressEvery = 5 * time.Second

// progress tells a client that asks for it that a tool runs, and for how many seconds, until the function that it
// returns is called.
func progress(ctx context.Context, r *sdk.CallToolRequest) (end func()) {
	token := r.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	began := time.Now()
	say := func() {
		// A client that is gone misses it.
		_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token,
			Progress: time.Since(began).Seconds(), Message: "running " + r.Params.Name})
	}
	say()
	go func() {
		defer close(done)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				say()
			}
		}
	}()
	return func() { cancel(); <-done }
}
