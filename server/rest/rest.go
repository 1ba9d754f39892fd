// Package rest holds what all resources of the REST API share: it makes huma and echo accept what Letta's clients send
// and answer as they expect, turns errors into statuses, authenticates requests, and reads and writes pages, ids,
// streams and JSON.
//
// Each file uses those that are named before it:
// - what operations say and take: access.go errorcodes.go context.go schema.go optional.go problem.go errors.go id.go
// page.go
// - what the API counts and bounds: arrivals.go bodybudget.go bodypace.go keylimits.go keys.go lookup.go
// - which pages may call it from a browser: origins.go
// - the API, its operations, and the keys that may call them: api.go content.go operation.go answersize.go routes.go
// authorize.go
// - errors of others as problems: modelerrors.go problemof.go
// - requests: auth.go bom.go filters.go warnings.go unserved.go storable.go fieldnames.go shape.go jsoncount.go
// oneof.go validation.go decode.go concurrency.go stream.go paced.go jsonbody.go spool.go filterjson.go lenient.go
// unmatched.go middleware.go head.go
// - the document: words.go document.go
// - what registers operations, and what serves them: route.go explainerrors.go rest.go
package rest

import (
	"cmp"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
)

// New returns an API without operations. It has none of huma's documentation pages, schema links and problem documents.
func New(c Config) *API {
	config := huma.DefaultConfig(c.Title, c.Version)
	config.OpenAPIPath, config.DocsPath, config.SchemasPath, config.CreateHooks = "", "", "", nil
	config.AllowAdditionalPropertiesByDefault = true
	config.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	config.Transformers = []huma.Transformer{showProblem(config.Components.Schemas), warn}
	e := echo.New()
	c.Timeout, c.KeyAge = cmp.Or(c.Timeout, DefaultTimeout), cmp.Or(c.KeyAge, DefaultKeyAge)
	a := &API{Config: c, echo: e, access: map[string]map[string]Access{},
		ofUsers: map[string]map[string]bool{}, whole: map[string]bool{},
		bodies: c.Budget.shares(), answers: db.NewShares(allAnswersBytes, answersForOthers),
		spooled: c.spools(), served: db.NewHalvingShares(maxRequests, maxRequests/4), arriving: newArrivals()}
	e.HTTPErrorHandler = a.writeError
	e.Use(identify, a.logAccess)
	if len(c.Origins) > 0 {
		e.Use(c.Origins.answerBrowsers())
	}
	e.Use(a.recoverPanics(), a.boundWaits, a.awaitSchema)
	if c.Keys != nil {
		a.usage, a.lookups = newKeyUsage(c.Keys.Limits), newLookups(c.Keys)
		e.Use(a.authenticate)
	}
	e.Use(a.countBodies, unescapeParams, refuseBrokenQueries, refuseEncodedBodies)
	a.API = humaecho.New(e, config)
	a.UseMiddleware(a.readLeniently)
	a.explainErrors()
	return a
}

// Handler serves the registered operations, and their OpenAPI document at /openapi.json. The first request for the
// document builds it.
func (a *API) Handler() http.Handler {
	a.document()
	document := sync.OnceValues(a.marshalDocument)
	a.For(AnyKey).stream(http.MethodGet, "/openapi.json", func(c echo.Context) error {
		text, err := document()
		if err != nil {
			return err
		}
		return c.JSONBlob(http.StatusOK, text)
	})
	a.checkAccess()
	return a.paced(normalize(a.headAsGet(a.echo)))
}

// ofCompaction matches the path of package compaction and of its sub-packages.
var ofCompaction = regexp.MustCompile(`/compaction(/(clip|plan|prose|store|summary))?$`)

// schemaName returns huma's name for a type. Types of package compaction get the prefix Compaction, because other
// packages use the same names.
func schemaName(t reflect.Type, hint string) string {
	var words strings.Builder // huma names a body after the operation's id
	for part := range strings.SplitSeq(huma.DefaultSchemaNamer(t, hint), "_") {
		words.WriteString(capitalized(part))
	}
	name := words.String()
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if ofCompaction.MatchString(t.PkgPath()) && !strings.HasPrefix(name, "Compaction") {
		return "Compaction" + name
	}
	return name
}

// Gauges calls add for each gauge that the API keeps.
func (a *API) Gauges(add func(name, help string, labels map[string]string, value func() float64)) {
	taken := func(s *db.Shares) func() float64 { return func() float64 { return float64(s.Taken()) } }
	add("http_requests_in_flight", "Requests that are worked on, but for streams that are only read.", nil,
		taken(a.served))
	add("http_bodies_arriving", "Requests whose bodies are not complete.", nil,
		func() float64 { return float64(a.arriving.count()) })
	const held = "Bytes of request bodies that are being received or worked on."
	add("http_body_bytes", held, map[string]string{"where": "memory"},
		func() float64 { return float64(a.bodies.small.Taken() + a.bodies.large.Taken()) })
	add("http_body_bytes", held, map[string]string{"where": "files"}, taken(a.spooled))
}
