package loop

import (
	"context"
	"slices"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// tail is the end of a conversation: its newest answer, unless a user's message came after it.
type tail struct {
	answer  *recall.Message // nil if there is none
	pending []recall.Part   // calls of the answer that have no result
	results map[string]recall.Part
	notice  bool // a system message came after the answer
	empty   bool // nobody has said anything

	resultIn map[string]string // id of the message with the result, by the id of the call
}

// waitsFor reports whether a call waits for its result.
func (t tail) waitsFor(callID string) bool {
	return slices.ContainsFunc(t.pending, func(p recall.Part) bool { return p.CallID == callID })
}

// goesOnAfter reports whether an earlier end's answer was followed by messages other than results of its calls.
func (t tail) goesOnAfter(earlier tail) bool {
	return t.answer == nil || t.answer.Position != earlier.answer.Position || t.notice && !earlier.notice
}

// tailPage is how many messages are read at once. An answer with the results of its calls mostly has fewer.
const tailPage = 20

// readTail reads the end of a conversation.
func readTail(ctx context.Context, in *recall.Store, org db.Org, c recall.Conversation) (tail, error) {
	return readTailBefore(ctx, in, org, c, "")
}

// readTailBefore reads the end that a conversation had before the message with this id.
func readTailBefore(ctx context.Context, log *recall.Store, org db.Org, c recall.Conversation, message string) (t tail,
	err error) {
	t.results, t.resultIn = map[string]recall.Part{}, map[string]string{}
	page := db.Page{Limit: tailPage, After: message}
	f := recall.MessageFilter{AgentID: c.AgentID, Conversation: c.ID, WithErrors: true,
		NotRefused: true}
	for {
		list, err := log.Messages(ctx, org, f, page)
		if err != nil {
			return t, err
		}
		if slices.ContainsFunc(list, t.add) {
			return t, nil
		}
		if len(list) < page.Limit {
			t.empty = len(t.results) == 0
			return t, nil
		}
		page.After = list[len(list)-1].ID
	}
}

// add adds a message that comes before those already added. It reports whether no earlier message matters.
func (t *tail) add(m recall.Message) bool {
	switch m.Role {
	case recall.User:
		return true
	case recall.System:
		t.notice = true
	case recall.Tool:
		for _, p := range m.Content {
			t.results[p.CallID], t.resultIn[p.CallID] = p, m.ID
		}
	case recall.Assistant:
		t.answer = &m
		for _, p := range m.Content {
			if _, has := t.results[p.CallID]; p.Type == recall.ToolCall && !has {
				t.pending = append(t.pending, p)
			}
		}
		return true
	}
	return false
}
