package agentfile

import (
	"fmt"
	"slices"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// messagesOf returns the messages of an agent in the order for its log: first the messages that its model does not see,
// then those it sees, in the order of in_context_message_ids. hidden counts the first group. Without
// in_context_message_ids the model sees all messages. The system prompt is left out, because Loci compiles it.
func (i *imports) messagesOf(a agentOf) (all []recall.Draft, hidden int, err error) {
	byID := map[string]int{}
	for n, m := range a.fields.Messages {
		place := fmt.Sprintf("%s.messages[%d]", a.place, n)
		if _, duplicate := byID[m.ID]; duplicate || m.ID == "" {
			return nil, 0, db.Invalid("%s.id: %q is missing, or is the id of two messages", place, db.Short(m.ID))
		}
		byID[m.ID] = n
	}
	seen, err := a.inContext(byID)
	if err != nil {
		return nil, 0, err
	}
	isSeen := make([]bool, len(a.fields.Messages))
	for _, n := range seen {
		isSeen[n] = true
	}
	var order []int
	for n := range a.fields.Messages {
		if !isSeen[n] {
			order = append(order, n)
		}
	}
	first := len(order)
	if len(seen) > 0 && a.fields.Messages[seen[0]].Role == string(recall.System) {
		seen = seen[1:]
	}
	answers := newClientAnswers(a.fields.Messages, byID, append(order, seen...))
	answers.zone = agent.Agent{Timezone: a.Timezone}.Zone()
	answers.thinks = func(m fileMessage) bool {
		if a.own != nil {
			return slices.Contains(a.own.Thoughts, m.ID)
		}
		return thinks(a.Type)
	}
	for k, n := range answers.order {
		if k == first {
			hidden = len(all)
		}
		place := fmt.Sprintf("%s.messages[%d]", a.place, n)
		d, leftOut, err := answers.draft(k)
		if err != nil {
			return nil, 0, at(place, err)
		}
		if leftOut != "" {
			i.leaveOut("%s: left out. %s", place, leftOut)
		}
		if len(d.Content) > 0 || d.Role != recall.Tool {
			all = append(all, d)
		}
	}
	if first == len(answers.order) {
		hidden = len(all)
	}
	return all, hidden, nil
}

// inContext returns the indexes of the messages that the model sees, in the model's order.
func (a agentOf) inContext(byID map[string]int) (seen []int, err error) {
	if a.fields.InContext == nil {
		for n := range a.fields.Messages {
			seen = append(seen, n)
		}
		return seen, nil
	}
	listed := map[string]bool{}
	for k, id := range *a.fields.InContext {
		n, ok := byID[id]
		if !ok || listed[id] {
			return nil, db.Invalid("%s.in_context_message_ids[%d]: %q is no message of the agent, or is in the list twice",
				a.place, k, db.Short(id))
		}
		listed[id] = true
		seen = append(seen, n)
	}
	return seen, nil
}
