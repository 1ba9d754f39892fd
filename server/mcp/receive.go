package mcp

import (
	"context"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/db"
)

// call is a message of a client, with the SDK's handler for it.
type call struct {
	method  string
	request sdk.Request
	sdk     sdk.MethodHandler
}

func (c call) next(ctx context.Context) (sdk.Result, error) { return c.sdk(ctx, c.method, c.request) }

// ofAnAgent are the methods that need the agent, which may have been deleted after its session began.
var ofAnAgent = []string{"tools/list", callTool, "resources/list", "resources/templates/list", "resources/read",
	"resources/subscribe", "prompts/list", "prompts/get"}

// receive answers a message. The answer is cancelled if the client cancels it, or goes and cannot come back for it.
func (s *Server) receive(ctx context.Context, h *hub, c call) (sdk.Result, error) {
	if atEnd := callerOf(ctx).atEnd; atEnd != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer atEnd(cancel)()
	}
	var names []string
	if extra := c.request.GetExtra(); h != nil && extra != nil {
		names = extra.Header[callHeader]
		h.calls.arrived(names)
	}
	answer, err := s.answer(ctx, h, c)
	if len(names) > 0 && (errors.Is(ctx.Err(), context.Canceled) || h.calls.areCancelled(names)) {
		return nil, errCancelled
	}
	return answer, err
}

// answer returns the answer to a message.
func (s *Server) answer(ctx context.Context, h *hub, c call) (sdk.Result, error) {
	ctx = db.WithUser(ctx, callerOf(ctx).User)
	if version := versionOf(c.request); version != "" {
		caller := callerOf(ctx)
		caller.version = version
		ctx = context.WithValue(ctx, callerKey{}, caller)
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
	if caller := callerOf(ctx); caller.agent == nil && slices.Contains(ofAnAgent, c.method) {
		a, err := s.Agents.Agent(ctx, caller.Org, caller.AgentID)
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		caller.agent = &a
		ctx = context.WithValue(ctx, callerKey{}, caller)
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

// result returns r, or an untyped nil if there is an error.
func result[R sdk.Result](r R, err error) (sdk.Result, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

// initialize begins a session. The session ends when its client ends it, or after a long silence.
func (s *Server) initialize(ctx context.Context, h *hub, r *sdk.ServerRequest[*sdk.InitializeParams],
	c call) (sdk.Result, error) {
	if h == nil || r.Session.ID() == "" {
		return c.next(ctx)
	}
	leave, err := s.join(ctx, h)
	if err != nil {
		return nil, err
	}
	answer, err := c.next(ctx)
	if err != nil {
		leave()
		return nil, err
	}
	forget := h.watchIdle(r.Session)
	go func() { // ends with the session
		defer leave()
		defer forget()
		defer h.forgetAll(r.Session)
		_ = r.Session.Wait() // the reason does not matter
	}()
	return answer, nil
}

// listen tells a client without a session of changes, until the client goes.
func (s *Server) listen(ctx context.Context, h *hub, r *sdk.SubscriptionsListenRequest, c call) (sdk.Result, error) {
	if h == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "a batch cannot listen: send the message alone"}
	}
	leave, err := s.join(ctx, h)
	if err != nil {
		return nil, err
	}
	defer leave()
	return listen(r, subscriber{
		subscribe: func(uris []string) ([]string, error) { return s.subscribeAll(ctx, h, r.Session, uris) },
		unsubscribe: func(uri string) error {
			return s.unsubscribe(h, &sdk.UnsubscribeRequest{Session: r.Session, Params: &sdk.UnsubscribeParams{URI: uri}})
		},
	}, func() (sdk.Result, error) { return c.next(ctx) })
}

// subscriber subscribes a client to resources. subscribe returns the resources that exist.
type subscriber struct {
	subscribe   func(uris []string) (found []string, err error)
	unsubscribe func(uri string) error
}

// listen waits for changes as next does, but subscribes only to resources that the client may follow. The
// acknowledgement names each of these once.
func listen(r *sdk.SubscriptionsListenRequest, client subscriber, next func() (sdk.Result, error)) (sdk.Result, error) {
	notifications := r.Params.Notifications
	if notifications == nil || len(notifications.ResourceSubscriptions) == 0 {
		return next()
	}
	var uris []string
	listed := map[string]bool{}
	for _, uri := range notifications.ResourceSubscriptions {
		if !listed[uri] {
			listed[uri] = true
			uris = append(uris, uri)
		}
	}
	if len(uris) > maxFollowed {
		return nil, wrong("params.notifications.resourceSubscriptions names %d resources: %s", len(uris), tooManyFollowed)
	}
	found, err := client.subscribe(uris)
	defer func() {
		for _, uri := range found {
			_ = client.unsubscribe(uri) // a server that does not answer forgets the subscription with the session
		}
	}()
	if err != nil {
		return nil, err
	}
	notifications.ResourceSubscriptions = found
	return next()
}
