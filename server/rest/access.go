package rest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/apikey"
)

// Access says which keys may call an operation.
type Access int

// The kinds of access. Each operation is registered with one of them.
const (
	_         Access = iota
	Public           // no key is needed
	AnyKey           // every key: the operation shows nothing of an organization
	Read             // keys with the scope read
	ReadAgent        // those, and keys with the scope tools of the agent that the path names
	Tools            // keys with the scope write, and those with the scope tools of the agent that the path names
	Write            // keys with the scope write
	Admin            // keys with the scope admin
	Operator         // keys of the operator
)

// scopes are the scopes that give access, any of which suffices.
func (a Access) scopes() []string {
	return map[Access][]string{Read: {apikey.Read}, ReadAgent: {apikey.Read, apikey.Tools},
		Tools: {apikey.Tools, apikey.Write}, Write: {apikey.Write}, Admin: {apikey.Admin}}[a]
}

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

// authorize returns an error if a key may not call the operation of a request. It does not depend on what exists.
func (a *API) authorize(c echo.Context, key apikey.Key) error {
	access := a.access[c.Path()][c.Request().Method] // none of a path or method that is not served
	may := true
	switch access {
	case Read:
		may = key.May(apikey.Read)
	case Write:
		may = key.May(apikey.Write)
	case Admin:
		may = key.May(apikey.Admin)
	case Operator:
		may = key.Operator
	case ReadAgent, Tools:
		if access == ReadAgent && key.May(apikey.Read) || key.May(apikey.Write) {
			return nil
		}
		if key.May(apikey.Tools) {
			return a.authorizeAgent(c, key, access)
		}
		may = false
	}
	if may {
		return nil
	}
	return lacksScope(c, key, access)
}

// ForAgent makes a request one for an agent that its path does not name. It returns an error if the request's key may
// not read the agent.
func (a *API) ForAgent(c echo.Context, agentID string) error {
	c.SetParamNames("agent_id")
	c.SetParamValues(agentID)
	r := c.Request()
	key := Caller(r.Context())
	c.SetRequest(r.WithContext(db.WithProvenance(r.Context(), provenanceOf(c, key))))
	if key.May(apikey.Read) || key.May(apikey.Write) {
		return nil
	}
	return a.authorizeAgent(c, key, ReadAgent)
}

// MayRunTools reports whether a key may call the tools of an agent, as Tools says.
func MayRunTools(key apikey.Key, agentID string) bool {
	return key.May(apikey.Write) || key.May(apikey.Tools) && key.MayActAs(agentID)
}

// authorizeAgent returns an error unless the path of a request names an agent of a key, or what belongs to one.
func (a *API) authorizeAgent(c echo.Context, key apikey.Key, access Access) error {
	i := slices.IndexFunc(agentParams, func(name string) bool { return c.Param(name) != "" })
	param, id := agentParams[i], c.Param(agentParams[i])
	agentID := id
	if !strings.HasPrefix(id, "agent-") {
		ctx, cancel := context.WithTimeout(db.WithOrg(c.Request().Context(), key.Org), a.Timeout)
		defer cancel()
		var err error
		if agentID, err = a.Keys.AgentOf(ctx, key.Org, param, id); err != nil && !errors.Is(err, db.ErrNotFound) {
			return err
		}
	}
	if agentID == "" || !key.MayActAs(agentID) {
		return otherAgent(param, id, access)
	}
	return nil
}

// lacksScope is a request that a key may not send.
func lacksScope(c echo.Context, key apikey.Key, needs Access) *Problem {
	operation := c.Request().Method + " " + strings.TrimSuffix(c.Request().URL.Path, "/")
	if needs == Operator {
		return forbiddenScope("operator", "Only the operator may send "+operation+": use a key of "+
			"'loci keys create --operator', or the commands of 'loci' on the server's machine")
	}
	wanted := strings.Join(needs.scopes(), " or ")
	return forbiddenScope(strings.Join(needs.scopes(), " "), "The API key lacks the scope "+wanted+", which "+operation+
		" needs; it has "+strings.Join(key.Scopes, " and ")+". Use another key, or make one with "+
		"'loci keys create --scope'")
}

// otherAgent is a request of a key of agents for another agent, whether or not that exists.
func otherAgent(param, id string, access Access) *Problem {
	if param == "conversation_id" && id == "default" {
		return forbiddenScope(apikey.Tools, "The API key has the scope tools of single agents: name the agent's id in the "+
			"path in place of 'default'")
	}
	agent, enough := id, apikey.Write
	if !strings.HasPrefix(id, "agent-") {
		agent = "the agent of " + id
	}
	if access == ReadAgent {
		enough = apikey.Read
	}
	return forbiddenScope(apikey.Tools, "The API key lacks the scope tools of "+agent+
		": use a key that names that agent, or one with the scope "+enough)
}

func forbiddenScope(scope, detail string) *Problem {
	p := newProblem(codeScope, detail)
	p.header = http.Header{"Www-Authenticate": {`Bearer realm="Loci", error="insufficient_scope", scope="` + scope + `"`},
		"X-Should-Retry": {"false"}}
	return p
}

// security is the access in an OpenAPI document: any of these suffices. The names of keys are those of their scopes.
func (a Access) security() []map[string][]string {
	if a == Public {
		return []map[string][]string{}
	}
	list := []map[string][]string{}
	for _, scope := range a.scopes() {
		list = append(list, map[string][]string{"key": {scope}})
	}
	if a == Operator {
		list = append(list, map[string][]string{"key": {"operator"}})
	}
	if len(list) == 0 {
		list = append(list, map[string][]string{"key": {}})
	}
	return list
}
