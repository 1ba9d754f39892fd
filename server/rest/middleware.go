package rest

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/loci-memory/loci/db"
)

// identify gives a request the id that its client chose, or a random one, and puts the id in the answer's header.
func identify(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := c.Request().Header.Get(echo.HeaderXRequestID)
		if !requestIDs.MatchString(id) {
			id = rand.Text()
		}
		c.Response().Header().Set(echo.HeaderXRequestID, id)
		setContext(c, keyRequestID, id)
		return next(c)
	}
}

// boundWaits lets a request wait for the database for nine tenths of the time that the request may take. The rest is
// for the answer.
func (a *API) boundWaits(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.SetRequest(c.Request().WithContext(db.WithPatience(c.Request().Context(), a.Timeout/10*9)))
		return next(c)
	}
}

// awaitSchema refuses requests after one failed because the schema lacks a part, until the schema is whole. While a
// backup is restored, reads would see only a part of the data, and writes could contradict it.
func (a *API) awaitSchema(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		lacked := a.lacks.Load()
		if lacked == nil || slices.Contains(watched, c.Path()) {
			return next(c)
		}
		switch err := a.Ready(c.Request().Context(), *lacked); {
		case db.LacksSchema(err):
			return err
		case err == nil:
			a.lacks.CompareAndSwap(lacked, nil)
		}
		return next(c)
	}
}

// requestIDs are the ids that are safe to log.
var requestIDs = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// logAccess logs a line about each request, and calls Observe with it. Monitoring requests, which come every few
// seconds, are logged at level debug.
func (a *API) logAccess(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		err := next(c)
		if err != nil {
			c.Error(err)
		}
		r, took := c.Request(), time.Since(start)
		level := slog.LevelInfo
		if slices.Contains(watched, c.Path()) {
			level = slog.LevelDebug
		}
		attrs := []slog.Attr{slog.String("method", loggedMethod(r.Method)), slog.String("path", loggedPath(c)),
			slog.Int("status", c.Response().Status), slog.Int64("bytes", c.Response().Size), slog.Duration("took", took),
			slog.String("request_id", requestID(r.Context()))}
		for name, value := range map[string]string{"key": KeyOf(r.Context()), "trace_id": traceID(r)} {
			if value != "" {
				attrs = append(attrs, slog.String(name, value))
			}
		}
		a.Log.LogAttrs(r.Context(), level, "request", attrs...)
		route := ""
		if a.access[c.Path()] != nil {
			route = echoParams.ReplaceAllString(c.Path(), "{$1}")
		}
		nameSpan(r, route)
		if a.Observe != nil {
			a.Observe(Served{r.Method, route, c.Response().Status, took})
		}
		return nil
	}
}

// loggedMethod returns a method as the log shows it; a method that a client invented is "other".
func loggedMethod(method string) string {
	if plainMethod.MatchString(method) {
		return method
	}
	return "other"
}

var plainMethod = regexp.MustCompile(`^[A-Z]{1,16}$`)

// loggedPath returns the route of a request with its ids filled in. For values that a caller chose, such as a label or
// a file path, it shows the parameter's name instead: an erasure could not reach the log. A path that is not served is
// "unknown".
func loggedPath(c echo.Context) string {
	path := c.Path()
	if path == "" {
		return "unknown"
	}
	segments, values := strings.Split(path, "/"), map[string]string{}
	for i, name := range c.ParamNames() {
		values[":"+name] = c.ParamValues()[i]
	}
	for i, segment := range segments {
		name, isParam := strings.CutPrefix(segment, ":")
		switch value := values[segment]; {
		case isParam && plainID.MatchString(value):
			segments[i] = value
		case isParam:
			segments[i] = "{" + name + "}"
		}
	}
	return strings.Join(segments, "/")
}

// plainID matches ids that Loci gives and that reveal nothing: a number, or a UUID with or without a prefix.
var plainID = regexp.MustCompile(`^(?:[a-z_]{1,24}-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$|` +
	`^(?:job-)?[0-9]{1,19}$|^default$`)

// watched are the routes of health checks and metrics.
var watched = []string{"/v1/health", "/v1/ready", "/metrics"}

// Watches reports whether a path is one of the routes of health checks and metrics.
func Watches(path string) bool { return slices.Contains(watched, strings.TrimSuffix(path, "/")) }

// nameSpan names the trace span of a request, if there is one, after the request's route.
func nameSpan(r *http.Request, route string) {
	if route != "" {
		span := trace.SpanFromContext(r.Context())
		span.SetName(loggedMethod(r.Method) + " " + route)
		span.SetAttributes(attribute.String("http.route", route), attribute.String("loci.request_id", requestID(r.Context())))
	}
}

// traceID returns the trace id of a request: from its span, or from the header traceparent of W3C Trace Context; empty
// if there is none.
func traceID(r *http.Request) string {
	if span := trace.SpanContextFromContext(r.Context()); span.HasTraceID() {
		return span.TraceID().String()
	}
	parent := traceParents.FindStringSubmatch(r.Header.Get("Traceparent"))
	if parent == nil || strings.Trim(parent[1], "0") == "" {
		return ""
	}
	return parent[1]
}

var traceParents = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}`)

// recoverPanics answers a panic with a 500, and logs it with its stack.
func (a *API) recoverPanics() echo.MiddlewareFunc {
	return middleware.RecoverWithConfig(middleware.RecoverConfig{
		DisableStackAll: true,
		LogErrorFunc: func(c echo.Context, err error, stack []byte) error {
			ctx := c.Request().Context()
			a.Log.ErrorContext(ctx, "panic", "request_id", requestID(ctx), "error", err, "stack", string(stack))
			return unknown()
		},
	})
}
