package agentfile

import (
	"encoding/json"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// LettaMessages makes drafts of the messages of an agent of Letta's, which have the same form in its database and in
// files. Each is noted first, in its order, because an answer of a client depends on the results after it.
type LettaMessages struct{ answers *clientAnswers }

// NewLettaMessages returns a LettaMessages without messages.
func NewLettaMessages() *LettaMessages {
	return &LettaMessages{newClientAnswers(nil, map[string]int{}, nil)}
}

// Note notes a message, and returns its number, from 0. It keeps what later messages need, and no contents.
func (l *LettaMessages) Note(raw json.RawMessage) (int, error) {
	n := len(l.answers.messages)
	m, err := readLettaMessage(raw)
	noted := fileMessage{ID: m.ID, Role: m.Role, Approve: m.Approve, RequestID: m.RequestID}
	if m.Role == approvalRole {
		for _, c := range m.ToolCalls {
			noted.ToolCalls = append(noted.ToolCalls, fileCall{ID: c.ID})
		}
	}
	l.answers.messages, l.answers.order = append(l.answers.messages, noted), append(l.answers.order, n)
	l.answers.byID[m.ID] = n
	if m.Role == string(recall.Tool) {
		for _, id := range m.returned() {
			l.answers.last[id] = n
		}
	}
	return n, err
}

// Draft returns the message of a number to append, or why it is left out, as a sentence. A draft of the role tool that
// has no content is left out. The messages are asked for in their order.
func (l *LettaMessages) Draft(n int, raw json.RawMessage) (d recall.Draft, leftOut string, err error) {
	m, err := readLettaMessage(raw)
	if err != nil {
		return d, "", err
	}
	noted := l.answers.messages[n]
	l.answers.messages[n] = m
	defer func() { l.answers.messages[n] = noted }()
	return l.answers.draft(n)
}

func readLettaMessage(raw json.RawMessage) (m fileMessage, err error) {
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, db.Invalid("It has another form than Letta's messages")
	}
	return m, nil
}

// Len returns how many messages are noted.
func (l *LettaMessages) Len() int { return len(l.answers.messages) }
