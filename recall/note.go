package recall

import (
	"context"

	"github.com/loci-memory/loci/db"
)

// A program that speaks with a provider through this server sends its whole conversation with each request. The otids
// of its messages say which of them are stored; a note is what was put in behind a message on its way to the provider.

// Known is a stored message with the otid of one that a program sent again.
type Known struct {
	OTID         string `db:"otid"`
	ID           string `db:"id"`
	Conversation string `db:"conversation"` // its id
	Position     int    `db:"position"`
	Last         int    `db:"last"` // position of the conversation's last message
	Role         Role   `db:"role"`
}

const knownColumns = `SELECT coalesce(m.otid, '') AS otid, 'message-' || m.id AS id, c.id AS conversation, m.position,
		c.messages AS last, m.role
	FROM messages m JOIN conversations c ON c.org = m.org AND c.key = m.conversation_key AND c.deleted_at IS NULL
	WHERE m.org = $1 AND m.agent_key = $2`

// KnownByOTID returns the messages of an agent that have one of these otids.
func (s *Store) KnownByOTID(ctx context.Context, org db.Org, agent int64, otids []string) ([]Known, error) {
	return db.All[Known](ctx, s.db, knownColumns+` AND m.otid = ANY ($3)`, org, agent, otids)
}

// KnownByStep returns the last message of an agent with this step_id. ErrNotFound if there is none.
func (s *Store) KnownByStep(ctx context.Context, org db.Org, agent int64, step string) (Known, error) {
	return db.One[Known](ctx, s.db, knownColumns+` AND m.step_id = $3 ORDER BY m.key DESC LIMIT 1`, org, agent, step)
}

// Note is a text that was put in behind the message with an otid.
type Note struct {
	OTID         string `db:"otid"`
	Conversation string `db:"conversation"`
	Text         string `db:"note"`
}

// Notes returns the notes behind the messages of an agent with one of these otids, the oldest conversation's first.
func (s *Store) Notes(ctx context.Context, org db.Org, agent int64, otids []string) ([]Note, error) {
	return db.All[Note](ctx, s.db, `
		SELECT n.otid, c.id AS conversation, n.note
		FROM recalled_notes n
		JOIN conversations c ON c.org = n.org AND c.key = n.conversation_key AND c.deleted_at IS NULL
		WHERE n.org = $1 AND n.agent_key = $2 AND n.otid = ANY ($3)
		ORDER BY n.conversation_key`, org, agent, otids)
}

// KeepNote stores a note behind a message of a conversation. The first one stays.
func (s *Store) KeepNote(ctx context.Context, org db.Org, agentID string, n Note) error {
	_, err := s.db.Exec(ctx, `
		INSERT INTO recalled_notes (org, agent_key, conversation_key, otid, note)
		SELECT c.org, c.agent_key, c.key, $4, $5
		FROM conversations c JOIN agents a ON a.org = c.org AND a.key = c.agent_key
		WHERE c.org = $1 AND a.org = $1 AND c.id = $2 AND a.id = $3
		ON CONFLICT (org, agent_key, otid, conversation_key) DO NOTHING`, org, n.Conversation, agentID, n.OTID, n.Text)
	return db.Error(err)
}

// LastSpoken returns the ids of the conversations of an agent in which something was said last, the newest first.
func (s *Store) LastSpoken(ctx context.Context, org db.Org, agent int64, most int) ([]string, error) {
	return db.All[string](ctx, s.db, `
		SELECT c.id FROM (
			SELECT m.conversation_key, max(m.key) AS last FROM (
				SELECT conversation_key, key FROM messages WHERE org = $1 AND agent_key = $2
				ORDER BY created_at DESC, key DESC LIMIT 2000) AS m
			GROUP BY m.conversation_key) AS newest
		JOIN conversations c ON c.org = $1 AND c.key = newest.conversation_key
		WHERE c.deleted_at IS NULL AND NOT c.delegated
		ORDER BY newest.last DESC LIMIT $3`, org, agent, most)
}
