package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
)

func eventRoutes() map[string]handler { return map[string]handler{"GET events": eventAgents} }

// eventAgents lists the agents, each of which has a log of its own.
func eventAgents(v *visit) error {
	p := page{Title: "Events", Tab: "Events", Sub: "Everything that happens to an agent, in order."}
	p.Cards = []card{
		{Name: "events-agents", Title: "Choose an agent", Width: "w12", Load: func(v *visit) (any, error) {
			return paged(v, "/v1/agents", url.Values{"order": {"desc"}, "order_by": {"updated_at"}},
				func(a agent) string { return a.ID })
		}},
	}
	return v.show(p)
}

func agentEvents(v *visit) error {
	a, err := v.agent()
	if err != nil {
		return err
	}
	return v.show(page{Title: "Events", Tab: "Events", Crumbs: a.crumbs(), Sub: "All that happens to " + a.Name + ".",
		Cards: []card{{Name: "events-live", Title: "Log", Width: "w12", Load: func(v *visit) (any, error) {
			list, err := v.events(a.ID, url.Values{"order": {"desc"}, "limit": {"100"}})
			last := int64(0)
			if len(list) > 0 {
				last = list[0].Seq
			}
			return map[string]any{"Events": list, "Stream": a.URL() + "/events/stream?after=" + strconv.FormatInt(last, 10)}, err
		}}}})
}

// streamEvents sends new events of an agent as rows of the log. The API's stream ends when the visitor's does.
func streamEvents(v *visit) error {
	query := url.Values{"after": {cmp.Or(v.r.URL.Query().Get("after"), "0")}}
	r := v.request(http.MethodGet, "/v1/agents/"+v.id("agent")+"/events/stream?"+query.Encode(), http.NoBody)
	v.console.api.ServeHTTP(&eventWriter{ResponseWriter: v.w, agentID: v.r.PathValue("agent")}, r)
	return nil
}

// eventWriter writes the events of a stream of the API as HTML, and everything else unchanged.
type eventWriter struct {
	http.ResponseWriter
	agentID string
	pending []byte // of an event that has not ended
}

// Unwrap lets the API set deadlines.
func (w *eventWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher.
func (w *eventWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Write implements io.Writer.
func (w *eventWriter) Write(p []byte) (int, error) {
	w.pending = append(w.pending, p...)
	for {
		event, rest, ended := bytes.Cut(w.pending, []byte("\n\n"))
		if !ended {
			return len(p), nil
		}
		w.pending = bytes.Clone(rest)
		if _, err := w.ResponseWriter.Write(w.shown(event)); err != nil { //nolint:gosec // html/template wrote it
			return 0, err
		}
	}
}

// shown is an event with its data as HTML. Comments, and the event that ends a stream, stay as they are.
func (w *eventWriter) shown(event []byte) []byte {
	var out bytes.Buffer
	named := false
	for line := range bytes.SplitSeq(event, []byte("\n")) {
		data, is := bytes.CutPrefix(line, []byte("data:"))
		named = named || bytes.HasPrefix(line, []byte("event:")) && !bytes.HasSuffix(line, []byte("message"))
		var e agentEvent
		if named || !is || json.Unmarshal(data, &e) != nil || e.Seq == 0 {
			if !bytes.HasPrefix(line, []byte("event:")) || named {
				out.Write(append(line, '\n'))
			}
			continue
		}
		e.AgentID = w.agentID
		var row bytes.Buffer
		if templates.ExecuteTemplate(&row, "eventrow", e) != nil {
			continue
		}
		for part := range bytes.Lines(row.Bytes()) {
			out.Write(append(append([]byte("data: "), bytes.TrimRight(part, "\n")...), '\n'))
		}
	}
	out.WriteByte('\n')
	return out.Bytes()
}
