package agentfile

import (
	"encoding/json"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// LettaMessages turns the messages of a Letta agent into drafts; they have the same form in Letta's database and in
// files. All messages must be noted first, in order, because a client's answer depends on later results.
type LettaMessages struct{ answers *clientAnswers }

// NewLettaMessages returns a LettaMessages with no messages noted, for an agent of a type of Letta's in a timezone.
func NewLettaMessages(agentType string, zone *time.Location) *LettaMessages {
	answers := newClientAnswers(nil, map[string]int{}, nil)
	answers.thinks, answers.zone = func(fileMessage) bool { return thinks(agentType) }, zone
	return &LettaMessages{answers}
}

// Note notes a message, and returns its number, counted from 0. It keeps only what later messages need, not the
// content.
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

// Draft returns message number n to append, or a sentence that says why it is left out. A draft of role tool without
// content is to be skipped. Draft must be called in the order of the messages.
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

// Len returns how many messages were noted.
func (l *LettaMessages) Len() int { return len(l.answers.messages) }
