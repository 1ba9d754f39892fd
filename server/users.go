package server

import (
	"cmp"
	"context"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/tenant/apikey"
)

// OfUser is the query parameter that narrows an operation to a user's memories.
type OfUser struct {
	UserID rest.Opt[string] `query:"user_id" doc:"Of this user and of nobody: an identity's id or identifier_key."`
}

// userOf returns the identity that a request names. It makes one for a new identifier_key if the key may write or work
// as an agent. ErrNotFound if there is none.
func (s *Server) userOf(ctx context.Context, key apikey.Key, named string) (apikey.User, error) {
	find := s.Agents.UserKey
	if key.UserKey == 0 && (key.May(apikey.Write) || key.May(apikey.Tools)) {
		find = s.Agents.UserKeyOrNew
	}
	user, err := find(ctx, key.Org, named)
	if err != nil {
		return apikey.User{}, err
	}
	i, err := s.Agents.IdentityByKey(ctx, key.Org, user)
	return apikey.User{ID: i.ID, Key: user}, err
}

// checkUser returns an error if a request that works for one user may not work with an agent, or with the conversation
// or run that leads to it. It makes the conversation of the user and the agent where the request works in one and there
// is none.
func (s *Server) checkUser(ctx context.Context, key apikey.Key, r rest.UserRequest) error {
	a, err := s.Agents.Agent(ctx, key.Org, r.AgentID)
	if err != nil {
		return err
	}
	if cmp.Or(a.Settings.RecallScope, agent.ScopeAgent) == agent.ScopeAgent {
		return rest.Forbidden("The request works for one user, and the users of agent " + a.ID + " share one memory: set " +
			"its recall_scope to user (PATCH /v1/agents/" + a.ID + ")")
	}
	switch r.Param {
	case "conversation_id":
		return s.checkWith(ctx, key, a, r.ID, r.Acts)
	case "run_id":
		run, err := s.Loop.RunByID(ctx, key.Org, r.ID)
		if err != nil {
			return err
		}
		return s.checkWith(ctx, key, a, run.Conversation, r.Acts)
	}
	if !r.Converses || !key.MayActAs(a.ID) {
		return nil
	}
	has, err := s.Agents.HasConversation(ctx, key.Org, a.Key, key.UserKey)
	if err == nil && !has {
		_, err = s.Agents.CreateConversation(ctx, key.Org, a.ID, agent.NewConversation{User: *key.UserID})
	}
	return err
}

// checkWith returns ErrNotFound unless a conversation is with the user of a key; to read, also one with nobody will do.
func (s *Server) checkWith(ctx context.Context, key apikey.Key, a agent.Agent, id string, acts bool) error {
	c, err := s.Recall.ConversationIn(db.WithUser(ctx, key.UserKey), key.Org, a.ID,
		recall.Reach{Conversation: id, Users: db.OfUser(key.UserKey)})
	if err == nil && acts && c.UserKey != key.UserKey {
		err = db.NotFound("Conversation with ID %s is not with the user of the request", db.Short(id))
	}
	return err
}

// users returns whose memories a request reads: those of the user that its key is bound to, else those of the user that
// it names, else everybody's. ErrNotFound if there is no such user; a 422 if the name is blank; a 403 if the key is
// bound to another user.
func (s *Server) users(ctx context.Context, named rest.Opt[string]) (db.UserScope, error) {
	return s.usersBy(ctx, named, s.Agents.UserKey)
}

// writer is users for a request that stores something: it creates the user that the request names.
func (s *Server) writer(ctx context.Context, named rest.Opt[string]) (db.UserScope, error) {
	return s.usersBy(ctx, named, s.Agents.UserKeyOrNew)
}

func (s *Server) usersBy(ctx context.Context, named rest.Opt[string],
	find func(context.Context, db.Org, string) (int64, error)) (db.UserScope, error) {
	bound := db.UserOf(ctx)
	if named.Set && !named.Null && strings.TrimSpace(named.Value) == "" {
		return db.UserScope{}, rest.Unprocessable("user_id",
			"it is blank; give the id or the identifier_key of an identity, "+
				"or leave it out")
	}
	if named.Value == "" && bound == 0 {
		return db.AllUsers(), nil
	}
	if named.Value == "" {
		return db.OfUser(bound), nil
	}
	if bound != 0 {
		find = s.Agents.UserKey
	}
	key, err := find(ctx, rest.Org(ctx), named.Value)
	if bound != 0 && (err != nil || key != bound) {
		return db.UserScope{}, rest.Forbidden("The API key is bound to another user than " + db.Short(named.Value))
	}
	return db.OfUser(key), err
}

// archives returns which of an agent's archives a request reads, or of all archives if agentID is empty.
func (s *Server) archives(ctx context.Context, agentID string, named rest.Opt[string]) (archival.Reach, error) {
	users, err := s.users(ctx, named)
	return archival.Reach{AgentID: agentID, Users: users}, err
}

// narrow gives a caller of tools in a conversation a recall scope, which only narrows the agent's.
func narrow(caller *tool.Caller, c recall.Conversation, scope string) {
	switch scope {
	case agent.ScopeConversation:
		caller.Confined, caller.Users = true, db.OfUser(c.UserKey)
	case agent.ScopeUser:
		caller.Users = db.OfUser(c.UserKey)
	}
}
