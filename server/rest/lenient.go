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

// normalize serves both slash forms of a path, matches on its escaped form, and drops empty query values, but for empty
// tags of a search of passages, which nothing has.
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
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		if name, value, _ := strings.Cut(pair, "="); value != "" || butTags && name == "tags" {
			kept = append(kept, pair)
		}
	}
	return strings.Join(kept, "&")
}

// unescapeParams decodes the path's parameters, which were matched on the escaped path. The last one matched the rest
// of the path, which may have slashes only in a route that ends in *.
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

// refuseBrokenQueries refuses a query that is only read in part: a filter that is left out would select everything.
func refuseBrokenQueries(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if _, err := url.ParseQuery(c.Request().URL.RawQuery); err != nil {
			return Malformed("The query cannot be read: " + err.Error() + "; write ; as %3B and % as %25")
		}
		return next(c)
	}
}

// refuseEncodedBodies refuses a body that is compressed.
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

type request huma.Context // embedded by a name other than its method Context

// lenient is a request whose body was read. An empty body is {}, and any other is JSON whatever its Content-Type,
// because curl -d calls it a form.
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
		_ = huma.WriteErr(a.API, ctx, refused.status, refused.Error()) // huma reports what cannot be written
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
		body, refused = checkNames(a.OpenAPI().Components.Schemas, bodySchema(ctx.Operation()), "", body, &warnings)
	}
	if refused != nil {
		for name := range refused.header {
			ctx.SetHeader(name, refused.header.Get(name))
		}
		_ = huma.WriteErr(a.API, ctx, refused.status, refused.Error()) // huma reports what cannot be written
		return
	}
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	next(&lenient{request: huma.WithValue(ctx, keyWarnings, &warnings), body: body})
}

// readBody reads a body within its limits.
func readBody(ctx huma.Context, held *heldBody) ([]byte, *Problem) {
	declared, _ := strconv.ParseInt(ctx.Header("Content-Length"), 10, 64) // absent of a body in chunks
	if declared > maxBodyBytes {
		return nil, TooLarge(maxBodyBytes)
	}
	var read bytes.Buffer
	err := held.grow(declared)
	if err == nil {
		read.Grow(int(declared) + bytes.MinRead)
		_, err = read.ReadFrom(io.LimitReader(held, maxBodyBytes+1))
	}
	body := bytes.TrimPrefix(read.Bytes(), []byte(byteOrderMark))
	own, _ := errors.AsType[*Problem](err)
	switch {
	case own != nil:
		return nil, own
	case err != nil:
		return nil, Malformed("The request's body broke off: " + err.Error())
	case len(body) > maxBodyBytes:
		return nil, TooLarge(maxBodyBytes)
	}
	return body, checkShape("body", body, maxBodyDepth, maxBodyValues)
}
