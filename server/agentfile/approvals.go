package agentfile

import "github.com/loci-memory/loci/recall"

// isAnswer reports whether a message has a client's answers to calls.
func (m fileMessage) isAnswer() bool { return m.Role == approvalRole && len(m.ToolCalls) == 0 }

// clientAnswers are the messages of a file, in an order, and the clients' answers to calls so far.
type clientAnswers struct {
	messages []fileMessage
	byID     map[string]int
	order    []int // indexes of messages
	// by the id of a call, the last place in the order of a result that a tool returned
	last  map[string]int
	given map[string]recall.Approval // by the id of a call, whose result is to come
}

func newClientAnswers(messages []fileMessage, byID map[string]int, order []int) *clientAnswers {
	c := &clientAnswers{messages, byID, order, map[string]int{}, map[string]recall.Approval{}}
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

// returned returns the ids of the calls of which a message has results.
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

// draft returns the message at a place of the order, or why it is left out, as a sentence. An answer whose results are
// in a later message has no content.
func (c *clientAnswers) draft(k int) (recall.Draft, string, error) {
	m, why := c.messages[c.order[k]], ""
	if m.isAnswer() {
		m.ToolReturns, why = c.take(k, m), answered
	}
	if m.isAnswer() && len(m.ToolReturns) == 0 {
		if c.hasResults(k, m) {
			why = ""
		}
		return recall.Draft{Role: recall.Tool}, why, nil
	}
	d, why, err := m.draft()
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
		} else if approval, has := c.given[p.CallID]; has {
			d.Content[n].Approval = approval
			delete(c.given, p.CallID)
		}
	}
	return d, why, err
}

// isNewest reports whether only results follow a message: its calls without one wait for the client, though the file
// says so only of a message all of whose calls wait.
func (c *clientAnswers) isNewest(k int) bool {
	for _, n := range c.order[k+1:] {
		if c.messages[n].Role != string(recall.Tool) {
			return false
		}
	}
	return true
}

// answered says why an answer is left out that no result follows.
const answered = "It is the answer to a request for approval, and no result of the call follows it."

// take notes the answers of a message whose results follow, and returns the results of the client's tools of which no
// later message has one.
func (c *clientAnswers) take(k int, m fileMessage) (own []fileReturn) {
	for _, r := range c.answersOf(m) {
		switch {
		case r.Type != "approval" && (r.ToolCallID == nil || c.last[*r.ToolCallID] <= k):
			own = append(own, r)
		case r.ToolCallID != nil:
			c.given[*r.ToolCallID] = r.approval()
		}
	}
	return append(own, m.ToolReturns...)
}

// hasResults reports whether a later message has the result of each call that a message answers.
func (c *clientAnswers) hasResults(k int, m fileMessage) bool {
	all := c.answersOf(m)
	for _, r := range all {
		if r.ToolCallID == nil || c.last[*r.ToolCallID] <= k {
			return false
		}
	}
	return len(all) > 0
}

// answersOf returns the answers of a message. Older servers answer all calls of a request at once.
func (c *clientAnswers) answersOf(m fileMessage) []fileReturn {
	if len(m.Approvals) > 0 || m.Approve == nil || m.RequestID == nil {
		return m.Approvals
	}
	var all []fileReturn
	if n, has := c.byID[*m.RequestID]; has {
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
