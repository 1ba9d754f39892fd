package recall

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// messageColumns are the columns of Message, from messageTables.
const messageColumns = `m.key, 'message-' || m.id AS id, a.id AS agent_id,
	CASE WHEN NOT c.is_default THEN c.id END AS conversation_id,
	m.seq, m.position, m.role, m.name, m.content, m.otid, m.step_id, m.run_id, m.sender_id, m.group_id, m.model, m.is_err,
	m.tokens, m.created_at`

// messageTables joins messages to their conversations and agents. It leaves out the messages of deleted ones.
const messageTables = `messages m
	JOIN conversations c ON c.org = m.org AND c.key = m.conversation_key AND c.deleted_at IS NULL
	JOIN agents a ON a.org = c.org AND a.key = c.agent_key`

// uuidOf returns the UUID in a message's id, or the nil UUID, which no message has.
func uuidOf(id string) uuid.UUID {
	parsed, err := uuid.Parse(strings.TrimPrefix(id, "message-"))
	if err != nil {
		return uuid.Nil
	}
	return parsed
}

// Message returns a message by its id.
func (s *Store) Message(ctx context.Context, org db.Org, id string) (Message, error) {
	m, err := db.One[Message](ctx, s.db, `
		SELECT `+messageColumns+` FROM `+messageTables+`
		WHERE m.org = $1 AND m.id = $2`, org, uuidOf(id))
	return m, messageError(err, id)
}

func messageError(err error, id string) error {
	if isNotFound(err) {
		return db.NotFound("Message with ID %s not found", id)
	}
	return err
}

// MessageFilter selects messages; an empty field selects all.
type MessageFilter struct {
	AgentID      string
	Conversation string // an id, or DefaultConversation of AgentID
	GroupID      string
	WithErrors   bool // include messages that report an error
	Roles        []Role
	Parts        []PartType // the assistant's messages must have a part of one of these types, or no part
}

// where returns the filter as a condition on messages m, without the agent and the conversation, and adds its
// arguments.
func (f MessageFilter) where(args pgx.StrictNamedArgs) string {
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

// Messages lists the messages of a conversation, an agent or the organization, in the order in which they were
// appended. It returns ErrNotFound if the agent or the conversation does not exist. The page's Before and After are ids
// of messages; an id that is not in the list gives an empty page. New messages come after all listed ones, except that
// in a list of the organization one that was being appended at the time may come before.
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
	page := p.Stretch(order, `SELECT `+order+` FROM messages m WHERE m.org = @org AND m.id = @place::uuid`+where, args)
	rows, err := db.All[Message](ctx, s.db, `
		SELECT `+messageColumns+` FROM `+messageTables+`
		WHERE m.org = @org`+where+f.where(args)+` AND `+page.Where+page.Order, args)
	if page.Reversed {
		slices.Reverse(rows)
	}
	return rows, err
}

// cursor returns the UUID in the id of a message that a page begins or ends at; empty if there is none.
func cursor(id string) string {
	if id == "" {
		return ""
	}
	return uuidOf(id).String()
}

// MessagesByID returns the messages of ids, in their order, without those that do not exist.
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
