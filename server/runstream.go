package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

// pingEvery is the time between two pings in a stream. Letta's clients wait a minute for the next byte.
const pingEvery = 20 * time.Second

// answerWhole answers with the whole result of a run. While it waits it sends spaces, because clients wait a minute for
// a byte, and JSON may begin with spaces. The results that the request has brought come first, as in Letta. If the
// model's provider failed, the status says so, unless spaces were sent before.
func (s *Server) answerWhole(c echo.Context, started loop.Started, request sending) error {
	ctx, warnings := c.Request().Context(), request.warnings
	given, err := s.given(ctx, started.Run, request)
	if err != nil {
		return err
	}
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
	if f := events[len(events)-1].End.Failure; !begun && f != nil && f.Status != 0 {
		return rest.ModelFailed(f.Status, f.Text, f.Detail, started.Run.ID).RetryAfter(f.After)
	}
	answer, err := warnings.In(letta.ViewOf(started.Run).Answer(append(given, events...)))
	switch {
	case err != nil:
		return err
	case !begun:
		return c.JSON(http.StatusOK, answer)
	}
	return json.NewEncoder(out).Encode(answer)
}

// given returns the results that a request has brought: of calls that the client ran or denied.
func (s *Server) given(ctx context.Context, r loop.Run, request sending) ([]loop.Event, error) {
	if !request.body.Answers() {
		return nil, nil
	}
	results, err := s.Loop.Given(ctx, rest.Org(ctx), r)
	return rest.Each(results, func(m recall.Message) loop.Event { return loop.Event{Message: &m} }), err
}

// streamEvents sends the events of a run as they come. As in Letta, a stream of whole messages begins with the results
// that the request has brought, and one of tokens does not.
func (s *Server) streamEvents(c echo.Context, started loop.Started, request sending) error {
	ctx, view, pings := c.Request().Context(), letta.ViewOf(started.Run), request.pings()
	var given []loop.Event
	if !started.Run.Options.StreamTokens {
		var err error
		if given, err = s.given(ctx, started.Run, request); err != nil {
			return err
		}
	}
	out := rest.NewEvents(c)
	var first []rest.Event
	if pings {
		first = append(first, rest.Event{Data: letta.PingOf(started.Run)})
	}
	for _, e := range given {
		first = append(first, rest.Each(view.Items(e), func(item any) rest.Event { return rest.Event{Data: item} })...)
	}
	if len(first) > 0 {
		if more, err := out.Send(first...); err != nil || !more {
			return err
		}
	}
	for n := 0; ; {
		events, err := started.Next(ctx, n, pingEvery)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the client is gone; the run goes on
		}
		if err != nil {
			return sendLast(out, letta.InterruptionOf(started.Run))
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
		if len(events) == 1 && interrupts(events[0]) {
			return out.SendLast(items...)
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

// interrupts reports whether an event ends the answer although the run goes on later.
func interrupts(e loop.Event) bool {
	return e.End != nil && e.End.Failure != nil && e.End.Failure.Type == loop.Interrupted
}

func itemEvent(item any, failed bool) rest.Event {
	if failed {
		return rest.Event{Head: "event: error", Data: item}
	}
	return rest.Event{Data: item}
}

// itemStream says how to send the items of a background run.
type itemStream struct {
	after int64 // number of the last item that the client has
	pings bool
	poll  time.Duration // how often to look for new items
	batch int
}

// Bounds on what a client may choose for a stream.
const (
	defaultPoll, leastPoll, mostPoll = 100 * time.Millisecond, 20 * time.Millisecond, 10 * time.Second
	defaultBatch, mostBatch          = 100, 1_000
)

// streamItems sends the items of a background run that come after item number o.after. It reads them from the database,
// so that any server can send them. If the database does not answer or cannot store, it waits as long as a request may
// take.
func (s *Server) streamItems(a *rest.API, c echo.Context, r loop.Run, o itemStream) error {
	ctx := c.Request().Context()
	out, last := rest.NewEvents(c), time.Now()
	served := s.newServing(a, r)
	poll := time.NewTicker(min(max(cmp.Or(o.poll, defaultPoll), leastPoll), mostPoll))
	defer poll.Stop()
	if o.pings && o.after == 0 {
		if more, err := out.Send(rest.Event{Data: letta.PingOf(r)}); err != nil || !more {
			return err
		}
	}
	for {
		items, ended, err := s.items(ctx, r, o, served.left())
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, db.ErrNotFound):
			return sendLast(out, letta.DeletionOf(r))
		case err != nil && !db.Unavailable(err), !served.goesOn(ctx, len(items), err):
			return sendLast(out, letta.OutageOf(r))
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
			return sendLast(out, letta.InterruptionOf(r))
		case <-ctx.Done():
			return nil
		}
	}
}

// serving tracks whether the database still serves the stream of a background run.
type serving struct {
	server   *Server
	api      *rest.API
	run      loop.Run
	patience time.Duration // how long to wait while the database does not serve
	since    time.Time     // when the database last served
	item     time.Time     // when the last item came; zero before the first
}

func (s *Server) newServing(a *rest.API, r loop.Run) *serving {
	return &serving{server: s, api: a, run: r, patience: cmp.Or(s.RequestTimeout, rest.DefaultTimeout),
		since: time.Now()}
}

// left returns how long the read of the next items may take.
func (s *serving) left() time.Duration { return max(s.patience-time.Since(s.since), s.patience/10) }

// goesOn reports whether the stream goes on after a read of items. If no items come, the run may be unable to store
// any, so goesOn also checks whether the database stores changes.
func (s *serving) goesOn(ctx context.Context, items int, err error) bool {
	now := time.Now()
	switch {
	case err == nil && items > 0:
		s.since, s.item = now, now
		return true
	case err == nil && s.halted():
	case err == nil && now.Sub(s.since) < s.patience/2: // most answers begin earlier
		return true
	case err == nil:
		if _, err = s.server.checkReady(ctx, s.api, time.Time{}); err == nil {
			s.since = now
		}
	}
	return time.Since(s.since) < s.patience
}

// halted reports whether the run stopped on this server and either waits for another try, or tried again in vain.
func (s *serving) halted() bool {
	h, known := s.server.Loop.Halted(s.run.ID)
	return known && (!h.Works || h.Times > 1 && h.Since.After(s.item))
}

// items reads the next items of a background run, within a time limit.
func (s *Server) items(ctx context.Context, r loop.Run, o itemStream, within time.Duration) ([]loop.Item, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return s.Loop.Items(ctx, rest.Org(ctx), r.ID, o.after, min(cmp.Or(o.batch, defaultBatch), mostBatch))
}

// sendLast sends an error that ends the stream before the run has ended.
func sendLast(out *rest.Events, failure letta.RunError) error {
	return out.SendLast(itemEvent(failure, true))
}

// RunItems returns the items for an event of a background run. It serves as the Render of a loop.Loop.
func RunItems(r loop.Run, e loop.Event, seq int64) []json.RawMessage {
	return letta.Numbered(r, e, seq)
}
