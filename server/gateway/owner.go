package gateway

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/tenant/apikey"
)

// agentOf returns the agent that a request names: in its path, in a header, or by its key. An agent with a new name is
// made if the key may.
func (x *exchange) agentOf(ctx context.Context, key apikey.Key) (agent.Agent, error) {
	named := cmp.Or(x.AgentID, strings.TrimSpace(x.Request.Header.Get(agentHeader)))
	if named == "" && len(key.AgentIDs) == 1 {
		named = key.AgentIDs[0]
	}
	a, err := x.agentNamed(ctx, key, cmp.Or(named, DefaultAgent))
	if err != nil {
		return a, err
	}
	if !rest.MayRunTools(key, a.ID) {
		return a, rest.Forbidden("The API key may not speak as agent " + a.ID + ": use a key with the scope write, or with " +
			"the scope tools of this agent")
	}
	return a, nil
}

// DefaultAgent is the name of the agent of requests that name none.
const DefaultAgent = "gateway"

func (x *exchange) agentNamed(ctx context.Context, key apikey.Key, named string) (agent.Agent, error) {
	if strings.HasPrefix(named, "agent-") {
		return x.Agents.Agent(ctx, key.Org, named)
	}
	a, found, err := x.oldest(ctx, key.Org, named)
	if err != nil || found {
		return a, err
	}
	if !key.May(apikey.Write) {
		return a, rest.Forbidden("There is no agent " + db.Short(named) + ", and the API key may not make one: name an " +
			"agent in the header " + agentHeader + " or the path, or use a key with the scope write")
	}
	handle := x.dialect.handle(x.model)
	made, err := x.Create(ctx, named, handle)
	if err != nil {
		return a, err
	}
	a, _, err = x.oldest(ctx, key.Org, named)
	if err == nil && a.ID != made { // another request made one at the same time
		err = x.Agents.Delete(ctx, key.Org, made)
	}
	return a, err
}

// oldest returns the oldest agent with a name.
func (g *Gateway) oldest(ctx context.Context, org db.Org, name string) (a agent.Agent, found bool, err error) {
	list, err := g.Agents.List(ctx, org, agent.Filter{Name: name}, db.Page{Limit: 1, Ascending: true})
	if len(list) == 0 {
		return a, false, err
	}
	return list[0], true, err
}

// userOf returns ctx for the user of a request: the one of its key or of a header, else the one that its body names.
// The latter is nobody where the agent's users share one memory.
func (x *exchange) userOf(ctx context.Context, key apikey.Key, a agent.Agent) (context.Context, string, error) {
	shared := cmp.Or(a.Settings.RecallScope, agent.ScopeAgent) == agent.ScopeAgent
	if key.UserKey != 0 {
		if shared {
			return ctx, "", rest.Forbidden("The request works for one user, and the users of agent " + a.ID + " share one " +
				"memory: set its recall_scope to user (PATCH /v1/agents/" + a.ID + ")")
		}
		return ctx, *key.UserID, nil
	}
	named := userName(x.dialect.userOf(x.body))
	if named == "" || shared {
		return ctx, "", nil
	}
	user, err := x.User(ctx, key, named)
	if errors.Is(err, db.ErrNotFound) || errors.Is(err, db.ErrInvalid) {
		return ctx, "", rest.Unprocessable("user", "the request names a user whom its key may not make: "+err.Error())
	}
	return db.WithUser(ctx, user.Key), user.ID, err
}

// maxUserBytes bounds the name of a user that a request names for its provider.
const maxUserBytes = 200

// userName returns a name that Loci can keep for a user: the given one or, if it is too long or no text, its hash.
func userName(given string) string {
	if len(given) <= maxUserBytes && utf8.ValidString(given) && !strings.ContainsFunc(given, unicode.IsControl) {
		return given
	}
	return "user-" + strings.TrimPrefix(hashed(given), otidPrefix)
}
