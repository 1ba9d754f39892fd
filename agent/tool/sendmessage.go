package tool

import (
	"context"

	"github.com/loci-memory/loci/agent"
)

// sentMessage is the result of send_message, in Letta's words.
const sentMessage = "Sent message successfully."

type sendMessageArgs struct {
	Message text `json:"message"`
}

// sendMessage says something to the user: lists and streams show the message as a text of the agent.
func (m Memories) sendMessage(_ context.Context, _ Caller, a sendMessageArgs) (Result, error) {
	if err := must(agent.SendMessage, "message", a.Message); err != nil {
		return Result{}, err
	}
	return Result{Text: sentMessage}, nil
}
