package server

import (
	"cmp"
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) loopRoutes(a *rest.API) {
	agent, conversation := rest.IDParam("agent_id", "agent"), rest.ConversationParam()
	for _, o := range []struct {
		path, doc string
		param     *huma.Param
		handle    func(*rest.API, echo.Context) error
	}{
		{"/v1/agents/{agent_id}/messages", "create_message: Send messages to an agent, which answers them. The answer is " +
			"JSON, or server-sent events if streaming is true.", agent, s.sendMessages},
		{"/v1/agents/{agent_id}/messages/stream", "stream_message: Send messages to an agent, whose answer is a " +
			"stream.", agent, s.streamMessages},
		{"/v1/conversations/{conversation_id}/messages", "create_conversation_message: Send messages to an agent in a " +
			"conversation. The answer is a stream of server-sent events unless streaming is false.", conversation,
			s.sendToConversation},
	} {
		a.For(rest.Tools).Stream(huma.Operation{Method: http.MethodPost, Path: o.path, Summary: o.doc,
			Parameters:  []*huma.Param{o.param},
			RequestBody: &huma.RequestBody{Required: true, Content: rest.Content[letta.SendMessages](a, rest.JSON)},
			Responses: map[string]*huma.Response{"200": {Description: "What the agent did.",
				Content: rest.Content[letta.Answer](a, rest.JSON)}},
		}, func(c echo.Context) error { return o.handle(a, c) }, rest.WithUsers)
	}
	a.For(rest.Tools).Stream(huma.Operation{Method: http.MethodPost, Path: "/v1/agents/{agent_id}/messages/async",
		Summary:     "create_message_async: Send messages to an agent and do not wait. The answer is the run.",
		Parameters:  []*huma.Param{agent},
		RequestBody: &huma.RequestBody{Required: true, Content: rest.Content[letta.SendMessages](a, rest.JSON)},
		Responses: map[string]*huma.Response{"200": {Description: "The run.",
			Content: rest.Content[letta.Run](a, rest.JSON)}},
	}, func(c echo.Context) error { return s.sendAsync(a, c) }, rest.WithUsers)
	s.cancelRoutes(a)
}

// sendMessages sends messages to an agent, and answers with its messages.
func (s *Server) sendMessages(a *rest.API, c echo.Context) error {
	return s.sendToAgent(a, c, func(b *letta.SendMessages) bool { return b.Streaming.Value })
}

func (s *Server) streamMessages(a *rest.API, c echo.Context) error {
	return s.sendToAgent(a, c, func(*letta.SendMessages) bool { return true })
}

func (s *Server) sendToAgent(a *rest.API, c echo.Context, streams func(*letta.SendMessages) bool) error {
	request, err := s.toAgent(a, c)
	if err != nil {
		return err
	}
	request.streams = streams(request.body)
	return s.send(a, c, request)
}

// toAgent reads a request to send messages to the agent in the path.
func (s *Server) toAgent(a *rest.API, c echo.Context) (request sending, err error) {
	if request.agentID, err = s.pathAgent(c); err != nil {
		return request, err
	}
	request.conversation = recall.DefaultConversation
	if request.body, request.warnings, err = rest.ReadJSON[letta.SendMessages](a, c, maxMessageBytes); err != nil {
		return request, err
	}
	return request, cmp.Or(request.body.CheckAgent(request.agentID), request.body.CheckConversation("default",
		"POST /v1/conversations/{conversation_id}/messages"))
}

// sendToConversation sends messages to the agent of a conversation.
func (s *Server) sendToConversation(a *rest.API, c echo.Context) error {
	request, path := sending{}, c.Param("conversation_id")
	conversation, err := s.inConversation(c, func() (agentID string, err error) {
		request.body, request.warnings, err = rest.ReadJSON[letta.SendMessages](a, c, maxMessageBytes)
		if err != nil {
			return "", err
		}
		return request.body.AgentID.Value, request.body.CheckConversation(path, "it in the path")
	})
	if err != nil {
		return err
	}
	if err := request.body.CheckAgent(conversation.AgentID); err != nil {
		return err
	}
	request.agentID, request.conversation = conversation.AgentID, conversation.ID
	request.streams = !request.body.Streaming.Set || request.body.Streaming.Null || request.body.Streaming.Value
	return s.send(a, c, request)
}

// sending is a request to send messages to an agent.
type sending struct {
	agentID, conversation string
	body                  *letta.SendMessages
	warnings              rest.Warnings
	streams               bool
}

// pings reports whether a stream has pings.
func (r sending) pings() bool { return !r.body.Pings.Set || r.body.Pings.Null || r.body.Pings.Value }

// start starts a run for a request. background runs go on without the client.
func (s *Server) start(a *rest.API, c echo.Context, request sending, background bool) (loop.Started, error) {
	r, err := request.body.Request(request.streams)
	if err != nil {
		return loop.Started{}, err
	}
	r.AgentID, r.Conversation, r.Background = request.agentID, request.conversation, r.Background || background
	ctx, limit := c.Request().Context(), cmp.Or(s.RequestTimeout, rest.DefaultTimeout)
	if request.body.WhenBusy == "refuse" {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		started, err := s.Loop.Start(ctx, rest.Org(ctx), r)
		return started, runProblem(s.whyBusy(ctx, a, err))
	}
	started, err := s.Loop.StartInTurn(ctx, rest.Org(ctx), r, s.TurnPatience, limit)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return started, runProblem(s.whyBusy(ctx, a, err))
}

func (s *Server) send(a *rest.API, c echo.Context, request sending) error {
	started, err := s.start(a, c, request, false)
	if err != nil {
		return err
	}
	request.warnings.InHeader(c)
	switch {
	case request.streams && started.Run.Background:
		return s.streamItems(a, c, started.Run, itemStream{pings: request.pings()})
	case request.streams:
		return s.streamEvents(c, started, request)
	}
	return s.answerWhole(c, started, request)
}

func (s *Server) sendAsync(a *rest.API, c echo.Context) error {
	request, err := s.toAgent(a, c)
	if err != nil {
		return err
	}
	request.streams = true
	started, err := s.start(a, c, request, true)
	if err != nil {
		return err
	}
	return request.warnings.Answer(c, http.StatusOK, letta.RunOf(started.Run))
}
