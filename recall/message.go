package recall

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall/tokens"
)

// Role names the speaker of a message.
type Role string

// The roles of messages. A message with tool results has the role Tool.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
	Summary   Role = "summary" // set on a message that replaces others in the view; ChangeView appends it
)

// Roles lists the roles except Summary.
var Roles = []Role{System, User, Assistant, Tool}

// ForFlush is the purpose of messages in a silent turn: a model then writes to memory what must survive a compaction.
// Prompts of the conversation leave these messages out, and so do lists unless asked for them.
const ForFlush = "flush"

// Message is a message of the log. Only its Refused ever changes.
type Message struct {
	Key            int64     `db:"key" json:"-"`
	ID             string    `db:"id" json:"id"`
	AgentID        string    `db:"agent_id" json:"agent_id"`
	ConversationID *string   `db:"conversation_id" json:"conversation_id"` // nil for the agent's default conversation
	Seq            int64     `db:"seq" json:"seq"`                         // seq of its event, unique within the agent
	Position       int       `db:"position" json:"position"`               // in its conversation, from 1
	Role           Role      `db:"role" json:"role"`
	Name           *string   `db:"name" json:"name"`
	Content        []Part    `db:"content" json:"content"`
	OTID           *string   `db:"otid" json:"otid"`
	StepID         *string   `db:"step_id" json:"step_id"`
	RunID          *string   `db:"run_id" json:"run_id"`
	SenderID       *string   `db:"sender_id" json:"sender_id"`
	GroupID        *string   `db:"group_id" json:"group_id"`
	Model          *string   `db:"model" json:"model"`
	IsErr          bool      `db:"is_err" json:"is_err"`
	Purpose        string    `db:"purpose" json:"purpose,omitempty"` // ForFlush, or empty
	Tokens         int       `db:"tokens" json:"tokens"`             // estimated when the message was appended
	CreatedAt      time.Time `db:"created_at" json:"created_at"`
	Abridged       bool      `db:"-" json:"-"` // its texts are cut to their beginnings; Tokens counts the whole

	// ToolNames are the names of the tools whose results the message holds, by call id. Only Message and Messages of a
	// Store set it. A result without a call has none.
	ToolNames map[string]string `db:"-" json:"-"`

	// Refused is set if a provider refused a prompt with this message, and the message left the view for that.
	Refused *Refused `db:"refused" json:"refused,omitempty" doc:"Why a provider refused it; it left the view."`

	// Provenance says who stored the message, beyond what the message's own fields say; nil if they say all that is known.
	Provenance *db.Provenance `db:"provenance" json:"provenance,omitempty"`
}

// Text returns a message as one text: what it says and thinks, the tools it calls, and what the tools returned.
func (m Message) Text() string {
	var texts []string
	for _, p := range m.Content {
		switch p.Type {
		case ToolCall:
			texts = append(texts, p.Name+"("+p.Input+")")
		case Image:
			texts = append(texts, "[image]")
		default:
			texts = append(texts, p.Text)
		}
		texts = append(append(texts, p.Stdout...), p.Stderr...)
	}
	return joinTexts(texts)
}

// sizeOf adds up measure over the texts of parts.
func sizeOf(parts []Part, measure func(string) int) int {
	n := tokens.PerMessage
	for _, p := range parts {
		n += measure(p.Text) + measure(p.Name) + measure(p.Input) + len(p.Images)*tokens.PerImage
		for _, s := range [][]string{p.Stdout, p.Stderr} {
			for _, line := range s {
				n += measure(line)
			}
		}
		if p.Type == Image {
			n += tokens.PerImage
		}
	}
	return n
}

// messageColumns are the columns of Message, from messageTables.
const messageColumns = `m.key, 'message-' || m.id AS id, a.id AS agent_id,
	CASE WHEN NOT c.is_default THEN c.id END AS conversation_id,
	m.seq, m.position, m.role, m.name, m.content, m.otid, m.step_id, m.run_id, m.sender_id, m.group_id, m.model, m.is_err,
	m.purpose, m.tokens, m.created_at, m.refused, m.provenance`

// messageTables joins messages to their conversations and agents. It leaves out messages of deleted conversations.
const messageTables = `messages m
	JOIN conversations c ON c.org = m.org AND c.key = m.conversation_key AND c.deleted_at IS NULL
	JOIN agents a ON a.org = c.org AND a.key = c.agent_key`

// tablesOf returns messageTables. With withReset, the messages that Reset hid are included.
func tablesOf(withReset bool) string {
	return strings.Replace(messageTables, notDeleted, shownOf(withReset), 1)
}

const notDeleted = "c.deleted_at IS NULL"

// shownOf is a condition: conversation c is not deleted. With withReset, a conversation that Reset hid passes, too.
func shownOf(withReset bool) string {
	if withReset {
		return "(" + notDeleted + " OR c.reset_at IS NOT NULL)"
	}
	return notDeleted
}

// uuidOf returns the UUID in a message's id. For any other id it returns the nil UUID, which no message has.
func uuidOf(id string) uuid.UUID { return db.UUID("message-", id) }

func messageError(err error, id string) error {
	return db.OrNotFound(err, "Message with ID %s not found", db.Short(id))
}

func joinTexts(texts []string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n")
}

// isOrphan is a condition: a part of a message is a result without a call.
const isOrphan = `coalesce(part ->> 'orphan', 'false') = 'true'`
