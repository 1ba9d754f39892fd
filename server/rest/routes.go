package rest

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Routes registers operations that all need the same access.
type Routes struct {
	*API
	needs Access
}

// For returns a Routes for operations that need an access.
func (a *API) For(needs Access) Routes { return Routes{a, needs} }

// agentParams are the path parameters that lead to an agent. If a path has several, the first in this list counts.
var agentParams = []string{"agent_id", "conversation_id", "run_id"}

// declare notes which access a route needs.
func (r Routes) declare(method, path string) {
	path = echoPath(path)
	inPath := slices.ContainsFunc(agentParams, func(name string) bool { return strings.Contains(path+"/", ":"+name+"/") })
	if (r.needs == ReadAgent || r.needs == Tools) && !inPath {
		panic(method + " " + path + " is for the keys of agents and names none")
	}
	if r.access[path] == nil {
		r.access[path] = map[string]Access{}
	}
	r.access[path][method] = r.needs
}

// declareUsers notes whether a route keeps to the memories of one user.
func (r Routes) declareUsers(op operation) {
	path := echoPath(op.Path)
	if r.ofUsers[path] == nil {
		r.ofUsers[path] = map[string]bool{}
	}
	if op.ofUsers {
		r.ofUsers[path][op.Method] = op.converses
	}
}

// Route is a route of the API.
type Route struct {
	Method, Path string // {name} is a parameter of the path; * matches any rest
	Access       Access
	OfUsers      bool            // requests that work for one user may call it
	Operation    *huma.Operation // nil if the OpenAPI document does not have it
}

// Routes returns all routes of the API, sorted by path and method.
func (a *API) Routes() []Route {
	operations := map[string]*huma.Operation{}
	for path, item := range a.OpenAPI().Paths {
		for _, op := range operationsOf(item) {
			operations[op.Method+" "+path] = op
		}
	}
	var list []Route
	for _, r := range a.echo.Routes() {
		path := echoParams.ReplaceAllString(r.Path, "{$1}")
		_, ofUsers := a.ofUsers[r.Path][r.Method]
		list = append(list, Route{r.Method, path, a.access[r.Path][r.Method], ofUsers, operations[r.Method+" "+path]})
	}
	slices.SortFunc(list, func(a, b Route) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Method, b.Method))
	})
	return list
}

// echoParams matches the parameters in a path of echo's.
var echoParams = regexp.MustCompile(`:(\w+)`)

// checkAccess panics if a route was registered without an access.
func (a *API) checkAccess() {
	for _, route := range a.Routes() {
		if route.Access == 0 {
			panic(route.Method + " " + route.Path + " does not say which keys may call it")
		}
	}
}

// isPublic reports whether requests of a path need no key.
func (a *API) isPublic(path string) bool {
	for _, access := range a.access[path] {
		if access == Public {
			return true
		}
	}
	return false
}

// echoPath returns a path in echo's notation.
func echoPath(path string) string { return toEcho.Replace(path) }

var toEcho = strings.NewReplacer("{", ":", "}", "")

func operationsOf(item *huma.PathItem) []*huma.Operation {
	all := []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete}
	return slices.DeleteFunc(all, func(op *huma.Operation) bool { return op == nil })
}
