package tool

import (
	"context"
	"fmt"
	"strings"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// maxMessageChars bounds the text of each message in a result, in characters.
const maxMessageChars = 20_000

// readAround shows the messages before and after a message.
func (m Memories) readAround(ctx context.Context, c Caller, a conversationArgs, now clock) (Result, error) {
	searches := a.Query != "" || len(a.Roles) > 0 || a.Limit != nil || a.Offset != nil || a.Filter != nil
	if searches || a.StartDate != "" || a.EndDate != "" {
		return Result{}, db.Invalid("Give either around, with before and after, to read messages in their order, or " +
			"query, roles, limit, dates and filter to search; not both.")
	}
	before, err := side("before", a.Before)
	if err != nil {
		return Result{}, err
	}
	after, err := side("after", a.After)
	if err != nil {
		return Result{}, err
	}
	found, err := m.Recall.Neighbors(ctx, c.Org, recall.NeighborQuery{AgentID: c.Agent.ID, MessageID: string(a.Around),
		Before: before, After: after, Reach: c.reach()})
	if err != nil {
		return Result{}, whereFound(err, "the results of a search show the ids of messages")
	}
	return Result{Text: aroundText(nearby{before, after, now, c.has()}, found, c.maxChars())}, nil
}

// side returns how many messages to read on one side.
func side(name string, asked *number) (int, error) {
	n := int(deref(asked, messagesSide))
	if n < 0 || n > recall.MaxNeighbors {
		return 0, db.Invalid("%s must be between 0 and %d, got %d", name, recall.MaxNeighbors, n)
	}
	return n, nil
}

// aroundText shows the messages around one message, in their order. If they do not all fit into a result, it leaves out
// the farthest.
func aroundText(by nearby, s recall.Neighbors, chars int) string {
	s.Messages = by.has.For(s.Messages)
	farthest := max(s.At, len(s.Messages)-1-s.At)
	return most(chars, farthest+1, func(n int) string {
		first, end := max(s.At-n+1, 0), min(s.At+n, len(s.Messages))
		page := s
		page.Messages = s.Messages[first:end]
		return aroundPage(page, s.Messages[s.At], by)
	})
}

// nearby says how many messages the call asked for on each side, and how messages are shown.
type nearby struct {
	before, after int
	at            clock
	has           recall.Toolset
}

// aroundPage shows consecutive messages, and at each end the call that reads on.
func aroundPage(page recall.Neighbors, centre recall.Message, by nearby) string {
	first, last := page.Messages[0], page.Messages[len(page.Messages)-1]
	where := "the default conversation"
	if centre.ConversationID != nil {
		where = *centre.ConversationID
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Messages of seq %d-%d, %d of the %d of %s, around %s (seq %d)\n%s\n", first.Seq, last.Seq,
		len(page.Messages), page.Total, where, centre.ID, centre.Seq, rule)
	for _, m := range page.Messages {
		fmt.Fprintf(&b, "\n=== seq %d: %s ===\n%s\n%s", m.Seq, by.at.spoken(m), m.ID, messageText(m, by.has))
	}
	b.WriteString("\n")
	if first.Position > 1 {
		b.WriteString("To read what came before, call: " + aroundCall(first.ID, max(by.before, messagesSide), 0) + "\n")
	}
	if last.Position < page.Total {
		b.WriteString("To read on, call: " + aroundCall(last.ID, 0, max(by.after, messagesSide)) + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// messageText returns the text of a message, cut at maxMessageChars.
func messageText(m recall.Message, has recall.Toolset) string {
	text := m.Text()
	if text == "" {
		return "  [nothing to read]\n"
	}
	note := orphanNote(m)
	shown := clip(text, maxMessageChars)
	if shown == text {
		return note + indented(text)
	}
	return note + indented(shown) + fmt.Sprintf("  "+frame.MessageCut+"\n", len(text),
		has.Hint("expand", " To read on, call: "+expandCall(m.ID, len(shown), recall.ExpandBytes, "")))
}
