package server

import (
	"cmp"
	"context"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// agentPath is the input of an operation with an agent in its path.
type agentPath interface{ Agent() string }

// withAgent returns a handler that finds the agent of the path and calls handle with it. ErrNotFound if the agent does
// not exist.
func withAgent[I agentPath, O any](
	s *Server, handle func(context.Context, agent.Agent, *I) (O, error),
) rest.Handler[I, O] {
	return func(ctx context.Context, input *I) (O, error) {
		a, err := s.Agents.Agent(ctx, rest.Org(ctx), (*input).Agent())
		if err != nil {
			var empty O
			return empty, err
		}
		return handle(ctx, a, input)
	}
}

// WithAgent is the query parameter that says which agent's default conversation is meant.
type WithAgent struct {
	AgentID string `query:"agent_id" doc:"The agent, where the conversation is named 'default'."`
}

// named returns the conversation of a path. If the path says 'default', the agent is the first of agentIDs that is not
// empty.
func (s *Server) named(ctx context.Context, input rest.OfConversation, agentIDs ...string) (recall.Conversation,
	error) {
	agentID, id := input.ConversationID.Of(cmp.Or(agentIDs...))
	if id == recall.DefaultConversation && agentID == "" {
		return recall.Conversation{}, rest.Unprocessable("agent_id", "required where the conversation is named 'default'")
	}
	return s.Recall.Conversation(ctx, rest.Org(ctx), agentID, id)
}

// inConversation returns the conversation in the path. readBody reads the body, and returns the agent that the body
// names.
func (s *Server) inConversation(c echo.Context, readBody func() (agentID string, err error)) (recall.Conversation,
	error) {
	input, err := rest.PathConversation(c)
	if err != nil {
		return recall.Conversation{}, err
	}
	agentID, err := readBody()
	if err != nil {
		return recall.Conversation{}, err
	}
	ctx, cancel := s.bounded(c)
	defer cancel()
	return s.named(ctx, input, agentID)
}

// pathAgent returns the id of the agent in the path. ErrNotFound if the agent does not exist.
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
