package rest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/apikey"
)

// authorize returns an error if a key may not call the operation of a request. The answer does not depend on what is
// stored.
func (a *API) authorize(c echo.Context, key apikey.Key) error {
	access := a.access[c.Path()][c.Request().Method] // zero for a route that is not served
	allowed := true
	switch access {
	case Read:
		allowed = key.May(apikey.Read)
	case Write:
		allowed = key.May(apikey.Write)
	case Admin:
		allowed = key.May(apikey.Admin)
	case Operator:
		allowed = key.Operator
	case ReadAgent, Tools:
		if access == ReadAgent && key.May(apikey.Read) || key.May(apikey.Write) {
			return a.checkUserOf(c, key)
		}
		if key.May(apikey.Tools) {
			return a.authorizeAgent(c, key, access)
		}
		allowed = false
	}
	if allowed {
		return a.checkUser(c, key, "", "", "")
	}
	return lacksScope(c, key, access)
}

// ForAgent makes agentID the agent of a request with a path that names none. It returns an error if the request's key
// may not read the agent.
func (a *API) ForAgent(c echo.Context, agentID string) error {
	c.SetParamNames("agent_id")
	c.SetParamValues(agentID)
	r := c.Request()
	key := Caller(r.Context())
	c.SetRequest(r.WithContext(db.WithProvenance(r.Context(), provenanceOf(c, key))))
	if key.May(apikey.Read) || key.May(apikey.Write) {
		return a.checkUserOf(c, key)
	}
	return a.authorizeAgent(c, key, ReadAgent)
}

// MayRunTools reports whether a key may call the tools of an agent: it has the scope write, or the scope tools for this
// agent.
func MayRunTools(key apikey.Key, agentID string) bool {
	return key.May(apikey.Write) || key.May(apikey.Tools) && key.MayActAs(agentID)
}

// authorizeAgent returns an error unless the request's path names an agent that the key may act as, or a conversation
// or run of such an agent.
func (a *API) authorizeAgent(c echo.Context, key apikey.Key, access Access) error {
	param, id, agentID, err := a.agentOf(c, key)
	if err != nil {
		return err
	}
	if agentID == "" || !key.MayActAs(agentID) {
		return otherAgent(param, id, access)
	}
	return a.checkUser(c, key, agentID, param, id)
}

// agentOf returns the parameter of the path that leads to an agent, with its value, and the id of that agent; empty if
// there is none.
func (a *API) agentOf(c echo.Context, key apikey.Key) (param, id, agentID string, err error) {
	i := slices.IndexFunc(agentParams, func(name string) bool { return c.Param(name) != "" })
	if i < 0 {
		return "", "", "", nil
	}
	param, id = agentParams[i], c.Param(agentParams[i])
	if strings.HasPrefix(id, "agent-") {
		return param, id, id, nil
	}
	ctx, cancel := context.WithTimeout(db.WithOrg(c.Request().Context(), key.Org), a.Timeout)
	defer cancel()
	agentID, err = a.Keys.AgentOf(ctx, key.Org, param, id)
	if errors.Is(err, db.ErrNotFound) {
		err = nil
	}
	return param, id, agentID, err
}

// checkUserOf is checkUser for the agent that the path leads to.
func (a *API) checkUserOf(c echo.Context, key apikey.Key) error {
	if key.UserKey == 0 {
		return nil
	}
	param, id, agentID, err := a.agentOf(c, key)
	if err != nil {
		return err
	}
	return a.checkUser(c, key, agentID, param, id)
}

// checkUser returns an error if a request works for a user, and its operation does not keep to that user's memories or
// what its path names is not the user's.
func (a *API) checkUser(c echo.Context, key apikey.Key, agentID, param, id string) error {
	if key.UserKey == 0 {
		return nil
	}
	access := a.access[c.Path()][c.Request().Method]
	if access == AnyKey {
		return nil
	}
	converses, ofUsers := a.ofUsers[c.Path()][c.Request().Method]
	if !ofUsers {
		return Forbidden("The request works for one user, and " + c.Request().Method + " " +
			strings.TrimSuffix(c.Request().URL.Path, "/") + " does not keep to one user's memories: use a key that is bound " +
			"to no user, without the header " + userHeader)
	}
	if agentID == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(db.WithOrg(c.Request().Context(), key.Org), a.Timeout)
	defer cancel()
	return a.Keys.CheckUser(ctx, key, UserRequest{AgentID: agentID, Param: param, ID: id,
		Acts: access == Tools || access == Write, Converses: converses})
}

// userHeader names the user for whom a request works: an identity, by its id or identifier_key.
const userHeader = "X-Loci-User"

// forUser returns the key as one that is bound to the user whom a request names. A 403 if it is bound to another one.
func (a *API) forUser(c echo.Context, key apikey.Key) (apikey.Key, error) {
	r := c.Request()
	named := r.Header.Values(userHeader)
	if len(named) == 0 {
		return key, nil
	}
	if len(named) > 1 || strings.TrimSpace(named[0]) == "" {
		return key, Unprocessable("header."+userHeader, "name one user, by the id or the identifier_key of an identity")
	}
	ctx, cancel := context.WithTimeout(db.WithOrg(r.Context(), key.Org), a.Timeout)
	defer cancel()
	user, err := a.Keys.User(ctx, key, strings.TrimSpace(named[0]))
	if err == nil && key.UserKey != 0 && key.UserKey != user.Key {
		err = Forbidden("The API key is bound to another user than " + db.Short(named[0]))
	}
	key.UserID, key.UserKey = &user.ID, user.Key
	return key, err
}

// lacksScope is the problem of a request that the key's scopes do not allow.
func lacksScope(c echo.Context, key apikey.Key, needed Access) *Problem {
	operation := c.Request().Method + " " + strings.TrimSuffix(c.Request().URL.Path, "/")
	if needed == Operator {
		return forbiddenScope("operator", "Only the operator may send "+operation+": use a key of "+
			"'loci keys create --operator', or the commands of 'loci' on the server's machine")
	}
	scopes := strings.Join(needed.scopes(), " or ")
	return forbiddenScope(strings.Join(needed.scopes(), " "), "The API key lacks the scope "+scopes+", which "+operation+
		" needs; it has "+strings.Join(key.Scopes, " and ")+". Use another key, or make one with "+
		"'loci keys create --scope'")
}

// otherAgent is the problem of a request for an agent that the key may not act as, whether or not that agent exists.
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

// provenanceOf returns the provenance for what a request stores: the key, and the agent and conversation that the path
// names by id.
func provenanceOf(c echo.Context, key apikey.Key) db.Provenance {
	p := db.Provenance{KeyID: key.ID}
	if id := c.Param("agent_id"); db.UUID("agent-", id) != uuid.Nil {
		p.AgentID = id
	}
	if id := c.Param("conversation_id"); db.UUID("conv-", id) != uuid.Nil {
		p.ConversationID = id
	}
	return p
}
