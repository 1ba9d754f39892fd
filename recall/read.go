package recall

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// messageColumns are those of Message, from messages m, their conversations c and agents a.
const messageColumns = `m.key, 'message-' || m.id AS id, a.id AS agent_id, CASE WHEN NOT c.is_default THEN c.id END AS conversation_id,
	m.seq, m.position, m.role, m.name, m.content, m.otid, m.step_id, m.run_id, m.sender_id, m.group_id, m.model, m.is_err,
	m.tokens, m.created_at`

// messageTables joins a message to what it belongs to: one whose conversation is deleted, or gone with its agent, is not there.
const messageTables = `messages m JOIN conversations c ON c.key = m.conversation_key AND c.org = m.org AND c.deleted_at IS NULL
	JOIN agents a ON a.key = c.agent_key`

// uuidOf is the UUID of a message's id; one that is no such id is of no message.
func uuidOf(id string) uuid.UUID {
	parsed, err := uuid.Parse(strings.TrimPrefix(id, "message-"))
	if err != nil {
		return uuid.Nil
	}
	return parsed
}

// Message returns a message by its id.
func (s *Store) Message(ctx context.Context, org db.Org, id string) (Message, error) {
	m, err := db.One[Message](ctx, s.db, `SELECT `+messageColumns+` FROM `+messageTables+` WHERE m.org = $1 AND m.id = $2`, org, uuidOf(id))
	return m, messageError(err, id)
}

func messageError(err error, id string) error {
	if isNotFound(err) {
		return db.NotFound("Message with ID %s not found", id)
	}
	return err
}

// MessageFilter narrows a list of messages; empty fields do not.
type MessageFilter struct {
	AgentID      string
	Conversation string // an id, or DefaultConversation of AgentID
	GroupID      string
	WithErrors   bool       // those that say what went wrong, too
	Roles        []Role     // empty: all
	Parts        []PartType // of the assistant's only those with a part of one of these types, or without parts; empty: all
}

// narrow is the filter as a condition on messages m, without the agent and the conversation.
func (f MessageFilter) narrow(args pgx.StrictNamedArgs) string {
	where := ""
	if f.GroupID != "" {
		where += ` AND m.group_id = @group`
		args["group"] = f.GroupID
	}
	if !f.WithErrors {
		where += ` AND NOT m.is_err`
	}
	if len(f.Roles) > 0 {
		where += ` AND m.role = ANY (@roles)`
		args["roles"] = f.Roles
	}
	if len(f.Parts) > 0 {
		where += ` AND (m.role <> 'assistant' OR json_array_length(m.content) = 0
			OR EXISTS (SELECT FROM json_array_elements(m.content) AS part WHERE part ->> 'type' = ANY (@parts)))`
		args["parts"] = f.Parts
	}
	return where
}

// Messages lists messages in the order in which they were appended: of a conversation, of an agent or of the organization. ErrNotFound
// if the agent or the conversation is not there. Before and After of the page are ids of messages; one that is not of the list gives an
// empty page. Of a conversation and of an agent, no message comes to stand before one that was listed; of the organization, one that was
// being appended at the time may.
func (s *Store) Messages(ctx context.Context, org db.Org, f MessageFilter, p db.Page) ([]Message, error) {
	order, where, args := "m.key", "", pgx.StrictNamedArgs{"org": org}
	switch {
	case f.Conversation != "":
		c, err := s.Conversation(ctx, org, f.AgentID, f.Conversation)
		if err != nil {
			return nil, err
		}
		order, where, args["of"] = "m.position", " AND m.conversation_key = @of", c.Key
	case f.AgentID != "":
		agent, err := s.agentKey(ctx, org, f.AgentID)
		if err != nil {
			return nil, err
		}
		order, where, args["of"] = "m.seq", " AND m.agent_key = @of", agent
	}
	p.Before, p.After = cursor(p.Before), cursor(p.After)
	stretch := p.Stretch(order, `SELECT `+order+` FROM messages m WHERE m.org = @org AND m.id = @place::uuid`+where, args)
	rows, err := db.All[Message](ctx, s.db, `
		SELECT `+messageColumns+` FROM `+messageTables+`
		WHERE m.org = @org`+where+f.narrow(args)+` AND `+stretch.Where+stretch.Order, args)
	if stretch.Reversed {
		slices.Reverse(rows)
	}
	return rows, err
}

// cursor is the UUID in the id of a message that a page begins or ends at.
func cursor(id string) string {
	if id == "" {
		return ""
	}
	return uuidOf(id).String()
}

// MessagesByID returns messages in the order of their ids, without those that are not there.
func (s *Store) MessagesByID(ctx context.Context, org db.Org, ids []string) ([]Message, error) {
	uuids := make([]uuid.UUID, len(ids))
	for i, id := range ids {
		uuids[i] = uuidOf(id)
	}
	return db.All[Message](ctx, s.db, `
		SELECT `+messageColumns+` FROM unnest($2::uuid[]) WITH ORDINALITY AS wanted (id, place)
		JOIN `+messageTables+` ON m.id = wanted.id
		WHERE m.org = $1
		ORDER BY wanted.place`, org, uuids)
}

// Return names what a call of a tool returned: the key of the message, and the call's id.
type Return struct {
	Key    int64  `db:"key"`
	CallID string `db:"call_id"`
}

// ReturnsOf finds, among messages, what calls of one tool returned.
func (s *Store) ReturnsOf(ctx context.Context, org db.Org, tool string, messages []Message) (map[Return]bool, error) {
	var keys []int64
	var calls []string
	for _, m := range messages {
		for _, p := range m.Content {
			if p.Type == ToolReturn && !p.Orphan {
				keys, calls = append(keys, m.Key), append(calls, p.CallID)
			}
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	rows, err := db.All[Return](ctx, s.db, `
		SELECT m.key, t.call_id
		FROM unnest(@keys::bigint[], @calls::text[]) AS wanted (key, call_id)
		JOIN messages m ON m.key = wanted.key AND m.org = @org
		JOIN tool_calls t ON t.conversation_key = m.conversation_key AND t.call_id = wanted.call_id AND t.result_position = m.position
		WHERE t.name = @tool`, pgx.StrictNamedArgs{"org": org, "keys": keys, "calls": calls, "tool": tool})
	found := make(map[Return]bool, len(rows))
	for _, r := range rows {
		found[r] = true
	}
	return found, err
}

// Searched is the text that a search finds a message by; empty where none does.
func Searched(m Message) string { return searchable(m.Role, m.Name, m.Content) }
