package mcp

import (
	"context"
	"encoding/json"
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
	cursorText := ""
	if r.Params != nil {
		cursorText = r.Params.Cursor
	}
	scope := cursorScope(callerOf(ctx), "tools")
	position, err := parseCursor(cursorText, scope, 1)
	if err != nil {
		return nil, err
	}
	all, err := s.toolsOf(ctx, callerOf(ctx))
	if err != nil {
		return nil, s.problem(ctx, err)
	}
	start := 1 + slices.IndexFunc(all, func(t *sdk.Tool) bool { return t.Name == position.after })
	if start == 0 && position.after != "" {
		return nil, errCursor
	}
	end := min(start+pageSize, len(all))
	out := &sdk.ListToolsResult{Tools: append([]*sdk.Tool{}, all[start:end]...), Cacheable: uncached}
	if end < len(all) {
		out.NextCursor = cursor{0, all[end-1].Name}.in(scope)
	}
	return out, nil
}

// toolsOf returns the tools that a caller may call: the agent's tools that run on this server, and remember_turns. A
// key that may only read has none.
func (s *Server) toolsOf(ctx context.Context, c caller) (all []*sdk.Tool, err error) {
	if !c.MayCall {
		return nil, nil
	}
	a, err := s.agentOf(ctx, c)
	if err != nil {
		return nil, err
	}
	hasFolder, err := s.Files.HasFolder(ctx, c.Org, a.ID)
	if err != nil {
		return nil, err
	}
	if a, err = s.InForce(ctx, c.Org, a); err != nil {
		return nil, err
	}
	for _, t := range s.Tools.OfCaller(toolCaller(c, a), hasFolder) {
		if !t.ByClient && c.shows(t.Name) {
			all = append(all, described(t))
		}
	}
	if c.shows(RememberTurns) {
		all = append(all, rememberTool)
	}
	return all, nil
}

// described returns a built-in tool in MCP's form.
func described(t tool.Tool) *sdk.Tool {
	var schema struct{ Parameters json.RawMessage }
	_ = json.Unmarshal(t.Schema, &schema) // the schema is part of the program
	h := t.Hints()
	return &sdk.Tool{Name: t.Name, Title: h.Title, Description: t.Description, InputSchema: schema.Parameters,
		OutputSchema: outputSchema, Annotations: &sdk.ToolAnnotations{Title: h.Title, ReadOnlyHint: h.ReadOnly,
			DestructiveHint: new(h.Destructive), IdempotentHint: h.Idempotent, OpenWorldHint: new(false)}}
}

// callTool runs a tool for a caller. The model's mistakes become results that describe them.
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

// run runs a tool, if the caller has it. If it does not, the result says which tools it has.
func (s *Server) run(ctx context.Context, c caller, a agent.Agent, name string, args json.RawMessage) (tool.Result,
	error) {
	if name = s.Tools.Meant(a, name); name == RememberTurns && c.shows(name) {
		return s.remember(ctx, a, args)
	}
	lacks, err := s.Lacks(ctx, c.Org, a, name)
	switch {
	case err != nil:
		return tool.Result{}, err
	case lacks == "" && c.shows(name):
		return s.Tools.Run(ctx, toolCaller(c, a), name, args)
	case lacks == "" || !c.shows(name) && (s.Tools.Has(name) || name == RememberTurns):
		lacks = "The tool " + db.Short(name) + " is not among those that this connection chose with ?tools=."
	}
	all, err := s.toolsOf(ctx, c)
	if err != nil {
		return tool.Result{}, err
	}
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.Name
	}
	if s.Tools.Has(name) {
		name = "" // no name like it is meant
	}
	return tool.Result{Text: lacks + " " + tool.Available(name, names), IsError: true}, nil
}

// toolCaller returns an agent as the caller of tools. The model is the client's own, which does not see the agent's
// prompt.
func toolCaller(c caller, a agent.Agent) tool.Caller {
	result := tool.CallerIn(c.Org, a, recall.Conversation{IsDefault: true, UserKey: c.User})
	result.Unprompted = true
	return result
}

// progressEvery is the time between two messages that a tool still runs.
const progressEvery = 5 * time.Second

// progress tells a client, if it asked for that, how many seconds a tool has been running. stop stops the messages.
func progress(ctx context.Context, r *sdk.CallToolRequest) (stop func()) {
	token := r.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	start := time.Now()
	say := func() {
		// The client may be gone.
		_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token,
			Progress: time.Since(start).Seconds(), Message: "running " + r.Params.Name})
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
