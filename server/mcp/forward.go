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

// Remote is where an agent's memory is served over MCP.
type Remote struct {
	URL     string // of the endpoint
	Client  *http.Client
	Version string // of this program
}

// Forward serves a client of MCP, as a program on its standard input and output, with what a remote server answers. It
// returns when the client goes. The server may be restarted meanwhile: a call that it does not answer is an error, and
// the next one connects again.
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
	remote *sdk.ClientSession // nil if it ended
	wanted map[string]int     // how often the client subscribed to the resource of a URI
	tokens map[any]*sdk.ServerSession
}

// session returns a session of the remote server.
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
				_ = local.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: q.Params.URI}) // it is always nil
			})
		},
		ProgressNotificationHandler: f.progress,
	})
	// The session outlives the call that begins it. Sessions of this version are told of changes.
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

// subscribeAgain subscribes a new session to what the client wants to be told of. What changed between the sessions
// nobody was told: the client is, of all. It is called with f.mu.
func (f *forwarder) subscribeAgain(ctx context.Context, session *sdk.ClientSession) {
	if len(f.wanted) == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx) // of the call that begins the session
	for uri := range f.wanted {
		if session.Subscribe(ctx, &sdk.SubscribeParams{URI: uri}) != nil {
			continue // it is gone, which reading it says
		}
		f.tell(func(local *sdk.Server) {
			_ = local.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri}) // it is always nil
		})
	}
	f.tell(listChanged)
}

// subscribe subscribes to a resource. The session has a version of the protocol of its own: what the client says of its
// version, which may have no such message, is not for the server.
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

// subscribeAll subscribes to resources. It returns those that it subscribed to, also with an error; it passes over
// resources that do not exist.
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

// unsubscribeWithin bounds how long the end of a client's interest waits for the server.
const unsubscribeWithin = 5 * time.Second

// unsubscribe ends what subscribe began, also if ctx has ended.
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

// want adds to how often the client subscribed to a resource, and returns it.
func (f *forwarder) want(uri string, more int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.wanted == nil {
		f.wanted = map[string]int{}
	}
	if f.wanted[uri] += more; f.wanted[uri] <= 0 {
		delete(f.wanted, uri)
	}
	return f.wanted[uri]
}

// tell tells the client something, unless it is not served yet.
func (f *forwarder) tell(something func(*sdk.Server)) {
	if local := f.local.Load(); local != nil {
		something(local)
	}
}

func (f *forwarder) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.remote != nil {
		_ = f.remote.Close() // the server ends a session that is not used
	}
}

// with calls do with a session. If what do asked for did not reach the server, or the server does not know the session
// any more, do is called again with a new one. A call that the server may have begun with and did not answer is an
// error.
func (f *forwarder) with(ctx context.Context, do func(context.Context, *sdk.ClientSession) error) error {
	session, err := f.session(ctx)
	if err != nil {
		return err
	}
	var first attempt
	err = first.make(ctx, func(ctx context.Context) error { return do(ctx, session) })
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
	_ = session.Close() // it is broken
	if first.begun() {
		return err
	}
	if session, err = f.session(ctx); err != nil {
		return err
	}
	return new(attempt).make(ctx, func(ctx context.Context) error { return do(ctx, session) })
}

// attempt is what happens to the request of one call.
type attempt struct {
	mu      sync.Mutex
	reached bool  // the server may have begun with it
	failure error // of the transport
}

// attemptKey is the key of an *attempt in the context of its request.
type attemptKey struct{}

// make calls do. Its error says why the request was not answered, where the SDK says only that it was rejected.
func (a *attempt) make(ctx context.Context, do func(context.Context) error) error {
	err := do(context.WithValue(ctx, attemptKey{}, a))
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

// note notes what became of a request that was sent.
func (a *attempt) note(res *http.Response, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failure = err
	op, ofNet := errors.AsType[*net.OpError](err)
	switch {
	case ofNet && op.Op == "dial": // nobody was there
	case err == nil && res.StatusCode == http.StatusNotFound: // the server knows no such session
	default:
		a.reached = true
	}
}

// noting returns a client that notes what becomes of the requests of attempts.
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

// receive forwards the messages that the remote server answers.
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

// forward returns what the remote server answers.
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

// shown returns the error of a call as the client sees it.
func shown(err error) error {
	if of, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return of
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server of the memory did not answer: " +
		err.Error()}
}

// callTool forwards a call, and its progress if the client asks for it.
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

// follow says whom the progress of a token is for; nobody if the session is nil.
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

// progress passes progress on.
func (f *forwarder) progress(ctx context.Context, q *sdk.ProgressNotificationClientRequest) {
	f.mu.Lock()
	session := f.tokens[q.Params.ProgressToken]
	f.mu.Unlock()
	if session != nil {
		_ = session.NotifyProgress(ctx, q.Params) // a client that is gone misses it
	}
}
