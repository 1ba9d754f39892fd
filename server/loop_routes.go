package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

// maxMessageBytes limits the body of a request to an agent, whose messages may have images.
const maxMessageBytes = 32 << 20

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
		}, func(c echo.Context) error { return o.handle(a, c) })
	}
	a.For(rest.Tools).Stream(huma.Operation{Method: http.MethodPost, Path: "/v1/agents/{agent_id}/messages/async",
		Summary:     "create_message_async: Send messages to an agent and do not wait. The answer is the run.",
		Parameters:  []*huma.Param{agent},
		RequestBody: &huma.RequestBody{Required: true, Content: rest.Content[letta.SendMessages](a, rest.JSON)},
		Responses: map[string]*huma.Response{"200": {Description: "The run.",
			Content: rest.Content[letta.Run](a, rest.JSON)}},
	}, func(c echo.Context) error { return s.sendAsync(a, c) })
	s.cancelRoutes(a)
}

// sendMessages answers a request to an agent.
func (s *Server) sendMessages(a *rest.API, c echo.Context) error {
	return s.sendToAgent(a, c, func(b *letta.SendMessages) bool { return b.Streaming.Value })
}

func (s *Server) streamMessages(a *rest.API, c echo.Context) error {
	return s.sendToAgent(a, c, func(*letta.SendMessages) bool { return true })
}

func (s *Server) sendToAgent(a *rest.API, c echo.Context, streams func(*letta.SendMessages) bool) error {
	in, err := s.toAgent(a, c)
	if err != nil {
		return err
	}
	in.streams = streams(in.body)
	return s.send(a, c, in)
}

// toAgent reads a request to the agent in the path.
func (s *Server) toAgent(a *rest.API, c echo.Context) (in sending, err error) {
	if in.agentID, err = s.pathAgent(c); err != nil {
		return in, err
	}
	in.conversation = recall.DefaultConversation
	if in.body, in.warnings, err = rest.ReadJSON[letta.SendMessages](a, c, maxMessageBytes); err != nil {
		return in, err
	}
	return in, cmp.Or(in.body.CheckAgent(in.agentID), in.body.CheckConversation("default",
		"POST /v1/conversations/{conversation_id}/messages"))
}

// sendToConversation answers a request to the agent of a conversation.
func (s *Server) sendToConversation(a *rest.API, c echo.Context) error {
	in, path := sending{}, c.Param("conversation_id")
	conversation, err := s.inConversation(c, func() (agentID string, err error) {
		in.body, in.warnings, err = rest.ReadJSON[letta.SendMessages](a, c, maxMessageBytes)
		if err != nil {
			return "", err
		}
		return in.body.AgentID.Value, in.body.CheckConversation(path, "it in the path")
	})
	if err != nil {
		return err
	}
	if err := in.body.CheckAgent(conversation.AgentID); err != nil {
		return err
	}
	in.agentID, in.conversation = conversation.AgentID, conversation.ID
	in.streams = !in.body.Streaming.Set || in.body.Streaming.Null || in.body.Streaming.Value
	return s.send(a, c, in)
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

// bounded bounds a part of a request that waits for the database. All such parts of a request together take no longer
// than one request may; what is between them, such as its body, has bounds of its own.
func (s *Server) bounded(c echo.Context) (context.Context, context.CancelFunc) {
	const key = "spent"
	ctx := c.Request().Context()
	spent, later := c.Get(key).(time.Duration)
	if !later {
		spent = rest.AuthTook(ctx)
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.RequestTimeout, rest.DefaultTimeout)-spent)
	return ctx, func() {
		cancel()
		c.Set(key, spent+time.Since(begun))
	}
}

// sending is a request to an agent.
type sending struct {
	agentID, conversation string
	body                  *letta.SendMessages
	warnings              rest.Warnings
	streams               bool
}

// start starts the run of a request.
func (s *Server) start(a *rest.API, c echo.Context, in sending, background bool) (loop.Started, error) {
	r, err := in.body.Request(in.streams)
	if err != nil {
		return loop.Started{}, err
	}
	r.AgentID, r.Conversation, r.Background = in.agentID, in.conversation, r.Background || background
	ctx, cancel := s.bounded(c)
	defer cancel()
	started, err := s.Loop.Start(ctx, rest.Org(ctx), r)
	return started, runProblem(s.whyBusy(ctx, a, err))
}

// whyBusy returns a 503 in place of a *loop.BusyError where the database keeps the run that a request meets from
// ending: to wait for that, or to cancel it, would not help.
func (s *Server) whyBusy(ctx context.Context, a *rest.API, err error) error {
	busy, isBusy := errors.AsType[*loop.BusyError](err)
	if !isBusy {
		return err
	}
	if _, unready := s.checkReady(ctx, a); db.IsFull(unready) {
		return unready
	}
	if h, halted := s.Loop.Halted(busy.RunID); halted && !h.Works {
		return db.Busy("Another request in this conversation (%s) stopped because the database could not serve. It goes on "+
			"by itself: send this one again in a moment", busy.RunID)
	}
	return err
}

// runProblem returns the problem of a run that cannot start.
func runProblem(err error) error {
	busy, isBusy := errors.AsType[*loop.BusyError](err)
	pending, isPending := errors.AsType[*loop.PendingError](err)
	draft, isDraft := errors.AsType[*recall.DraftError](err)
	switch {
	case isBusy:
		return rest.Busy(busy.Error(), busy.RunID)
	case isPending:
		return rest.PendingApproval(pending.Error(), pending.MessageID)
	case isDraft && errors.Is(err, db.ErrInvalid):
		return rest.Unprocessable(fmt.Sprintf("body.messages[%d]", draft.At), draft.Err.Error())
	case errors.Is(err, loop.ErrNoModel):
		return rest.NoModel(loop.NoModelText(err))
	}
	return err
}

func (s *Server) send(a *rest.API, c echo.Context, in sending) error {
	started, err := s.start(a, c, in, false)
	if err != nil {
		return err
	}
	in.warnings.InHeader(c)
	pings := !in.body.Pings.Set || in.body.Pings.Null || in.body.Pings.Value
	switch {
	case in.streams && started.Run.Background:
		return s.streamItems(a, c, started.Run, itemStream{pings: pings})
	case in.streams:
		return s.streamEvents(c, started, pings)
	}
	return answerWhole(c, started, in.warnings)
}

func (s *Server) sendAsync(a *rest.API, c echo.Context) error {
	in, err := s.toAgent(a, c)
	if err != nil {
		return err
	}
	in.streams = true
	started, err := s.start(a, c, in, true)
	if err != nil {
		return err
	}
	return in.warnings.Answer(c, http.StatusOK, letta.RunOf(started.Run))
}
