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

// provenanceOf returns the provenance of what a request stores: its key, and the agent and the conversation that its
// path names by their ids.
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
