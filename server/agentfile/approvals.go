package agentfile

import (
	"slices"
	"time"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/recall"
)

// isAnswer reports whether a message holds a client's answers to calls.
func (m fileMessage) isAnswer() bool { return m.Role == approvalRole && len(m.ToolCalls) == 0 }

// clientAnswers holds the messages of a file in an order, and the answers of clients that were read so far.
type clientAnswers struct {
	messages []fileMessage
	byID     map[string]int
	order    []int // indexes of messages
	// by the id of a call: the last place in the order that has a result which a tool returned
	last  map[string]int
	given map[string]recall.Approval // by the id of a call that gets its result in a later message

	thinks func(fileMessage) bool // reports whether the texts of an answer are thoughts
	zone   *time.Location         // the agent's
}

func newClientAnswers(messages []fileMessage, byID map[string]int, order []int) *clientAnswers {
	c := &clientAnswers{messages: messages, byID: byID, order: order, last: map[string]int{},
		given: map[string]recall.Approval{}, thinks: func(fileMessage) bool { return false }, zone: time.UTC}
	for k, n := range order {
		m := messages[n]
		if m.Role != string(recall.Tool) {
			continue
		}
		for _, id := range m.returned() {
			c.last[id] = k
		}
	}
	return c
}

// thinks reports whether the texts of answers by Letta's agents of a type are thoughts, as Letta's lists show them.
// Such agents speak with a tool.
func thinks(agentType string) bool {
	return agentType != agent.DefaultType && slices.Contains(agent.Types, agentType)
}

// open takes the results in a message out of the envelopes in which Letta has them. An envelope that can be made again
// is not kept.
func (c *clientAnswers) open(d recall.Draft) {
	for n := range d.Content {
		p := &d.Content[n]
		p.OpenEnvelope()
		if e := p.Envelope; e != nil && !e.Raw && d.CreatedAt != nil &&
			e.Time == d.CreatedAt.In(c.zone).Format(recall.EnvelopeTime) {
			p.Envelope = nil
		}
	}
}

// returned returns the ids of the calls that a message has results for.
func (m fileMessage) returned() (ids []string) {
	for _, r := range m.ToolReturns {
		if r.ToolCallID != nil {
			ids = append(ids, *r.ToolCallID)
		}
	}
	if m.ToolCallID != nil {
		ids = append(ids, *m.ToolCallID)
	}
	return ids
}

// draft returns the message at place k of the order, or a sentence that says why it is left out. If the results to an
// answer are in a later message, the draft has no content.
func (c *clientAnswers) draft(k int) (recall.Draft, string, error) {
	m, leftOut := c.messages[c.order[k]], ""
	if m.isAnswer() {
		m.ToolReturns, leftOut = c.take(k, m), answered
	}
	if m.isAnswer() && len(m.ToolReturns) == 0 {
		if c.hasResults(k, m) {
			leftOut = ""
		}
		return recall.Draft{Role: recall.Tool}, leftOut, nil
	}
	d, leftOut, err := m.draft()
	c.open(d)
	if d.Role == recall.Assistant && c.thinks(m) {
		d.Content = recall.AsThoughts(d.Content)
	}
	waits := c.isNewest(k)
	for n, p := range d.Content {
		if p.Type == recall.ToolCall && waits && c.last[p.CallID] <= k {
			d.Content[n].Approval = recall.Asked
		}
		if p.Type != recall.ToolReturn {
			continue
		}
		if m.isAnswer() {
			d.Content[n].Approval = recall.Returned
		} else if approval, ok := c.given[p.CallID]; ok {
			d.Content[n].Approval = approval
			delete(c.given, p.CallID)
		}
	}
	return d, leftOut, err
}

// isNewest reports whether only results follow a message. Then its calls without a result wait for the client, although
// the file says so only if all calls of a message wait.
func (c *clientAnswers) isNewest(k int) bool {
	for _, n := range c.order[k+1:] {
		if c.messages[n].Role != string(recall.Tool) {
			return false
		}
	}
	return true
}

// answered says why an answer without a later result is left out.
const answered = "It is the answer to a request for approval, and no result of the call follows it."

// take notes the answers of a message if their results come later. It returns the results of the client's own tools
// that no later message repeats.
func (c *clientAnswers) take(k int, m fileMessage) (results []fileReturn) {
	for _, r := range c.answersOf(m) {
		switch {
		case r.Type != "approval" && (r.ToolCallID == nil || c.last[*r.ToolCallID] <= k):
			results = append(results, r)
		case r.ToolCallID != nil:
			c.given[*r.ToolCallID] = r.approval()
		}
	}
	return append(results, m.ToolReturns...)
}

// hasResults reports whether later messages have results for all calls that a message answers.
func (c *clientAnswers) hasResults(k int, m fileMessage) bool {
	all := c.answersOf(m)
	for _, r := range all {
		if r.ToolCallID == nil || c.last[*r.ToolCallID] <= k {
			return false
		}
	}
	return len(all) > 0
}

// answersOf returns a message's answers to calls. A message of an older server answers all calls of a request at once.
func (c *clientAnswers) answersOf(m fileMessage) []fileReturn {
	if len(m.Approvals) > 0 || m.Approve == nil || m.RequestID == nil {
		return m.Approvals
	}
	var all []fileReturn
	if n, ok := c.byID[*m.RequestID]; ok {
		for _, call := range c.messages[n].ToolCalls {
			all = append(all, fileReturn{Type: "approval", ToolCallID: &call.ID, Approve: m.Approve})
		}
	}
	return all
}

func (r fileReturn) approval() recall.Approval {
	switch {
	case r.Type != "approval":
		return recall.Returned
	case r.Approve != nil && *r.Approve:
		return recall.Approved
	}
	return recall.Denied
}
