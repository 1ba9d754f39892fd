package server

import (
	"cmp"
	"context"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// agentPath is the input of an operation on an agent.
type agentPath interface{ Agent() string }

// withAgent makes a handler of a function that needs the agent of its path. ErrNotFound if it does not exist.
func withAgent[I agentPath, O any](
	s *Server, handle func(context.Context, agent.Agent, *I) (O, error),
) rest.Handler[I, O] {
	return func(ctx context.Context, in *I) (O, error) {
		a, err := s.Agents.Agent(ctx, rest.Org(ctx), (*in).Agent())
		if err != nil {
			var none O
			return none, err
		}
		return handle(ctx, a, in)
	}
}

// WithAgent names the agent whose default conversation is meant.
type WithAgent struct {
	AgentID string `query:"agent_id" doc:"The agent, where the conversation is named 'default'."`
}

// named returns the conversation of a path. The first of agentIDs that is not empty is the agent of the name 'default'.
func (s *Server) named(ctx context.Context, in rest.OfConversation, agentIDs ...string) (recall.Conversation, error) {
	agentID, id := in.ConversationID.Of(cmp.Or(agentIDs...))
	if id == recall.DefaultConversation && agentID == "" {
		return recall.Conversation{}, rest.Unprocessable("agent_id", "required where the conversation is named 'default'")
	}
	return s.Recall.Conversation(ctx, rest.Org(ctx), agentID, id)
}

// inConversation returns the conversation in the path. read reads the body, and returns the agent that it names.
func (s *Server) inConversation(c echo.Context, read func() (agentID string, err error)) (recall.Conversation, error) {
	in, err := rest.PathConversation(c)
	if err != nil {
		return recall.Conversation{}, err
	}
	agentID, err := read()
	if err != nil {
		return recall.Conversation{}, err
	}
	ctx, cancel := s.bounded(c)
	defer cancel()
	return s.named(ctx, in, agentID)
}

// pathAgent returns the id of the agent in the path. ErrNotFound if it does not exist.
func (s *Server) pathAgent(c echo.Context) (string, error) {
	id, err := rest.PathID(c, "agent_id", "agent")
	if err != nil {
		return "", err
	}
	ctx, cancel := s.bounded(c)
	defer cancel()
	_, err = s.Agents.Agent(ctx, rest.Org(ctx), id)
	return id, err
}
