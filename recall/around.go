package recall

import (
	"context"
	"slices"

	"github.com/loci-memory/loci/db"
)

// MaxAround is the most messages before another one, or after it, that Around returns.
const MaxAround = 100

// Surroundings are messages that stand together in a conversation.
type Surroundings struct {
	Messages []Message // in their order
	At       int       // the place in Messages of the one that was asked for
	Total    int       // messages of the conversation, whose positions go from 1 to it
}

// Around returns a message of an agent with as many of those before and after it in its conversation. ErrNotFound if the agent has no such
// message.
func (s *Store) Around(ctx context.Context, org db.Org, agentID, messageID string, before, after int) (Surroundings, error) {
	if before < 0 || before > MaxAround || after < 0 || after > MaxAround {
		return Surroundings{}, db.Invalid("before and after must be from 0 to %d messages. Got: %d and %d", MaxAround, before, after)
	}
	type centre struct {
		Conversation int64 `db:"conversation_key"`
		Position     int   `db:"position"`
		Total        int   `db:"total"`
	}
	at, err := db.One[centre](ctx, s.db, `
		SELECT m.conversation_key, m.position, c.messages AS total
		FROM `+messageTables+`
		WHERE m.org = $1 AND a.id = $2 AND m.id = $3`, org, agentID, uuidOf(messageID))
	if err != nil {
		return Surroundings{}, messageError(err, short(messageID))
	}
	rows, err := db.All[Message](ctx, s.db, `
		SELECT `+messageColumns+`
		FROM `+messageTables+`
		WHERE m.org = $1 AND m.conversation_key = $2 AND m.position BETWEEN $3::integer AND $4::integer
		ORDER BY m.position`, org, at.Conversation, at.Position-before, at.Position+after)
	place := slices.IndexFunc(rows, func(m Message) bool { return m.Position == at.Position })
	if err == nil && place < 0 {
		return Surroundings{}, messageError(db.ErrNotFound, short(messageID)) // deleted meanwhile
	}
	return Surroundings{Messages: rows, At: place, Total: at.Total}, err
}
