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
	WithErrors   bool // those that say what went wrong, too
}

// Messages lists messages in the order in which they were appended: of a conversation, of an agent or of the organization. ErrNotFound
// if the agent or the conversation is not there. Before and After of the page are ids of messages; the limit counts messages.
func (s *Store) Messages(ctx context.Context, org db.Org, f MessageFilter, p db.Page) ([]Message, error) {
	order, where, args := "m.key", "", pgx.StrictNamedArgs{"org": org, "group": f.GroupID, "errors": f.WithErrors}
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
	stretch := p.Stretch(order, `SELECT `+order+` FROM messages m WHERE m.org = @org AND m.id = @place::uuid`, args)
	rows, err := db.All[Message](ctx, s.db, `
		SELECT `+messageColumns+` FROM `+messageTables+`
		WHERE m.org = @org`+where+` AND (@group = '' OR m.group_id = @group) AND (@errors OR NOT m.is_err) AND `+stretch.Where+stretch.Order, args)
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

// View is what the model sees of a conversation as it is: its instructions, and the messages that no summary stands for, without results
// of tools that no call of the view waits for.
func (s *Store) View(ctx context.Context, org db.Org, agentID, conversation string) ([]Message, error) {
	c, err := s.Conversation(ctx, org, agentID, conversation)
	if err != nil {
		return nil, err
	}
	rows, err := db.All[Message](ctx, s.db, `
		SELECT `+messageColumns+` FROM `+messageTables+`
		WHERE m.org = $1 AND m.conversation_key = $2 AND (m.position = 1 OR m.position >= $3) AND NOT m.is_err
		ORDER BY m.position`, org, c.Key, c.FirstVisible)
	return paired(rows), err
}

// paired leaves out results whose call is not before them, and messages that nothing is left of.
func paired(rows []Message) []Message {
	called := map[string]bool{}
	kept := rows[:0]
	for _, m := range rows {
		parts := m.Content[:0:0]
		for _, p := range m.Content {
			if p.Type == ToolCall {
				called[p.CallID] = true
			}
			if p.Type == ToolReturn && (p.Orphan || !called[p.CallID]) {
				continue
			}
			parts = append(parts, p)
		}
		if m.Content = parts; len(parts) > 0 || m.Role != Tool {
			kept = append(kept, m)
		}
	}
	return kept
}
