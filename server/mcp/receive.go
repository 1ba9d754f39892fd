package mcp

import (
	"context"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// call is a message that a client sent, and the SDK's own answer to it.
type call struct {
	method  string
	request sdk.Request
	sdk     sdk.MethodHandler
}

func (c call) next(ctx context.Context) (sdk.Result, error) { return c.sdk(ctx, c.method, c.request) }

// ofAnAgent are the methods that need an agent. It may have been deleted since its session began.
var ofAnAgent = []string{"tools/list", callTool, "resources/list", "resources/templates/list", "resources/read",
	"resources/subscribe", "prompts/list", "prompts/get"}

// receive answers a message, unless its client cancels it, or is gone and cannot come back for the answer.
func (s *Server) receive(ctx context.Context, h *hub, c call) (sdk.Result, error) {
	if atEnd := callerOf(ctx).atEnd; atEnd != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer atEnd(cancel)()
	}
	var named []string
	if extra := c.request.GetExtra(); h != nil && extra != nil {
		named = extra.Header[callHeader]
		h.calls.arrived(named)
	}
	answer, err := s.answer(ctx, h, c)
	if len(named) > 0 && (errors.Is(ctx.Err(), context.Canceled) || h.calls.areCancelled(named)) {
		return nil, errCancelled
	}
	return answer, err
}

// answer returns the answer to a message.
func (s *Server) answer(ctx context.Context, h *hub, c call) (sdk.Result, error) {
	if version := versionOf(c.request); version != "" {
		of := callerOf(ctx)
		of.version = version
		ctx = context.WithValue(ctx, callerKey{}, of)
	}
	switch r := c.request.(type) {
	case *sdk.ServerRequest[*sdk.InitializeParams]:
		return s.initialize(ctx, h, r, c)
	case *sdk.SubscriptionsListenRequest:
		return s.listen(ctx, h, r, c)
	}
	if s.Fixtures != nil {
		return c.next(ctx)
	}
	if of := callerOf(ctx); of.agent == nil && slices.Contains(ofAnAgent, c.method) {
		a, err := s.Agents.Agent(ctx, of.Org, of.AgentID)
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		of.agent = &a
		ctx = context.WithValue(ctx, callerKey{}, of)
	}
	switch r := c.request.(type) {
	case *sdk.ListToolsRequest:
		return result(s.listTools(ctx, r))
	case *sdk.CallToolRequest:
		return result(s.callTool(ctx, r))
	case *sdk.ListResourcesRequest:
		return result(s.listResources(ctx, r))
	case *sdk.ListResourceTemplatesRequest:
		return result(s.listTemplates(r))
	case *sdk.ReadResourceRequest:
		return result(s.readResource(ctx, r))
	case *sdk.ListPromptsRequest:
		return result(s.listPrompts(r))
	case *sdk.GetPromptRequest:
		return result(s.getPrompt(ctx, r))
	}
	return c.next(ctx)
}

// result returns an answer without a typed nil for an error.
func result[R sdk.Result](r R, err error) (sdk.Result, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

// initialize begins a session, which ends when its client says so or is silent for long.
func (s *Server) initialize(ctx context.Context, h *hub, r *sdk.ServerRequest[*sdk.InitializeParams],
	c call) (sdk.Result, error) {
	if h == nil || r.Session.ID() == "" {
		return c.next(ctx)
	}
	end, err := s.join(ctx, h)
	if err != nil {
		return nil, err
	}
	answer, err := c.next(ctx)
	if err != nil {
		end()
		return nil, err
	}
	forget := h.watchIdle(r.Session)
	go func() { // it ends with the session
		defer end()
		defer forget()
		defer h.forgetAll(r.Session)
		_ = r.Session.Wait() // why it ended is of no interest
	}()
	return answer, nil
}

// listen tells a client without a session of changes until it goes.
func (s *Server) listen(ctx context.Context, h *hub, r *sdk.SubscriptionsListenRequest, c call) (sdk.Result, error) {
	if h == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "a batch cannot listen: send the message alone"}
	}
	end, err := s.join(ctx, h)
	if err != nil {
		return nil, err
	}
	defer end()
	return listen(r, subscriber{
		subscribe: func(uris []string) ([]string, error) { return s.subscribeAll(ctx, h, r.Session, uris) },
		unsubscribe: func(uri string) error {
			return s.unsubscribe(h, &sdk.UnsubscribeRequest{Session: r.Session, Params: &sdk.UnsubscribeParams{URI: uri}})
		},
	}, func() (sdk.Result, error) { return c.next(ctx) })
}

// subscriber subscribes a client to resources. subscribe returns those that exist.
type subscriber struct {
	subscribe   func(uris []string) (found []string, err error)
	unsubscribe func(uri string) error
}

// listen waits for changes as next does, of those resources alone that the client can be subscribed to. The
// acknowledgement names them, each once.
func listen(r *sdk.SubscriptionsListenRequest, to subscriber, next func() (sdk.Result, error)) (sdk.Result, error) {
	wanted := r.Params.Notifications
	if wanted == nil || len(wanted.ResourceSubscriptions) == 0 {
		return next()
	}
	var uris []string
	seen := map[string]bool{}
	for _, uri := range wanted.ResourceSubscriptions {
		if !seen[uri] {
			seen[uri] = true
			uris = append(uris, uri)
		}
	}
	if len(uris) > maxFollowed {
		return nil, wrong("params.notifications.resourceSubscriptions names %d resources: %s", len(uris), tooManyFollowed)
	}
	found, err := to.subscribe(uris)
	defer func() {
		for _, uri := range found {
			_ = to.unsubscribe(uri) // a server that does not answer forgets it with the session
		}
	}()
	if err != nil {
		return nil, err
	}
	wanted.ResourceSubscriptions = found
	return next()
}
