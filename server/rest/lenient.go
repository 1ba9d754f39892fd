package rest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"
)

// normalize accepts paths with and without a final slash, matches the escaped path, and drops empty query values. It
// keeps empty tags in a search of passages, because no passage has them.
func normalize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u := *r.URL
		u.RawPath = u.EscapedPath()
		if cut, ok := strings.CutSuffix(u.RawPath, "/"); ok && cut != "" {
			u.RawPath, u.Path = cut, strings.TrimSuffix(u.Path, "/")
		}
		u.RawQuery = withoutEmpty(u.RawQuery, strings.HasSuffix(u.Path, "/archival-memory/search"))
		r = r.WithContext(r.Context())
		r.URL = &u
		next.ServeHTTP(w, r)
	})
}

func withoutEmpty(query string, butTags bool) string {
	var pairs []string
	for pair := range strings.SplitSeq(query, "&") {
		if name, value, _ := strings.Cut(pair, "="); value != "" || butTags && name == "tags" {
			pairs = append(pairs, pair)
		}
	}
	return strings.Join(pairs, "&")
}

// unescapeParams decodes the path's parameters, which were matched on the escaped path. Only the last parameter of a
// route that ends in * may contain slashes.
func unescapeParams(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		values := make([]string, len(c.ParamValues()))
		for i, escaped := range c.ParamValues() {
			value, err := url.PathUnescape(escaped)
			if err != nil || strings.Contains(escaped, "/") && c.ParamNames()[i] != "*" {
				return echo.ErrNotFound
			}
			values[i] = value
		}
		c.SetParamValues(values...)
		return next(c)
	}
}

// refuseBrokenQueries refuses a query that can only be read in part: without one of its filters the query would select
// everything.
func refuseBrokenQueries(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if _, err := url.ParseQuery(c.Request().URL.RawQuery); err != nil {
			return Malformed("The query cannot be read: " + err.Error() + "; write ; as %3B and % as %25")
		}
		return next(c)
	}
}

// refuseEncodedBodies refuses compressed bodies.
func refuseEncodedBodies(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		for _, coding := range r.Header.Values("Content-Encoding") {
			if r.ContentLength != 0 && coding != "" && !strings.EqualFold(coding, "identity") {
				return newProblem(codeMediaType, fmt.Sprintf("Bodies with Content-Encoding: %s are not read; send it without",
					shorten(coding)))
			}
		}
		return next(c)
	}
}

type request huma.Context // an embedded field of type Context would hide the method Context

// lenient is a request with a body that was read. An empty body means {}. Any other body counts as JSON whatever its
// Content-Type says, because curl -d calls it a form.
type lenient struct {
	request
	body []byte
}

func (l *lenient) BodyReader() io.Reader { return bytes.NewReader(l.body) }

func (l *lenient) Header(name string) string {
	if name == "Content-Type" {
		return "application/json"
	}
	return l.request.Header(name)
}

func (a *API) readLeniently(ctx huma.Context, next func(huma.Context)) {
	u := ctx.URL()
	if refused := refuseParameter(ctx.Operation(), u.Query()); refused != nil {
		_ = huma.WriteErr(a.API, ctx, refused.status, refused.Error()) // huma reports write errors
		return
	}
	warnings := unknownParameters(ctx.Operation(), u.Query())
	if !takesBody(ctx.Method()) {
		next(huma.WithValue(ctx, keyWarnings, &warnings))
		return
	}
	held := &heldBody{Reader: ctx.BodyReader(), in: a.bodies, org: Org(ctx.Context())}
	defer held.release()
	body, refused := readBody(ctx, held)
	if refused == nil && ctx.Operation().RequestBody == nil {
		refused = refuseMisplaced(ctx.Operation(), body)
	}
	if refused == nil {
		names := bodyNames{schemas: a.OpenAPI().Components.Schemas, text: body, warnings: &warnings,
			strict: searches(ctx.Operation().Path)}
		body, refused = names.check(bodySchema(ctx.Operation()), "")
	}
	if refused != nil {
		for name := range refused.header {
			ctx.SetHeader(name, refused.header.Get(name))
		}
		_ = huma.WriteErr(a.API, ctx, refused.status, refused.Error()) // huma reports write errors
		return
	}
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	next(&lenient{request: huma.WithValue(ctx, keyWarnings, &warnings), body: body})
}

// readBody reads a body within its limits.
func readBody(ctx huma.Context, held *heldBody) ([]byte, *Problem) {
	declared, _ := strconv.ParseInt(ctx.Header("Content-Length"), 10, 64) // 0 for a body in chunks
	if declared > maxBodyBytes {
		return nil, TooLarge(maxBodyBytes)
	}
	var buffer bytes.Buffer
	err := held.grow(declared)
	if err == nil {
		buffer.Grow(int(declared) + bytes.MinRead)
		_, err = buffer.ReadFrom(io.LimitReader(held, maxBodyBytes+1))
	}
	body := bytes.TrimPrefix(buffer.Bytes(), []byte(byteOrderMark))
	problem, _ := errors.AsType[*Problem](err)
	switch {
	case problem != nil:
		return nil, problem
	case err != nil:
		return nil, Malformed("The request's body broke off: " + err.Error())
	case len(body) > maxBodyBytes:
		return nil, TooLarge(maxBodyBytes)
	}
	return body, checkShape("body", body, maxBodyDepth, maxBodyValues)
}
