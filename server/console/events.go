package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
)

func eventRoutes() map[string]handler { return map[string]handler{"GET events": eventAgents} }

// eventAgents lists the agents. Each agent has its own log of events.
func eventAgents(v *visit) error {
	p := page{Title: "Events", Tab: "Events", Sub: "Everything that happens to an agent, in order."}
	p.Cards = []card{
		{Name: "events-agents", Title: "Choose an agent", Width: "w12", Load: loaded(eventsAgentsCard,
			func(v *visit) (list[agent], error) {
				return paged(v, "/v1/agents", url.Values{"order": {"desc"}, "order_by": {"updated_at"}},
					func(a agent) string { return a.ID })
			})},
	}
	return v.show(p)
}

// eventLog is the newest part of an agent's log.
type eventLog struct {
	Events []agentEvent
	Stream string // address for the events after these
}

func agentEvents(v *visit) error {
	a, err := v.agent()
	if err != nil {
		return err
	}
	return v.show(page{Title: "Events", Tab: "Events", Crumbs: a.crumbs(), Sub: "All that happens to " + a.Name + ".",
		Cards: []card{{Name: "events-live", Title: "Log", Width: "w12", Load: loaded(eventsLiveCard,
			func(v *visit) (eventLog, error) {
				list, err := v.events(a.ID, url.Values{"order": {"desc"}, "limit": {"100"}})
				last := int64(0)
				if len(list) > 0 {
					last = list[0].Seq
				}
				return eventLog{list, a.URL() + "/events/stream?after=" + strconv.FormatInt(last, 10)}, err
			})}}})
}

// streamEvents sends an agent's new events as rows of the log. The API's stream ends with the visitor's request.
func streamEvents(v *visit) error {
	query := url.Values{"after": {cmp.Or(v.r.URL.Query().Get("after"), "0")}}
	r := v.request(http.MethodGet, "/v1/agents/"+v.id("agent")+"/events/stream?"+query.Encode(), http.NoBody)
	v.console.api.ServeHTTP(&eventWriter{ResponseWriter: v.w, ctx: v.ctx, agentID: v.r.PathValue("agent")}, r)
	return nil
}

// eventWriter rewrites the events of an API stream as HTML, and passes everything else on unchanged.
type eventWriter struct {
	http.ResponseWriter
	ctx     context.Context //nolint:containedctx // of the request
	agentID string
	pending []byte // the beginning of an event that is not complete
}

// Unwrap lets the API set deadlines.
func (w *eventWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher.
func (w *eventWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Write implements io.Writer.
func (w *eventWriter) Write(p []byte) (int, error) {
	w.pending = append(w.pending, p...)
	for {
		event, rest, complete := bytes.Cut(w.pending, []byte("\n\n"))
		if !complete {
			return len(p), nil
		}
		w.pending = bytes.Clone(rest)
		if _, err := w.ResponseWriter.Write(w.shown(event)); err != nil { //nolint:gosec // templ escaped it
			return 0, err
		}
	}
}

// shown returns an event with its data as HTML. It leaves comments and the stream's last event unchanged.
func (w *eventWriter) shown(event []byte) []byte {
	var out bytes.Buffer
	hasName := false
	for line := range bytes.SplitSeq(event, []byte("\n")) {
		data, isData := bytes.CutPrefix(line, []byte("data:"))
		hasName = hasName || bytes.HasPrefix(line, []byte("event:")) && !bytes.HasSuffix(line, []byte("message"))
		var e agentEvent
		if hasName || !isData || json.Unmarshal(data, &e) != nil || e.Seq == 0 {
			if !bytes.HasPrefix(line, []byte("event:")) || hasName {
				out.Write(append(line, '\n'))
			}
			continue
		}
		e.AgentID = w.agentID
		var row bytes.Buffer
		if eventRow(e).Render(w.ctx, &row) != nil {
			continue
		}
		for part := range bytes.Lines(row.Bytes()) {
			out.Write(append(append([]byte("data: "), bytes.TrimRight(part, "\n")...), '\n'))
		}
	}
	out.WriteByte('\n')
	return out.Bytes()
}
