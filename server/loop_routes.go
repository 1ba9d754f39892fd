package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/loop"
	"github.com/loci-memory/loci/server/rest"
)

// maxMessageBytes limits the body of a request to an agent, whose messages may have images.
const maxMessageBytes = 32 << 20

// pingEvery is the time between two pings of a stream. Letta's clients wait a minute for the next byte.
const pingEvery = 20 * time.Second

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
	rest.Post(a.For(rest.Tools), "/v1/agents/{agent_id}/messages/cancel",
		"cancel_runs: Cancel the run of an agent. That of the default conversation, or those of the ids.", s.cancelRuns)
	rest.Post(a.For(rest.Tools), "/v1/conversations/{conversation_id}/cancel",
		"cancel_conversation: Cancel the run of a conversation.",
		s.cancelConversation)
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
	return s.send(c, in)
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
	return s.send(c, in)
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

func (s *Server) bounded(c echo.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Request().Context(), cmp.Or(s.RequestTimeout, rest.DefaultTimeout))
}

// sending is a request to an agent.
type sending struct {
	agentID, conversation string
	body                  *letta.SendMessages
	warnings              rest.Warnings
	streams               bool
}

// start starts the run of a request.
func (s *Server) start(c echo.Context, in sending, background bool) (loop.Started, error) {
	r, err := in.body.Request(in.streams)
	if err != nil {
		return loop.Started{}, err
	}
	r.AgentID, r.Conversation, r.Background = in.agentID, in.conversation, r.Background || background
	ctx, cancel := s.bounded(c)
	defer cancel()
	started, err := s.Loop.Start(ctx, rest.Org(ctx), r)
	return started, runProblem(err)
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
		return rest.NoModel("This server cannot run the agent, because " + err.Error() + ": set LOCI_LLM_BASE_URL and " +
			"LOCI_LLM_MODEL, and for anthropic/ handles LOCI_ANTHROPIC_API_KEY. A loop of your own needs none of them: " +
			"GET /v1/agents/{agent_id}/prompt hands out prompts, and POST /v1/agents/{agent_id}/messages/capture stores turns")
	}
	return err
}

func (s *Server) send(c echo.Context, in sending) error {
	started, err := s.start(c, in, false)
	if err != nil {
		return err
	}
	in.warnings.InHeader(c)
	pings := !in.body.Pings.Set || in.body.Pings.Null || in.body.Pings.Value
	switch {
	case in.streams && started.Run.Background:
		return s.streamItems(c, started.Run, itemStream{pings: pings})
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
	started, err := s.start(c, in, true)
	if err != nil {
		return err
	}
	return in.warnings.Answer(c, letta.RunOf(started.Run))
}

// answerWhole answers with all that a run did. While it waits it sends spaces, which JSON may begin with, because
// clients wait a minute for a byte.
func answerWhole(c echo.Context, started loop.Started, warnings rest.Warnings) error {
	ctx := c.Request().Context()
	var events []loop.Event
	begun := false
	out := rest.Answer(c)
	for len(events) == 0 || events[len(events)-1].End == nil {
		more, err := started.Next(ctx, len(events), pingEvery)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the client is gone; the run goes on
		case err != nil:
			return err
		}
		if events = append(events, more...); len(more) > 0 {
			continue
		}
		if !begun {
			begun = true
			c.Response().Header().Set(echo.HeaderContentType, rest.JSON)
			c.Response().WriteHeader(http.StatusOK)
		}
		if _, err := io.WriteString(out, " "); err != nil {
			return nil //nolint:nilerr // the client is gone; the run goes on
		}
		c.Response().Flush()
	}
	answer, err := warnings.In(letta.ViewOf(started.Run).Answer(events))
	switch {
	case err != nil:
		return err
	case !begun:
		return c.JSON(http.StatusOK, answer)
	}
	return json.NewEncoder(out).Encode(answer)
}

// streamEvents sends the events of a run as they come.
func (s *Server) streamEvents(c echo.Context, started loop.Started, pings bool) error {
	ctx, view := c.Request().Context(), letta.ViewOf(started.Run)
	out := rest.NewEvents(c)
	if pings {
		if more, err := out.Send(rest.Event{Data: letta.PingOf(started.Run)}); err != nil || !more {
			return err
		}
	}
	for n := 0; ; {
		events, err := started.Next(ctx, n, pingEvery)
		if err != nil {
			return nil //nolint:nilerr // the client is gone; the run goes on
		}
		n += len(events)
		var items []rest.Event
		for _, e := range events {
			for _, item := range view.Items(e) {
				items = append(items, itemEvent(item, letta.IsError(item)))
			}
		}
		if len(events) == 0 && pings {
			items = append(items, rest.Event{Data: letta.PingOf(started.Run)})
		}
		if more, err := out.Send(items...); err != nil || !more || len(events) == 0 && !pings && !out.SendHeartbeat() {
			return err
		}
		if len(events) > 0 && events[len(events)-1].End != nil {
			out.SendDone()
			return nil
		}
	}
}

func itemEvent(item any, failed bool) rest.Event {
	if failed {
		return rest.Event{Head: "event: error", Data: item}
	}
	return rest.Event{Data: item}
}

// itemStream is how the items of a background run are sent.
type itemStream struct {
	after int64 // the number of the last item that the client has
	pings bool
	poll  time.Duration // between two looks for items
	batch int
}

// Bounds of a client's wishes for a stream.
const (
	defaultPoll, leastPoll, mostPoll = 100 * time.Millisecond, 20 * time.Millisecond, 10 * time.Second
	defaultBatch, mostBatch          = 100, 1_000
)

// streamItems sends the items of a background run after one of them. It reads them from the database, so that any
// server can send them.
func (s *Server) streamItems(c echo.Context, r loop.Run, o itemStream) error {
	ctx := c.Request().Context()
	out, last := rest.NewEvents(c), time.Now()
	poll := time.NewTicker(min(max(cmp.Or(o.poll, defaultPoll), leastPoll), mostPoll))
	defer poll.Stop()
	if o.pings && o.after == 0 {
		if more, err := out.Send(rest.Event{Data: letta.PingOf(r)}); err != nil || !more {
			return err
		}
	}
	for {
		items, ended, err := s.Loop.Items(ctx, rest.Org(ctx), r.ID, o.after, min(cmp.Or(o.batch, defaultBatch), mostBatch))
		if err != nil {
			return nil //nolint:nilerr // the client attaches again
		}
		events := make([]rest.Event, len(items))
		for i, item := range items {
			events[i], o.after = itemEvent(item.Item, letta.IsErrorItem(item.Item)), item.Seq
		}
		if len(events) == 0 && o.pings && time.Since(last) >= pingEvery {
			events = append(events, rest.Event{Data: letta.PingOf(r)})
		}
		if len(events) == 0 && !o.pings && time.Since(last) >= pingEvery {
			if last = time.Now(); !out.SendHeartbeat() {
				return nil
			}
		}
		if len(events) > 0 {
			last = time.Now()
			if more, err := out.Send(events...); err != nil || !more {
				return err
			}
		}
		if ended {
			out.SendDone()
			return nil
		}
		if len(items) > 0 {
			continue
		}
		select {
		case <-poll.C:
		case <-s.Loop.Stopped():
			if more, err := out.Send(itemEvent(letta.InterruptionOf(r), true)); err != nil || !more {
				return err
			}
			out.SendDone()
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *Server) cancelRuns(ctx context.Context, in *struct {
	rest.OfAgent
	Body letta.CancelRuns
}) (map[string]string, error) {
	if err := in.Body.CheckConversation("default", "POST /v1/conversations/{conversation_id}/cancel"); err != nil {
		return nil, err
	}
	conversation, err := s.Recall.Conversation(ctx, rest.Org(ctx), string(in.AgentID), recall.DefaultConversation)
	if err != nil {
		return nil, err
	}
	if runs := in.Body.RunIDs.Value; len(runs) > 0 {
		return s.cancelNamed(ctx, string(in.AgentID), runs)
	}
	return s.cancel(ctx, conversation)
}

func (s *Server) cancelConversation(ctx context.Context, in *struct {
	rest.OfConversation
	WithAgent
}) (map[string]string, error) {
	c, err := s.named(ctx, in.OfConversation, in.AgentID)
	if err != nil {
		return nil, err
	}
	return s.cancel(ctx, c)
}

// cancel cancels what works or waits in a conversation.
func (s *Server) cancel(ctx context.Context, c recall.Conversation) (map[string]string, error) {
	id, err := s.Loop.Cancel(ctx, rest.Org(ctx), c)
	if err != nil || id == "" {
		return nil, cmp.Or(runProblem(err), errNothingToCancel())
	}
	return map[string]string{id: loop.Cancelled}, nil
}

func errNothingToCancel() error { return db.Conflict("No active runs found to cancel") }

// cancelNamed cancels runs of an agent, and says of each whether it is cancelled.
func (s *Server) cancelNamed(ctx context.Context, agentID string, runs []string) (map[string]string, error) {
	became, none := map[string]string{}, true
	for _, id := range runs {
		became[id] = loop.Failed
		r, err := s.Loop.RunByID(ctx, rest.Org(ctx), id)
		if errors.Is(err, db.ErrNotFound) || err == nil && r.AgentID != agentID {
			continue
		}
		if err != nil {
			return nil, err
		}
		cancelled, err := s.Loop.CancelRun(ctx, rest.Org(ctx), r)
		if err != nil {
			return nil, runProblem(err)
		}
		if cancelled {
			became[id], none = loop.Cancelled, false
		}
	}
	if none {
		return nil, errNothingToCancel()
	}
	return became, nil
}

// RunItems returns the items of an event of a background run. It is the Render of a loop.Loop.
func RunItems(r loop.Run, e loop.Event, seq int64) []json.RawMessage {
	return letta.Numbered(r, e, seq)
}
