package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) eventRoutes(a *rest.API) {
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/events",
		"list_events: Read an agent's events. Everything that happened to the agent, by its position; see also the stream.",
		s.agentEvents, rest.Own)
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/consumers",
		"list_consumers: List the named readers of an agent's events.",
		s.listConsumers, rest.Own)
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/consumers/{consumer_name}",
		"get_consumer: Get the position of a named reader.",
		s.getConsumer, rest.Own)
	rest.Put(a.For(rest.Tools), "/v1/agents/{agent_id}/consumers/{consumer_name}",
		"commit_consumer: Store the position of a named reader. With expected_seq, only if the reader still stands "+
			"there; else a 409.",
		s.commitConsumer, rest.Own)
	rest.Delete(a.For(rest.Tools), "/v1/agents/{agent_id}/consumers/{consumer_name}",
		"delete_consumer: Delete a named reader.",
		s.deleteConsumer,
		rest.NoContent, rest.Own)
}

func (s *Server) agentEvents(ctx context.Context, input *struct {
	rest.OfAgent
	letta.EventSlice
}) ([]letta.AgentEvent, error) {
	q := input.Query()
	if input.Consumer != "" {
		if q.From > 0 || q.Before > 0 || q.Descending {
			return nil, rest.Unprocessable("query.consumer",
				"a named reader reads upwards from where it stands; leave out from, before, after and order=desc")
		}
		cursor, err := event.Cursor(ctx, s.DB, rest.Org(ctx), string(input.AgentID), input.Consumer)
		if err != nil {
			return nil, err
		}
		q.After = cursor
	}
	events, err := event.List(ctx, s.DB, rest.Org(ctx), string(input.AgentID), q)
	if err != nil {
		return nil, err
	}
	return s.withMessages(ctx, events)
}

// withMessages adds the message to each event of an appended message.
func (s *Server) withMessages(ctx context.Context, events []event.Event) ([]letta.AgentEvent, error) {
	shown := make([]letta.AgentEvent, len(events))
	var ids []string
	for i, e := range events {
		shown[i].Event = e
		if e.Type == event.MessageAppended {
			ids = append(ids, e.RefID)
		}
	}
	if len(ids) == 0 {
		return shown, nil
	}
	messages, err := s.Recall.MessagesByID(ctx, rest.Org(ctx), ids)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*letta.EventMessage, len(messages))
	for _, m := range messages {
		byID[m.ID] = &letta.EventMessage{Message: m}
	}
	for i, e := range shown {
		shown[i].Message = byID[e.RefID]
	}
	return shown, nil
}

// OfConsumer holds the path parameters of operations on a named reader of an agent's events.
type OfConsumer struct {
	rest.OfAgent
	Name string `path:"consumer_name" doc:"From 1 to 200 characters."`
}

func (s *Server) listConsumers(ctx context.Context, input *struct {
	rest.OfAgent
	rest.Paging
}) ([]event.Consumer, error) {
	return event.Consumers(ctx, s.DB, rest.Org(ctx), string(input.AgentID), input.Page(100, rest.OldestFirst))
}

func (s *Server) getConsumer(ctx context.Context, input *OfConsumer) (event.Consumer, error) {
	return event.ConsumerNamed(ctx, s.DB, rest.Org(ctx), string(input.AgentID), input.Name)
}

func (s *Server) commitConsumer(ctx context.Context, input *struct {
	OfConsumer
	Body letta.Commit
}) (event.Consumer, error) {
	return event.CommitCursor(ctx, s.DB, rest.Org(ctx), event.Commit{AgentID: string(input.AgentID), Name: input.Name,
		Seq: input.Body.Seq, Expected: input.Body.Expected.Pointer()})
}

func (s *Server) deleteConsumer(ctx context.Context, input *OfConsumer) (rest.Null, error) {
	return rest.Null{}, event.DeleteConsumer(ctx, s.DB, rest.Org(ctx), string(input.AgentID), input.Name)
}

func (s *Server) eventStreamRoutes(a *rest.API) {
	number := &huma.Schema{Type: huma.TypeInteger, Maximum: new(float64(9e15))}
	text := &huma.Schema{Type: huma.TypeString}
	a.For(rest.ReadAgent).Stream(huma.Operation{
		Method: http.MethodGet, Path: "/v1/agents/{agent_id}/events/stream",
		Summary: "stream_events: Follow an agent's events. Comments keep the connection alive.",
		Parameters: []*huma.Param{
			rest.IDParam("agent_id", "agent"),
			{Name: "after", In: "query", Schema: number,
				Description: "Events above this position; without it, and without consumer, from the first."},
			{Name: "consumer", In: "query", Schema: text, Description: "Events after this named reader's position."},
			{Name: "types", In: "query", Schema: &huma.Schema{Type: huma.TypeArray, Items: text},
				Description: "Only events of these types."},
			{Name: lastEventID, In: "header", Schema: number,
				Description: "The last event that the client has; it goes before after and consumer."},
		},
		Responses: map[string]*huma.Response{"200": {
			Description: "Server-sent events whose ids are their positions, until the server stops or the agent is deleted, " +
				"which a last event named deleted says.",
			Content: rest.Content[letta.AgentEvent](a, "text/event-stream")}},
	}, s.tail, rest.Own)
}

// lastEventID is the header in which a reconnecting client names the last event that it received.
const lastEventID = "Last-Event-ID"

// tail sends an agent's events as they happen. A client that reconnects receives every event once, in order.
func (s *Server) tail(c echo.Context) error {
	id, err := rest.PathID(c, "agent_id", "agent")
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	tail, err := s.follow(ctx, c, id)
	if err != nil {
		return err
	}
	defer tail.Close()
	out := rest.NewEvents(c)
	for {
		events, err := tail.Next(ctx, rest.Heartbeat)
		if errors.Is(err, io.EOF) {
			return s.endStream(ctx, out, id)
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the client is gone
		}
		if err != nil {
			return err
		}
		if more, err := s.sendEvents(ctx, out, events); err != nil || !more {
			return err
		}
	}
}

// endStream sends a last event if the stream ended because the agent was deleted. It sends nothing if the server stops.
func (s *Server) endStream(ctx context.Context, out *rest.Events, agentID string) error {
	if _, err := event.Head(ctx, s.DB, rest.Org(ctx), agentID); !errors.Is(err, db.ErrNotFound) {
		return nil //nolint:nilerr // the stream ends in any case
	}
	_, err := out.Send(rest.Event{Head: "event: deleted", Data: map[string]string{"agent_id": agentID}})
	return err
}

func (s *Server) follow(ctx context.Context, c echo.Context, agentID string) (*event.Follower, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.RequestTimeout, rest.DefaultTimeout))
	defer cancel()
	after, err := s.tailFrom(ctx, c, agentID)
	if err != nil {
		return nil, err
	}
	return s.Followers.Follow(ctx, rest.Org(ctx), agentID, after, letta.EventTypes(c.QueryParams()["types"]))
}

// tailFrom returns the position after which a stream begins.
func (s *Server) tailFrom(ctx context.Context, c echo.Context, agentID string) (int64, error) {
	source, position := "header."+lastEventID, c.Request().Header.Get(lastEventID)
	consumer := c.QueryParam("consumer")
	if position == "" {
		source, position = "query.after", c.QueryParam("after")
		if position != "" && consumer != "" {
			return 0, rest.Unprocessable("query.consumer", "a named reader reads on from where it stands; leave out after")
		}
	}
	if position == "" && consumer != "" {
		return event.Cursor(ctx, s.DB, rest.Org(ctx), agentID, consumer)
	}
	if position == "" {
		return 0, nil
	}
	after, err := strconv.ParseInt(position, 10, 64)
	if err != nil {
		return 0, rest.Unprocessable(source, fmt.Sprintf("expected the position of an event. Got: %.100q", position))
	}
	return after, nil
}

// sendEvents sends events, or a heartbeat if there are none, and reports whether the client is still there.
func (s *Server) sendEvents(ctx context.Context, out *rest.Events, events []event.Event) (more bool, err error) {
	if len(events) == 0 {
		return out.SendHeartbeat(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.RequestTimeout, rest.DefaultTimeout))
	defer cancel()
	shown, err := s.withMessages(ctx, events)
	if err != nil {
		return false, err
	}
	return out.Send(rest.Each(shown, func(e letta.AgentEvent) rest.Event {
		return rest.Event{Head: fmt.Sprintf("id: %d", e.Seq), Data: e}
	})...)
}
