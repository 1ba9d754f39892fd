package chat

import (
	"slices"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/recall"
)

// WithState returns the view with the item at its end that changes by itself. The item comes before an answer that the
// model is to continue, and before calls that wait for results, because these must stay last.
func WithState(view []recall.Message, role recall.Role, text string) []recall.Message {
	at := len(view)
	for at > 0 && view[at-1].Role == recall.Tool {
		at--
	}
	if at == 0 || view[at-1].Role != recall.Assistant || at < len(view) && len(Pending(view)) == 0 {
		at = len(view)
	} else {
		at--
	}
	item := recall.Message{Role: role,
		Content: []recall.Part{{Type: recall.Text, Text: text, NoteAt: [2]int{0, len(text)}}}}
	return slices.Insert(slices.Clone(view), at, item)
}

// HasState reports whether a message that a client sends has the item that WithState adds.
func HasState(d recall.Draft) bool {
	return (d.Role == recall.User || d.Role == recall.System) && slices.ContainsFunc(d.Content, isStatePart)
}

func isStatePart(p recall.Part) bool { return p.Type == recall.Text && frame.IsState(p.Text) }

// DropState takes the item that WithState adds out of a message that a client sends back. It reports whether the
// message was nothing else, and thus no message.
func DropState(d *recall.Draft) (whole bool) {
	if !HasState(*d) {
		return false
	}
	kept := slices.DeleteFunc(slices.Clone(d.Content), isStatePart)
	whole, d.Content = len(kept) == 0 && len(d.Content) > 0, kept
	return whole
}
