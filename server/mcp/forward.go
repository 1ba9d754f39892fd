package mcp

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Remote is a server that serves an agent's memory over MCP.
type Remote struct {
	URL     string // of the endpoint
	Client  *http.Client
	Version string // of this program
}

// Forward serves an MCP client, connected by standard input and output, with the answers of a remote server. It returns
// when the client goes. The remote server may restart meanwhile: a call that it leaves unanswered is an error, and the
// next call connects again.
func (r Remote) Forward(ctx context.Context, client sdk.Transport) error {
	f := &forwarder{Remote: r}
	first, err := f.session(ctx)
	if err != nil {
		return err
	}
	defer f.close()
	offer := first.InitializeResult()
	local := sdk.NewServer(&sdk.Implementation{Name: "loci", Title: "Loci", Version: r.Version}, &sdk.ServerOptions{
		Instructions: offer.Instructions, Capabilities: offer.Capabilities, SetCacheable: private,
		SubscribeHandler: func(ctx context.Context, q *sdk.SubscribeRequest) error {
			return f.subscribe(ctx, q.Params.URI)
		},
		UnsubscribeHandler: func(ctx context.Context, q *sdk.UnsubscribeRequest) error {
			return f.unsubscribe(ctx, q.Params.URI)
		}})
	local.AddReceivingMiddleware(complete, f.receive)
	f.local.Store(local)
	return local.Run(ctx, client)
}

// forwarder forwards the messages of one client.
type forwarder struct {
	Remote
	local atomic.Pointer[sdk.Server] // nil before the client is served

	mu     sync.Mutex
	remote *sdk.ClientSession // nil after it ended
	wanted map[string]int     // how often the client subscribed to each resource, by URI
	tokens map[any]*sdk.ServerSession
}

// session returns a session with the remote server.
func (f *forwarder) session(ctx context.Context) (*sdk.ClientSession, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.remote != nil {
		return f.remote, nil
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "loci mcp", Version: f.Version}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			f.tell(toolsChanged)
		},
		ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) {
			f.tell(listChanged)
		},
		ResourceUpdatedHandler: func(ctx context.Context, q *sdk.ResourceUpdatedNotificationRequest) {
			f.tell(func(local *sdk.Server) {
				_ = local.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: q.Params.URI}) // the error is always nil
			})
		},
		ProgressNotificationHandler: f.progress,
	})
	// The session outlives the call that begins it. In this version of the protocol, sessions are told of changes.
	var session *sdk.ClientSession
	err := new(attempt).make(context.WithoutCancel(ctx), func(ctx context.Context) (err error) {
		session, err = client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: f.URL, HTTPClient: noting(f.Client)},
			&sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		return err
	})
	if err != nil {
		return nil, err
	}
	f.remote = session
	f.subscribeAgain(ctx, session)
	return session, nil
}

// subscribeAgain gives a new session the client's subscriptions. Nobody reported changes between the two sessions, so
// it tells the client that all these resources changed. The caller holds f.mu.
func (f *forwarder) subscribeAgain(ctx context.Context, session *sdk.ClientSession) {
	if len(f.wanted) == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx) // the context of the call that begins the session would end too early
	for uri := range f.wanted {
		if session.Subscribe(ctx, &sdk.SubscribeParams{URI: uri}) != nil {
			continue // the resource is gone, which the client notices when it reads it
		}
		f.tell(func(local *sdk.Server) {
			_ = local.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri}) // the error is always nil
		})
	}
	f.tell(listChanged)
}

// subscribe subscribes to a resource. The remote session has a protocol version of its own: the client's version may
// lack this message, so the client's metadata is not passed on.
func (f *forwarder) subscribe(ctx context.Context, uri string) error {
	if f.want(uri, 0) > 0 {
		f.want(uri, 1)
		return nil
	}
	err := f.with(ctx, func(ctx context.Context, s *sdk.ClientSession) error {
		return s.Subscribe(ctx, &sdk.SubscribeParams{URI: uri})
	})
	if err != nil {
		return shown(err)
	}
	f.want(uri, 1)
	return nil
}

// subscribeAll subscribes to resources. It skips resources that do not exist, and returns the others, even if an error
// occurs.
func (f *forwarder) subscribeAll(ctx context.Context, uris []string) (found []string, err error) {
	for _, uri := range uris {
		if err := f.subscribe(ctx, uri); err == nil {
			found = append(found, uri)
		} else if !isRefusal(err) {
			return found, err
		}
	}
	return found, nil
}

// unsubscribeWithin bounds how long unsubscribing waits for the server.
const unsubscribeWithin = 5 * time.Second

// unsubscribe undoes one subscribe, even after ctx has ended.
func (f *forwarder) unsubscribe(ctx context.Context, uri string) error {
	if f.want(uri, 0) == 0 || f.want(uri, -1) > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsubscribeWithin)
	defer cancel()
	return f.with(ctx, func(ctx context.Context, s *sdk.ClientSession) error {
		return s.Unsubscribe(ctx, &sdk.UnsubscribeParams{URI: uri})
	})
}

// want adds to the number of the client's subscriptions to a resource, and returns the sum.
func (f *forwarder) want(uri string, added int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.wanted == nil {
		f.wanted = map[string]int{}
	}
	if f.wanted[uri] += added; f.wanted[uri] <= 0 {
		delete(f.wanted, uri)
	}
	return f.wanted[uri]
}

// tell calls something with the client's server, if the client is served already.
func (f *forwarder) tell(something func(*sdk.Server)) {
	if local := f.local.Load(); local != nil {
		something(local)
	}
}

func (f *forwarder) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.remote != nil {
		_ = f.remote.Close() // the server ends sessions that nobody uses
	}
}

// with calls use with a session. If the request did not reach the server, or the server no longer knows the session, it
// calls use again with a new session. If the server may have begun the call but did not answer, the call fails.
func (f *forwarder) with(ctx context.Context, use func(context.Context, *sdk.ClientSession) error) error {
	session, err := f.session(ctx)
	if err != nil {
		return err
	}
	var first attempt
	err = first.make(ctx, func(ctx context.Context) error { return use(ctx, session) })
	if err == nil || ctx.Err() != nil {
		return err
	}
	if _, answered := errors.AsType[*jsonrpc.Error](err); answered && first.begun() {
		return err
	}
	f.mu.Lock()
	if f.remote == session {
		f.remote = nil
	}
	f.mu.Unlock()
	_ = session.Close() // the session is broken
	if first.begun() {
		return err
	}
	if session, err = f.session(ctx); err != nil {
		return err
	}
	return new(attempt).make(ctx, func(ctx context.Context) error { return use(ctx, session) })
}

// attempt records what happened to the request of one call.
type attempt struct {
	mu      sync.Mutex
	reached bool  // the server may have begun the call
	failure error // error of the transport
}

// attemptKey is the context key for the *attempt of a request.
type attemptKey struct{}

// make calls send. Its error says why the request got no answer; the SDK would only say that it was rejected.
func (a *attempt) make(ctx context.Context, send func(context.Context) error) error {
	err := send(context.WithValue(ctx, attemptKey{}, a))
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil && a.failure != nil {
		return a.failure
	}
	return err
}

func (a *attempt) begun() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reached
}

// note records what happened to a request.
func (a *attempt) note(res *http.Response, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failure = err
	op, ofNet := errors.AsType[*net.OpError](err)
	switch {
	case ofNet && op.Op == "dial": // no server listens there
	case err == nil && res.StatusCode == http.StatusNotFound: // the server does not know the session
	default:
		a.reached = true
	}
}

// noting returns a client that records what happens to the requests of attempts.
func noting(c *http.Client) *http.Client {
	var noted http.Client
	if c != nil {
		noted = *c
	}
	noted.Transport = noter{cmp.Or(noted.Transport, http.DefaultTransport)}
	return &noted
}

type noter struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (n noter) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := n.next.RoundTrip(r)
	if a, ok := r.Context().Value(attemptKey{}).(*attempt); ok && r.Method == http.MethodPost {
		a.note(res, err)
	}
	return res, err
}

// receive forwards messages, and returns the remote server's answers.
func (f *forwarder) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		switch q := r.(type) {
		case *sdk.ListToolsRequest:
			return forward(ctx, f, func(ctx context.Context, s *sdk.ClientSession) (sdk.Result, error) {
				return result(s.ListTools(ctx, q.Params))
			})
		case *sdk.CallToolRequest:
			return f.callTool(ctx, q)
		case *sdk.SubscriptionsListenRequest:
			return listen(q, subscriber{
				subscribe:   func(uris []string) ([]string, error) { return f.subscribeAll(ctx, uris) },
				unsubscribe: func(uri string) error { return f.unsubscribe(ctx, uri) },
			}, func() (sdk.Result, error) { return next(ctx, method, r) })
		case *sdk.ListResourcesRequest:
			return forward(ctx, f, func(ctx context.Context, s *sdk.ClientSession) (sdk.Result, error) {
				return result(s.ListResources(ctx, q.Params))
			})
		case *sdk.ListResourceTemplatesRequest:
			return forward(ctx, f, func(ctx context.Context, s *sdk.ClientSession) (sdk.Result, error) {
				return result(s.ListResourceTemplates(ctx, q.Params))
			})
		case *sdk.ReadResourceRequest:
			return forward(ctx, f, func(ctx context.Context, s *sdk.ClientSession) (sdk.Result, error) {
				return result(s.ReadResource(ctx, q.Params))
			})
		case *sdk.ListPromptsRequest:
			return forward(ctx, f, func(ctx context.Context, s *sdk.ClientSession) (sdk.Result, error) {
				return result(s.ListPrompts(ctx, q.Params))
			})
		case *sdk.GetPromptRequest:
			return forward(ctx, f, func(ctx context.Context, s *sdk.ClientSession) (sdk.Result, error) {
				return result(s.GetPrompt(ctx, q.Params))
			})
		}
		return next(ctx, method, r)
	}
}

// forward returns the remote server's answer.
func forward(ctx context.Context, f *forwarder,
	ask func(context.Context, *sdk.ClientSession) (sdk.Result, error)) (out sdk.Result, err error) {
	err = f.with(ctx, func(ctx context.Context, s *sdk.ClientSession) error {
		out, err = ask(ctx, s)
		return err
	})
	if err != nil {
		return nil, shown(err)
	}
	return out, nil
}

// shown returns the error that the client sees for a failed call.
func shown(err error) error {
	if of, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return of
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server of the memory did not answer: " +
		err.Error()}
}

// callTool forwards a tool call, and its progress if the client asked for that.
func (f *forwarder) callTool(ctx context.Context, q *sdk.CallToolRequest) (sdk.Result, error) {
	params := &sdk.CallToolParams{Meta: q.Params.Meta, Name: q.Params.Name}
	if len(q.Params.Arguments) > 0 {
		params.Arguments = q.Params.Arguments
	}
	if token := q.Params.GetProgressToken(); token != nil {
		f.follow(token, q.Session)
		defer f.follow(token, nil)
	}
	return forward(ctx, f, func(ctx context.Context, s *sdk.ClientSession) (sdk.Result, error) {
		return result(s.CallTool(ctx, params))
	})
}

// follow sets the session that receives the progress of a token; nil removes it.
func (f *forwarder) follow(token any, session *sdk.ServerSession) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tokens == nil {
		f.tokens = map[any]*sdk.ServerSession{}
	}
	if f.tokens[token] = session; session == nil {
		delete(f.tokens, token)
	}
}

// progress forwards a progress message to the client.
func (f *forwarder) progress(ctx context.Context, q *sdk.ProgressNotificationClientRequest) {
	f.mu.Lock()
	session := f.tokens[q.Params.ProgressToken]
	f.mu.Unlock()
	if session != nil {
		_ = session.NotifyProgress(ctx, q.Params) // the client may be gone
	}
}
