package tool

import (
	"context"
	"fmt"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/erase"
)

type erasureArgs struct {
	Texts   list[text] `json:"texts"`
	Message text       `json:"message_id"`
	Reason  text       `json:"reason"`
}

// requestErasure asks the operator to erase texts or a message.
func (m Memories) requestErasure(ctx context.Context, c Caller, a erasureArgs) (Result, error) {
	if len(a.Texts) == 0 && a.Message == "" {
		return Result{}, db.Invalid("Give texts, with all spellings that are meant, or the message_id of a message.")
	}
	if m.Erasures == nil {
		return Result{}, db.Invalid("This server takes no requests to erase.")
	}
	if a.Message != "" {
		owner, err := m.Recall.Message(ctx, c.Org, strings.TrimSpace(string(a.Message)))
		if err != nil || owner.AgentID != c.Agent.ID {
			return Result{}, db.NotFound("You have no message %s.", echo(string(a.Message)))
		}
	}
	e, err := m.Erasures.Create(ctx, c.Org, erase.Request{Texts: plain(a.Texts), MessageID: strings.TrimSpace(
		string(a.Message)), Reason: string(a.Reason), By: erase.Requester{Agent: c.Agent.ID, Conversation: c.Conversation}})
	return Result{Text: fmt.Sprintf("The erasure %s waits for the approval of an operator. Nothing is erased before.",
		e.ID)}, err
}
