package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/labstack/echo/v4"
)

// This file is the one place that bends huma and echo to what Letta's clients send and expect; adapter_test.go states each rule.

// Bounds of a request's JSON body.
const (
	maxBodyBytes = 1 << 20          // where an operation has no bound of its own
	maxBodyDepth = 100              // of nested objects and arrays
	bodyPatience = 30 * time.Second // for all of it
)

// surface is what operations are registered on.
type surface struct {
	huma.API
	fail func(ctx context.Context, err error) *problem // tells, and logs, what an error is to a caller
}

// newSurface returns the API on e, which normalize must wrap, without huma's documentation pages, schema links and problem documents.
func newSurface(e *echo.Echo, title, version string, fail func(context.Context, error) *problem) *surface {
	config := huma.DefaultConfig(title, version)
	config.OpenAPIPath, config.DocsPath, config.SchemasPath, config.CreateHooks = "", "", "", nil
	config.AllowAdditionalPropertiesByDefault = true
	config.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	config.Transformers = []huma.Transformer{showProblem}
	e.Use(unescapeParams)
	s := &surface{API: humaecho.New(e, config), fail: fail}
	s.UseMiddleware(s.readLeniently)
	return s
}

// schemaName is huma's name of a type, before it that of the compactor's package for what is also the name of something else.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if strings.HasSuffix(t.PkgPath(), "/compaction") && !strings.HasPrefix(name, "Compaction") {
		return "Compaction" + name
	}
	return name
}

// route registers an operation. What handle returns is the body of a 200; an error goes through fail.
func route[I, O any](s *surface, method, path, summary string, handle func(context.Context, *I) (O, error), options ...func(*huma.Operation)) {
	type output struct{ Body O }
	op := huma.Operation{Method: method, Path: path, Summary: summary, OperationID: operationID(method, path), Tags: []string{tagOf(path)},
		MaxBodyBytes: -1, BodyReadTimeout: -1, Responses: map[string]*huma.Response{"default": s.problemResponse()}}
	for _, option := range options {
		option(&op)
	}
	huma.Register(s.API, op, func(ctx context.Context, in *I) (*output, error) {
		body, err := handle(ctx, in)
		if err != nil {
			return nil, s.fail(ctx, err)
		}
		return &output{body}, nil
	})
	if empty := op.Responses["204"]; empty != nil {
		empty.Content = nil
	}
	delete(s.OpenAPI().Components.Schemas.Map(), "ErrorModel") // huma declares its own error with each operation
	delete(s.OpenAPI().Components.Schemas.Map(), "ErrorDetail")
}

// noContent makes an operation answer 204.
func noContent(op *huma.Operation) { op.DefaultStatus = http.StatusNoContent }

// bodyUpTo gives an operation a bound of its own for its body.
func bodyUpTo(bytes int64) func(*huma.Operation) {
	return func(op *huma.Operation) { op.MaxBodyBytes = bytes }
}

// unchecked leaves an operation's body to its own UnmarshalJSON and to its handler.
func unchecked(op *huma.Operation) { op.SkipValidateBody = true }

// deprecated marks an operation that new programs should not use.
func deprecated(op *huma.Operation) { op.Deprecated = true }

func operationID(method, path string) string {
	words := strings.FieldsFunc(strings.TrimPrefix(path, "/v1/"), func(r rune) bool { return strings.ContainsRune("/{}-", r) })
	return strings.ToLower(method) + "_" + strings.Join(words, "_")
}

func tagOf(path string) string {
	return strings.Split(path, "/")[2]
}

func (s *surface) problemResponse() *huma.Response {
	schema := s.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[problem](), true, "")
	return &huma.Response{Description: "Error", Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}
}

// showProblem puts huma's own errors, those of validation above all, into Letta's shape.
func showProblem(ctx huma.Context, _ string, body any) (any, error) {
	model, ok := body.(*huma.ErrorModel)
	if !ok {
		return body, nil
	}
	ctx.SetHeader("Content-Type", "application/json")
	sentences := make([]string, 0, len(model.Errors))
	for _, e := range model.Errors {
		sentences = append(sentences, violation(e))
	}
	if len(sentences) == 0 {
		sentences = append(sentences, model.Detail)
	}
	return newProblem(model.Status, strings.Join(sentences, "; ")).traced(ctx.Context()), nil
}

// violation is a broken rule in words: where, what the rule is, and what was there.
func violation(e *huma.ErrorDetail) string {
	switch e.Value.(type) {
	case nil, map[string]any, []any, []string:
		return e.Location + ": " + e.Message
	}
	shown, err := json.Marshal(e.Value)
	if err != nil {
		return e.Location + ": " + e.Message
	}
	if len(shown) > maxShownBytes {
		shown = append(bytes.ToValidUTF8(shown[:maxShownBytes], nil), "…"...)
	}
	return fmt.Sprintf("%s: %s. Got: %s", e.Location, e.Message, shown)
}

const maxShownBytes = 100

// normalize serves both slash forms of a path, matches on its escaped form, and takes an empty query value as absent.
func normalize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u := *r.URL
		u.RawPath = u.EscapedPath()
		if cut, ok := strings.CutSuffix(u.RawPath, "/"); ok && cut != "" {
			u.RawPath, u.Path = cut, strings.TrimSuffix(u.Path, "/")
		}
		u.RawQuery = withoutEmpty(u.RawQuery)
		r = r.WithContext(r.Context())
		r.URL = &u
		next.ServeHTTP(w, r)
	})
}

func withoutEmpty(query string) string {
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		if _, value, _ := strings.Cut(pair, "="); value != "" {
			kept = append(kept, pair)
		}
	}
	return strings.Join(kept, "&")
}

// unescapeParams decodes the path's parameters, which were matched on the escaped path. A last one matched the rest of the path.
func unescapeParams(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		values := make([]string, len(c.ParamValues()))
		for i, escaped := range c.ParamValues() {
			value, err := url.PathUnescape(escaped)
			if err != nil || strings.Contains(escaped, "/") {
				return echo.ErrNotFound
			}
			values[i] = value
		}
		c.SetParamValues(values...)
		return next(c)
	}
}

type request huma.Context // embedded by a name other than its method Context

// lenient is a request whose body was read: an empty one is {}, and every other is JSON whatever it says of itself, for curl -d calls what
// it sends a form.
type lenient struct {
	request
	body []byte
}

// BodyReader implements huma.Context.
func (l *lenient) BodyReader() io.Reader { return bytes.NewReader(l.body) }

// Header implements huma.Context.
func (l *lenient) Header(name string) string {
	if name == "Content-Type" {
		return "application/json"
	}
	return l.request.Header(name)
}

func (s *surface) readLeniently(ctx huma.Context, next func(huma.Context)) {
	if ctx.Operation().RequestBody == nil {
		next(ctx)
		return
	}
	body, refused := readBody(ctx)
	if refused != nil {
		_ = huma.WriteErr(s.API, ctx, refused.status, refused.Detail) // huma reports what cannot be written
		return
	}
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	next(&lenient{request: ctx, body: body})
}

// readBody reads a body within its bounds. The deadline is taken back at the end: one that passes while the request is worked on
// would cancel it.
func readBody(ctx huma.Context) ([]byte, *problem) {
	limit := ctx.Operation().MaxBodyBytes
	if limit <= 0 {
		limit = maxBodyBytes
	}
	_ = ctx.SetReadDeadline(time.Now().Add(bodyPatience)) // a test's recorder has none
	body, err := io.ReadAll(io.LimitReader(ctx.BodyReader(), limit+1))
	_ = ctx.SetReadDeadline(time.Time{})
	switch {
	case err != nil:
		return nil, malformed("The request's body broke off: " + err.Error())
	case int64(len(body)) > limit:
		return nil, tooLarge(limit)
	case depth(body) > maxBodyDepth:
		return nil, unprocessable("body", fmt.Sprintf("expected at most %d levels of nesting", maxBodyDepth))
	}
	return body, nil
}

// depth is how deep a JSON text nests objects and arrays.
func depth(text []byte) (deepest int) {
	level, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}

// Opt is a field or query parameter that tells absent (not Set) from null (Set, Null) from a value (Set, not Null).
type Opt[T any] struct {
	Set, Null bool
	Value     T
}

// UnmarshalJSON implements json.Unmarshaler; it is called for null too.
func (o *Opt[T]) UnmarshalJSON(raw []byte) error {
	*o = Opt[T]{Set: true, Null: bytes.Equal(raw, []byte("null"))}
	if o.Null {
		return nil
	}
	return json.Unmarshal(raw, &o.Value)
}

// Pointer is the value, nil if it is absent or null.
func (o Opt[T]) Pointer() *T {
	if !o.Set || o.Null {
		return nil
	}
	return &o.Value
}

// Schema implements huma.SchemaProvider.
func (o Opt[T]) Schema(r huma.Registry) *huma.Schema {
	schema := *r.Schema(reflect.TypeFor[T](), false, "")
	schema.Nullable = true
	return &schema
}

// Receiver implements huma.ParamWrapper.
func (o *Opt[T]) Receiver() reflect.Value { return reflect.ValueOf(&o.Value).Elem() }

// OnParamSet implements huma.ParamReactor.
func (o *Opt[T]) OnParamSet(set bool, _ any) { o.Set = set }

// object is a JSON object that is kept as it was written.
type object json.RawMessage

// UnmarshalJSON implements json.Unmarshaler.
func (o *object) UnmarshalJSON(raw []byte) error { return (*json.RawMessage)(o).UnmarshalJSON(raw) }

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }

// Schema implements huma.SchemaProvider.
func (o object) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// null is what a field always is that this server has no value for.
type null struct{}

// MarshalJSON implements json.Marshaler.
func (null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// Schema implements huma.SchemaProvider.
func (null) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: "null"} }
