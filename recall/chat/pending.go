package chat

import (
	"slices"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/recall"
)

// PendingCall is a call at the end of a view that still waits for its result.
type PendingCall struct {
	CallID   string `json:"tool_call_id" doc:"As it was captured; the request has another one if its provider needs it."`
	Name     string `json:"name" doc:"Of the tool."`
	Position int    `json:"position" doc:"Of the message with the call, in its conversation."`
}

// Pending returns the calls of a view's last message that have no result, in their order. Providers refuse a request
// that ends with such a call. Earlier calls without a result are left out, because the conversation went on without it.
func Pending(view []recall.Message) []PendingCall {
	pending := []PendingCall{}
	all := pairedSteps(view)
	if len(all) == 0 {
		return pending
	}
	for _, r := range all[len(all)-1].results {
		if !r.received {
			pending = append(pending, r.logged)
		}
	}
	return pending
}

// AnswerPending returns the view with a result for each pending call; the result says that the call is pending.
func AnswerPending(view []recall.Message) []recall.Message {
	answers := recall.Message{Role: recall.Tool}
	for _, c := range Pending(view) {
		answers.Content = append(answers.Content,
			recall.Part{Type: recall.ToolReturn, CallID: c.CallID, Text: frame.NoResultYet,
				NoteAt: [2]int{0, len(frame.NoResultYet)}})
	}
	if len(answers.Content) == 0 {
		return view
	}
	return append(slices.Clip(view), answers)
}
