package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/handover"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) handoverRoutes(a *rest.API) {
	a.For(rest.Write).Stream(huma.Operation{
		Method: http.MethodPost, Path: "/v1/agents/{agent_id}/handover",
		Summary: "create_handover: Hand a conversation over to the agent's next one. It makes updates of working memory " +
			"and memory files out of what was said. After 20 seconds the answer is a 202, and the hand-over goes on. It is a " +
			"409 while a run works in the conversation. While nothing new was said, the answer is the last hand-over, or a " +
			"409 if pending or carry are named and are not those of it.",
		Parameters:  []*huma.Param{rest.IDParam("agent_id", "agent")},
		RequestBody: &huma.RequestBody{Required: true, Content: rest.Content[CreateHandover](a, rest.JSON)},
		Responses: map[string]*huma.Response{"200": {Description: "The hand-over with its updates.",
			Content: rest.Content[handover.Handover](a, rest.JSON)}},
	}, func(c echo.Context) error { return s.createHandover(a, c) }, rest.Own)
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/handovers",
		"list_handovers: List the hand-overs of an agent with their updates, the newest first.", s.listHandovers, rest.Own)
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/handovers/{handover_id}",
		"get_handover: Get a hand-over with its updates. Its status says whether it is still made.", s.getHandover,
		rest.Own)
	rest.Post(a.For(rest.Write), "/v1/agents/{agent_id}/handovers/{handover_id}/approve",
		"approve_handover: Apply all updates of a hand-over that wait for an operator. What was decided stays; an update "+
			"that a rule of a memory refuses is refused, with the reason, and the others are applied.",
		s.decideUpdates(true), rest.Own)
	rest.Post(a.For(rest.Write), "/v1/agents/{agent_id}/handovers/{handover_id}/reject",
		"reject_handover: Reject all updates of a hand-over that wait for an operator. What was decided stays.",
		s.decideUpdates(false), rest.Own)
	rest.Post(a.For(rest.Write), "/v1/agents/{agent_id}/handovers/{handover_id}/updates/{number}/approve",
		"approve_handover_update: Apply an update that waits for an operator.", s.decideUpdate(true), rest.Own)
	rest.Post(a.For(rest.Write), "/v1/agents/{agent_id}/handovers/{handover_id}/updates/{number}/reject",
		"reject_handover_update: Reject an update that waits for an operator.", s.decideUpdate(false), rest.Own)
}

// CreateHandover is a request for a hand-over.
type CreateHandover struct {
	Conversation rest.ConversationID `json:"conversation_id,omitempty" required:"false" doc:"The default one if absent."`
	Pending      *bool               `json:"pending,omitempty" required:"false" doc:"Updates wait; else as the agent's."`
	Carry        *bool               `json:"carry,omitempty" required:"false" doc:"The next conversation begins with it."`
}

func (s *Server) createHandover(a *rest.API, c echo.Context) error {
	id, err := s.pathAgent(c)
	if err != nil {
		return err
	}
	body, warnings, err := rest.ReadJSON[CreateHandover](a, c, maxMessageBytes)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), handoverTimeout)
	defer cancel()
	source, err := s.Agents.Agent(ctx, rest.Org(ctx), id)
	if err != nil {
		return err
	}
	conversation := recall.DefaultConversation
	if body.Conversation != "" {
		if conversation, err = body.Conversation.OfAgent(id); err != nil {
			return err
		}
	}
	ended, err := s.Recall.Conversation(ctx, rest.Org(ctx), id, conversation)
	if err != nil {
		return err
	}
	o := handover.Options{Pending: source.Settings.Handover != nil &&
		source.Settings.Handover.Mode == agent.HandoverPending,
		Carry: body.Carry == nil || *body.Carry,
		Named: handover.NamedOptions{Pending: body.Pending, Carry: body.Carry}}
	if body.Pending != nil {
		o.Pending = *body.Pending
	}
	o.May = func(tx pgx.Tx) error { return s.Loop.In(tx).CheckIdle(ctx, rest.Org(ctx), ended.ID) }
	h, err := s.handOver(ctx, ended, o)
	if err != nil {
		return runProblem(err)
	}
	status := http.StatusOK
	if h.Status == handover.Running {
		status = http.StatusAccepted
	}
	return warnings.Answer(c, status, h)
}

// handOver begins the hand-over of a conversation, and waits for it up to handover.Patience.
func (s *Server) handOver(ctx context.Context, c recall.Conversation, o handover.Options) (handover.Handover, error) {
	h, err := s.Handovers.Begin(ctx, rest.Org(ctx), c, o)
	if err != nil {
		return h, err
	}
	return s.Handovers.Wait(ctx, rest.Org(ctx), h)
}

// endSession hands over a conversation that ends, if the agent's settings say so. A failed hand-over is logged, and
// does not stop the conversation from ending.
func (s *Server) endSession(ctx context.Context, c recall.Conversation, occasion string) error {
	a, err := s.Agents.Agent(ctx, rest.Org(ctx), c.AgentID)
	if err != nil {
		return err
	}
	handsOver, pending := a.HandsOver(occasion)
	if !handsOver {
		return nil
	}
	if _, err := s.handOver(ctx, c, handover.Options{Pending: pending, Carry: true}); err != nil {
		s.Log.WarnContext(ctx, "a conversation ends without a hand-over", "conversation", c.ID, "error", err)
	}
	return nil
}

func (s *Server) listHandovers(ctx context.Context, input *struct {
	rest.OfAgent
	Limit int `query:"limit" minimum:"1" maximum:"100" default:"20"`
}) ([]handover.Handover, error) {
	if _, err := s.Agents.Agent(ctx, rest.Org(ctx), string(input.AgentID)); err != nil {
		return nil, err
	}
	return s.Handovers.Handovers(ctx, rest.Org(ctx), string(input.AgentID), input.Limit)
}

// OfHandover holds the path parameters of operations on a hand-over.
type OfHandover struct {
	rest.OfAgent
	HandoverID rest.HandoverID `path:"handover_id"`
}

func (s *Server) getHandover(ctx context.Context, input *OfHandover) (handover.Handover, error) {
	return s.Handovers.Handover(ctx, rest.Org(ctx), string(input.AgentID), string(input.HandoverID))
}

// OfUpdate holds the path parameters of operations on an update of a hand-over.
type OfUpdate struct {
	OfHandover
	Number int `path:"number" minimum:"1" doc:"Of the update in its hand-over."`
}

func (s *Server) decideUpdates(approve bool) rest.Handler[OfHandover, handover.Handover] {
	return withAgent(s, func(ctx context.Context, a agent.Agent, input *OfHandover) (handover.Handover, error) {
		return s.Handovers.Decide(ctx, rest.Org(ctx), a, handover.Decision{Handover: string(input.HandoverID),
			Approve: approve})
	})
}

func (s *Server) decideUpdate(approve bool) rest.Handler[OfUpdate, handover.Handover] {
	return withAgent(s, func(ctx context.Context, a agent.Agent, input *OfUpdate) (handover.Handover, error) {
		return s.Handovers.Decide(ctx, rest.Org(ctx), a,
			handover.Decision{Handover: string(input.HandoverID), Number: input.Number, Approve: approve})
	})
}
