package rest

import (
	"context"
	"net/http"
	"regexp"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"
)

// Handler answers an operation: it returns the body of a 200, or an error that ProblemOf turns into a status.
type Handler[I, O any] = func(context.Context, *I) (O, error)

// Get registers an operation. doc is the operation's id (a verb and a noun), a colon, and its description; the first
// sentence of the description is the summary: "list_agents: List agents. All filters must hold."
func Get[I, O any](r Routes, path, doc string, handle Handler[I, O], options ...Option) {
	register(r, huma.Operation{Method: http.MethodGet, Path: path, Summary: doc}, handle, options)
}

// Post registers an operation as Get does.
func Post[I, O any](r Routes, path, doc string, handle Handler[I, O], options ...Option) {
	register(r, huma.Operation{Method: http.MethodPost, Path: path, Summary: doc}, handle, options)
}

// Put registers an operation as Get does.
func Put[I, O any](r Routes, path, doc string, handle Handler[I, O], options ...Option) {
	register(r, huma.Operation{Method: http.MethodPut, Path: path, Summary: doc}, handle, options)
}

// Patch registers an operation as Get does.
func Patch[I, O any](r Routes, path, doc string, handle Handler[I, O], options ...Option) {
	register(r, huma.Operation{Method: http.MethodPatch, Path: path, Summary: doc}, handle, options)
}

// Delete registers an operation as Get does.
func Delete[I, O any](r Routes, path, doc string, handle Handler[I, O], options ...Option) {
	register(r, huma.Operation{Method: http.MethodDelete, Path: path, Summary: doc}, handle, options)
}

func register[I, O any](r Routes, described huma.Operation, handle Handler[I, O], options []Option) {
	a := r.API
	type output struct{ Body O }
	described.MaxBodyBytes, described.BodyReadTimeout = -1, -1
	op := operation{Operation: described, timeout: a.Timeout}
	for _, option := range options {
		option(&op)
	}
	r.declare(op.Method, op.Path)
	r.declareUsers(op)
	if op.Method == http.MethodGet {
		a.whole[echoPath(op.Path)] = true
	}
	a.complete(&op.Operation)
	if filters(op.Method, op.Path) {
		op.Middlewares = append(op.Middlewares, noteUnmatched, a.boundAnswers(op.readsMore))
	}
	huma.Register(a.API, op.Operation, func(ctx context.Context, input *I) (*output, error) {
		ctx, cancel := context.WithTimeout(ctx, op.timeout-AuthTook(ctx))
		defer cancel()
		var body O
		serve := a.serve
		if r.needs == Public { // health checks and metrics never wait for other requests
			serve = func(_ context.Context, handle func() error) error { return handle() }
		}
		err := serve(ctx, func() (err error) {
			if unknown := WarningsOf(ctx); op.exact && len(unknown) > 0 {
				return Unprocessable("request", strings.Join(unknown, "; ")+". Nothing was done, because it could not be undone")
			}
			body, err = handle(ctx, input)
			return err
		})
		if err != nil {
			return nil, a.fail(ctx, err, op.own)
		}
		if ctx.Value(unmatchedKey{}) != nil {
			body = none(body)
		}
		return &output{body}, nil
	})
	if empty := op.Responses["204"]; empty != nil {
		empty.Content = nil
	}
}

// Stream registers an operation that streams its body or its answer: no timeout bounds it. If the operation has a
// RequestBody, its handler must read the body to its end before it works on it.
func (r Routes) Stream(described huma.Operation, handle echo.HandlerFunc, options ...Option) {
	a := r.API
	op := operation{Operation: described, readsBody: described.RequestBody != nil}
	for _, option := range options {
		option(&op)
	}
	r.declareUsers(op)
	a.complete(&op.Operation)
	a.OpenAPI().AddOperation(&op.Operation)
	r.stream(op.Method, op.Path, func(c echo.Context) error {
		if refused := refuseParameter(&op.Operation, c.QueryParams()); refused != nil {
			return refused
		}
		warnings := unknownParameters(&op.Operation, c.QueryParams())
		setContext(c, keyWarnings, &warnings)
		warnings.InHeader(c)
		return a.answer(op, c, handle)
	})
}

// answer calls an operation's handler. The request takes a place among those being worked on, unless it only waits.
func (a *API) answer(op operation, c echo.Context, handle echo.HandlerFunc) (err error) {
	if c.Request().Method == http.MethodGet || op.waits != nil && op.waits(c.Request()) {
		err = handle(c)
	} else {
		err = a.serveStream(c, op.readsBody, handle)
	}
	if err != nil && op.own {
		return a.fail(c.Request().Context(), err, true)
	}
	return err
}

// Head serves HEAD on a path that has a GET.
func (r Routes) Head(path string, handle echo.HandlerFunc) { r.stream(http.MethodHead, path, handle) }

// Hidden registers a route that is not in the OpenAPI document. Every key may call the route: its handler must
// authorize the key for an agent with ForAgent, and must read the body of a POST to its end.
func (r Routes) Hidden(method, path string, handle echo.HandlerFunc, options ...Option) {
	op := operation{readsBody: method == http.MethodPost}
	for _, option := range options {
		option(&op)
	}
	op.Method, op.Path = method, path
	r.declareUsers(op)
	r.stream(method, path, func(c echo.Context) error { return r.answer(op, c, handle) })
}

func (r Routes) stream(method, path string, handle echo.HandlerFunc) {
	r.declare(method, path)
	r.echo.Add(method, echoPath(path), handle)
}

// inPath matches the parameters of a path; wildcards matches parameters that may contain slashes.
var (
	inPath    = regexp.MustCompile(`\{[^}]*\}`)
	wildcards = regexp.MustCompile(`\{[^}]*:path\}`)
)

// Unserved is a route that clients may call and that no operation serves. Why is the reason, as a sentence.
type Unserved struct{ Method, Path, Why string }

// NotServed answers the given routes with a 501 that says why. Routes with an operation are left alone. It must be
// called after the last operation was registered.
func (a *API) NotServed(routes []Unserved) {
	served := map[string]bool{} // methods and paths, with {} for each parameter
	for path, item := range a.OpenAPI().Paths {
		form := inPath.ReplaceAllString(path, "{}")
		for _, op := range operationsOf(item) {
			served[op.Method+" "+form] = true
		}
	}
	for _, r := range routes {
		path := strings.TrimSuffix(r.Path, "/")
		if served[r.Method+" "+inPath.ReplaceAllString(path, "{}")] {
			continue
		}
		a.For(AnyKey).stream(r.Method, wildcards.ReplaceAllString(path, "*"), func(echo.Context) error {
			return notServed(r.Why)
		})
	}
}

// complete sets an operation's id, description, summary and tag, and declares its errors.
func (a *API) complete(op *huma.Operation) {
	op.OperationID, op.Description, _ = strings.Cut(op.Summary, ": ")
	op.Summary, _, _ = strings.Cut(op.Description, ". ")
	op.Summary = strings.TrimSuffix(op.Summary, ".")
	op.Tags = []string{strings.Split(strings.TrimPrefix(op.Path, "/v1"), "/")[1]}
	if op.Responses == nil {
		op.Responses = map[string]*huma.Response{}
	}
	op.Responses["default"] = errorResponse("Error")
}

// IDParam describes a path parameter that is an id.
func IDParam(name, prefix string) *huma.Param {
	return &huma.Param{Name: name, In: "path", Required: true, Schema: idSchema(prefix)}
}
