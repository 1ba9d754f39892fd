package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

func historyRoutes() map[string]handler {
	return map[string]handler{
		"GET agents/{agent}/history":                          history,
		"GET agents/{agent}/compactions/{compaction}":         compactionPage,
		"POST agents/{agent}/compactions/{compaction}/revert": revertCompaction,
		"GET agents/{agent}/events":                           agentEvents,
		"GET agents/{agent}/events/stream":                    streamEvents,
	}
}

// message is a message in the form of the event log.
type message struct {
	ID        string    `json:"id"`
	Seq       int64     `json:"seq"`
	Position  int       `json:"position"`
	Role      string    `json:"role"`
	Content   []piece   `json:"content"`
	Tokens    int       `json:"tokens"`
	Model     string    `json:"model"`
	CreatedAt time.Time `json:"created_at"`
}

// piece is a part of a message.
type piece struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Name  string `json:"name"`
	Input string `json:"input"`
}

// Body is the text of the message, with its tool calls and their results.
func (m message) Body() string {
	var all []string
	for _, p := range m.Content {
		switch {
		case p.Type == "tool_call":
			all = append(all, "→ "+p.Name+" "+p.Input)
		case p.Type == "tool_return":
			all = append(all, "← "+p.Text)
		case p.Text != "":
			all = append(all, p.Text)
		default:
			all = append(all, "("+p.Type+")")
		}
	}
	return strings.Join(all, "\n")
}

// agentEvent is an entry of an agent's log.
type agentEvent struct {
	Seq     int64           `json:"seq"`
	Type    string          `json:"type"`
	RefID   string          `json:"ref_id"`
	At      time.Time       `json:"at"`
	Data    json.RawMessage `json:"data"`
	Message *message        `json:"message"`

	AgentID    string      `json:"-"`
	Compaction *compaction `json:"-"` // the event's compaction
}

// Words is the event's type in words.
func (e agentEvent) Words() string { return strings.ReplaceAll(e.Type, "_", " ") }

// URL is the address of the page for the event's object; empty if there is none.
func (e agentEvent) URL() string {
	switch {
	case strings.HasPrefix(e.RefID, "block-"):
		return base + "blocks/" + e.RefID
	case strings.HasPrefix(e.RefID, "compaction-"):
		return base + "agents/" + e.AgentID + "/compactions/" + e.RefID
	case strings.HasPrefix(e.RefID, "archive-"):
		return base + "archives/" + e.RefID
	case strings.HasPrefix(e.RefID, "source-"):
		return base + "folders/" + e.RefID
	case e.Message != nil:
		return base + "agents/" + e.AgentID + "/history?before=" + strconv.FormatInt(e.Seq+1, 10)
	}
	return ""
}

// timelineTypes are the events that a history shows.
const timelineTypes = "message,compaction,compaction_reverted,window_warning"

// timeline is a page of a history, newest first.
type timeline struct {
	Agent  agent
	Events []agentEvent
	Older  string // address of the earlier page; empty at the beginning
	Newest bool
	Query  string
	Hits   []messageHit
}

// Title is the title of the page's card.
func (t timeline) Title() string {
	if t.Query != "" {
		return "Found"
	}
	return "Timeline"
}

// messageHit is a message that a search found.
type messageHit struct {
	Message     foundMessage `json:"message"`
	Snippet     string       `json:"snippet"`
	WordsRank   *int         `json:"fts_rank"`
	MeaningRank *int         `json:"vector_rank"`
	Score       float64      `json:"rrf_score"`
}

// foundMessage is a message in the form of search results.
type foundMessage struct {
	ID        string    `json:"id"`
	AgentID   string    `json:"agent_id"`
	Seq       int64     `json:"seq"`
	Position  int       `json:"position"`
	Role      string    `json:"role"`
	CreatedAt time.Time `json:"created_at"`
}

// URL is the address of the message in its agent's history.
func (m foundMessage) URL() string {
	return base + "agents/" + m.AgentID + "/history?before=" + strconv.FormatInt(m.Seq+1, 10)
}

func (v *visit) agent() (a agent, err error) { return a, v.get("/v1/agents/"+v.id("agent"), &a) }

// crumbs are the links that lead to an agent's page.
func (a agent) crumbs() []link { return []link{{"Agents", base + "agents"}, {a.Name, a.URL()}} }

func history(v *visit) error {
	a, err := v.agent()
	if err != nil {
		return err
	}
	return v.show(page{Title: "History", Tab: "Agents", Crumbs: a.crumbs(),
		Sub: "Everything that was said. Nothing that left the window is lost.", Cards: []card{
			{Name: "history-timeline", Title: "Timeline", Width: "w12", Load: loaded(historyTimelineCard,
				func(v *visit) (timeline, error) { return v.timeline(a) })},
		}})
}

func (v *visit) timeline(a agent) (timeline, error) {
	query := v.r.URL.Query()
	t := timeline{Agent: a, Query: query.Get("q"), Newest: query.Get("before") == ""}
	if t.Query != "" {
		body := map[string]any{"agent_id": a.ID, "query": t.Query, "limit": pageSize}
		return t, v.send(http.MethodPost, "/v1/agents/messages/search", body, &t.Hits)
	}
	events, err := v.events(a.ID, url.Values{"order": {"desc"}, "types": {timelineTypes}, "before": query["before"],
		"limit": {strconv.Itoa(pageSize + 1)}})
	if err != nil {
		return t, err
	}
	if len(events) > pageSize {
		events = events[:pageSize]
		t.Older = a.URL() + "/history?before=" + strconv.FormatInt(events[pageSize-1].Seq, 10)
	}
	for i, e := range events {
		if strings.HasPrefix(e.RefID, "compaction-") {
			var c compaction
			if err := v.get("/v1/agents/"+a.ID+"/compactions/"+e.RefID, &c); err != nil && statusOf(err) != http.StatusNotFound {
				return t, err
			}
			events[i].Compaction = &c
		}
	}
	t.Events = events
	return t, nil
}

// events reads a part of an agent's log.
func (v *visit) events(agentID string, query url.Values) (list []agentEvent, err error) {
	if len(query["before"]) == 0 {
		query.Del("before")
	}
	err = v.get("/v1/agents/"+url.PathEscape(agentID)+"/events?"+query.Encode(), &list)
	for i := range list {
		list[i].AgentID = agentID
	}
	return list, err
}

func compactionPage(v *visit) error {
	a, err := v.agent()
	if err != nil {
		return err
	}
	var c compaction
	if err := v.get("/v1/agents/"+v.id("agent")+"/compactions/"+v.id("compaction"), &c); err != nil {
		return err
	}
	crumbs := append(a.crumbs(), link{"History", a.URL() + "/history"})
	return v.show(page{Title: "Compaction", Tab: "Agents", Crumbs: crumbs, Sub: c.Range(), Cards: []card{
		{Name: "compaction-summary", Title: "Summary", Width: "w7", Load: known(compactionSummaryCard, c)},
		{Name: "compaction-about", Title: "What it did", Width: "w5", Load: known(compactionAboutCard, c)},
		{Name: "compaction-covers", Title: "What it covers", Width: "w12", Load: loaded(compactionCoversCard,
			func(v *visit) (covered, error) { return v.covered(c) })},
	}})
}

// covered is a page of the messages that a compaction took out of view, oldest first.
type covered struct {
	Events []agentEvent
	First  bool
	Next   string // address of the next page; empty on the last page
}

// covered reads the messages that a compaction took out of view, beginning at the position in the query.
func (v *visit) covered(c compaction) (out covered, err error) {
	start, err := v.whole("from")
	if out.First = start == 0; err != nil || c.FromSeq == nil || c.ToSeq == nil {
		return out, err
	}
	out.Events, err = v.events(c.AgentID, url.Values{"from": {strconv.FormatInt(max(start, *c.FromSeq), 10)},
		"before": {strconv.FormatInt(*c.ToSeq+1, 10)}, "types": {"message"}, "order": {"asc"},
		"limit": {strconv.Itoa(pageSize + 1)}})
	if len(out.Events) > pageSize {
		out.Next = "?from=" + strconv.FormatInt(out.Events[pageSize].Seq, 10)
		out.Events = out.Events[:pageSize]
	}
	return out, err
}

func revertCompaction(v *visit) error {
	path := "/v1/agents/" + v.id("agent") + "/compactions/" + v.id("compaction")
	if err := v.send(http.MethodPost, path+"/revert", nil, nil); err != nil {
		return err
	}
	return v.done(base+"agents/"+v.id("agent")+"/compactions/"+v.id("compaction"), "reverted")
}
