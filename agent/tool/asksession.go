package tool

import (
	"context"
	"strings"

	"github.com/loci-memory/loci/agent/pastsession"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

type askArgs struct {
	Conversation text `json:"conversation_id"`
	Question     text `json:"question"`
}

// lastSession stands for the conversation before the caller's.
const lastSession = "last"

// askSession answers a question from another conversation of the agent.
func (m Memories) askSession(ctx context.Context, c Caller, a askArgs) (Result, error) {
	id := strings.TrimSpace(string(a.Conversation))
	switch {
	case id == "":
		return Result{}, db.Invalid("No conversation_id given. Give the id of the conversation to ask, or "+
			"%s for the one before this, or default.", lastSession)
	case c.within() != "" && c.within() != id:
		return Result{}, errConfined
	}
	if id == lastSession {
		before, err := m.Recall.Before(ctx, c.Org, c.Agent.ID, recall.Reach{Conversation: c.Conversation, Users: c.Users})
		if err != nil {
			return Result{}, err
		}
		id = before.ID
	}
	store := pastsession.Store{Recall: m.Recall, Models: m.Models}
	answer, err := store.Ask(ctx, c.Org, pastsession.Question{AgentID: c.Agent.ID, Conversation: id,
		Users: c.Users, Text: string(a.Question), Zone: c.Agent.Zone()})
	if err != nil {
		return Result{}, whereFound(err, "searches of conversations show their ids")
	}
	return Result{Text: askedText(answer)}, nil
}

func askedText(a pastsession.SessionAnswer) string {
	if len(a.Passages) == 0 {
		return "Nothing in that conversation fits the question. Ask with other words, such as names and paths that may " +
			"have " +
			"been said there."
	}
	head := "No answer is phrased (" + deref(a.Why, "") + "). "
	if a.Answer != nil {
		head = "Answer: " + *a.Answer + "\n\n"
	}
	return head + "Passages of the conversation, the best first, each message behind its position:\n" +
		pastsession.Render(a.Passages)
}
