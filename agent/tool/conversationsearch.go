package tool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

const (
	messagesLimit = 5 // Letta: 5
	messagesSide  = 5 // default number of messages to read before and after a message
)

// searched lists the roles that a search may name. The system role is left out, because system prompts contain words of
// every subject.
var searched = []recall.Role{recall.User, recall.Assistant, recall.Tool}

type conversationArgs struct {
	Query          text       `json:"query"`
	Roles          list[text] `json:"roles"`
	Limit          *number    `json:"limit"`
	Offset         *number    `json:"offset"`
	StartDate      text       `json:"start_date"`
	EndDate        text       `json:"end_date"`
	ConversationID text       `json:"conversation_id"`
	Around         text       `json:"around"`
	Before         *number    `json:"before"`
	After          *number    `json:"after"`
	Filter         condition  `json:"filter"`
}

var errConfined = db.Invalid("You search only the conversation that you are in: leave conversation_id out.")

// clock is the current time, and the timezone of an agent.
type clock struct {
	now  time.Time
	zone *time.Location
}

func clockOf(a agent.Agent) clock { return clock{time.Now(), a.Zone()} }

// format returns a time in the agent's timezone, to the minute.
func (c clock) format(at time.Time) string { return at.In(c.zone).Format("2006-01-02 15:04 MST") }

func (m Memories) searchConversations(ctx context.Context, c Caller, a conversationArgs) (Result, error) {
	now := clockOf(c.Agent)
	if a.Around != "" {
		return m.readAround(ctx, c, a, now)
	}
	query, err := a.query(now.zone)
	if err != nil {
		return Result{}, err
	}
	query.AgentID, query.Asking, query.Unseen, query.Users = c.Agent.ID, c.Conversation, !c.Unprompted, c.Users
	query.OnlyMatches = c.Agent.MadeFor() == agent.ForLetta // their models know no context among hits
	// A model that names its own conversation asks for all of it but the present turn.
	if c.Call != nil {
		query.CalledAt = c.Call.Position
		query.Unseen = query.Unseen && query.Conversation != cmp.Or(c.Conversation, recall.DefaultConversation)
	}
	if within := c.within(); within != "" {
		if !slices.Contains([]string{"", within}, query.Conversation) {
			return Result{}, errConfined
		}
		query.Conversation = within
	}
	found, err := m.Recall.Search(ctx, c.Org, query)
	if err != nil {
		return Result{}, whereFound(err, "leave conversation_id out to search all")
	}
	return Result{Text: messagesText(query, a, found, now, c.maxChars())}, nil
}

// query checks the arguments and returns the query. It lowers a limit above recall.SearchMax to that.
func (a conversationArgs) query(zone *time.Location) (recall.Query, error) {
	if a.Before != nil || a.After != nil {
		return recall.Query{}, db.Invalid("before and after say how much to read around a message: " +
			"give its id as around too.")
	}
	q := recall.Query{Text: strings.TrimSpace(string(a.Query)), Conversation: string(a.ConversationID), Zone: zone,
		Filter: a.Filter.json()}
	for _, role := range a.Roles {
		r := recall.Role(strings.ToLower(string(role)))
		if !slices.Contains(searched, r) {
			return recall.Query{}, db.Invalid("roles may have user, assistant and tool, got '%s'.", echo(string(role)))
		}
		q.Roles = append(q.Roles, r)
	}
	var err error
	if q.Limit, err = lowered(a.Limit, messagesLimit, recall.SearchMax); err != nil {
		return recall.Query{}, err
	}
	if q.Offset, err = skipped(a.Offset); err != nil {
		return recall.Query{}, err
	}
	if q.Start, err = recall.ParseStart(string(a.StartDate), zone); err != nil {
		return recall.Query{}, err
	}
	if q.End, err = recall.ParseEnd(string(a.EndDate), zone); err != nil {
		return recall.Query{}, err
	}
	if q.Start != nil && q.End != nil && q.Start.After(*q.End) {
		return recall.Query{}, db.Invalid("start_date %s is after end_date %s: no message can be between them.",
			echo(string(a.StartDate)), echo(string(a.EndDate)))
	}
	return q, nil
}

// messagesText shows messages, the best first.
func messagesText(q recall.Query, a conversationArgs, r recall.Results, now clock, chars int) string {
	if len(r.Hits) == 0 {
		return noMessages(q, a, r)
	}
	return mostHits(chars, len(r.Hits), func(show shownHits) string { return messagesPage(q, a, r, show, now) })
}

// noMessages describes a search that found nothing, and suggests a call to try.
func noMessages(q recall.Query, a conversationArgs, r recall.Results) string {
	where, note := "all your conversations", remarks(r.SearchedFor, r.Note, r.WhyEnded(), r.Ranked == recall.ByWords)
	lacks := remarks("", r.Note, r.WhyEnded(), false)
	if q.Conversation != "" {
		where = "conversation " + echo(q.Conversation)
	}
	newest := "To see the newest messages, call: " + invocation("conversation_search", argument{"limit", 10, nil})
	switch {
	case r.Wordless:
		return r.WhyNothing() + "\n" + newest + lacks
	case q.Offset > 0:
		return fmt.Sprintf("No more messages%s%s at offset %d. To see the first, repeat the call with offset=0.%s",
			a.forQuery(), a.filter(), q.Offset, lacks)
	case q.Text == "" && a.filter() == "":
		return "There are no messages yet, or you see all of them already."
	case a.filter() != "":
		return fmt.Sprintf("No messages found%s%s. Searched was what you do not see already of %s.\nTo search without "+
			"filters, call: %s%s", a.forQuery(), a.filter(), where,
			invocation("conversation_search", argument{"query", q.Text, ""}), note)
	}
	return fmt.Sprintf("No messages found%s. Searched was what you do not see already of %s. Try other words for the "+
		"same.\n%s%s", a.forQuery(), where, newest, note)
}

// forQuery returns a phrase that names the query; empty if there is no query.
func (a conversationArgs) forQuery() string {
	if strings.TrimSpace(string(a.Query)) == "" {
		return ""
	}
	return fmt.Sprintf(" for query: '%s'", echo(string(a.Query)))
}

// filter returns a phrase that names the filters of the call; empty if there are none.
func (a conversationArgs) filter() string {
	var all []string
	if len(a.Roles) > 0 {
		all = append(all, "role "+echo(strings.Join(plain(a.Roles), " or ")))
	}
	if a.StartDate != "" {
		all = append(all, "from "+echo(string(a.StartDate)))
	}
	if a.EndDate != "" {
		all = append(all, "until "+echo(string(a.EndDate)))
	}
	if a.ConversationID != "" {
		all = append(all, "conversation "+echo(string(a.ConversationID)))
	}
	if a.Filter != nil {
		all = append(all, "that fit the filter")
	}
	if len(all) == 0 {
		return ""
	}
	return " (" + joined(all) + ")"
}

// messagesPage shows the best hits.
func messagesPage(q recall.Query, a conversationArgs, r recall.Results, show shownHits, now clock) string {
	head := "Found " + count(len(r.Hits), "message") + a.forQuery() + a.filter() + ", the best first"
	if q.Text == "" {
		head = "The newest " + count(len(r.Hits), "message") + a.filter()
	}
	var b strings.Builder
	b.WriteString(head + "\n" + rule + "\n")
	for _, h := range r.Hits[:show.n] {
		if show.chars == 0 {
			fmt.Fprintf(&b, "=== %s === %s, seq %d\n", now.spoken(h.Message), h.ID, h.Seq)
			continue
		}
		fmt.Fprintf(&b, "\n=== %s ===\n%s, seq %d%s\n%s%s", now.spoken(h.Message), h.ID, h.Seq, ofConversation(h.Message),
			contextNote(h)+orphanNote(h.Message), indented(excerpt(h.Snippet, q.Text, show.chars)))
	}
	b.WriteString(show.cutNote("limit"))
	if omitted := len(r.Hits) - show.n; omitted > 0 {
		fmt.Fprintf(&b, "\nNote: the %d lowest-ranked messages did not fit here. Ask for fewer, or narrow the search.\n",
			omitted)
	}
	b.WriteString(nextPage(q.Offset, show.n, r.More || show.n < len(r.Hits)))
	b.WriteString("\nTo read around a message, call: " + aroundCall(r.Hits[0].ID, messagesSide, messagesSide))
	return b.String() + remarks(r.SearchedFor, r.Note, r.WhyEnded(), r.Ranked == recall.ByWords)
}

// spoken says who said a message, and when.
func (c clock) spoken(m recall.Message) string {
	who := string(m.Role)
	if m.Name != nil && *m.Name != "" {
		who += " (" + echo(*m.Name) + ")"
	}
	return fmt.Sprintf("%s, %s, %s", who, c.format(m.CreatedAt), ago(c.now.Sub(m.CreatedAt)))
}

// ago says how long ago something happened, in Letta's words.
func ago(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Second:
		return "just now"
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", d/time.Minute)
	case d < day:
		return fmt.Sprintf("%dh ago", d/time.Hour)
	}
	return fmt.Sprintf("%dd ago", d/day)
}

func ofConversation(m recall.Message) string {
	if m.ConversationID == nil {
		return ""
	}
	return " of " + *m.ConversationID
}

func aroundCall(id string, before, after int) string {
	return invocation("conversation_search", argument{"around", id, nil},
		argument{"before", before, messagesSide}, argument{"after", after, messagesSide})
}

// contextNote returns a line that says that only the neighbors of a message match; empty if the message itself matches.
func contextNote(h recall.Hit) string {
	if !h.Context {
		return ""
	}
	return "  [context: it shares nothing with the query, and is near messages that do]\n"
}

// orphanNote returns a line that says that a message has a tool result without its call; empty if it has no such
// result.
func orphanNote(m recall.Message) string {
	if !slices.ContainsFunc(m.Content, func(p recall.Part) bool { return p.Orphan }) {
		return ""
	}
	return "  [the call that this is the result of is not in the conversation]\n"
}
