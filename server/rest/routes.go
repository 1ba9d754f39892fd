package rest

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Routes registers operations with one kind of access.
type Routes struct {
	*API
	needs Access
}

// For returns where operations with a kind of access are registered.
func (a *API) For(needs Access) Routes { return Routes{a, needs} }

// agentParams are the parameters of a path that lead to an agent, the first of which counts.
var agentParams = []string{"agent_id", "conversation_id", "run_id"}

// declare notes the access of a route.
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

// Route is what the API answers.
type Route struct {
	Method, Path string // {name} are the path's parameters; * is any rest
	Access       Access
	Operation    *huma.Operation // nil if the document does not have it
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
		list = append(list, Route{r.Method, path, a.access[r.Path][r.Method], operations[r.Method+" "+path]})
	}
	slices.SortFunc(list, func(a, b Route) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Method, b.Method))
	})
	return list
}

// echoParams matches the parameters of echo's paths.
var echoParams = regexp.MustCompile(`:(\w+)`)

// checkAccess panics if a route was registered without its access.
func (a *API) checkAccess() {
	for _, route := range a.Routes() {
		if route.Access == 0 {
			panic(route.Method + " " + route.Path + " does not say which keys may call it")
		}
	}
}

// isPublic reports whether a path needs no key.
func (a *API) isPublic(path string) bool {
	for _, access := range a.access[path] {
		if access == Public {
			return true
		}
	}
	return false
}

// echoPath is a path as echo's routes have it.
func echoPath(path string) string { return toEcho.Replace(path) }

var toEcho = strings.NewReplacer("{", ":", "}", "")

func operationsOf(item *huma.PathItem) []*huma.Operation {
	all := []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete}
	return slices.DeleteFunc(all, func(op *huma.Operation) bool { return op == nil })
}
